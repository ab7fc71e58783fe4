// Package prefetch fetches memory before it is needed: a caller that knows several
// addresses to read next waits for all of them as long as for one.
package prefetch

import "unsafe"

// LineBytes is the length of a cache line.
const LineBytes = 64

// A Pad separates fields that different cores write. It is two lines long: some processors fetch
// lines in pairs, so that a write to one takes the other away from a core that reads it.
type Pad [2 * LineBytes]byte

// A Batch is a set of cache lines to fetch together. A prefetch whose page is not in the
// TLB stays in the reorder buffer until the page walk ends. Consecutive prefetches walk at
// the same time; but if the code between two of them computes an address, it fills the
// buffer, and each walk delays the next prefetch. So the addresses are collected first.
// The zero Batch is empty. It is used by one goroutine.
type Batch struct {
	n uint
	// at has addresses, not pointers: fetching from any address does no harm, and the batch
	// must not keep objects alive.
	at [batchLines]uintptr
}

// batchLines is about the number of misses that a processor can have outstanding: more
// would only delay other prefetches.
const batchLines = 32

// Add adds the cache line of p. Of more than 32 lines, the last 32 are fetched.
func (b *Batch) Add(p unsafe.Pointer) {
	b.at[b.n%batchLines] = uintptr(p)
	b.n++
}

// Of adds the first cache line of *p to b.
func Of[T any](b *Batch, p *T) { b.Add(unsafe.Pointer(p)) }

// Fetch prefetches the lines without waiting for them, and empties the batch.
func (b *Batch) Fetch() {
	each(&b.at[0], int(min(b.n, batchLines)))
	b.n = 0
}
