package farm

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/invariant"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/outcome"
	"github.com/farmsql/farmsql/txn/step"
)

// TestCrashAtEveryStep runs a script of transactions. At every
// step of every one of them it copies all non-volatile memory, opens the copy as
// if all machines had just crashed, and compares it with a model: each
// transaction has happened wholly or not at all, those that were acknowledged
// have, nothing is locked or leaked, and all replicas agree. (The simulator crashes machines that
// are recovering.)
//
// It does so twice: the second time every transaction is large, so that annexes are made,
// filled and given back for each.
func TestCrashAtEveryStep(t *testing.T) {
	for _, large := range []bool{false, true} {
		for _, s := range []struct{ machines, replicas int }{{1, 1}, {2, 1}, {2, 2}, {3, 2}, {3, 3}} {
			t.Run(fmt.Sprintf("machines=%d,replicas=%d,large=%v", s.machines, s.replicas, large), func(t *testing.T) {
				t.Parallel()
				runCrashScript(t, s.machines, s.replicas, large)
			})
		}
	}
}

// crasher drives an instance through the script.
type crasher struct {
	t        *testing.T
	mu       sync.Mutex   // held in steps: handlers come to them, too
	arrived  atomic.Int64 // at steps
	large    bool
	cfg      Config
	c        *Local
	watching atomic.Bool
	// dir is the object that holds the pointers of all others, one for each of
	// the model's slots.
	dir region.Ptr
	// model has the present value of every slot, next the values after the transaction in progress
	// has committed.
	model, next map[int]uint64
	ptrs        map[int]region.Ptr
	counts      [step.Count]int
	crashes     int
}

// smallLogs is a clock that makes every transaction large that may be.
type smallLogs struct{ clock.System }

var _ clock.Troubled = smallLogs{}

// Meets implements clock.Troubled.
func (smallLogs) Meets(t clock.Trouble) bool { return t == clock.SmallLog }

const crashSlots = 12

func runCrashScript(t *testing.T, machines, replicas int, large bool) {
	x := &crasher{t: t, large: large, model: map[int]uint64{}, ptrs: map[int]region.Ptr{}}
	x.cfg = Config{Machines: machines, Replicas: replicas, Workers: 1, RegionBytes: 1 << 20, LogBytes: 64 << 10,
		MessageBytes: 16 << 10, Volatile: NewVolatile(), Each: tellSteps(x.step)}
	if large {
		x.cfg.Clock = smallLogs{}
	}
	x.c = open(t, x.cfg)
	x.setUp()
	x.watching.Store(true)
	for coordinator := range min(machines, 2) {
		if machines < 3 || coordinator == replicas-2 { // one of them will do
			x.script(coordinator)
		}
	}
	x.watching.Store(false)
	x.mu.Lock() // truncations may be under way
	defer x.mu.Unlock()
	if x.crashes < 90 && !invariant.Enabled {
		t.Errorf("only %d crashes", x.crashes)
	}
	for s, n := range x.counts {
		switch s := step.Step(s); s {
		case step.CommitBackup, step.ApplyBackup, step.Block:
			if (n > 0) != (replicas > 1) {
				t.Errorf("step %v was reached %d times with %d replicas", s, n, replicas)
			}
		case step.Truncate:
			if (n > 0) != (machines > 1) {
				t.Errorf("step %v was reached %d times on %d machines", s, n, machines)
			}
		case step.Abort:
			if (n > 0) != (machines > 1) {
				t.Errorf("step %v was reached %d times on %d machines", s, n, machines)
			}
		case step.Annex, step.FillAnnex:
			if (n > 0) != large {
				t.Errorf("step %v was reached %d times, large=%v", s, n, large)
			}
		case step.DropAnnex:
		default:
			if n == 0 {
				t.Errorf("step %v was never reached", s)
			}
		}
	}
	t.Logf("%d crashes", x.crashes)
}

// setUp makes the directory on the last machine, and an object on each.
func (x *crasher) setUp() {
	last := x.c.Machine(x.c.Machines() - 1)
	x.run(last, func(tx *txn.Tx) (err error) {
		x.dir, _, err = tx.Alloc(crashSlots*region.PtrBytes, 0)
		return err
	})
	x.run(x.c.Machine(0), func(tx *txn.Tx) error {
		b, err := tx.Write(x.c.Root())
		if err == nil {
			x.dir.Append(b[:0])
		}
		return err
	})
	for i := range 2 * x.c.Machines() {
		x.tx(i%x.c.Machines(), uint64(1000+i), func(e *edit) { e.alloc(i, 0) })
	}
}

func (x *crasher) run(m *txn.Machine, fn func(*txn.Tx) error) {
	x.t.Helper()
	if err := m.Run(context.Background(), fn); err != nil {
		x.t.Fatal(err)
	}
}

// script runs the transactions of one coordinator. Objects i and i+Machines are at machine i.
func (x *crasher) script(coordinator int) {
	n := x.c.Machines()
	value := uint64(coordinator * 100)
	near := func(i int) region.Addr { return x.ptrs[i%n].Addr }
	x.tx(coordinator, value+1, func(e *edit) { e.write(coordinator) })
	x.tx(coordinator, value+2, func(e *edit) {
		for i := range n {
			e.write(i)
		}
	})
	x.tx(coordinator, value+3, func(e *edit) { e.write((coordinator + 1) % n); e.write((coordinator+1)%n + n) })
	x.tx(coordinator, value+4, func(e *edit) { e.alloc(8, near(coordinator)); e.alloc(9, near(coordinator+1)); e.write(0) })
	x.tx(coordinator, value+5, func(e *edit) { e.free(8); e.write(1 % n) })
	x.tx(coordinator, value+6, func(e *edit) { e.alloc(8, near(coordinator)); e.free(9); e.alloc(10, near(coordinator+2)) })
	x.loser(coordinator, value+7)
	x.tx(coordinator, value+8, func(e *edit) { e.free(8); e.free(10); e.big(11) })
	x.tx(coordinator, value+9, func(e *edit) { e.free(11) })
}

// An edit changes objects in a transaction, and the model with it.
type edit struct {
	x     *crasher
	tx    *txn.Tx
	value uint64
	dir   []byte
}

func (e *edit) must(err error) {
	if err != nil {
		e.x.t.Fatalf("%d: %v", e.value, err)
	}
}

func (e *edit) write(i int) {
	b, err := e.tx.Write(e.x.ptrs[i])
	e.must(err)
	fill(b, e.value)
	e.x.set(func() { e.x.next[i] = e.value })
}

// fill writes a value all over a payload, so that half an object shows.
func fill(b []byte, value uint64) {
	for len(b) >= 8 {
		binary.LittleEndian.PutUint64(b, value)
		b = b[8:]
	}
}

func (e *edit) alloc(i int, hint region.Addr) { e.allocBytes(i, 100+i*40, hint) }

// big needs a block of its own, so that block headers have to be replicated.
func (e *edit) big(i int) { e.allocBytes(i, 5000, 0) }

func (e *edit) allocBytes(i, n int, hint region.Addr) {
	p, b, err := e.tx.Alloc(n, hint)
	e.must(err)
	fill(b, e.value)
	e.x.ptrs[i] = p
	e.x.set(func() { e.x.next[i] = e.value })
	e.link(i, p)
}

func (e *edit) free(i int) {
	e.must(e.tx.Free(e.x.ptrs[i]))
	e.x.set(func() { delete(e.x.next, i) })
	e.link(i, region.Ptr{})
}

func (e *edit) link(i int, p region.Ptr) {
	if e.dir == nil {
		var err error
		e.dir, err = e.tx.Write(e.x.dir)
		e.must(err)
	}
	p.Append(e.dir[i*region.PtrBytes : i*region.PtrBytes])
}

// tx runs a transaction that commits.
func (x *crasher) tx(coordinator int, value uint64, fn func(*edit)) {
	x.t.Helper()
	x.set(func() { x.next = maps.Clone(x.model) })
	t := x.c.Machine(coordinator).Begin()
	if x.large {
		t.MayBeLarge()
	}
	fn(&edit{x: x, tx: t, value: value})
	if err := t.Commit(context.Background()); err != nil {
		x.t.Fatalf("%d: %v", value, err)
	}
	x.set(func() { x.model, x.next = x.next, nil })
}

// set changes the model under mu. Steps of truncations, which have timers, look at the model at any
// time.
func (x *crasher) set(change func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	change()
}

// loser runs transactions that abort: one is refused its last lock, another
// fails to validate.
func (x *crasher) loser(coordinator int, value uint64) {
	n := x.c.Machines()
	for _, write := range []bool{true, false} {
		t := x.c.Machine(coordinator).Begin()
		if x.large {
			t.MayBeLarge()
		}
		x.set(func() { x.next = maps.Clone(x.model) }) // in vain
		e := &edit{x: x, tx: t, value: value}
		for i := range n {
			e.write(i)
		}
		stale := slices.MaxFunc([]int{n, 2*n - 1}, func(a, b int) int { // the last to be locked
			return int(int64(x.ptrs[a].Addr) - int64(x.ptrs[b].Addr))
		})
		if write {
			e.write(stale)
		} else if _, err := t.Read(x.ptrs[stale]); err != nil {
			x.t.Fatal(err)
		}
		x.tx((coordinator+1)%n, value+50, func(e *edit) { e.write(stale) })
		if err := t.Commit(context.Background()); !errors.Is(err, outcome.ErrConflict) {
			x.t.Fatalf("%d: committed over a change: %v", value, err)
		}
		value++
	}
}

// step lets the instance crash. Annexes are given back while other things go on, so that no
// copy can be made in that moment; what is left before it there is at StepFreeLog.
func (x *crasher) step(s step.Step) {
	if s == step.DropAnnex || !x.watching.Load() || x.t.Failed() {
		return
	}
	x.arrived.Add(1)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.counts[s]++
	if x.crashes++; invariant.Enabled && x.crashes%31 != 0 {
		return // slow builds take samples
	}
	x.awaitQuiet()
	cfg := x.cfg
	cfg.Clock, cfg.Each, cfg.Volatile = nil, nil, x.cfg.Volatile.Clone()
	done := make(chan struct{})
	go func() { // what this one has locked is another process's
		defer close(done)
		x.recovered(fmt.Sprintf("crash %d, at %v", x.crashes, s), cfg)
	}()
	<-done
}

// awaitQuiet waits until every machine that still runs has stopped at a step.
func (x *crasher) awaitQuiet() {
	quiet := 0
	for last := int64(-1); quiet < 3; {
		time.Sleep(200 * time.Microsecond)
		if now := x.arrived.Load(); now == last {
			quiet++
		} else {
			last, quiet = now, 0
		}
	}
}

// recovered opens what a crash has left, and checks it.
func (x *crasher) recovered(where string, cfg Config) {
	c, err := Open(cfg)
	if err != nil {
		x.t.Errorf("%s: %v", where, err)
		return
	}
	state, ptrs := x.contents(where, c)
	if !maps.Equal(state, x.model) && (x.next == nil || !maps.Equal(state, x.next)) {
		x.t.Errorf("%s: slots hold %v\nbefore the transaction it was %v\nafter it, %v", where, state, x.model, x.next)
	}
	checkCluster(x.t, where, c, append(ptrs, x.dir))
	if err := c.Close(); err != nil {
		x.t.Errorf("%s: close: %v", where, err)
	}
}

func (x *crasher) contents(where string, c *Local) (map[int]uint64, []region.Ptr) {
	state := map[int]uint64{}
	var ptrs []region.Ptr
	dir := make([]byte, x.dir.Capacity())
	if _, err := c.Machine(0).Read(x.dir, dir); err != nil {
		x.t.Errorf("%s: directory: %v", where, err)
		return nil, nil
	}
	for i := range crashSlots {
		p, err := region.DecodePtr(dir[i*region.PtrBytes:])
		if err != nil {
			x.t.Errorf("%s: slot %d: %v", where, i, err)
		}
		if p.IsNil() {
			continue
		}
		ptrs = append(ptrs, p)
		b := make([]byte, p.Capacity())
		if _, err := c.Machine(i%c.Machines()).Read(p, b); err != nil {
			x.t.Errorf("%s: slot %d: %v", where, i, err)
			continue
		}
		state[i] = binary.LittleEndian.Uint64(b)
		for k := 8; k+8 <= len(b); k += 8 {
			if v := binary.LittleEndian.Uint64(b[k:]); v != state[i] {
				x.t.Errorf("%s: slot %d holds %d and, at %d, %d", where, i, state[i], k, v)
				break
			}
		}
	}
	return state, ptrs
}

// checkCluster checks that no object is locked or leaked, replicas agree, and no
// log space is reserved.
func checkCluster(t *testing.T, where string, c *Local, reachable []region.Ptr) {
	t.Helper()
	faults, err := c.Check(context.Background(), slices.Values(reachable))
	if err != nil {
		t.Errorf("%s: check: %v", where, err)
	}
	for _, f := range faults {
		t.Errorf("%s: check: %v", where, f)
	}
	for _, m := range c.members {
		for id, r := range m.regions {
			for p, h := range r.Objects {
				if h.Locked() {
					t.Errorf("%s: machine %d: region %d: %v is locked", where, m.id, id, p)
				}
			}
		}
	}
}
