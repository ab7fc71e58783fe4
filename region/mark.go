package region

import (
	"encoding/binary"
	"iter"
	"math/bits"
	"sync/atomic"
)

// A chunk is the unit in which replicas tell each other what has changed: 64 KB, and
// all slots that begin there.
const (
	chunkShift = 16
	// ChunkBytes is the length of a chunk.
	ChunkBytes = 1 << chunkShift
)

// Chunks returns how many chunks the region has.
func (r *Region) Chunks() int { return int(r.size >> chunkShift) }

// marks records for each chunk the last configuration in which an object in it was changed. Marks
// are lost when the process ends: then a replica that was away compares checksums instead.
type marks struct {
	since uint32 // all changes from this configuration on are marked
	now   atomic.Uint32
	last  []atomic.Uint32
}

// Mark makes the region mark, from now on, each chunk in which an object changes, with
// configuration c. Earlier marks stay. Call it before the first change in c.
func (r *Region) Mark(c uint32) {
	m := r.marks.Load()
	if m == nil {
		m = &marks{since: c, last: make([]atomic.Uint32, r.Chunks())}
	}
	m.now.Store(c)
	r.marks.Store(m)
}

// Unmark drops the marks. Call it when every replica has all objects.
func (r *Region) Unmark() { r.marks.Store(nil) }

// mark marks the chunk of the slot at off. It is called before the slot changes, so that a chunk
// without a mark is certainly unchanged.
func (r *Region) mark(off uint64) {
	m := r.marks.Load()
	if m == nil {
		return
	}
	if last, now := &m.last[off>>chunkShift], m.now.Load(); last.Load() != now {
		last.Store(now)
	}
}

// Marked returns the chunks that have changed in the given configuration or in a later one. It
// returns false if not all changes since then have been marked.
func (r *Region) Marked(since uint32) (ChunkSet, bool) {
	m := r.marks.Load()
	if m == nil || m.since > since {
		return nil, false
	}
	set := make(ChunkSet, chunkSetBytes(r.size))
	for i := range m.last {
		if m.last[i].Load() >= since {
			set[i/8] |= 1 << (i % 8)
		}
	}
	return set, true
}

// chunkSetBytes returns the length in bytes of a ChunkSet of a region of this size: whole words.
func chunkSetBytes(size uint64) uint64 { return (size>>chunkShift + 63) / 64 * 8 }

// A ChunkSet is a set of chunks, as machines send it to each other: one bit for each
// chunk of a region, in words of 64 bits in little-endian order. Its length must be
// chunkSetBytes of the region's size.
type ChunkSet []byte

// all yields the chunks of the set in rising order.
func (s ChunkSet) all() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := 0; i+8 <= len(s); i += 8 {
			for w := binary.LittleEndian.Uint64(s[i:]); w != 0; w &= w - 1 {
				if !yield(i*8 + bits.TrailingZeros64(w)) {
					return
				}
			}
		}
	}
}

// Sums returns the checksums of n chunks from the given one on. The sum of a chunk covers the
// version, the allocated bit and the incarnation of each slot that begins there, but not the lock
// bit. If two replicas have the same block table and the same sum, they have the same objects
// there, because a version identifies the bytes written with it.
func (r *Region) Sums(chunk, n int) []uint64 {
	sums := make([]uint64, 0, max(n, 0))
	for ; n > 0 && chunk >= 0 && chunk < r.Chunks(); chunk, n = chunk+1, n-1 {
		sums = append(sums, r.sum(uint64(chunk)<<chunkShift))
	}
	return sums
}

// sum returns a checksum of the headers in the chunk at begin, without lock bits.
func (r *Region) sum(begin uint64) (sum uint64) {
	for s := range r.slots(begin, begin+ChunkBytes) {
		for i := s.first; i < s.last; i++ {
			p, h := r.slot(s.extent, i)
			sum = mix(sum ^ uint64(h&^lockBit))
			sum = mix(sum ^ p.Incarnation())
		}
	}
	return sum
}

// mix is the finalizer of SplitMix64, which maps words one to one: sums of chunks that
// differ in one word are never the same.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb
	return x ^ (x >> 31)
}
