package txn_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/farmsql/farmsql/internal/testnet"
	"github.com/farmsql/farmsql/internal/txntest"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/outcome"
)

// A toy is the smallest index that shows what Questions and Intents are for: a
// sorted list of keys in one object, all of them in conflict with each other if
// the object itself were in a read or write set.
//
//	| count 8 | key 8 | key 8 | ...
type toy struct{ p region.Ptr }

const toyKeysMax = 100

func newToy(r *rig, machine int) *toy {
	y := new(toy)
	r.run(machine, func(t *txn.Tx) (err error) {
		y.p, _, err = t.Alloc(8*(toyKeysMax+1), 0)
		return err
	})
	r.ptrs = append(r.ptrs, y.p)
	return y
}

func toyKeys(b []byte) []uint64 {
	keys := make([]uint64, number(b))
	for i := range keys {
		keys[i] = binary.LittleEndian.Uint64(b[8+8*i:])
	}
	return keys
}

func putToyKeys(b []byte, keys []uint64) {
	put(b, uint64(len(keys)))
	for i, k := range keys {
		binary.LittleEndian.PutUint64(b[8+8*i:], k)
	}
}

// pending are a transaction's operations on one toy.
type pending struct {
	y        *toy
	insert   []uint64
	prepared int
}

func (y *toy) pending(t *txn.Tx) *pending {
	if w, ok := t.Local(y).(*pending); ok {
		return w
	}
	w := &pending{y: y}
	t.SetLocal(y, w)
	t.Defer(w)
	return w
}

// Prepare implements txn.Intent.
func (w *pending) Prepare(l *txn.Late) error {
	w.prepared++
	if len(w.insert) == 0 {
		return nil
	}
	b, err := l.Write(w.y.p)
	if err != nil {
		return err
	}
	keys := append(toyKeys(b), w.insert...)
	slices.Sort(keys)
	putToyKeys(b, keys)
	return nil
}

// rangeQuestion asks which keys there are from lo to hi.
type rangeQuestion struct {
	y      *toy
	lo, hi uint64
	answer []uint64
	source [1]txn.Source
	asked  int
}

func (q *rangeQuestion) Sources() []txn.Source { return q.source[:] }

func (q *rangeQuestion) Ask(f *txn.Fresh) (bool, error) {
	q.asked++
	b, v, err := f.Peek(q.y.p)
	if err != nil {
		return false, err
	}
	q.source[0].Version = v
	return slices.Equal(q.between(b), q.answer), nil
}

func (q *rangeQuestion) between(b []byte) (keys []uint64) {
	for _, k := range toyKeys(b) {
		if k >= q.lo && k <= q.hi {
			keys = append(keys, k)
		}
	}
	return keys
}

// scan returns the keys from lo to hi, its own pending ones included.
func (y *toy) scan(t *txn.Tx, lo, hi uint64) ([]uint64, *rangeQuestion, error) {
	b, v, err := t.Peek(y.p)
	if err != nil {
		return nil, nil, err
	}
	q := &rangeQuestion{y: y, lo: lo, hi: hi, source: [1]txn.Source{{Ptr: y.p, Version: v}}}
	q.answer = q.between(b)
	t.Expect(q)
	keys := slices.Clone(q.answer)
	for _, k := range y.pending(t).insert {
		if k >= lo && k <= hi {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys, q, nil
}

var errExists = errors.New("key exists")

func (y *toy) insert(t *txn.Tx, key uint64) error {
	keys, _, err := y.scan(t, key, key)
	if err != nil {
		return err
	}
	if len(keys) > 0 {
		return errExists
	}
	w := y.pending(t)
	w.insert = append(w.insert, key)
	t.OnRollback(func() { w.insert = w.insert[:len(w.insert)-1] })
	return nil
}

func (y *toy) keys(r *rig) []uint64 {
	b := make([]byte, y.p.Capacity())
	if _, err := r.Machine(0).Read(y.p, b); err != nil {
		r.t.Fatal(err)
	}
	return toyKeys(b)
}

// Many transactions are held open at once, each inserts a key of its own and
// touches a row of its own: all of them commit, at the first attempt.
func TestNoFalseConflicts(t *testing.T) {
	eachShape(t, func(t *testing.T, cfg txntest.Config) {
		if strings.HasSuffix(t.Name(), string(testnet.BadTCP)) {
			t.Skip("the commits take turns at one object, and over a slow network the last ones give up before it is theirs")
		}
		r := open(t, cfg, 0)
		y := newToy(r, r.Machines()-1)
		const n = 48
		rows := make([]region.Ptr, n)
		for i := range rows {
			rows[i] = r.make(i%r.Machines(), 0)
		}
		r.ptrs = append(r.ptrs, rows...)
		var opened, wg sync.WaitGroup
		opened.Add(n)
		for i := range n {
			wg.Go(func() {
				tx := r.Machine(i % r.Machines()).Begin()
				defer tx.Abort()
				err := y.insert(tx, uint64(i))
				if err == nil {
					err = write(tx, rows[i], uint64(i))
				}
				opened.Done()
				opened.Wait() // all of them are open now, and have seen the empty index
				time.Sleep(time.Duration(i%7) * time.Millisecond)
				if err == nil {
					err = tx.Commit(ctx)
				}
				if err != nil {
					t.Errorf("transaction %d: %v", i, err)
				}
			})
		}
		wg.Wait()
		want := make([]uint64, n)
		for i := range want {
			want[i] = uint64(i)
		}
		if got := y.keys(r); !slices.Equal(got, want) {
			t.Errorf("index holds %v", got)
		}
		r.quiet()
	})
}

// Of several transactions that insert the same key, exactly one commits.
func TestSameKeyCommitsOnce(t *testing.T) {
	eachShape(t, func(t *testing.T, cfg txntest.Config) {
		r := open(t, cfg, 0)
		y := newToy(r, 0)
		for key := range uint64(10) {
			const n = 6
			var wg, opened sync.WaitGroup
			opened.Add(n)
			results := make([]error, n)
			for i := range n {
				wg.Go(func() {
					tx := r.Machine(i % r.Machines()).Begin()
					defer tx.Abort()
					results[i] = y.insert(tx, key)
					opened.Done()
					opened.Wait()
					if results[i] == nil {
						results[i] = tx.Commit(ctx)
					}
				})
			}
			wg.Wait()
			committed := 0
			for _, err := range results {
				if err == nil {
					committed++
				} else {
					wantReason(t, err, txn.ReasonAnswer)
				}
			}
			if committed != 1 {
				t.Errorf("key %d: %d transactions committed", key, committed)
			}
		}
		if n := len(y.keys(r)); n != 10 {
			t.Errorf("%d keys", n)
		}
		r.quiet()
	})
}

// A range that was read keeps phantoms out: and what is outside of it does not
// matter.
func TestPhantoms(t *testing.T) {
	r := open(t, txntest.Config{Machines: 2, Replicas: 2}, 1)
	for _, key := range []uint64{5, 9, 10 + 5, 11, 19, 21, 25} {
		for _, readOnly := range []bool{true, false} {
			y := newToy(r, 1)
			insert := func(key uint64) { r.run(1, func(t *txn.Tx) error { return y.insert(t, key) }) }
			insert(10)
			insert(20)
			phantom := key > 10 && key < 20
			tx := r.Machine(0).Begin()
			keys, q, err := y.scan(tx, 10, 20)
			must(t, err)
			if !readOnly {
				must(t, write(tx, r.ptrs[0], key))
			}
			insert(key)
			err = tx.Validate()
			if phantom {
				wantReason(t, err, txn.ReasonAnswer)
			} else if err != nil || q.asked != 1 {
				t.Errorf("key %d: validated with %v, asked %d times", key, err, q.asked)
			}
			if err = tx.Commit(ctx); (err != nil) != phantom {
				t.Errorf("key %d among %v: %v", key, keys, err)
			}
		}
	}
	r.quiet()
}

// An insert and a change of a row that the index does not know of do not
// disturb each other, and a strict reader of the row is disturbed only by its
// own kind.
func TestQuestionsAndRowsAreApart(t *testing.T) {
	r := open(t, txntest.Config{Machines: 2, Replicas: 1}, 2)
	y := newToy(r, 0)
	tx := r.Machine(1).Begin()
	must(t, y.insert(tx, 7))
	_, err := read(tx, r.ptrs[0])
	must(t, err)
	r.run(0, func(t *txn.Tx) error { return y.insert(t, 8) })
	r.set(0, 1, 4)
	must(t, tx.Commit(ctx))
	tx = r.Machine(1).Begin()
	must(t, y.insert(tx, 9))
	_, err = read(tx, r.ptrs[0])
	must(t, err)
	r.set(0, 0, 4)
	wantReason(t, tx.Commit(ctx), txn.ReasonValidate)
	if got := y.keys(r); !slices.Equal(got, []uint64{7, 8}) {
		t.Errorf("index holds %v", got)
	}
	r.quiet()
}

// scripted is an Intent made of a function.
type scripted func(l *txn.Late) error

func (s scripted) Prepare(l *txn.Late) error { return s(l) }

// Prepare is called again, on fresh copies, when it says that those it got do
// not belong together, and when its objects are locked or have moved; what it did
// before is undone.
func TestPrepareAgain(t *testing.T) {
	eachShape(t, func(t *testing.T, cfg txntest.Config) {
		r := open(t, cfg, 3)
		m := r.Machine(0)
		var made []region.Ptr
		calls := 0
		tx := m.Begin()
		own, ownPayload, err := tx.Alloc(50, 0)
		must(t, err)
		put(ownPayload, 100)
		must(t, write(tx, r.ptrs[2], 40))
		tx.Defer(scripted(func(l *txn.Late) error {
			calls++
			p, _, err := l.Alloc(50, 0)
			if err != nil {
				return err
			}
			made = append(made, p)
			lent, err := l.Write(own)
			if err != nil {
				return err
			}
			if number(lent) != 100 {
				t.Errorf("call %d finds %d in the transaction's own object", calls, number(lent))
			}
			put(lent, number(lent)+1)
			lent, err = l.Write(r.ptrs[2])
			if err != nil || number(lent) != 40 {
				t.Errorf("call %d finds %d in what the transaction wrote: %v", calls, number(lent), err)
			}
			put(lent, 41)
			b, err := l.Write(r.ptrs[0])
			if err != nil {
				return err
			}
			before := number(b)
			put(b, before+10)
			again, err := l.Read(r.ptrs[0])
			if err != nil || number(again) != before+10 {
				t.Errorf("call %d reads its own write as %d, %v", calls, number(again), err)
			}
			if _, err := l.Read(r.ptrs[1]); err != nil {
				return err
			}
			switch calls {
			case 1:
				return fmt.Errorf("split meanwhile: %w", txn.ErrStale)
			case 2:
				r.set(r.Machines()-1, 0, 1000) // refuses the lock
			case 3:
				r.set(r.Machines()-1, 1, 1000) // a late read has moved
			}
			return nil
		}))
		must(t, tx.Commit(ctx))
		if calls != 4 {
			t.Errorf("prepared %d times", calls)
		}
		if got := r.get(0, 0); got != 1010 {
			t.Errorf("object holds %d, want 1010", got)
		}
		if got := r.get(0, 2); got != 41 {
			t.Errorf("strict object holds %d, want 41", got)
		}
		r.ptrs = append(r.ptrs, own, made[3])
		if got := r.get(0, 3); got != 101 {
			t.Errorf("own object holds %d, want 101", got)
		}
		if s := m.Stats(); s.Retries != 3 {
			t.Errorf("%d retries", s.Retries)
		}
		r.quiet() // no slot of the first three is lost
	})
}

// A transaction that waits for an index object locked for long gives up in the
// end, with a conflict.
func TestLateLockPatience(t *testing.T) {
	c := newHastyClock()
	r := open(t, txntest.Config{Clock: c}, 1)
	stop := make(chan struct{})
	stopped := r.hold(r.ptrs[0], stop)
	tx := r.Machine(0).Begin()
	tx.Defer(scripted(func(l *txn.Late) error {
		_, err := l.Write(r.ptrs[0])
		return err
	}))
	wantReason(t, tx.Commit(ctx), txn.ReasonBusy)
	close(stop)
	<-stopped
	r.quiet()
}

// A transaction whose own object was freed under it, and whose preparation reads what is in
// its place now, aborts at once: it is not the preparation's pointer that is old.
func TestPlaceIsTaken(t *testing.T) {
	for name, change := range map[string]func(*txn.Tx, region.Ptr) error{
		"written": func(t *txn.Tx, p region.Ptr) error { return write(t, p, 1) },
		"freed":   func(t *txn.Tx, p region.Ptr) error { return t.Free(p) },
	} {
		t.Run(name, func(t *testing.T) {
			r := open(t, txntest.Config{Machines: 2, Replicas: 1}, 4)
			gone := r.ptrs[3]
			tx := r.Machine(0).Begin()
			must(t, change(tx, gone))
			r.run(0, func(t *txn.Tx) error { return t.Free(gone) })
			r.ptrs = append(r.ptrs[:3], r.takePlace(gone))
			prepared := 0
			tx.Defer(scripted(func(l *txn.Late) error {
				prepared++
				if _, err := l.Read(r.ptrs[3]); !errors.Is(err, region.ErrFreed) {
					return err
				}
				return txn.ErrStale // as an index does
			}))
			wantReason(t, tx.Commit(ctx), txn.ReasonLock)
			if prepared != 1 {
				t.Errorf("prepared %d times", prepared)
			}
			r.quiet()
		})
	}
}

// takePlace makes an object where p was.
func (r *rig) takePlace(p region.Ptr) (now region.Ptr) {
	var others []region.Ptr
	r.run(0, func(t *txn.Tx) error {
		for {
			made, b, err := t.Alloc(p.Capacity(), p.Addr)
			if err != nil {
				return err
			}
			put(b, 7)
			if made.Addr == p.Addr {
				now = made
				return nil
			}
			others = append(others, made)
		}
	})
	r.run(0, func(t *txn.Tx) error {
		for _, made := range others {
			if err := t.Free(made); err != nil {
				return err
			}
		}
		return nil
	})
	return now
}

// hold keeps an object locked by a commit that waits in its step.
func (r *rig) hold(p region.Ptr, until chan struct{}) (ended chan struct{}) {
	held := make(chan struct{})
	ended = make(chan struct{})
	m := r.Machine(0)
	var once sync.Once
	go func() {
		defer close(ended)
		tx := m.Begin()
		tx.Expect(blocker{func() {
			once.Do(func() { close(held); <-until })
		}})
		if err := write(tx, p, 1); err != nil {
			r.t.Error(err)
		}
		if err := tx.Commit(ctx); err != nil && !r.lost {
			r.t.Error(err)
		}
	}()
	<-held
	return ended
}

// blocker is a question that is called while the locks are held.
type blocker struct{ f func() }

func (b blocker) Sources() []txn.Source        { b.f(); return nil }
func (b blocker) Ask(*txn.Fresh) (bool, error) { return true, nil }

// A pointer to freed memory is no reason to give up: not for Peek, not for a
// preparation.
func TestFreedDoesNotDoom(t *testing.T) {
	r := open(t, txntest.Config{Machines: 2, Replicas: 1}, 4)
	gone := r.ptrs[3]
	r.run(0, func(t *txn.Tx) error { return t.Free(gone) })
	r.ptrs = r.ptrs[:3]
	tx := r.Machine(0).Begin()
	if _, _, err := tx.Peek(gone); !errors.Is(err, region.ErrFreed) || !errors.Is(err, outcome.ErrConflict) {
		t.Errorf("peek: %v", err)
	}
	must(t, write(tx, r.ptrs[0], 5))
	tx.Defer(scripted(func(l *txn.Late) error {
		if _, err := l.Read(gone); !errors.Is(err, region.ErrFreed) {
			t.Errorf("late read: %v", err)
		}
		if _, err := l.Write(gone); !errors.Is(err, region.ErrFreed) {
			t.Errorf("late write: %v", err)
		}
		if err := l.Free(gone); !errors.Is(err, region.ErrFreed) {
			t.Errorf("late free: %v", err)
		}
		b, err := l.Write(r.ptrs[1])
		if err == nil {
			put(b, 6)
		}
		return err
	}))
	must(t, tx.Commit(ctx))
	if r.get(0, 0) != 5 || r.get(0, 1) != 6 {
		t.Error("not written")
	}
	tx = r.Machine(0).Begin()
	_, err := tx.Read(gone)
	wantReason(t, err, txn.ReasonFreed)
	if !errors.Is(err, region.ErrFreed) {
		t.Errorf("read: %v", err)
	}
	if _, again := tx.Read(r.ptrs[0]); again != err {
		t.Errorf("a doomed transaction goes on: %v", again)
	}
	if again := tx.Commit(ctx); again != err {
		t.Errorf("a doomed transaction commits: %v", again)
	}
	r.quiet()
}

// What a preparation frees, makes, and makes and frees again.
func TestLateAllocAndFree(t *testing.T) {
	eachShape(t, func(t *testing.T, cfg txntest.Config) {
		r := open(t, cfg, 6)
		last := r.ptrs[5]
		var kept region.Ptr
		tx := r.Machine(0).Begin()
		own, _, err := tx.Alloc(10, 0)
		must(t, err)
		tx.Defer(scripted(func(l *txn.Late) error {
			p, b, err := l.Alloc(200, last.Addr)
			must(t, err)
			put(b, 9)
			kept = p
			brief, _, err := l.Alloc(200, last.Addr)
			must(t, err)
			must(t, l.Free(brief))
			if _, err := l.Read(brief); !errors.Is(err, region.ErrFreed) {
				t.Errorf("made and freed: %v", err)
			}
			must(t, l.Free(last))
			if err := l.Free(last); !errors.Is(err, region.ErrFreed) {
				t.Errorf("freed twice: %v", err)
			}
			if err := l.Free(own); err == nil {
				t.Error("freed what the transaction itself has made")
			}
			return nil
		}))
		must(t, tx.Commit(ctx))
		r.ptrs = append(r.ptrs[:5], kept, own)
		if got := r.get(0, 5); got != 9 {
			t.Errorf("late object holds %d", got)
		}
		b := make([]byte, last.Capacity())
		if _, err := r.Machine(0).Read(last, b); !errors.Is(err, region.ErrFreed) {
			t.Errorf("freed object: %v", err)
		}
		r.quiet()
	})
}

// A question about an object that this commit has locked, because an intent
// writes it, is answered from what it would replace.
func TestQuestionAboutOwnLockedObject(t *testing.T) {
	eachShape(t, func(t *testing.T, cfg txntest.Config) {
		r := open(t, cfg, 0)
		y := newToy(r, r.Machines()-1)
		for key := range uint64(20) {
			tx := r.Machine(0).Begin()
			must(t, y.insert(tx, key))
			// Somebody else's insert moves the version, so that the question is
			// asked while our own late lock is held.
			r.run(r.Machines()-1, func(t *txn.Tx) error { return y.insert(t, 1000+key) })
			must(t, tx.Commit(ctx))
		}
		if n := len(y.keys(r)); n != 40 {
			t.Errorf("%d keys", n)
		}
		if s := r.Machine(0).Stats(); s.Retries != 0 {
			t.Errorf("%d retries where none was needed", s.Retries)
		}
		r.quiet()
	})
}

// Errors of intents and questions that are no conflicts end the transaction.
func TestIntentAndQuestionErrors(t *testing.T) {
	r := open(t, txntest.Config{Machines: 2, Replicas: 1}, 2)
	boom := errors.New("boom")
	tx := r.Machine(0).Begin()
	must(t, write(tx, r.ptrs[1], 1))
	tx.Defer(scripted(func(l *txn.Late) error {
		if _, _, err := l.Alloc(100, r.ptrs[1].Addr); err != nil {
			return err
		}
		return boom
	}))
	if err := tx.Commit(ctx); !errors.Is(err, boom) {
		t.Errorf("intent: %v", err)
	}
	tx = r.Machine(0).Begin()
	must(t, write(tx, r.ptrs[1], 1))
	_, v, err := tx.Peek(r.ptrs[0])
	must(t, err)
	tx.Expect(&failing{txn.Source{Ptr: r.ptrs[0], Version: v}, boom})
	r.set(1, 0, 5)
	if err := tx.Commit(ctx); !errors.Is(err, boom) {
		t.Errorf("question: %v", err)
	}
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	tx = r.Machine(0).Begin()
	must(t, write(tx, r.ptrs[1], 1))
	if err := tx.Commit(canceled); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	if got := r.get(0, 1); got != 0 {
		t.Errorf("object holds %d", got)
	}
	r.quiet()
}

type failing struct {
	source txn.Source
	err    error
}

func (f *failing) Sources() []txn.Source        { return []txn.Source{f.source} }
func (f *failing) Ask(*txn.Fresh) (bool, error) { return false, f.err }

// Random inserts and scans of a few toys from all machines: what each
// transaction saw must have been true at one moment.
func TestToysUnderLoad(t *testing.T) {
	eachShape(t, func(t *testing.T, cfg txntest.Config) {
		r := open(t, cfg, 0)
		toys := []*toy{newToy(r, 0), newToy(r, r.Machines()-1)}
		var wg sync.WaitGroup
		for g := range 2 * r.Machines() {
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(9, uint64(g)))
				for range 12 {
					// The same key into both, so that they hold the same keys.
					key := rng.Uint64N(1 << 40)
					err := r.Machine(g%r.Machines()).Run(ctx, func(tx *txn.Tx) error {
						if err := toys[g%2].insert(tx, key); err != nil {
							return err
						}
						return toys[1-g%2].insert(tx, key)
					})
					if err != nil {
						t.Error(err)
						return
					}
					err = r.Machine(g%r.Machines()).Run(ctx, func(tx *txn.Tx) error {
						a, _, err := toys[0].scan(tx, 0, 1<<40)
						if err != nil {
							return err
						}
						b, _, err := toys[1].scan(tx, 0, 1<<40)
						if err != nil {
							return err
						}
						if !slices.Equal(a, b) {
							return fmt.Errorf("%w: %d keys and %d keys", errExists, len(a), len(b))
						}
						return nil
					})
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		if a, b := toys[0].keys(r), toys[1].keys(r); !slices.Equal(a, b) || len(a) != 24*r.Machines() {
			t.Errorf("%d and %d keys", len(a), len(b))
		}
		r.quiet()
	})
}
