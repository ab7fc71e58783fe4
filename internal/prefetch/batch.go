// Package prefetch asks for memory before it is needed: who knows several places to
// look at next waits for all of them as long as for one.
package prefetch

import "unsafe"

// LineBytes is the length of a cache line.
const LineBytes = 64

// A Batch is lines that are fetched at once. A prefetch of a page whose translation
// the processor does not have stays in the reorder buffer until that is found. One
// after the other they find theirs at the same time; what computes an address between
// two of them fills the buffer, so that each keeps the next waiting. The zero Batch is
// empty. It is used by one goroutine.
type Batch struct {
	n uint
	// at are addresses and not pointers: no matter where they lead, to fetch from there
	// does no harm, and nothing is kept alive by being fetched.
	at [batchLines]uintptr
}

// batchLines is about the number of misses that a processor can have under way: more would
// only delay other prefetches.
const batchLines = 32

// Add adds the line in which p is. Of more than 32 lines the last are fetched.
func (b *Batch) Add(p unsafe.Pointer) {
	b.at[b.n%batchLines] = uintptr(p)
	b.n++
}

// Of adds the line in which *p begins to b.
func Of[T any](b *Batch, p *T) { b.Add(unsafe.Pointer(p)) }

// Fetch has the processor fetch the lines, and does not wait for them. The batch is
// empty then.
func (b *Batch) Fetch() {
	each(&b.at[0], int(min(b.n, batchLines)))
	b.n = 0
}
