package hash

import "github.com/farmsql/farmsql/txn"

// Fetch has the processor fetch the buckets that t will look at to Get key, and
// does not wait for them. Who has several keys to Get asks for all of them first,
// and waits for memory about as long as for one. It neither reads anything nor
// fails: what it asks for may turn out to be of no use, for the directory may be
// stale.
func (tb *Table) Fetch(t *txn.Tx, key []byte) {
	o := tb.opened.Load()
	if o == nil {
		return
	}
	o.fetch(t, sum(o.seed, key))
}

// fetch is Fetch of a key with hash h.
func (o *opened) fetch(t *txn.Tx, h uint64) {
	home := o.home(&sight{h: h})
	t.Fetch(home)
	t.Fetch(home.Element(1))
}
