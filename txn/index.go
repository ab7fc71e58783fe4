package txn

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/record"
)

// This file is what index structures need of a transaction so that two
// transactions conflict only when they mean the same key (docs/internals/transactions.md,
// "Conflicts are between keys"). A leaf or bucket holds many keys; if reading or changing
// it put it into the read or write set, transactions that have nothing to do
// with each other would abort each other. So:
//
//   - a read through an index is a Question, remembered with its answer and the
//     versions of the objects that the answer came from. Where a version has
//     moved, validation asks again, and only another answer aborts;
//   - a change is kept as an operation on a key by the index, and an Intent
//     applies it to fresh copies just before LOCK. A LOCK refused on such a
//     copy is tried again on a fresher one.

// A Source is an object that an answer came from, and its version then.
type Source struct {
	Ptr     region.Ptr
	Version region.Version
}

// A Question is a read through an index: what was asked and what was answered.
type Question interface {
	// Sources returns the objects that the latest answer came from. The slice
	// stays the question's.
	Sources() []Source
	// Ask asks again, reading through f, takes the objects it then read as the
	// new sources, and reports whether the answer is the same as the first.
	// The transaction's own pending operations are no part of the answer. It
	// returns an ErrConflict from f as it is. After an error the sources are
	// those from before: the question is still open, and is asked again.
	Ask(f *Fresh) (same bool, err error)
}

// An Intent applies a transaction's pending operations on one index.
type Intent interface {
	// Prepare applies them to fresh copies that it reads, writes, allocates and
	// frees through l. It may be called several times; each time all that an
	// earlier call did through l has been undone. It must leave the pending
	// operations as they are. An ErrConflict from l is returned as it is.
	Prepare(l *Late) error
}

// Expect remembers a read through an index.
func (t *Tx) Expect(q Question) {
	if t.state != nil {
		t.questions = append(t.questions, q)
	}
}

// Defer has i prepared when the transaction commits, after those deferred
// before it.
func (t *Tx) Defer(i Intent) {
	if t.state != nil {
		t.intents = append(t.intents, i)
	}
}

// Fresh reads for a Question that is asked again during validation: always what
// is committed now, and where the transaction holds the lock, what it would
// replace.
type Fresh struct{ s *state }

// Peek reads p as Tx.Peek does.
func (f *Fresh) Peek(p region.Ptr) ([]byte, region.Version, error) {
	switch e := f.s.lockedAt(p.Addr); {
	case e == nil:
		return f.s.fetch(p)
	case e.ptr != p:
		// The slot was freed, and is ours by now: to wait for its lock were to wait
		// for ourselves.
		return nil, 0, abort(ReasonFreed, p.Addr)
	case e.base != nil:
		return e.base, e.version, nil
	}
	// A row or catalog object of ours: an index never asks about one.
	return nil, 0, abort(ReasonBusy, p.Addr)
}

// Machine returns the machine on which the question is asked.
func (f *Fresh) Machine() *Machine { return f.s.m }

// Late reads and writes for an Intent that is prepared just before LOCK.
type Late struct {
	s *state
	// set holds what was read (op update, base nil) and what will be written
	// (base is what was read).
	set   set
	arena arena
	// lent are payloads of the transaction's own new objects that the
	// preparation has opened, to be restored if everything is prepared again.
	lent []undo
}

// Read returns the payload of the object p: fresh, or as this preparation has
// already read or written it. The object must still be the same when the
// transaction commits, otherwise everything is prepared again.
//
// A pointer to freed memory is a region.ErrFreed, to which the intent may answer
// by looking elsewhere.
func (l *Late) Read(p region.Ptr) ([]byte, error) {
	if i := l.set.find(p.Addr); i >= 0 {
		return l.s.owned(&l.set.entries[i], p)
	}
	if i := l.s.writes.find(p.Addr); i >= 0 {
		return l.lend(i, p)
	}
	payload := l.arena.get(p.Capacity())
	v, err := l.s.w.read(l.s.ctx, p, payload, readPatience)
	if err != nil {
		return nil, conflictFrom(err, p)
	}
	l.set.add(entry{ptr: p, version: v, payload: payload, late: true})
	return payload, nil
}

// lend gives the preparation an object that the transaction itself has written
// or allocated before it committed.
func (l *Late) lend(i int, p region.Ptr) ([]byte, error) {
	e := &l.s.writes.entries[i]
	payload, err := l.s.owned(e, p)
	if err != nil {
		return nil, cmp.Or(l.s.overtaken(e), err)
	}
	for _, u := range l.lent {
		if u.index == i {
			return payload, nil
		}
	}
	l.lent = append(l.lent, undo{index: i, payload: l.arena.copy(payload)})
	return payload, nil
}

// overtaken returns a conflict if the object that e changes or frees has been freed by
// another transaction. Then it is not the pointer that is old which leads to whatever has
// taken the object's place: to answer that by looking elsewhere would lead to the same place
// again, for as long as a commit tries.
func (s *state) overtaken(e *entry) error {
	if e.op == record.OpAlloc {
		return nil
	}
	_, _, err := s.fetch(e.ptr)
	if errors.Is(err, region.ErrFreed) {
		return abort(ReasonLock, e.ptr.Addr)
	}
	return err
}

// Write returns the payload of the object p to be changed in place.
func (l *Late) Write(p region.Ptr) ([]byte, error) {
	payload, err := l.Read(p)
	if err != nil {
		return nil, err
	}
	i := l.set.find(p.Addr)
	if i < 0 {
		return payload, nil // lent
	}
	e := &l.set.entries[i]
	if e.op == record.OpUpdate && e.base == nil {
		e.base, e.payload = payload, l.arena.copy(payload)
	}
	return e.payload, nil
}

// Alloc makes a new object near hint, as Tx.Alloc does.
func (l *Late) Alloc(payload int, hint region.Addr) (region.Ptr, []byte, error) {
	got, err := l.s.m.alloc(l.s.ctx, l.s.w, l.s.need, payload, hint)
	if err != nil {
		return region.Ptr{}, nil, err
	}
	b := l.arena.get(got.ptr.Capacity())
	clear(b)
	l.set.add(got.entry(b, true))
	return got.ptr, b, nil
}

// Free frees the object p when the transaction commits.
func (l *Late) Free(p region.Ptr) error {
	payload, err := l.Read(p)
	if err != nil {
		return err
	}
	i := l.set.find(p.Addr)
	if i < 0 {
		return fmt.Errorf("txn: object %v was written by the transaction before it was prepared and cannot be freed with it", p.Addr)
	}
	e := &l.set.entries[i]
	if e.op == record.OpAlloc {
		e.dead = true
		return nil
	}
	if e.base == nil {
		e.base = payload
	}
	e.op = record.OpFree
	return nil
}

// Machine returns the machine on which the intent is prepared.
func (l *Late) Machine() *Machine { return l.s.m }

// written says whether the preparation writes e, rather than only reads it.
func (e *entry) written() bool {
	return !e.dead && (e.op != record.OpUpdate || !e.late || e.base != nil)
}

// discard undoes what the intents prepared.
func (l *Late) discard(s *state) {
	for i := range l.set.entries {
		if e := &l.set.entries[i]; e.op == record.OpAlloc && (e.dead || s.commit.state.isWithoutEffect()) {
			s.m.release(s.w, e)
		}
	}
	for _, u := range l.lent {
		if s.commit.state.isWithoutEffect() {
			copy(s.writes.entries[u.index].payload, u.payload)
		}
	}
	clear(l.lent)
	l.lent = l.lent[:0]
	l.set.reset()
	l.arena.reset()
}
