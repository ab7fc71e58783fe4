package txn_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/internal/txntest"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/outcome"
)

// A savepointModel does to maps what the transaction does to objects.
type savepointModel struct {
	objects map[region.Ptr]uint64
	marks   []savepoint
	undone  []int // what OnRollback was called for, newest last
}

type savepoint struct {
	mark    txn.Mark
	objects map[region.Ptr]uint64
	hooks   int
}

// TestSavepoints runs random transactions with nested savepoints on objects that
// exist, are made, and are freed, and compares each with a model, before and after
// it ends.
func TestSavepoints(t *testing.T) {
	eachShape(t, func(t *testing.T, cfg txntest.Config) {
		r := open(t, cfg, 6)
		rng := rand.New(rand.NewPCG(11, uint64(r.Machines())))
		objects := map[region.Ptr]uint64{}
		for _, p := range r.ptrs {
			objects[p] = 0
		}
		for round := range 150 {
			tx := r.Machine(rng.IntN(r.Machines())).Begin()
			x := &savepointModel{objects: maps.Clone(objects)}
			x.run(t, tx, rng, uint64(round)*1000)
			if rng.IntN(4) == 0 {
				tx.Abort()
			} else {
				must(t, tx.Commit(ctx))
				objects = x.objects
			}
			r.compare(objects)
		}
		r.ptrs = slices.Collect(maps.Keys(objects))
		r.quiet()
	})
}

// compare checks what everybody can read by now.
func (r *rig) compare(objects map[region.Ptr]uint64) {
	r.t.Helper()
	for p, want := range objects {
		b := make([]byte, p.Capacity())
		if _, err := r.Machine(0).Read(p, b); err != nil || number(b) != want {
			r.t.Fatalf("%v holds %d, want %d: %v", p, number(b), want, err)
		}
	}
}

func (x *savepointModel) run(t *testing.T, tx *txn.Tx, rng *rand.Rand, base uint64) {
	hooks := 0
	x.marks = append(x.marks, savepoint{tx.Mark(), maps.Clone(x.objects), 0})
	for i := range 5 + rng.IntN(40) {
		value := base + uint64(i) + 1
		p := x.any(rng)
		switch rng.IntN(9) {
		case 0, 1:
			must(t, write(tx, p, value))
			x.objects[p] = value
		case 2:
			made, b, err := tx.Alloc(20+rng.IntN(200), p.Addr)
			must(t, err)
			if number(b) != 0 {
				t.Fatal("a new object is not zero")
			}
			put(b, value)
			x.objects[made] = value
		case 3:
			if len(x.objects) > 3 {
				must(t, tx.Free(p))
				delete(x.objects, p)
			}
		case 4:
			x.marks = append(x.marks, savepoint{tx.Mark(), maps.Clone(x.objects), hooks})
		case 5:
			k := rng.IntN(len(x.marks))
			x.marks = x.marks[:k+1]
			x.undone = nil
			tx.Rollback(x.marks[k].mark)
			x.objects = maps.Clone(x.marks[k].objects)
			for n := range hooks - x.marks[k].hooks {
				if n >= len(x.undone) || x.undone[n] != hooks-1-n {
					t.Fatalf("undone %v, want %d down to %d", x.undone, hooks-1, x.marks[k].hooks)
				}
			}
			hooks = x.marks[k].hooks
		case 6:
			n := hooks
			tx.OnRollback(func() { x.undone = append(x.undone, n) })
			hooks++
		default:
			if got, err := read(tx, p); err != nil || got != x.objects[p] {
				t.Fatalf("%v reads as %d, want %d: %v", p, got, x.objects[p], err)
			}
		}
	}
	for p, want := range x.objects {
		if got, err := read(tx, p); err != nil || got != want {
			t.Fatalf("%v reads as %d, want %d: %v", p, got, want, err)
		}
	}
}

// any picks one of the objects, the same for the same seed.
func (x *savepointModel) any(rng *rand.Rand) region.Ptr {
	ptrs := slices.SortedFunc(maps.Keys(x.objects), func(a, b region.Ptr) int { return int(int64(a.Addr) - int64(b.Addr)) })
	return ptrs[rng.IntN(len(ptrs))]
}

// What was rolled back was read all the same: it is validated, and read again if
// it is asked for.
func TestRollbackKeepsWhatWasRead(t *testing.T) {
	r := open(t, txntest.Config{Machines: 2, Replicas: 1}, 3)
	for _, changed := range []bool{false, true} {
		tx := r.Machine(0).Begin()
		mark := tx.Mark()
		must(t, write(tx, r.ptrs[1], 99))
		tx.Rollback(mark)
		if changed {
			r.set(1, 1, 50)
			_, err := tx.Read(r.ptrs[1])
			wantReason(t, err, txn.ReasonValidate)
			wantReason(t, tx.Commit(ctx), txn.ReasonValidate)
			continue
		}
		if got, err := read(tx, r.ptrs[1]); err != nil || got != 0 {
			t.Errorf("reads %d after the rollback, %v", got, err)
		}
		must(t, write(tx, r.ptrs[0], 5))
		must(t, tx.Commit(ctx))
		tx = r.Machine(0).Begin()
		mark = tx.Mark()
		must(t, write(tx, r.ptrs[1], 99))
		tx.Rollback(mark)
		must(t, write(tx, r.ptrs[0], 6))
		r.set(1, 1, 0)
		wantReason(t, tx.Commit(ctx), txn.ReasonValidate)
	}
	r.quiet()
}

// A transaction that read an object which another frees, and then happens to
// allocate the same slot, has still read something that is gone.
func TestReadOfASlotThatIsReused(t *testing.T) {
	r := open(t, txntest.Config{}, 40)
	tx := r.Machine(0).Begin()
	for _, p := range r.ptrs {
		_, err := read(tx, p)
		must(t, err)
	}
	gone := r.ptrs[3]
	r.run(0, func(t *txn.Tx) error { return t.Free(gone) })
	for range 200 {
		p, _, err := tx.Alloc(100, gone.Addr)
		must(t, err)
		if p.Addr == gone.Addr {
			wantReason(t, tx.Commit(ctx), txn.ReasonValidate)
			r.ptrs = slices.Delete(r.ptrs, 3, 4)
			r.quiet()
			return
		}
	}
	t.Fatal("the slot did not come back")
}

// Every method of a transaction that has ended says so, or does nothing.
func TestUseAfterTheEnd(t *testing.T) {
	r := open(t, txntest.Config{}, 1)
	for _, end := range []func(*txn.Tx){
		func(tx *txn.Tx) { must(t, tx.Commit(ctx)) },
		func(tx *txn.Tx) { tx.Abort() },
		func(tx *txn.Tx) { tx.Discard() },
	} {
		tx := r.Machine(0).Begin()
		ended := 0
		tx.OnEnd(func() { ended++ })
		end(tx)
		if ended != 1 {
			t.Errorf("OnEnd ran %d times", ended)
		}
		for name, err := range map[string]error{
			"Read":     second(tx.Read(r.ptrs[0])),
			"Write":    second(tx.Write(r.ptrs[0])),
			"Free":     tx.Free(r.ptrs[0]),
			"Commit":   tx.Commit(ctx),
			"Validate": tx.Validate(),
			"Alloc":    func() error { _, _, err := tx.Alloc(10, 0); return err }(),
			"Array":    second(tx.AllocArray(10, 2, 0)),
			"Peek":     func() error { _, _, err := tx.Peek(r.ptrs[0]); return err }(),
			"PeekPair": func() error { _, _, _, _, err := tx.PeekPair(r.ptrs[0]); return err }(),
		} {
			if !errors.Is(err, txn.ErrDone) {
				t.Errorf("%s: %v", name, err)
			}
		}
		tx.Abort()
		tx.Discard()
		tx.Rollback(tx.Mark())
		tx.OnRollback(nil)
		tx.OnEnd(nil)
		tx.Expect(nil)
		tx.Defer(nil)
		tx.SetLocal(1, 2)
		if tx.Local(1) != nil || tx.Written() != 0 || tx.IsMarked() {
			t.Error("keeps things")
		}
		if tx.LookPair(new(region.Pair), r.ptrs[0]) || len(tx.Scratch(3)) != 3 {
			t.Error("looks at objects")
		}
	}
	r.quiet()
}

// A transaction that is discarded leaves nothing, as if it had aborted, and counts as
// nothing.
func TestDiscard(t *testing.T) {
	r := open(t, txntest.Config{}, 1)
	m := r.Machine(0)
	before := m.Stats()
	tx := m.Begin()
	b, err := tx.Write(r.ptrs[0])
	must(t, err)
	b[0]++
	written := b[0] // b is the transaction's
	must(t, second(func() (int, error) { _, _, err := tx.Alloc(10, 0); return 0, err }()))
	tx.Discard()
	if s := m.Stats().Sub(before); s.Commits != 0 || s.Aborts != (txn.Stats{}).Aborts {
		t.Errorf("counted: %+v", s)
	}
	must(t, m.Run(ctx, func(tx *txn.Tx) error {
		now, err := tx.Read(r.ptrs[0])
		if err == nil && now[0] == written {
			t.Error("what a discarded transaction has written is there")
		}
		return err
	}))
	r.quiet()
}

func second[T any](_ T, err error) error { return err }

func TestLocals(t *testing.T) {
	r := open(t, txntest.Config{}, 0)
	tx := r.Machine(0).Begin()
	if tx.Local("a") != nil {
		t.Error("holds something")
	}
	tx.SetLocal("a", 1)
	tx.SetLocal("b", 2)
	tx.SetLocal("a", 3)
	if tx.Local("a") != 3 || tx.Local("b") != 2 || tx.Machine() != r.Machine(0) {
		t.Error("holds something else")
	}
	tx.Abort()
	tx = r.Machine(0).Begin()
	if tx.Local("a") != nil {
		t.Error("holds what another held")
	}
	tx.Abort()
}

// What does not fit the logs is refused when it is written, and what an index
// adds when it is committed; the error names the setting.
func TestTooLarge(t *testing.T) {
	eachShape(t, func(t *testing.T, cfg txntest.Config) {
		r := open(t, cfg, 1)
		limit := r.Machine(0).WriteBytesMax()
		big := r.bigObjects(0, 31_500, 8)
		tooLarge := func(err error) {
			t.Helper()
			if !errors.Is(err, outcome.ErrTooLarge) || !strings.Contains(err.Error(), "log-size") {
				t.Errorf("got %v", err)
			}
		}
		tx := r.Machine(0).Begin()
		var err error
		n := 0
		for _, p := range big {
			if err = write(tx, p, 1); err != nil {
				break
			}
			n++
		}
		tooLarge(err)
		if w := tx.Written(); w > limit || w < n*31_500 {
			t.Errorf("%d bytes written by %d objects, limit %d", w, n, limit)
		}
		_, _, err = tx.Alloc(limit, 0)
		tooLarge(err)
		_, err = tx.AllocArray(1000, 7, 0)
		tooLarge(err)
		must(t, tx.Commit(ctx)) // what did fit
		tx = r.Machine(0).Begin()
		must(t, write(tx, r.ptrs[0], 7))
		tx.Defer(scripted(func(l *txn.Late) error {
			for _, p := range big {
				b, err := l.Write(p)
				if err != nil {
					return err
				}
				put(b, 5)
			}
			return nil
		}))
		tooLarge(tx.Commit(ctx))
		for i := range big {
			want := uint64(0)
			if i < n {
				want = 1
			}
			if got := r.get(0, 1+i); got != want {
				t.Errorf("object %d holds %d, want %d", i, got, want)
			}
		}
		r.quiet()
	})
}

func TestAllocErrors(t *testing.T) {
	r := open(t, txntest.Config{Machines: 2, Replicas: 1}, 2)
	tx := r.Machine(0).Begin()
	for _, n := range []int{region.MaxPayload + 1, 1<<32 + 8} {
		for _, hint := range []region.Addr{0, r.ptrs[0].Addr, r.ptrs[1].Addr} {
			if _, _, err := tx.Alloc(n, hint); !errors.Is(err, region.ErrTooLarge) {
				t.Errorf("%d bytes near %v: %v", n, hint, err)
			}
		}
	}
	if _, err := tx.AllocArray(1000, 1_000_000, 0); !errors.Is(err, region.ErrTooLarge) {
		t.Errorf("large array: %v", err)
	}
	nowhere := region.MakePtr(region.MakeAddr(99, 640), r.ptrs[0].Class(), 0)
	if _, err := tx.Read(nowhere); !errors.Is(err, outcome.ErrNoRegion) {
		t.Errorf("read in no region: %v", err)
	}
	must(t, tx.Commit(ctx))
	r.quiet()
}

func TestArrays(t *testing.T) {
	eachShape(t, func(t *testing.T, cfg txntest.Config) {
		r := open(t, cfg, 1)
		const n = 20
		var first region.Ptr
		r.run(0, func(tx *txn.Tx) (err error) {
			if first, err = tx.AllocArray(100, n, r.ptrs[0].Addr); err != nil {
				return err
			}
			for i := range n {
				if err := write(tx, first.Element(i), uint64(i)); err != nil {
					return err
				}
			}
			return nil
		})
		for i := range n {
			r.ptrs = append(r.ptrs, first.Element(i))
			if got := r.get(r.Machines()-1, 1+i); got != uint64(i) {
				t.Errorf("element %d holds %d", i, got)
			}
		}
		both := make([]byte, 2*first.Capacity())
		for machine := range r.Machines() {
			before := r.Machine(machine).Stats()
			if _, _, err := r.Machine(machine).ReadPair(first.Element(7), both); err != nil || number(both) != 7 || number(both[first.Capacity():]) != 8 {
				t.Errorf("pair: %d, %d, %v", number(both), number(both[first.Capacity():]), err)
			}
			if d := r.Machine(machine).Stats().Sub(before); machine != 0 && d.RemoteReads != 1 {
				t.Errorf("a pair takes %d reads", d.RemoteReads)
			}
			tx := r.Machine(machine).Begin()
			if a, b, _, _, err := tx.PeekPair(first.Element(3)); err != nil || number(a) != 3 || number(b) != 4 {
				t.Errorf("peeked pair: %v", err)
			}
			tx.Abort()
		}
		r.run(0, func(tx *txn.Tx) error { return tx.Free(first.Element(8)) })
		r.ptrs = slices.Delete(r.ptrs, 9, 10)
		for machine := range r.Machines() {
			if _, _, err := r.Machine(machine).ReadPair(first.Element(7), both); !errors.Is(err, region.ErrFreed) {
				t.Errorf("pair with a freed second: %v", err)
			}
		}
		r.quiet()
	})
}

// Run repeats conflicts, and nothing else; an error that comes of what never was
// is a conflict, too.
func TestRun(t *testing.T) {
	r := open(t, txntest.Config{Machines: 2, Replicas: 1}, 2)
	m := r.Machine(0)
	calls := 0
	must(t, m.Run(ctx, func(tx *txn.Tx) error {
		calls++
		_, err := read(tx, r.ptrs[0])
		must(t, err)
		must(t, write(tx, r.ptrs[1], uint64(calls)))
		if calls < 4 {
			r.set(1, 0, uint64(calls)) // validation fails
		}
		return nil
	}))
	if got := r.get(0, 1); calls != 4 || got != 4 {
		t.Errorf("%d calls, %d written", calls, got)
	}
	calls = 0
	boom := errors.New("boom")
	err := m.Run(ctx, func(tx *txn.Tx) error {
		calls++
		_, err := read(tx, r.ptrs[0])
		must(t, err)
		must(t, write(tx, r.ptrs[1], 1000))
		if calls == 1 {
			r.set(1, 0, 7) // so that this error must not be believed
		}
		return fmt.Errorf("call %d: %w", calls, boom)
	})
	if !errors.Is(err, boom) || calls != 2 || r.get(0, 1) == 1000 {
		t.Errorf("%v after %d calls", err, calls)
	}
	canceled, cancel := context.WithCancel(ctx)
	err = m.Run(canceled, func(tx *txn.Tx) error {
		cancel()
		must(t, write(tx, r.ptrs[0], 1))
		r.set(1, 0, 9)
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	if err := m.Run(ctx, func(tx *txn.Tx) error { tx.Abort(); return nil }); !errors.Is(err, txn.ErrDone) {
		t.Errorf("ended by its function: %v", err)
	}
	func() {
		defer func() { _ = recover() }()
		_ = m.Run(ctx, func(*txn.Tx) error { panic("x") })
	}()
	r.quiet() // the epoch of the one that panicked is left, too
}

// Run gives up at last, with the conflict that it kept meeting.
func TestRunGivesUp(t *testing.T) {
	r := open(t, txntest.Config{Clock: newHastyClock()}, 1)
	calls := 0
	err := r.Machine(0).Run(ctx, func(tx *txn.Tx) error {
		if calls++; calls > 1_000_000 {
			t.Fatal("does not give up")
		}
		must(t, write(tx, r.ptrs[0], 1))
		r.set(0, 0, 2)
		return nil
	})
	if !errors.Is(err, outcome.ErrConflict) || !strings.Contains(err.Error(), "attempts") {
		t.Errorf("got %v", err)
	}
	r.quiet()
}

// Each abort is counted once, under its reason.
func TestStats(t *testing.T) {
	r := open(t, txntest.Config{Machines: 2, Replicas: 2}, 2)
	m := r.Machine(0)
	before := m.Stats()
	tx := m.Begin()
	must(t, write(tx, r.ptrs[0], 1))
	must(t, tx.Commit(ctx))
	tx = m.Begin()
	tx.Abort()
	tx = m.Begin()
	must(t, write(tx, r.ptrs[0], 1))
	r.set(1, 0, 1)
	wantReason(t, tx.Commit(ctx), txn.ReasonLock)
	tx = m.Begin()
	_, err := read(tx, r.ptrs[0])
	must(t, err)
	must(t, write(tx, r.ptrs[1], 1))
	r.set(1, 0, 1)
	wantReason(t, tx.Commit(ctx), txn.ReasonValidate)
	d := m.Stats().Sub(before)
	if d.Commits != 1 || d.Aborts[txn.ReasonUser] != 1 || d.Aborts[txn.ReasonLock] != 1 || d.Aborts[txn.ReasonValidate] != 1 {
		t.Errorf("%+v", d)
	}
	r.quiet()
}

// An object that stays locked makes a reader give up in the end.
func TestBusy(t *testing.T) {
	c := newHastyClock()
	r := open(t, txntest.Config{Machines: 2, Replicas: 1, Clock: c}, 1)
	until := make(chan struct{})
	ended := r.hold(r.ptrs[0], until)
	for machine := range 2 {
		tx := r.Machine(machine).Begin()
		_, err := tx.Read(r.ptrs[0])
		wantReason(t, err, txn.ReasonBusy)
		tx.Abort()
		b := make([]byte, r.ptrs[0].Capacity())
		if _, err := r.Machine(machine).Read(r.ptrs[0], b); !errors.Is(err, region.ErrLocked) {
			t.Errorf("lock-free: %v", err)
		}
	}
	close(until)
	<-ended
	r.quiet()
}

// On a machine that has been evicted an object stays locked for good: nobody waits
// for it.
func TestLockedAtTheEvicted(t *testing.T) {
	c := newHastyClock()
	r := open(t, txntest.Config{Machines: 2, Replicas: 1, Clock: c}, 2)
	m := r.Machine(0)
	tx := m.Begin()
	_, err := read(tx, r.ptrs[1])
	must(t, err)
	until := make(chan struct{})
	ended := r.hold(r.ptrs[0], until)
	m.Evict()
	r.lost = true
	b := make([]byte, r.ptrs[0].Capacity())
	if _, err := m.Read(r.ptrs[0], b); !errors.Is(err, outcome.ErrEvicted) {
		t.Errorf("read: %v", err)
	}
	if _, _, err := m.ReadPair(r.ptrs[0], make([]byte, 2*len(b))); !errors.Is(err, outcome.ErrEvicted) {
		t.Errorf("pair: %v", err)
	}
	if _, err := tx.Read(r.ptrs[0]); !errors.Is(err, outcome.ErrEvicted) {
		t.Errorf("in a transaction: %v", err)
	}
	close(until)
	<-ended
}

func TestAbortError(t *testing.T) {
	for r := txn.Reason(0); int(r) < txn.Reasons; r++ {
		err := error(&txn.AbortError{Reason: r, Addr: region.MakeAddr(1, 64)})
		if !errors.Is(err, outcome.ErrConflict) || errors.Is(err, region.ErrFreed) != (r == txn.ReasonFreed) || !strings.Contains(err.Error(), r.String()) {
			t.Errorf("%v", err)
		}
	}
}

// TestIsMarked: only a Mark makes a transaction one that can roll back. The next
// transaction with the same memory begins without.
func TestIsMarked(t *testing.T) {
	r := open(t, txntest.Config{}, 1)
	for range 3 {
		tx := r.Machine(0).Begin()
		if tx.IsMarked() {
			t.Error("marked from the beginning")
		}
		must(t, write(tx, r.ptrs[0], 1))
		if tx.IsMarked() {
			t.Error("marked by a write")
		}
		tx.Rollback(tx.Mark())
		if !tx.IsMarked() {
			t.Error("not marked by Mark")
		}
		tx.Abort()
	}
	r.quiet()
}

// TestScratch is memory that nothing else in the transaction uses.
func TestScratch(t *testing.T) {
	r := open(t, txntest.Config{}, 1)
	r.run(0, func(tx *txn.Tx) error {
		var all [][]byte
		for i := range 300 {
			b := tx.Scratch(1 + 37*i)
			if len(b) != 1+37*i {
				t.Fatalf("%d bytes, want %d", len(b), 1+37*i)
			}
			for k := range b {
				b[k] = byte(i)
			}
			all = append(all, b)
		}
		for i, b := range all {
			if bytes.Count(b, []byte{byte(i)}) != len(b) {
				t.Errorf("the memory handed out as number %d has been overwritten", i)
			}
		}
		return nil
	})
	r.quiet()
}
