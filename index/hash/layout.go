package hash

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/farmsql/farmsql/region"
)

// Limits of keys and values. A pair beyond Config's inline limits is stored in an object of its
// own.
const (
	// KeyBytesMax is the length of the longest key.
	KeyBytesMax = 3072
	// InlineKeyBytesMax and InlineValueBytesMax bound Config.KeyBytes and Config.ValueBytes.
	InlineKeyBytesMax   = 255
	InlineValueBytesMax = 4095

	neighbourhoodMax = 64
	bucketsMin       = 4
	// shardBytes is the approximate default size of a shard's array of buckets. A split allocates
	// the array in one transaction, which must fit into a log.
	shardBytes = 64 << 10
)

// Config configures a new table. The zero value is good for small keys whose values
// are pointers to objects.
type Config struct {
	// KeyBytes and ValueBytes are the longest key and value kept inline, in the bucket; 0 means 16.
	// A pair that exceeds either is an object of its own and costs one more read. Every slot has
	// room for a key and value of these lengths, and every lookup reads a neighbourhood of slots:
	// for pairs of more than some hundred bytes, an object of its own is cheaper (NSDI'14 figure
	// 10).
	KeyBytes, ValueBytes int
	// Neighbourhood is H, the number of slots in which a key can be without overflowing. It must be
	// even, from 2 to 64; 0 means 8.
	Neighbourhood int
	// Buckets is the number of buckets, of H/2 slots each, of a shard: a power of
	// two. 0 chooses it so that a shard takes about 64 KB, less where regions or
	// logs are small.
	Buckets int
	// MaxLoad is the percentage of taken slots at which a shard splits; 0 means
	// 85. The load is counted only after inserts have overflowed into chains.
	MaxLoad int
	// Seed makes the table's hash function differ from other tables' functions. Draw it at random
	// if an attacker may choose the keys.
	Seed uint64
	// Places are hints for the placement of shards, at most 32. As the table grows,
	// its shards are distributed over the places in turn. Without places, all
	// shards are where the table was created.
	Places []region.Addr
}

// layout is a table's geometry, derived from its Config.
type layout struct {
	slots      int // per bucket, H/2
	keyBytes   int
	valueBytes int
	dataBytes  int // the bytes of a slot without its control word
	buckets    int // per shard, not counting the last one's neighbour
	maxLoad    int // percent
	class      region.Class
}

func (c Config) withDefaults() Config {
	for _, f := range []struct {
		p *int
		v int
	}{{&c.KeyBytes, 16}, {&c.ValueBytes, 16}, {&c.Neighbourhood, 8}, {&c.MaxLoad, 85}} {
		if *f.p == 0 {
			*f.p = f.v
		}
	}
	return c
}

// layout returns the layout of a shard's objects, or an ErrConfig.
func (c Config) layout() (layout, error) {
	c = c.withDefaults()
	switch {
	case c.KeyBytes < 1 || c.KeyBytes > InlineKeyBytesMax:
		return layout{}, fmt.Errorf("%w: inline keys of %d bytes, must be 1 to %d", ErrConfig, c.KeyBytes, InlineKeyBytesMax)
	case c.ValueBytes < 1 || c.ValueBytes > InlineValueBytesMax:
		return layout{}, fmt.Errorf("%w: inline values of %d bytes, must be 1 to %d", ErrConfig, c.ValueBytes, InlineValueBytesMax)
	case c.Neighbourhood < 2 || c.Neighbourhood > neighbourhoodMax || c.Neighbourhood%2 != 0:
		return layout{}, fmt.Errorf("%w: neighbourhood of %d slots, must be even, 2 to %d", ErrConfig, c.Neighbourhood, neighbourhoodMax)
	case c.MaxLoad < 1 || c.MaxLoad > 100:
		return layout{}, fmt.Errorf("%w: load of %d %%, must be 1 to 100", ErrConfig, c.MaxLoad)
	case len(c.Places) > placesMax:
		return layout{}, fmt.Errorf("%w: %d places, at most %d", ErrConfig, len(c.Places), placesMax)
	}
	l := layout{slots: c.Neighbourhood / 2, keyBytes: c.KeyBytes, valueBytes: c.ValueBytes, maxLoad: c.MaxLoad}
	l.dataBytes = max(c.KeyBytes+c.ValueBytes, outsideBytes)
	class, ok := region.ClassFor(l.bucketBytes())
	if !ok {
		return layout{}, fmt.Errorf("%w: a bucket of %d bytes is larger than any object", ErrConfig, l.bucketBytes())
	}
	l.class = class
	return l.withBuckets(c.Buckets)
}

// withBuckets sets the number of buckets of a shard. Its array, which has one more
// bucket as the neighbour of the last, must fit into a block of 1 MB with room to spare.
func (l layout) withBuckets(n int) (layout, error) {
	fit := region.MaxObject/l.class.Size() - 2
	if n == 0 {
		n = max(bucketsMin, min(shardBytes/l.class.Size(), bucketsMax, fit))
		n = 1 << (bits.Len(uint(n)) - 1) // the largest power of two up to n
	}
	if n < bucketsMin || n > min(bucketsMax, fit) || n&(n-1) != 0 {
		return layout{}, fmt.Errorf("%w: shards of %d buckets of %d bytes, must be a power of two from %d to %d",
			ErrConfig, n, l.class.Size(), bucketsMin, min(bucketsMax, fit))
	}
	l.buckets = n
	return l, nil
}

// fitLog makes shards so small that a transaction that creates one writes at most
// half of bytesMax.
func (l *layout) fitLog(bytesMax int) {
	const perWrite = 64 // bytes of a log record about an object, besides its payload
	for l.buckets > bucketsMin && (l.buckets+2)*(l.class.Capacity()+perWrite)+headerBytes > bytesMax/2 {
		l.buckets /= 2
	}
}

func (l *layout) bucketBytes() int { return pageHeaderBytes + l.slots*(controlBytes+l.dataBytes) }

// dataOffset returns the offset of the data of slot i in a bucket.
func (l *layout) dataOffset(i int) int {
	return pageHeaderBytes + controlBytes*l.slots + i*l.dataBytes
}

// blockDataOffset is like dataOffset, for an overflow block.
func (l *layout) blockDataOffset(i int) int {
	return pageHeaderBytes + controlBytes*blockSlots + i*l.dataBytes
}

func (l *layout) blockBytes() int { return pageHeaderBytes + blockSlots*(controlBytes+l.dataBytes) }

// inline reports whether a pair of these lengths is stored in its slot.
func (l *layout) inline(key, value int) bool { return key <= l.keyBytes && value <= l.valueBytes }

// A pair that is not inline is an object:
//
//	| key length 32b | value length 32b | key | value |
const pairHeaderBytes = 8

func pairBytes(key, value int) int { return pairHeaderBytes + key + value }

func encodePair(b, key, value []byte) {
	binary.LittleEndian.PutUint32(b, uint32(len(key)))
	binary.LittleEndian.PutUint32(b[4:], uint32(len(value)))
	copy(b[pairHeaderBytes:], key)
	copy(b[pairHeaderBytes+len(key):], value)
}

// decodePair returns the key and value in the payload of a pair's object.
func decodePair(b []byte) (key, value []byte, err error) {
	if len(b) < pairHeaderBytes {
		return nil, nil, fmt.Errorf("%w: pair of %d bytes", ErrCorrupt, len(b))
	}
	k, v := uint64(binary.LittleEndian.Uint32(b)), uint64(binary.LittleEndian.Uint32(b[4:]))
	if k+v > uint64(len(b)-pairHeaderBytes) {
		return nil, nil, fmt.Errorf("%w: pair of %d + %d bytes in an object of %d", ErrCorrupt, k, v, len(b))
	}
	b = b[pairHeaderBytes:]
	return b[:k:k], b[k : k+v : k+v], nil
}

// checkPair returns an error if no table can hold a pair of these lengths.
func checkPair(key, value int) error {
	if key > KeyBytesMax {
		return fmt.Errorf("%w: %d bytes, at most %d", ErrKeyTooLong, key, KeyBytesMax)
	}
	if pairBytes(key, value) > region.MaxPayload {
		return fmt.Errorf("%w: %d bytes with a key of %d, together at most %d",
			ErrValueTooLong, value, key, region.MaxPayload-pairHeaderBytes)
	}
	return nil
}
