package lookup

import (
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/worker"
)

// Reading returns a Reader outside of transactions, for use within op. It makes memory for each object, and
// confirms the lease with each read.
func Reading(op worker.Operation) Reader { return reading{op} }

type reading struct{ op worker.Operation }

// Peek implements Reader.
func (r reading) Peek(p region.Ptr) ([]byte, region.Version, error) {
	b := make([]byte, p.Capacity())
	v, err := r.op.Read(p, b)
	return b, v, err
}

// PeekPair reads two adjacent objects by one READ.
func (r reading) PeekPair(p region.Ptr) (a, b []byte, va, vb region.Version, err error) {
	n := p.Capacity()
	both := make([]byte, 2*n)
	va, vb, err = r.op.ReadPair(p, both)
	return both[:n:n], both[n:], va, vb, err
}
