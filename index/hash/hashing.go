package hash

import (
	"encoding/binary"
	"math/bits"
)

// A key's hash has 64 bits, and its parts have different uses:
//
//	| prefix 40b: which shard, most significant bit first | tag 8b | unused | bucket, least significant |
//
// The parts do not overlap (depthMax, bucketsMax), so that the keys of one
// shard spread over its buckets and the keys of one bucket over the tags.
const (
	depthMax   = 40
	tagShift   = 16
	bucketsMax = 1 << 12
)

var _ = [1]struct{}{}[(bucketsMax-1)>>tagShift]      // bucket bits end below the tag
var _ = [64 - depthMax - tagShift - 8 + 1]struct{}{} // the tag ends below the prefix

const (
	mulA = 0xa0761d6478bd642f
	mulB = 0xe7037ed1a0b428db
	mulC = 0x8ebc6af09c88c6e3
)

func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// sum hashes key by folded multiplication. It is part of the format: a table that
// one process writes is read by others, so hash/maphash, which differs from process
// to process, would not do. Keys of up to 16 bytes cost two multiplications.
func sum(seed uint64, key []byte) uint64 {
	n := len(key)
	seed ^= mulA
	var a, b uint64
	switch {
	case n > 16:
		rest := key
		for len(rest) > 16 {
			seed = mix(binary.LittleEndian.Uint64(rest)^mulB, binary.LittleEndian.Uint64(rest[8:])^seed)
			rest = rest[16:]
		}
		a = binary.LittleEndian.Uint64(key[n-16:])
		b = binary.LittleEndian.Uint64(key[n-8:])
	case n >= 8:
		a = binary.LittleEndian.Uint64(key)
		b = binary.LittleEndian.Uint64(key[n-8:])
	case n >= 4:
		a = uint64(binary.LittleEndian.Uint32(key))
		b = uint64(binary.LittleEndian.Uint32(key[n-4:]))
	case n > 0:
		a = uint64(key[0])<<16 | uint64(key[n/2])<<8 | uint64(key[n-1])
	}
	return mix(mulC^uint64(n), mix(a^mulB, b^seed))
}

// tagOf returns the bits of a hash that are repeated in the control word of its
// key's slot, so that a search compares hardly any other keys.
func tagOf(h uint64) uint32 { return uint32(h>>tagShift) & 0xff }

// bucketOf returns the index of the home bucket of keys with hash h in a shard of n
// buckets. n is a power of two.
func bucketOf(h uint64, n int) int { return int(h) & (n - 1) }

// bitOf returns bit i of the prefix of h, 0 being the most significant.
func bitOf(h uint64, i int) uint64 { return (h >> (63 - i)) & 1 }

// firstDifference returns the first prefix bit in which two hashes differ, 64 if they are equal.
func firstDifference(a, b uint64) int { return bits.LeadingZeros64(a ^ b) }

// equalKeys compares keys. For lengths that most keys have, it makes no call.
func equalKeys(a, b []byte) bool {
	n := len(a)
	if n != len(b) || n < 8 || n > 16 {
		return string(a) == string(b)
	}
	return binary.LittleEndian.Uint64(a) == binary.LittleEndian.Uint64(b) &&
		binary.LittleEndian.Uint64(a[n-8:]) == binary.LittleEndian.Uint64(b[n-8:])
}
