package txn_test

import (
	"testing"

	"github.com/farmsql/farmsql/internal/txntest"
	"github.com/farmsql/farmsql/txn"
)

// A transaction that validates after each step checks a number of objects in proportion to its steps.
func TestValidateRecentIsLinear(t *testing.T) {
	const steps, always = 2000, 128
	r := open(t, txntest.Config{Machines: 1, Replicas: 1}, steps)
	tx := r.Machine(0).Begin()
	checked := 0
	for i := range r.ptrs {
		if i%2 == 0 {
			must(t, write(tx, r.ptrs[i], 1))
		} else {
			_, err := tx.Read(r.ptrs[i])
			must(t, err)
		}
		must(t, tx.ValidateRecent())
		checked += tx.Checked()
	}
	// Everything while that is little, each object once when it is new, and everything at each doubling.
	if most := always*(always+1)/2 + steps + 2*steps; checked > most {
		t.Errorf("%d steps checked %d objects, want at most %d", steps, checked, most)
	}
	must(t, tx.Commit(ctx))
	r.quiet()
}

// reads lets a transaction read objects, with a validation after each.
func reads(t *testing.T, r *rig, objects int) *txn.Tx {
	tx := r.Machine(0).Begin()
	t.Cleanup(tx.Abort)
	for _, p := range r.ptrs[:objects] {
		_, err := tx.Read(p)
		must(t, err)
		must(t, tx.ValidateRecent())
	}
	return tx
}

// ValidateRecent finds what has changed among what is new, and among the rest once that is checked again; Validate and
// Commit find it always.
func TestValidateRecentFindsChanges(t *testing.T) {
	const old, all = 300, 700
	r := open(t, txntest.Config{Machines: 2, Replicas: 1}, all)
	change := func(i int, v uint64) { r.set(1, i, v); r.settle() }

	tx := reads(t, r, old)
	_, err := tx.Read(r.ptrs[old])
	must(t, err)
	change(old, 1)
	wantReason(t, tx.ValidateRecent(), txn.ReasonValidate)

	tx = reads(t, r, old)
	must(t, write(tx, r.ptrs[old], 1))
	change(old, 2)
	wantReason(t, tx.ValidateRecent(), txn.ReasonValidate)

	tx = reads(t, r, old)
	change(7, 1)
	must(t, tx.ValidateRecent()) // nothing is new
	wantReason(t, tx.Validate(), txn.ReasonValidate)

	tx = reads(t, r, old)
	change(7, 2)
	must(t, tx.ValidateRecent())
	wantReason(t, tx.Commit(ctx), txn.ReasonValidate)

	tx = reads(t, r, old)
	change(7, 3)
	err = nil
	for i := old; i < all && err == nil; i++ {
		if _, err = tx.Read(r.ptrs[i]); err == nil {
			err = tx.ValidateRecent()
		}
	}
	wantReason(t, err, txn.ReasonValidate)
}

// A write that is rolled back after a validation stays among what is read, and is checked with what is new.
func TestValidateRecentAfterRollback(t *testing.T) {
	const old = 300
	r := open(t, txntest.Config{Machines: 1, Replicas: 1}, old+2)
	tx := reads(t, r, old)
	mark := tx.Mark()
	must(t, write(tx, r.ptrs[old], 1))
	must(t, tx.ValidateRecent())
	tx.Rollback(mark)
	must(t, write(tx, r.ptrs[old+1], 1)) // takes the entry that the rollback has freed
	r.set(0, old+1, 2)
	wantReason(t, tx.ValidateRecent(), txn.ReasonValidate)
}
