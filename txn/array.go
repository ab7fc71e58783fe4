package txn

import (
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/record"
	"github.com/farmsql/farmsql/txn/set"
)

// AllocArray makes n objects of one size next to each other, zeroed, and puts them into the write
// set. It returns the pointer to the first object; Ptr.Element returns the others. The caller opens
// each with Write. AllocArray allocates at this machine, in hint's region if this machine is that
// region's primary.
func (t *Tx) AllocArray(payload, n int, hint region.Addr) (region.Ptr, error) {
	if err := t.usable(); err != nil {
		return region.Ptr{}, err
	}
	if !t.m.IsPrimary(hint) {
		hint = 0
	}
	first, versions, config, err := t.m.Replicas.Allocator.AllocArray(t.need, int(t.w.ID), payload, n, hint)
	if err != nil {
		return region.Ptr{}, t.m.orBusy(err, hint)
	}
	start := Mark{undo: len(t.undo)}
	for i := range n {
		p := first.Element(i)
		e := set.Entry{Ptr: p, Version: versions[i], Op: record.OpAlloc, Config: config, Lender: t.m.ID(), Payload: t.arena.Get(p.Capacity())}
		clear(e.Payload)
		if err := t.addWrite(e); err != nil { // addWrite has released p
			for k := i + 1; k < n; k++ {
				t.m.release(t.w, &set.Entry{Ptr: first.Element(k), Config: config, Lender: t.m.ID()})
			}
			t.Rollback(start) // releases the objects before p
			return region.Ptr{}, err
		}
	}
	return first, nil
}
