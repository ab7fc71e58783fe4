package hash

import (
	"encoding/binary"
	"fmt"

	"github.com/farmsql/farmsql/region"
)

// The anchor is the object whose pointer identifies a table. It never changes.
//
//	 0 magic 32b | format 8b | inline key bytes 8b | inline value bytes 16b
//	 8 buckets 16b | slots 8b | maximum load 8b | number of places 8b | 0
//	16 seed
//	24 the first shard: header pointer, pointer to bucket 0
//	56 places
type anchor struct {
	layout
	seed   uint64
	root   shardPtr
	places []region.Addr
}

// A shardPtr points to a shard.
type shardPtr struct {
	header region.Ptr
	first  region.Ptr // bucket 0
}

const (
	anchorMagic  = 0x68736861 // "hash"
	anchorFormat = 1
	anchorRoot   = 24
	anchorPlaces = anchorRoot + shardPtrBytes
	anchorBytes  = anchorPlaces + 8*placesMax

	shardPtrBytes = 2 * region.PtrBytes
	placesMax     = 32
)

func (a *anchor) encode(b []byte) {
	binary.LittleEndian.PutUint32(b, anchorMagic)
	b[4], b[5] = anchorFormat, byte(a.keyBytes)
	binary.LittleEndian.PutUint16(b[6:], uint16(a.valueBytes))
	binary.LittleEndian.PutUint16(b[8:], uint16(a.buckets))
	b[10], b[11], b[12] = byte(a.slots), byte(a.maxLoad), byte(len(a.places))
	binary.LittleEndian.PutUint64(b[16:], a.seed)
	a.root.encode(b[anchorRoot:])
	for i, p := range a.places {
		binary.LittleEndian.PutUint64(b[anchorPlaces+8*i:], uint64(p))
	}
}

func decodeAnchor(b []byte) (*anchor, error) {
	if len(b) < anchorBytes || binary.LittleEndian.Uint32(b) != anchorMagic {
		return nil, fmt.Errorf("%w: not the anchor of a hash table", ErrCorrupt)
	}
	if b[4] != anchorFormat {
		return nil, fmt.Errorf("%w: format %d, this program reads %d", ErrCorrupt, b[4], anchorFormat)
	}
	c := Config{
		KeyBytes: int(b[5]), ValueBytes: int(binary.LittleEndian.Uint16(b[6:])),
		Buckets: int(binary.LittleEndian.Uint16(b[8:])), Neighbourhood: 2 * int(b[10]), MaxLoad: int(b[11]),
		Seed: binary.LittleEndian.Uint64(b[16:]),
	}
	if c.KeyBytes == 0 || c.ValueBytes == 0 || c.Buckets == 0 || c.Neighbourhood == 0 || c.MaxLoad == 0 || b[12] > placesMax {
		return nil, fmt.Errorf("%w: anchor %v", ErrCorrupt, c)
	}
	for i := range int(b[12]) {
		c.Places = append(c.Places, region.Addr(binary.LittleEndian.Uint64(b[anchorPlaces+8*i:])))
	}
	lay, err := c.layout()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	a := &anchor{layout: lay, seed: c.Seed, places: c.Places}
	if a.root, err = decodeShardPtr(b[anchorRoot:], &lay); err != nil {
		return nil, err
	}
	return a, nil
}

// encode writes the pointers to the header and to bucket 0 into b.
func (p shardPtr) encode(b []byte) {
	header := p.header.Append(b[:0:shardPtrBytes])
	p.first.Append(header)
}

func decodeShardPtr(b []byte, lay *layout) (p shardPtr, err error) {
	if p.header, err = region.DecodePtr(b); err == nil {
		p.first, err = region.DecodePtr(b[region.PtrBytes:])
	}
	if err != nil {
		return p, fmt.Errorf("%w: pointer to a shard: %w", ErrCorrupt, err)
	}
	if p.header.IsNil() || p.first.IsNil() || p.first.Class() != lay.class || p.header.Capacity() < headerBytes {
		return p, fmt.Errorf("%w: pointer to a shard: %v, %v", ErrCorrupt, p.header, p.first)
	}
	return p, nil
}
