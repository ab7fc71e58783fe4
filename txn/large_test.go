package txn_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/txntest"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/local"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/outcome"
	"github.com/farmsql/farmsql/txn/record"
	"github.com/farmsql/farmsql/txn/step"
)

// largeObject is the payload of the objects that large transactions write.
const largeObject = 8000

// runLarge runs a transaction that may be large.
func (r *rig) runLarge(machine int, fn func(*txn.Tx) error) error {
	return r.Machine(machine).Run(ctx, func(t *txn.Tx) error {
		t.MayBeLarge()
		return fn(t)
	})
}

// A transaction can write more than the logs hold: objects that are there, new ones and
// such as it frees, at all machines. It is there as a whole, and no annex is left.
func TestLarge(t *testing.T) {
	eachShape(t, func(t *testing.T, cfg txntest.Config) {
		cfg.RegionBytes = 8 << 20
		r := open(t, cfg, 1)
		var objects []region.Ptr
		for i := range r.Machines() {
			objects = append(objects, r.bigObjects(i, largeObject, 60)...)
		}
		freed := r.bigObjects(0, largeObject, 5)
		r.ptrs = r.ptrs[:len(r.ptrs)-len(freed)]
		for round := range uint64(3) {
			must(t, r.runLarge(int(round)%r.Machines(), func(tx *txn.Tx) error {
				if err := writeAll(tx, objects, 100+round); err != nil {
					return err
				}
				p, b, err := tx.Alloc(largeObject, 0)
				if err != nil {
					return err
				}
				put(b, 100+round)
				r.ptrs = append(r.ptrs, p)
				return tx.Free(freed[round])
			}))
			for i := range r.ptrs[1:] {
				if got := r.get(i%r.Machines(), 1+i); got != 100+round && i < len(objects) {
					t.Fatalf("round %d: object %d holds %d", round, i, got)
				}
			}
		}
		r.ptrs = append(r.ptrs, freed[3:]...)
		r.quiet()
		r.noAnnexes()
	})
}

// noAnnexes checks that all annexes have been given back.
func (r *rig) noAnnexes() {
	r.t.Helper()
	for i := range r.Machines() {
		if n := r.Machine(i).Annexes(); n != 0 {
			r.t.Errorf("machine %d has %d annexes", i, n)
		}
	}
}

// Conflicts of large transactions are those of others: nothing of one that loses is left.
func TestLargeConflicts(t *testing.T) {
	eachShape(t, func(t *testing.T, cfg txntest.Config) {
		cfg.RegionBytes = 8 << 20
		r := open(t, cfg, 1)
		var objects []region.Ptr
		for i := range r.Machines() {
			objects = append(objects, r.bigObjects(i, largeObject, 60)...)
		}
		for _, i := range []int{0, len(objects) / 2, len(objects) - 1} {
			tx := r.Machine(0).Begin()
			tx.MayBeLarge()
			must(t, writeAll(tx, objects, 7))
			r.run(r.Machines()-1, func(other *txn.Tx) error { return write(other, objects[i], 8) })
			wantReason(t, tx.Commit(ctx), txn.ReasonLock)
			for k := range objects {
				if got := r.get(0, 1+k); got == 7 {
					t.Fatalf("object %d is of the transaction that was aborted", k)
				}
			}
		}
		r.quiet()
		r.noAnnexes()
	})
}

// If there is not enough memory for the annexes, the transaction fails without effect.
func TestLargeWithoutRoom(t *testing.T) {
	eachShape(t, func(t *testing.T, cfg txntest.Config) {
		cfg.RegionBytes = 8 << 20
		r := open(t, cfg, 1)
		objects := r.bigObjects(r.Machines()-1, largeObject, 60)
		for refused := range r.Machines() {
			undo := r.RefuseAnnexes(refused)
			err := r.runLarge(0, func(tx *txn.Tx) error { return writeAll(tx, objects, 7) })
			undo()
			isPart := errors.Is(err, nvram.ErrNoSpace)
			if err != nil && !isPart || isPart != slices.Contains(r.Machine(0).ReplicasOf(objects[0]), rdma.MachineID(refused)) {
				t.Errorf("machine %d has no room: %v", refused, err)
			}
			if isPart && strings.Count(err.Error(), "an annex of") != 1 {
				t.Errorf("machine %d says: %v", refused, err)
			}
			if want := uint64(7); isPart && r.get(0, 1) == want {
				t.Error("a transaction that has failed has had an effect")
			}
			r.run(0, func(tx *txn.Tx) error { return write(tx, objects[0], 1) })
		}
		r.quiet()
		r.noAnnexes()
	})
}

// A machine of a version that knows of no annexes refuses, and says which it is.
func TestLargeAtAnEarlierVersion(t *testing.T) {
	r := open(t, txntest.Config{Machines: 2, Replicas: 2, Workers: 1, RegionBytes: 8 << 20}, 1)
	objects := r.bigObjects(1, largeObject, 60)
	r.Machine(1).ForgetAnnexes()
	err := r.runLarge(0, func(tx *txn.Tx) error { return writeAll(tx, objects, 7) })
	if !errors.Is(err, outcome.ErrTooLarge) || !strings.Contains(err.Error(), "machine 1") {
		t.Errorf("%v", err)
	}
	must(t, r.runLarge(0, func(tx *txn.Tx) error { return writeAll(tx, objects[:3], 8) }))
	r.quiet()
	r.noAnnexes()
}

// An annex that comes when its transaction has ended, for want of time, is given back.
func TestAnnexesThatComeLate(t *testing.T) {
	r := open(t, txntest.Config{Machines: 2, Replicas: 1, Workers: 1, RegionBytes: 8 << 20}, 1)
	objects := r.bigObjects(1, largeObject, 60)
	asked, let := r.Machine(1).HoldAnnexes()
	while, end := context.WithCancel(ctx)
	go func() {
		<-asked
		end()
	}()
	err := r.Machine(0).Run(while, func(tx *txn.Tx) error {
		tx.MayBeLarge()
		return writeAll(tx, objects, 7)
	})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	let()
	r.quiet()
	r.noAnnexes()
}

// Making an annex may take longer than other answers: as long as so many bytes are worth.
func TestAnnexesThatTakeLong(t *testing.T) {
	clock := newHastyClock()
	r := open(t, txntest.Config{Machines: 2, Replicas: 1, Workers: 1, RegionBytes: 8 << 20, Clock: clock}, 1)
	objects := r.bigObjects(1, largeObject, 60)
	asked, let := r.Machine(1).HoldAnnexes()
	r.Machine(0).WaitAtMost(0)
	go func() {
		<-asked
		time.Sleep(10 * time.Millisecond) // for which the clock stands still
		let()
	}()
	must(t, r.runLarge(0, func(tx *txn.Tx) error { return writeAll(tx, objects, 7) }))
	clock.calm() // for Close waits for functions that have answered, and may not have ended
}

// A connection that breaks while annexes are filled ends the transaction before it has
// locked anything.
func TestLargeOverABrokenConnection(t *testing.T) {
	for _, async := range []bool{false, true} {
		r := open(t, txntest.Config{Machines: 2, Replicas: 1, Workers: 1, RegionBytes: 8 << 20, Network: local.Options{Async: async}}, 1)
		r.lost = true
		objects := r.bigObjects(1, largeObject, 60)
		filled := 0
		r.Machine(0).OnStep(func(s step.Step) {
			if s == step.LockRecord {
				t.Error("it has begun to commit")
			}
			if s != step.FillAnnex {
				return
			}
			if filled++; filled == 1 {
				r.Machine(1).NIC().Close()
			}
		})
		err := r.runLarge(0, func(tx *txn.Tx) error { return writeAll(tx, objects, 7) })
		if !errors.Is(err, rdma.ErrBroken) || errors.Is(err, outcome.ErrInDoubt) {
			t.Errorf("async=%v: %v", async, err)
		}
		for _, p := range objects {
			b := make([]byte, p.Capacity())
			if _, err := r.Machine(1).Read(p, b); err == nil && number(b) == 7 {
				t.Error("a transaction that has failed has had an effect")
			}
		}
	}
}

// What names an annex that its sender has not asked for, or twice, or one whose content
// makes no sense, fences the sender there.
func TestBadAnnexFencesItsSender(t *testing.T) {
	const bytes = 4096
	for name, f := range map[string]func(r *rig, record func(number uint64)){
		"unknown": func(_ *rig, record func(uint64)) { record(77) },
		"another's": func(r *rig, record func(uint64)) {
			number, err := r.Machine(2).AskAnnex(0, 1, bytes)
			must(r.t, err)
			record(number)
		},
		"garbage": func(r *rig, record func(uint64)) {
			number, err := r.Machine(0).AskAnnex(0, 1, bytes)
			must(r.t, err)
			r.Machine(0).FillAnnex(0, 1, number, slices.Repeat([]byte{0xa5}, bytes))
			record(number)
		},
		"twice": func(r *rig, record func(uint64)) {
			number, err := r.Machine(0).AskAnnex(0, 1, bytes)
			must(r.t, err)
			record(number)
			record(number)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := open(t, txntest.Config{Machines: 3, Replicas: 1, Workers: 1, Clock: newHastyClock()}, 3)
			r.lost = true
			id := record.ID{Config: 1, Machine: 0, Seq: 1 << 40}
			f(r, func(number uint64) {
				id.Seq++
				r.Machine(0).AppendLog(0, 1, record.Append(nil, &record.Record{Kind: record.CommitBackup, ID: id,
					Regions: []region.ID{1}, Annex: record.Annex{Number: number, Writes: 1, Bytes: bytes}}))
			})
			awaitTrue(t, "machine 1 does not believe machine 0", func() bool { return errors.Is(r.Machine(1).Broken(0, 0), record.ErrBad) })
			r.set(2, 1, 5)
		})
	}
}

// Nobody gets an annex that is larger than any transaction, or none.
func TestAnnexesAreBounded(t *testing.T) {
	r := open(t, txntest.Config{Machines: 2, Replicas: 1, Workers: 1}, 1)
	for _, bytes := range []uint64{0, 12, txn.LargeBytesMax + 8} {
		if _, err := r.Machine(0).AskAnnex(0, 1, bytes); !errors.Is(err, outcome.ErrTooLarge) {
			t.Errorf("%d bytes: %v", bytes, err)
		}
	}
	r.noAnnexes()
}

// A yieldClock makes every transaction large that may be, and makes it work in the smallest slices.
// It calls onYield, once, when a goroutine yields.
type yieldClock struct {
	*handClock
	onYield atomic.Pointer[func()]
}

func (c *yieldClock) Meets(t clock.Trouble) bool { return t == clock.SmallLog }

func (c *yieldClock) Yield() {
	if f := c.onYield.Swap(nil); f != nil {
		(*f)()
	}
	c.handClock.Yield()
}

// A reconfiguration between two slices of a coordinator's own locking or applying ends that work:
// recovery does the rest.
func TestFreezeBetweenSlices(t *testing.T) {
	for _, at := range []step.Step{step.Lock, step.ApplyBackup, step.ApplyPrimary} {
		t.Run(at.String(), func(t *testing.T) {
			c := &yieldClock{handClock: newHastyClock()}
			r := open(t, txntest.Config{Machines: 2, Replicas: 2, Workers: 1, Clock: c}, 10)
			r.settle()
			r.lost = true
			m := r.Machine(0)
			next := r.Configuration()
			next.ID++
			steps, frozen := 0, false
			freeze := func() {
				frozen = true
				m.Freeze(next)
				m.Evict() // or the commit would wait for recovery
			}
			m.OnStep(func(s step.Step) {
				if s != at {
					return
				}
				if steps++; steps == 2 {
					c.onYield.Store(&freeze)
				}
				if frozen {
					t.Errorf("%v, %d", s, steps)
				}
			})
			err := r.runLarge(0, func(tx *txn.Tx) error { return writeAll(tx, r.ptrs, 7) })
			if err == nil || !frozen || steps != 2 {
				t.Errorf("%v, after %d steps, frozen %v", err, steps, frozen)
			}
		})
	}
}

// Nor does a coordinator give its own backups anything that a reconfiguration has caught while
// it waited for the others' acknowledgements: recovery may abort it.
func TestFreezeBeforeOwnBackups(t *testing.T) {
	for range 20 {
		c := &yieldClock{handClock: newHastyClock()}
		r := open(t, txntest.Config{Machines: 2, Replicas: 2, Workers: 1, Clock: c, Network: local.Options{Async: true}}, 10)
		r.settle()
		r.lost = true
		m := r.Machine(0)
		next := r.Configuration()
		next.ID++
		var once sync.Once
		var freezing sync.WaitGroup
		var frozen atomic.Bool
		m.OnStepAtWork(func(s step.Step) {
			switch {
			case s == step.CommitBackup: // with the worker locked
				once.Do(func() {
					freezing.Go(func() {
						m.Freeze(next)
						frozen.Store(true)
					})
				})
			case s == step.ApplyBackup && frozen.Load():
				t.Error("applied after the reconfiguration had caught the commit")
			}
		})
		done := make(chan error, 1)
		go func() { done <- r.runLarge(0, func(tx *txn.Tx) error { return writeAll(tx, r.ptrs, 7) }) }()
		freezing.Wait()
		awaitTrue(t, "it is frozen, or done", func() bool { return frozen.Load() || len(done) > 0 })
		m.Evict() // or the commit would wait for recovery
		<-done    // committed before it was frozen, or not known
	}
}
