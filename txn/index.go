package txn

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/record"
	"github.com/farmsql/farmsql/txn/set"
	"github.com/farmsql/farmsql/txn/worker"
)

// This file holds the interface between index structures and transactions, by which two
// transactions conflict only if they use the same key (docs/internals/transactions.md, "Conflicts
// are between keys"). A leaf or bucket holds many keys: if reading or changing a key put the whole
// leaf into the read or write set, unrelated transactions would abort each other. So:
//
//   - a read through an index is a Question, remembered with its answer and the
//     versions of the objects that the answer came from. If a version has changed, validation asks
//     again; the transaction aborts only if the answer has changed;
//   - a change is kept as an operation on a key by the index, and an Intent
//     applies it to fresh copies just before LOCK. A LOCK refused on such a
//     copy is tried again on a fresher one.

// A Source is an object that an answer came from, and its version then.
type Source struct {
	Ptr     region.Ptr
	Version region.Version
}

// A Question is a read through an index: a query and the answer that it got.
type Question interface {
	// Sources returns the objects that the latest answer came from. The question keeps ownership of
	// the slice.
	Sources() []Source
	// Ask asks the question again, reading through f, makes the objects that it reads the new
	// sources, and reports whether the answer equals the first answer. It ignores the transaction's
	// own pending operations. It returns an outcome.ErrConflict from f unchanged. After an error
	// the sources are the previous ones: the question is still open, and is asked again.
	Ask(f *Fresh) (same bool, err error)
}

// An Intent applies a transaction's pending operations on one index.
type Intent interface {
	// Prepare applies the pending operations to fresh copies that it reads, writes, allocates and
	// frees through l. It may be called several times; before each call the effects of the earlier
	// calls through l are undone. It must not change the pending operations. It returns an
	// outcome.ErrConflict from l unchanged.
	Prepare(l *Late) error
}

// Expect remembers a read through an index.
func (t *Tx) Expect(q Question) {
	if t.state != nil {
		t.questions = append(t.questions, q)
	}
}

// Defer registers i: when the transaction commits, its intents are prepared in the order in which
// they were registered.
func (t *Tx) Defer(i Intent) {
	if t.state != nil {
		t.intents = append(t.intents, i)
	}
}

// A Fresh reads for a Question that is asked again during validation. It always returns committed data: for an
// object that the transaction has locked, the data that the transaction's write will replace.
type Fresh struct{ s *state }

// Peek reads p as Tx.Peek does.
func (f *Fresh) Peek(p region.Ptr) ([]byte, region.Version, error) {
	switch e := f.s.lockedAt(p.Addr); {
	case e == nil:
		return f.s.fetch(p)
	case e.Ptr != p:
		// The slot was freed, and this transaction has locked it: waiting for the lock would mean
		// waiting for ourselves.
		return nil, 0, abort(ReasonFreed, p.Addr)
	case e.Base != nil:
		return e.Base, e.Version, nil
	}
	// Only objects that an Intent writes have a Base. The object at p is another that this transaction has
	// locked, a row or catalog object, and an index never asks about one.
	return nil, 0, abort(ReasonBusy, p.Addr)
}

// Machine returns the machine on which the question is asked.
func (f *Fresh) Machine() *Machine { return f.s.m }

// A Late is what an Intent reads and writes through when it is prepared, just before LOCK.
type Late struct {
	s *state
	// set holds the objects that the preparation has read (op update, base nil) and the objects
	// that it will write (base is the payload that was read).
	set   set.Set
	arena set.Arena
	// isAgain says that everything is prepared again.
	isAgain bool
	// lent are payloads of the transaction's own new objects that this preparation has opened. They
	// are restored if everything is prepared again.
	lent []undo
}

// Read returns the payload of the object p: a fresh copy, or the copy that this preparation has
// already read or written. If the object changes before the transaction commits, everything is
// prepared again.
//
// If p points to freed memory, the error is region.ErrFreed, and the intent may then look
// elsewhere.
func (l *Late) Read(p region.Ptr) ([]byte, error) {
	if i := l.set.Find(p.Addr); i >= 0 {
		return l.s.owned(&l.set.Entries[i], p)
	}
	if i := l.s.writes.Find(p.Addr); i >= 0 {
		return l.lend(i, p)
	}
	payload, v, ok := l.s.readAhead(p)
	if !ok {
		payload = l.arena.Get(p.Capacity())
		var err error
		if v, err = l.s.op.ReadWithin(l.s.ctx, p, payload, worker.ReadPatience); err != nil {
			return nil, conflictFrom(err, p)
		}
	}
	l.set.Add(set.Entry{Ptr: p, Version: v, Payload: payload, Late: true})
	return payload, nil
}

// ReadAhead begins to read objects that the intent is going to Read, as Tx.ReadAhead does, and
// returns how many of ptrs it has taken from the beginning. If everything is prepared again it
// reads nothing: the earlier preparations have taken some time, and their copies occupy memory
// until the transaction ends.
func (l *Late) ReadAhead(ptrs []region.Ptr) int {
	if l.isAgain {
		return len(ptrs)
	}
	return l.s.requestAhead(ptrs)
}

// lend opens for the preparation an object that the transaction itself had written or allocated
// before Commit.
func (l *Late) lend(i int, p region.Ptr) ([]byte, error) {
	e := &l.s.writes.Entries[i]
	payload, err := l.s.owned(e, p)
	if err != nil {
		return nil, cmp.Or(l.s.overtaken(e), err)
	}
	for _, u := range l.lent {
		if u.index == i {
			return payload, nil
		}
	}
	l.lent = append(l.lent, undo{index: i, payload: l.arena.Copy(payload)})
	return payload, nil
}

// overtaken returns a conflict if another transaction has freed the object that e changes or frees. An
// index would take region.ErrFreed for a sign that the object has moved, and look elsewhere; but it
// would find the same place again and again, for as long as the commit tries.
func (s *state) overtaken(e *set.Entry) error {
	if e.Op == record.OpAlloc {
		return nil
	}
	_, _, err := s.fetch(e.Ptr)
	if errors.Is(err, region.ErrFreed) {
		return abort(ReasonLock, e.Ptr.Addr)
	}
	return err
}

// Write returns p's payload in a buffer of the transaction. The caller changes the buffer, and the
// commit writes it to the object.
func (l *Late) Write(p region.Ptr) ([]byte, error) {
	payload, err := l.Read(p)
	if err != nil {
		return nil, err
	}
	i := l.set.Find(p.Addr)
	if i < 0 {
		return payload, nil // the index's own copy, only lent
	}
	e := &l.set.Entries[i]
	if e.Op == record.OpUpdate && e.Base == nil {
		e.Base, e.Payload = payload, l.arena.Copy(payload)
	}
	return e.Payload, nil
}

// Alloc makes a new object near hint, as Tx.Alloc does.
func (l *Late) Alloc(payload int, hint region.Addr) (region.Ptr, []byte, error) {
	got, err := l.s.m.alloc(l.s.ctx, l.s.w, l.s.need, payload, hint)
	if err != nil {
		return region.Ptr{}, nil, err
	}
	b := l.arena.Get(got.Ptr.Capacity())
	clear(b)
	l.set.Add(got.entry(b, true))
	return got.Ptr, b, nil
}

// Free frees the object p when the transaction commits.
func (l *Late) Free(p region.Ptr) error {
	payload, err := l.Read(p)
	if err != nil {
		return err
	}
	i := l.set.Find(p.Addr)
	if i < 0 {
		return fmt.Errorf("txn: object %v was written by the transaction before it was prepared and cannot be freed with it", p.Addr)
	}
	e := &l.set.Entries[i]
	if e.Op == record.OpAlloc {
		e.Dead = true
		return nil
	}
	if e.Base == nil {
		e.Base = payload
	}
	e.Op = record.OpFree
	return nil
}

// Machine returns the machine on which the intent is prepared.
func (l *Late) Machine() *Machine { return l.s.m }

// discard ends the intents' preparations. It releases the slots of new objects that are dead. If the commit has had no effect,
// it also releases the slots of all other new objects, and restores the payloads that were lent.
func (l *Late) discard(s *state) {
	for i := range l.set.Entries {
		if e := &l.set.Entries[i]; e.Op == record.OpAlloc && (e.Dead || s.commit.State().IsWithoutEffect()) {
			s.m.release(s.w, e)
		}
	}
	for _, u := range l.lent {
		if s.commit.State().IsWithoutEffect() {
			copy(s.writes.Entries[u.index].Payload, u.payload)
		}
	}
	clear(l.lent)
	l.lent = l.lent[:0]
	l.set.Reset()
	l.arena.Reset()
}
