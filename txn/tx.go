package txn

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/farmsql/farmsql/internal/invariant"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/outcome"
	"github.com/farmsql/farmsql/txn/record"
	"github.com/farmsql/farmsql/txn/set"
	"github.com/farmsql/farmsql/txn/worker"
)

// A Tx is one transaction in its execution phase: it reads objects, and buffers
// what it writes until Commit. It belongs to one goroutine.
//
// Slices that it returns are valid until it ends. After a method has returned
// an outcome.ErrConflict the transaction cannot commit any more; end it with Abort.
type Tx struct {
	*state // nil once the transaction has ended
	// keeps is set if Run uses the Tx again. kept is then the memory of its last transaction, for
	// the next one: so Run takes from one pool, not from two.
	keeps bool
	kept  *state
}

// state is a transaction's memory. A pool keeps it for a later transaction, mostly on the same
// processor: the pool has a shard for each processor, and takes from another only if that is empty.
type state struct {
	m *Machine
	// stripe is the stripe of the processor on which this transaction began, or a recent one with
	// the same state. w is the stripe's worker.
	stripe *worker.Stripe
	w      *worker.Worker
	counts *counts         // the counts of the stripe
	begun  uint            // transactions that have had this state
	ctx    context.Context // ends the transaction's waits
	op     worker.Operation
	reads  set.Set
	// looked are objects in the read set, too: those of ReadInto.
	looked set.Versions
	writes set.Set
	arena  set.Arena
	// written is the number of bytes of log that the writes will take, writtenMax its bound.
	written, writtenMax int
	// mayBeLarge: see Tx.MayBeLarge.
	mayBeLarge bool
	need       region.Need // need of the objects that it allocates
	undo       []undo
	marks      int
	doomed     error
	questions  []Question
	parts      partQuestions
	ahead      ahead
	intents    []Intent
	locals     []local
	onEnd      []func()
	late       Late
	fresh      Fresh
	commit     commit
	// locked says that the whole write set is locked. The transaction's own goroutine reads it
	// during validation, without the worker's lock.
	locked bool
	checks []check
	// validated is how much of what the open transaction has read the last validation has found
	// valid; validatedAll is how much the last validation of everything has checked.
	validated    readSize
	validatedAll int
}

// movesAfter is the number of transactions after which a state looks whether it is on another
// processor by now. Looking costs 5 ns.
const movesAfter = 32

type local struct{ key, value any }

// A Mark is a point in a transaction to which Rollback can return.
type Mark struct{ undo, serial int }

// An undo step reverts one change of a transaction's own state.
type undo struct {
	kind    undoKind
	index   int
	op      record.Op
	payload []byte
	fn      func()
}

type undoKind uint8

const (
	undoWrite   undoKind = iota // the entry entered the write set
	undoPayload                 // the payload of an entry of the write set was opened for writing again
	undoOp                      // the object of an entry was freed, which changed its op
	undoFunc                    // calls fn
)

// Begin starts a transaction on this machine, its coordinator.
func (m *Machine) Begin() *Tx { return &Tx{state: m.begin(nil)} }

// begin begins a transaction, in the given memory if there is one.
func (m *Machine) begin(s *state) *state {
	if s == nil {
		s = m.states.Get().(*state)
	}
	if s.begun%movesAfter == 0 {
		s.stripe = m.Stripe()
		s.w, s.counts = s.stripe.Worker, &m.counts[s.stripe.Number]
	}
	s.begun++
	s.op = s.stripe.EnterTransaction()
	s.doomed = m.Gone()
	return s
}

// Within sets the context of the transaction's methods from here on: when ctx ends, their waits end
// with its error. Commit has a context of its own.
func (t *Tx) Within(ctx context.Context) {
	if t.state != nil {
		t.ctx = ctx
	}
}

// Context returns the context that Within has set last, or one that never ends.
func (t *Tx) Context() context.Context {
	if t.state == nil {
		return context.Background()
	}
	return t.ctx
}

// Machine returns the transaction's coordinator.
func (t *Tx) Machine() *Machine { return t.m }

// Read returns the payload of the object p, Capacity bytes that must not be modified, and adds it
// to the read set: every later read returns the same payload, or the transaction's own write since.
// It fails with an outcome.ErrConflict if p has been freed or stays locked.
func (t *Tx) Read(p region.Ptr) ([]byte, error) {
	if err := t.usable(); err != nil {
		return nil, err
	}
	if i := t.writes.Find(p.Addr); i >= 0 {
		return t.ownWrite(i, p)
	}
	if i := t.readBefore(p.Addr); i >= 0 {
		return t.earlierRead(i, p)
	}
	payload, v, err := t.first(p)
	if err != nil {
		return nil, t.doom(err)
	}
	t.reads.Add(set.Entry{Ptr: p, Version: v, Payload: payload})
	return payload, nil
}

// readBefore returns the index, in the transaction's reads, of the object at an address; -1 if the transaction has not
// read it.
func (s *state) readBefore(a region.Addr) int {
	if i := s.reads.Find(a); i >= 0 {
		return i
	}
	i := s.looked.Find(a)
	if i < 0 {
		return -1
	}
	seen := s.looked.Entries[i]
	return s.reads.Add(set.Entry{Ptr: seen.Ptr, Version: seen.Version})
}

// ownWrite returns the payload of an object in the transaction's write set.
func (t *Tx) ownWrite(i int, p region.Ptr) ([]byte, error) {
	payload, err := t.owned(&t.writes.Entries[i], p)
	if err != nil {
		return nil, t.doom(err)
	}
	return payload, nil
}

// earlierRead returns the payload of the object p from entry i of the read set, which has p's
// address.
func (t *Tx) earlierRead(i int, p region.Ptr) ([]byte, error) {
	e := &t.reads.Entries[i]
	if e.Ptr != p {
		return nil, t.doom(abort(ReasonFreed, p.Addr))
	}
	if e.Payload == nil {
		payload, v, err := t.fetch(p)
		if err != nil {
			return nil, t.doom(err)
		}
		if v != e.Version {
			return nil, t.doom(abort(ReasonValidate, p.Addr))
		}
		e.Payload = payload
	}
	return e.Payload, nil
}

// first returns the committed object p, which is not yet in the read or write set. If p was read
// ahead, that copy counts; otherwise first reads it now.
func (s *state) first(p region.Ptr) ([]byte, region.Version, error) {
	if payload, v, ok := s.readAhead(p); ok {
		return payload, v, nil
	}
	return s.fetch(p)
}

// fetch reads the committed object p into the transaction's arena.
func (s *state) fetch(p region.Ptr) ([]byte, region.Version, error) {
	payload := s.arena.Get(p.Capacity())
	v, err := s.op.ReadWithin(s.ctx, p, payload, s.patience())
	if err != nil {
		return nil, 0, conflictFrom(err, p)
	}
	return payload, v, nil
}

// patience returns how long the transaction may wait for a locked object now.
func (s *state) patience() time.Duration {
	if s.locked {
		return heldPatience
	}
	return worker.ReadPatience
}

// conflictFrom turns the error of a read into an abort with its reason.
func conflictFrom(err error, p region.Ptr) error {
	switch {
	case errors.Is(err, region.ErrFreed):
		return abort(ReasonFreed, p.Addr)
	case errors.Is(err, region.ErrLocked):
		return abort(ReasonBusy, p.Addr)
	}
	return err
}

// Write opens the object p for writing and returns its payload, Capacity bytes
// that the caller changes in place until the next call of Mark. It reads the
// object if the transaction has not.
func (t *Tx) Write(p region.Ptr) ([]byte, error) {
	if err := t.usable(); err != nil {
		return nil, err
	}
	if i := t.writes.Find(p.Addr); i >= 0 {
		payload, err := t.ownWrite(i, p)
		if err == nil && t.marks > 0 {
			t.undo = append(t.undo, undo{kind: undoPayload, index: i, payload: t.arena.Copy(payload)})
		}
		return payload, err
	}
	e := set.Entry{Ptr: p, Op: record.OpUpdate}
	if i := t.readBefore(p.Addr); i >= 0 {
		payload, err := t.earlierRead(i, p)
		if err != nil {
			return nil, err
		}
		e.Payload, e.Version = t.arena.Copy(payload), t.reads.Entries[i].Version
	} else {
		var err error
		if e.Payload, e.Version, err = t.first(p); err != nil {
			return nil, t.doom(err)
		}
		delete(t.ahead.found, p) // the caller changes the copy
	}
	return e.Payload, t.addWrite(e)
}

// addWrite adds an entry to the write set, in a way that a rollback can undo. It fails if the
// transaction's writes become too large.
func (t *Tx) addWrite(e set.Entry) error {
	w := e.Write()
	if t.written += record.WriteBytes(&w); t.written > t.writtenMax {
		t.written -= record.WriteBytes(&w)
		if e.Op == record.OpAlloc {
			t.m.release(t.w, &e)
		}
		return t.m.tooLarge(t.written+record.WriteBytes(&w), t.writtenMax)
	}
	t.undo = append(t.undo, undo{kind: undoWrite, index: t.writes.Add(e)})
	return nil
}

// Alloc makes a new object that can hold payload bytes, near the object at hint
// if that is not 0, and returns its pointer and its payload: Capacity zero
// bytes, to be changed in place until the next call of Mark. The object exists
// for others once the transaction commits.
func (t *Tx) Alloc(payload int, hint region.Addr) (region.Ptr, []byte, error) {
	if err := t.usable(); err != nil {
		return region.Ptr{}, nil, err
	}
	got, err := t.m.alloc(t.ctx, t.w, t.need, payload, hint)
	if err != nil {
		return region.Ptr{}, nil, t.doom(err)
	}
	e := got.entry(t.arena.Get(got.Ptr.Capacity()), false)
	clear(e.Payload)
	return got.Ptr, e.Payload, t.addWrite(e)
}

// ToFree declares that the transaction is going to free memory. From here on its allocations may use
// the blocks that are held back for such transactions (region.ToFree).
func (t *Tx) ToFree() {
	if t.state != nil {
		t.need = region.ToFree
	}
}

// Free frees the object p when the transaction commits.
func (t *Tx) Free(p region.Ptr) error {
	if _, err := t.Read(p); err != nil {
		return err
	}
	i := t.writes.Find(p.Addr)
	if i < 0 {
		r := t.reads.Entries[t.reads.Find(p.Addr)]
		return t.addWrite(set.Entry{Ptr: p, Version: r.Version, Op: record.OpFree})
	}
	e := &t.writes.Entries[i]
	t.undo = append(t.undo, undo{kind: undoOp, index: i, op: e.Op})
	if e.Op == record.OpAlloc {
		e.Dead = true
	}
	e.Op = record.OpFree
	return nil
}

// Held returns about how many bytes of memory the transaction's read set and write set take.
func (t *Tx) Held() int64 {
	if t.state == nil {
		return 0
	}
	const entryBytes, questionBytes, placeBytes = 120, 120, 4
	entries := int64(len(t.reads.Entries) + len(t.writes.Entries))
	places := int64(t.reads.Places() + t.writes.Places())
	return int64(t.arena.Held()) + t.looked.Held() + entries*entryBytes + int64(len(t.questions))*questionBytes + places*placeBytes
}

// Mark returns the present point of the transaction.
func (t *Tx) Mark() Mark {
	if t.state == nil {
		return Mark{}
	}
	t.marks++
	return Mark{undo: len(t.undo), serial: t.marks}
}

// Rollback undoes all writes, allocations, frees and index operations since m.
// The objects that the transaction has read since stay in its read set: the decision to roll back
// may depend on them.
func (t *Tx) Rollback(m Mark) {
	if t.state == nil {
		return
	}
	if m.undo > len(t.undo) {
		invariant.Violated("rollback to a mark that is itself rolled back", m.undo, len(t.undo))
	}
	for len(t.undo) > m.undo {
		u := t.undo[len(t.undo)-1]
		t.undo = t.undo[:len(t.undo)-1]
		t.undoStep(u)
	}
}

// undoStep undoes one change of the write set, for a rollback to a mark.
func (t *Tx) undoStep(u undo) {
	switch u.kind {
	case undoFunc:
		u.fn()
	case undoPayload:
		copy(t.writes.Entries[u.index].Payload, u.payload)
	case undoOp:
		e := &t.writes.Entries[u.index]
		e.Op, e.Dead = u.op, false
	case undoWrite:
		t.dropWrite(u.index)
	}
}

// dropWrite removes the newest write from the write set. The object of an update or free was also
// read, so it moves to the read set, but without its payload, which the transaction has changed in
// place: earlierRead reads it again. The slot of an allocation is given back.
func (t *Tx) dropWrite(i int) {
	e := t.writes.Entries[i]
	w := e.Write()
	t.written -= record.WriteBytes(&w)
	t.writes.Truncate(i)
	t.validated.writes = min(t.validated.writes, i)
	switch {
	case e.Op == record.OpAlloc:
		t.m.release(t.w, &e)
	case t.reads.Find(e.Ptr.Addr) < 0:
		t.reads.Add(set.Entry{Ptr: e.Ptr, Version: e.Version})
	}
}

// IsMarked reports whether the transaction has a Mark to roll back to. If not, changes made now
// need no OnRollback.
func (t *Tx) IsMarked() bool { return t.state != nil && t.marks > 0 }

// OnRollback registers a step that reverts a change of the caller's own state if the transaction
// rolls back past this point.
func (t *Tx) OnRollback(fn func()) {
	if t.state != nil {
		t.undo = append(t.undo, undo{kind: undoFunc, fn: fn})
	}
}

// Scratch returns n bytes, not cleared, that are valid until the transaction ends.
func (t *Tx) Scratch(n int) []byte {
	if t.state == nil {
		return make([]byte, n)
	}
	return t.arena.Get(n)
}

// Local returns the value that SetLocal last stored in this transaction under key, or nil.
func (t *Tx) Local(key any) any {
	if t.state == nil {
		return nil
	}
	for i := range t.locals {
		if t.locals[i].key == key {
			return t.locals[i].value
		}
	}
	return nil
}

// SetLocal stores v in the transaction under key.
func (t *Tx) SetLocal(key, v any) {
	if t.state == nil {
		return
	}
	for i := range t.locals {
		if t.locals[i].key == key {
			t.locals[i].value = v
			return
		}
	}
	t.locals = append(t.locals, local{key, v})
}

// OnEnd registers a function that is called once the transaction has ended, however it ended.
func (t *Tx) OnEnd(fn func()) {
	if t.state != nil {
		t.onEnd = append(t.onEnd, fn)
	}
}

// Abort ends the transaction without effect. Aborting one that has ended does
// nothing, so it can be deferred.
func (t *Tx) Abort() {
	if t.state == nil {
		return
	}
	t.counts.aborts[abortReason(t.doomed)].Add(1)
	t.end()
}

// Discard is like Abort, but Stats do not count it. Use it if nothing depends on the transaction's
// reads.
func (t *Tx) Discard() {
	if t.state != nil {
		t.end()
	}
}

// abortReason returns the reason for the abort of a transaction that has met the error doomed.
func abortReason(doomed error) Reason {
	if doomed == nil {
		return ReasonUser // return before errors.As, whose variable has to be allocated
	}
	var a *AbortError
	if errors.As(doomed, &a) {
		return a.Reason
	}
	return ReasonUser
}

// usable returns an error if the transaction cannot go on.
func (t *Tx) usable() error {
	if t.state == nil {
		return ErrDone
	}
	return t.doomed
}

// doom returns err. If err is the transaction's first conflict, doom remembers it: from here on the
// transaction can only abort.
func (t *Tx) doom(err error) error {
	if t.doomed == nil && errors.Is(err, outcome.ErrConflict) {
		t.doomed = err
	}
	return err
}

// end gives back everything that the transaction holds. It releases the slots of allocations that
// did not commit: those marked dead, and, if the commit had no effect, all in the write set.
func (t *Tx) end() {
	s := t.state
	t.state = nil
	s.awaitAhead() // pending READs write into memory that is reused
	for _, fn := range s.onEnd {
		fn()
	}
	s.late.discard(s)
	for i := range s.writes.Entries {
		if e := &s.writes.Entries[i]; e.Dead || (e.Op == record.OpAlloc && s.commit.State().IsWithoutEffect()) {
			s.m.release(s.w, e)
		}
	}
	s.op.End()
	s.reset()
	if t.keeps {
		t.kept = s
	} else {
		s.m.states.Put(s)
	}
}

func (s *state) reset() {
	s.reads.Reset()
	s.looked.Reset()
	s.writes.Reset()
	s.ahead.reset()
	if invariant.Enabled {
		s.arena.Mangle()
	}
	s.arena.Reset()
	clear(s.undo)
	s.undo = s.undo[:0]
	clear(s.questions)
	s.questions = s.questions[:0]
	s.parts.reset()
	clear(s.intents)
	s.intents = s.intents[:0]
	clear(s.onEnd)
	s.onEnd = s.onEnd[:0]
	clear(s.locals)
	s.locals = s.locals[:0]
	s.written, s.marks, s.doomed, s.locked = 0, 0, nil, false
	s.writtenMax, s.mayBeLarge, s.need = s.m.writeBytesMax, false, region.Ordinary
	s.ctx = context.Background()
	s.late.isAgain = false
	s.validated, s.validatedAll = readSize{}, 0
	s.commit.reset()
}

func (m *Machine) tooLarge(n, limit int) error {
	if limit == record.AnnexBytesMax { // the transaction may be large: larger logs would not help
		return fmt.Errorf("%w: it writes %d bytes, the limit is %d; use smaller transactions", outcome.ErrTooLarge, n, limit)
	}
	return fmt.Errorf("%w: it writes %d bytes, the limit is %d; use smaller transactions or a larger log size (setting log-size, now %d bytes)",
		outcome.ErrTooLarge, n, limit, m.logBytes)
}
