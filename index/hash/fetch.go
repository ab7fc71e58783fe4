package hash

import "github.com/farmsql/farmsql/txn"

// Fetch prefetches the buckets that t will read to Get key, and does not wait for them. Callers
// with several keys should Fetch them all first: then they wait for memory about as long as for a
// single key. Fetch reads nothing and does not fail; with a stale directory it prefetches the wrong
// buckets.
func (tb *Table) Fetch(t *txn.Tx, key []byte) {
	o := tb.opened.Load()
	if o == nil {
		return
	}
	o.prefetch(t, sum(o.seed, key))
}

// prefetch does the work of Fetch for a key with hash h.
func (o *opened) prefetch(t *txn.Tx, h uint64) {
	home := o.home(&sight{h: h})
	t.Fetch(home)
	t.Fetch(home.Element(1))
}
