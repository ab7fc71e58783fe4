package txn

import (
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/worker"
)

// Peek reads the object p consistently without putting it into the read set,
// and returns its payload and version. It shows committed objects only, never
// what this transaction wrote. Index code that remembers a Question uses it.
func (t *Tx) Peek(p region.Ptr) ([]byte, region.Version, error) {
	if err := t.usable(); err != nil {
		return nil, 0, err
	}
	return t.first(p)
}

// LookPair is Operation.LookPair within the transaction. Like Peek it shows committed objects
// only, and does not add them to the read set. If it returns false, call PeekPair, which waits,
// or returns the reason.
func (t *Tx) LookPair(a *region.Pair, p region.Ptr) bool {
	return t.usable() == nil && t.op.LookPair(a, p)
}

// PeekPair is like Peek, for the two objects at p and p.Element(1), which it reads as
// Operation.ReadPair does. The payloads are valid until the transaction ends.
func (t *Tx) PeekPair(p region.Ptr) (a, b []byte, va, vb region.Version, err error) {
	if err := t.usable(); err != nil {
		return nil, nil, 0, 0, err
	}
	if a, b, va, vb, ok := t.readPairAhead(p); ok {
		return a, b, va, vb, nil
	}
	n := p.Capacity()
	both := t.arena.Get(2 * n)
	if va, vb, err = t.op.ReadPairWithin(t.ctx, p, both, worker.ReadPatience); err != nil {
		return nil, nil, 0, 0, conflictFrom(err, p)
	}
	return both[:n:n], both[n:], va, vb, nil
}

// Fetch makes the processor fetch the object p, which the transaction is going to read, without
// waiting. A caller that knows several such objects should fetch all of them first, so that their
// cache misses overlap. Fetch does nothing if another machine is the primary.
func (t *Tx) Fetch(p region.Ptr) {
	if t.state == nil {
		return
	}
	if rt := t.m.Route(p.Addr.Region()); rt != nil && rt.PrimaryHere {
		rt.Local.FetchAll(p)
	}
}
