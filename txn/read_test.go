package txn_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/farmsql/farmsql/internal/txntest"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// Only the primary looks at an object in place, and only while the object is
// there and nobody holds it; everybody can read it.
func TestLook(t *testing.T) {
	eachShape(t, func(t *testing.T, cfg txntest.Config) {
		r := open(t, cfg, 1)
		var p region.Ptr
		r.run(0, func(tx *txn.Tx) (err error) {
			if p, err = tx.AllocArray(100, 3, r.ptrs[0].Addr); err != nil {
				return err
			}
			for i := range 3 {
				if err := write(tx, p.Element(i), uint64(i)); err != nil {
					return err
				}
			}
			return nil
		})
		r.ptrs = append(r.ptrs, p, p.Element(1), p.Element(2))
		for machine := range r.Machines() {
			here := machine == 0
			r.wantLook(machine, p.Element(0), here)
			r.wantLook(machine, p.Element(1), here)
		}
		until := make(chan struct{})
		held := r.hold(p.Element(1), until)
		r.wantLook(0, p.Element(1), false)
		op := r.Machine(0).Start()
		for i := range 2 {
			if op.LookPair(new(region.Pair), p.Element(i)) {
				t.Errorf("looked at the pair from element %d on while a transaction held one of it", i)
			}
		}
		op.End()
		close(until)
		<-held
		r.wantLook(0, p.Element(1), true)
		r.wantLookPairIn(p)
		r.run(0, func(tx *txn.Tx) error { return tx.Free(p.Element(2)) })
		r.ptrs = r.ptrs[:3]
		r.wantLook(0, p.Element(2), false)
		r.wantLook(0, region.MakePtr(region.MakeAddr(1000, 64), 0, 0), false)
		op = r.Machine(0).Start()
		if op.LookPair(new(region.Pair), region.MakePtr(region.MakeAddr(1000, 64), 0, 0)) {
			t.Error("looked at a pair in no region")
		}
		op.End()
		r.quiet()
	})
}

// wantLook checks whether a machine looks at p in place, and that what it sees
// there is what it reads.
func (r *rig) wantLook(machine int, p region.Ptr, want bool) {
	r.t.Helper()
	op := r.Machine(machine).Start()
	defer op.End()
	v, ok := op.Look(p)
	if ok != want {
		r.t.Fatalf("machine %d looks at %v: %v, want %v", machine, p, ok, want)
	}
	if !ok {
		return
	}
	read, seen := make([]byte, p.Capacity()), make([]byte, p.Capacity())
	version, err := op.Read(p, read)
	if err != nil {
		r.t.Fatal(err)
	}
	if v.Copy(seen, 0); !v.Valid() || v.Header().Version() != version || !bytes.Equal(seen, read) {
		r.t.Errorf("seen %v %x, read %d %x", v.Header(), seen, version, read)
	}
}

// wantLookPairIn checks that a transaction looks at p and the object after it where
// it would peek at what is committed, whatever it has written itself, and that only
// their primary does.
func (r *rig) wantLookPairIn(p region.Ptr) {
	r.t.Helper()
	for machine := range r.Machines() {
		tx := r.Machine(machine).Begin()
		must(r.t, write(tx, p, 77))
		var pair region.Pair
		ok := tx.LookPair(&pair, p)
		first, second := pair.Views[0], pair.Views[1]
		if ok != (machine == 0) {
			r.t.Errorf("machine %d looks at a pair in a transaction: %v", machine, ok)
		}
		a, b, va, vb, err := tx.PeekPair(p)
		if err != nil {
			r.t.Fatal(err)
		}
		if ok {
			seen := make([]byte, 2*p.Capacity())
			first.Copy(seen[:p.Capacity()], 0)
			second.Copy(seen[p.Capacity():], 0)
			if first.Header().Version() != va || second.Header().Version() != vb || !bytes.Equal(seen, append(slices.Clone(a), b...)) {
				r.t.Errorf("seen %v, %v %x, peeked %d, %d %x, %x", first.Header(), second.Header(), seen, va, vb, a, b)
			}
		}
		tx.Abort()
	}
}
