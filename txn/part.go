package txn

import (
	"errors"

	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/region"
)

// ReadPart is Read for who uses a part of the object p only: that others change the
// rest is no conflict. same tells whether the part is the same in another payload of
// the object as in the one that was returned, and must depend on nothing else.
//
// The object may be seen to change between two calls, in what same does not look
// at.
func (t *Tx) ReadPart(p region.Ptr, same func(payload []byte) bool) ([]byte, error) {
	if err := t.usable(); err != nil {
		return nil, err
	}
	if t.writes.find(p.Addr) >= 0 || t.reads.find(p.Addr) >= 0 {
		return t.Read(p)
	}
	payload, v, err := t.fetch(p)
	if err != nil {
		return nil, t.doom(err)
	}
	t.Expect(&partQuestion{from: [1]Source{{p, v}}, same: same})
	return payload, nil
}

// A partQuestion asks what a part of an object holds.
type partQuestion struct {
	from [1]Source
	same func(payload []byte) bool
}

// Sources implements Question.
func (q *partQuestion) Sources() []Source { return q.from[:] }

// Ask implements Question.
func (q *partQuestion) Ask(f *Fresh) (bool, error) {
	p := q.from[0].Ptr
	if f.replaces(p) {
		return false, nil // another version, whose payload is gone, or another object
	}
	payload, v, err := f.Peek(p)
	if errors.Is(err, region.ErrFreed) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	q.from[0].Version = v
	return sabotage.Parts.Skipped() || q.same(payload), nil
}

// replaces reports whether the transaction holds the lock of p's slot for a write
// that does not know what the slot holds.
func (f *Fresh) replaces(p region.Ptr) bool {
	e := f.s.lockedAt(p.Addr)
	return e != nil && e.base == nil
}
