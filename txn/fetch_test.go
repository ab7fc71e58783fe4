package txn_test

import (
	"testing"

	"github.com/farmsql/farmsql/internal/txntest"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// An object that a transaction only fetches is not read: the transaction commits although the
// object has changed. Objects of other machines, nil pointers and transactions that have ended do
// no harm.
func TestFetch(t *testing.T) {
	eachShape(t, func(t *testing.T, cfg txntest.Config) {
		r := open(t, cfg, 3)
		tx := r.Machine(0).Begin()
		defer tx.Abort()
		before := r.Machine(0).Stats()
		for _, p := range r.ptrs {
			tx.Fetch(p)
		}
		tx.Fetch(region.Ptr{})
		tx.Fetch(region.MakePtr(region.MakeAddr(1000, 64), 0, 0))
		if n := r.Machine(0).Stats().Sub(before); n.LocalReads+n.RemoteReads != 0 {
			t.Errorf("fetching is reading: %+v", n)
		}
		r.set(r.Machines()-1, 0, 5)
		must(t, tx.Validate())
		if n, err := read(tx, r.ptrs[0]); n != 5 || err != nil {
			t.Errorf("read %d, %v", n, err)
		}
		must(t, tx.Commit(ctx))
		tx.Fetch(r.ptrs[0])
		r.run(0, func(tx *txn.Tx) error { return tx.Free(r.ptrs[0]) })
		r.run(0, func(tx *txn.Tx) error { tx.Fetch(r.ptrs[0]); return nil })
		r.ptrs = r.ptrs[1:]
		r.quiet()
	})
}
