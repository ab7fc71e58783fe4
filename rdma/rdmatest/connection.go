package rdmatest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/farmsql/farmsql/rdma"
)

// testCosts checks that a NIC says what its operations cost.
func testCosts(t *testing.T, f Fabric) {
	if c := join(t, f, 1).nic.Costs(); c.Read <= 0 || c.Message < c.Read {
		t.Errorf("costs are %+v", c)
	}
}

func testDoorbellComesAfterWrites(t *testing.T, f Fabric) {
	a, b := join(t, f, 1), join(t, f, 2)
	from := a.open(t, 0, nil)
	const rounds = 100
	var seen atomic.Uint64 // the number of the last write that the bell has seen
	b.open(t, 0, func() {
		v := b.memory.Load(64)
		for old := seen.Load(); old < v && !seen.CompareAndSwap(old, v); old = seen.Load() { // raises seen to v
		}
	})
	pending := 0
	for i := range uint64(rounds) {
		if !must(from.q.Write(2, key, 64, words(1, i+1), 1))(t) {
			pending++
		}
		if err := from.q.Ring(2); err != nil {
			t.Fatal(err)
		}
		if i%10 == 9 { // bells may be late and merged, but one of them sees this write
			from.q.Flush()
			eventually(t, "doorbell", func() bool { return seen.Load() == i+1 })
		}
	}
	from.poll(pending)
}

// testWriteRingWritesFirst rings with each write: a bell that comes after a write sees it, and the
// writes that were posted before it.
func testWriteRingWritesFirst(t *testing.T, f Fabric) {
	a, b := join(t, f, 1), join(t, f, 2)
	from := a.open(t, 0, nil)
	const rounds = 100
	var seen atomic.Uint64
	b.open(t, 0, func() {
		v := b.memory.Load(120)
		if before := b.memory.Load(4096); before < v {
			t.Errorf("write %d is there, and of the one before it only %d", v, before)
		}
		for old := seen.Load(); old < v && !seen.CompareAndSwap(old, v); old = seen.Load() { // raises seen to v
		}
	})
	pending := 0
	for i := range uint64(rounds) {
		for _, done := range []bool{
			must(from.q.Write(2, key, 4096, words(1, i+1), 1))(t),
			must(from.q.WriteRing(2, key, 64, words(8, i+1), 1))(t),
		} {
			if !done {
				pending++
			}
		}
		if i%10 == 9 { // bells may be late and merged, but one of them sees this write
			from.q.Flush()
			eventually(t, "doorbell", func() bool { return seen.Load() == i+1 })
		}
	}
	from.poll(pending)
	from.none()
	if got := make([]byte, 64); from.read(2, key, 64, got) != nil || string(got) != string(words(8, rounds)) {
		t.Errorf("memory holds %x", got)
	}
}

// testFailedWriteRingIsSilent checks that a WriteRing which fails, for whatever reason, writes
// nothing and does not ring.
func testFailedWriteRingIsSilent(t *testing.T, f Fabric) {
	a, b := join(t, f, 1), join(t, f, 2)
	var rung atomic.Uint64
	from := a.open(t, 0, nil)
	b.open(t, 0, func() { rung.Add(1) })
	mustFail := func(want error, to rdma.MachineID, k rdma.Key, off uint64) {
		t.Helper()
		if err := from.writeRing(to, k, off, words(1, 1)); !errors.Is(err, want) {
			t.Errorf("to machine %d, key %#x, offset %d: %v, want %v", to, k, off, err, want)
		}
	}
	mustFail(rdma.ErrRange, 2, key, 4)
	mustFail(rdma.ErrRange, 2, key, memoryBytes)
	mustFail(rdma.ErrKey, 2, key+1, 0)
	mustFail(rdma.ErrBroken, 3, key, 0)
	f.Cut(1, 2)
	mustFail(rdma.ErrBroken, 2, key, 0)
	f.Mend(1, 2)
	if v, n := b.memory.Load(0), rung.Load(); v != 0 || n != 0 {
		t.Errorf("memory holds %d after failures, and the bell has rung %d times", v, n)
	}
	if err := from.writeRing(2, key, 0, words(1, 1)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "doorbell", func() bool { return rung.Load() > 0 })
	if err := from.q.Close(); err != nil {
		t.Fatal(err)
	}
	mustFail(rdma.ErrClosed, 2, key, 0)
}

func testDoorbellFindsTheSibling(t *testing.T, f Fabric) {
	var rung [4][3]atomic.Uint64 // by machine and worker
	var workers [4][3]*worker
	for m := 1; m < 4; m++ {
		nic := join(t, f, rdma.MachineID(m))
		for w := range 3 {
			workers[m][w] = nic.open(t, w, func() { rung[m][w].Add(1) })
		}
	}
	for i := range 30 {
		to := 2 + i%2
		before := rung[to][1].Load()
		if err := workers[1][1].q.Ring(rdma.MachineID(to)); err != nil {
			t.Fatal(err)
		}
		workers[1][1].q.Flush()
		eventually(t, "doorbell", func() bool { return rung[to][1].Load() > before })
	}
	for m := 1; m < 4; m++ {
		for w := range 3 {
			if n := rung[m][w].Load(); (w != 1 || m == 1) && n != 0 {
				t.Errorf("worker %d of machine %d was rung %d times", w, m, n)
			}
		}
	}
}

func testOwnMachine(t *testing.T, f Fabric) {
	m := join(t, f, 1)
	var rung atomic.Bool
	w := m.open(t, 0, func() { rung.Store(true) })
	if err := w.write(1, key, 8, words(2, 77)); err != nil {
		t.Fatal(err)
	}
	if v := m.memory.Load(16); v != 77 {
		t.Errorf("memory holds %d", v)
	}
	if err := w.q.Ring(1); err != nil {
		t.Fatal(err)
	}
	w.q.Flush()
	eventually(t, "own doorbell", rung.Load)
}

func testNamesAreTaken(t *testing.T, f Fabric) {
	m := join(t, f, 1)
	if _, err := f.Join(1); !errors.Is(err, rdma.ErrMachineTaken) {
		t.Errorf("second machine 1: %v", err)
	}
	if got := m.nic.Machine(); got != 1 {
		t.Errorf("machine is %d", got)
	}
	if err := m.nic.Register(key, m.memory); !errors.Is(err, rdma.ErrKeyTaken) {
		t.Errorf("second registration: %v", err)
	}
	m.nic.Deregister(key)
	m.nic.Deregister(key) // nothing to do
	if err := m.nic.Register(key, m.memory); err != nil {
		t.Errorf("registration again: %v", err)
	}
	w := m.open(t, 3, nil)
	if _, err := m.nic.Open(3, nil); !errors.Is(err, rdma.ErrWorkerTaken) {
		t.Errorf("second queue of worker 3: %v", err)
	}
	if err := w.q.Close(); err != nil {
		t.Fatal(err)
	}
	m.open(t, 3, nil)
}

func testNobodyThere(t *testing.T, f Fabric) {
	a, b := join(t, f, 1), join(t, f, 2)
	w := a.open(t, 0, nil)
	for _, to := range []rdma.MachineID{2, 3, 65535} { // a machine without that worker, and two that do not exist
		if err := w.write(to, key, 0, words(1, 1)); !errors.Is(err, rdma.ErrBroken) {
			t.Errorf("write to machine %d: %v, want ErrBroken", to, err)
		}
		if err := w.ring(to); !errors.Is(err, rdma.ErrBroken) {
			t.Errorf("ring machine %d: %v, want ErrBroken", to, err)
		}
	}
	b.open(t, 0, nil)
	if err := w.write(2, key, 0, words(1, 1)); err != nil {
		t.Errorf("once it is there: %v", err)
	}
}

// ring rings and returns the error, whether Ring returns it or a Completion reports it.
func (w *worker) ring(to rdma.MachineID) error {
	if err := w.q.Ring(to); err != nil {
		return err
	}
	c := w.poll(1)[0]
	if c.Tag != rdma.Unsignalled {
		w.t.Errorf("lost doorbell has tag %#x", c.Tag)
	}
	return c.Err
}

// testCutFlushesInOrder cuts the cable while operations are pending. Each must be reported once,
// in order, and none may succeed after the first that failed. Write i stores i, so the memory
// tells which write was the last.
func testCutFlushesInOrder(t *testing.T, f Fabric) {
	from, to := twoMachines(t, f)
	var pending []uint64
	succeeded := uint64(0) // the number of successes known so far
	failed := false
	for i := uint64(1); i <= 200; i++ {
		if i == 100 {
			f.Cut(1, 2)
		}
		done, err := from.q.Write(2, key, 0, words(1, i), i)
		if i%9 == 0 {
			from.q.Flush()
		}
		switch {
		case done && failed:
			t.Fatalf("write %d succeeded after another had failed", i)
		case done:
			succeeded = i
		case err == nil:
			pending = append(pending, i)
		case !errors.Is(err, rdma.ErrBroken):
			t.Fatalf("write %d: %v", i, err)
		default:
			failed = true
		}
	}
	lost := false // the completion before reported a failure
	for n, c := range from.poll(len(pending)) {
		if c.Tag != pending[n] {
			t.Fatalf("completion %d has tag %d, want %d", n, c.Tag, pending[n])
		}
		if (lost && c.Err == nil) || (c.Err != nil && !errors.Is(c.Err, rdma.ErrBroken)) {
			t.Fatalf("completion of write %d after a failure: %v", c.Tag, c.Err)
		}
		lost = c.Err != nil
		if !lost {
			succeeded = c.Tag
		}
	}
	if !failed && !lost {
		t.Error("no operation failed")
	}
	if v := to.memory.Load(0); v < succeeded || v > 100 {
		t.Errorf("memory holds %d; %d were reported to have succeeded", v, succeeded)
	}
	from.none()
}

// testNothingOvertakesAFailure cuts and mends without polling: operations posted afterwards
// must not take effect if an earlier one was lost.
func testNothingOvertakesAFailure(t *testing.T, f Fabric) {
	from, to := twoMachines(t, f)
	failed := make(map[uint64]bool)
	pending, last := 0, uint64(0) // last is the last write that was posted
	for i := uint64(1); i <= 200; i++ {
		if i%40 == 0 {
			f.Cut(1, 2)
			f.Mend(1, 2)
		}
		done, err := from.q.Write(2, key, 0, words(1, i), i)
		if i%9 == 0 {
			from.q.Flush()
		}
		if err != nil && !errors.Is(err, rdma.ErrBroken) {
			t.Fatal(err)
		}
		failed[i] = err != nil
		if err == nil && !done {
			pending++
		}
		last = i
	}
	for _, c := range from.poll(pending) {
		failed[c.Tag] = c.Err != nil
	}
	lost := uint64(0) // the first write that failed; 0 if none has
	for i := uint64(1); i <= last; i++ {
		switch {
		case failed[i] && lost == 0:
			lost = i
		case !failed[i] && lost != 0:
			t.Fatalf("write %d took effect although write %d was lost", i, lost)
		}
	}
	if err := from.write(2, key, 0, words(1, last+1)); err != nil || to.memory.Load(0) != last+1 {
		t.Errorf("after all failures were polled: %v, memory holds %d", err, to.memory.Load(0))
	}
}

func testMendConnectsAgain(t *testing.T, f Fabric) {
	from, to := twoMachines(t, f)
	third := join(t, f, 3)
	third.open(t, 0, nil)
	for i := range uint64(5) {
		if err := from.write(2, key, 0, words(1, 2*i+1)); err != nil {
			t.Fatal(err)
		}
		f.Cut(1, 2)
		if err := from.write(2, key, 0, words(1, 2*i+2)); !errors.Is(err, rdma.ErrBroken) {
			t.Fatalf("write across the cut: %v", err)
		}
		if err := from.ring(2); !errors.Is(err, rdma.ErrBroken) {
			t.Fatalf("ring across the cut: %v", err)
		}
		if err := from.write(3, key, 0, words(1, 1)); err != nil {
			t.Fatalf("write to a machine that is not cut off: %v", err)
		}
		if v := to.memory.Load(0); v != 2*i+1 {
			t.Fatalf("memory holds %d", v)
		}
		f.Mend(1, 2)
	}
	if err := from.write(2, key, 0, words(1, 100)); err != nil {
		t.Error(err)
	}
}

func testClosedMachineComesBack(t *testing.T, f Fabric) {
	from, to := twoMachines(t, f)
	if err := from.write(2, key, 0, words(1, 1)); err != nil {
		t.Fatal(err)
	}
	if err := to.nic.Close(); err != nil {
		t.Fatal(err)
	}
	if err := from.write(2, key, 0, words(1, 2)); !errors.Is(err, rdma.ErrBroken) {
		t.Errorf("write to a closed machine: %v", err)
	}
	again := join(t, f, 2)
	again.open(t, 0, nil)
	if err := from.write(2, key, 0, words(1, 3)); err != nil {
		t.Fatal(err)
	}
	if was, is := to.memory.Load(0), again.memory.Load(0); was != 1 || is != 3 {
		t.Errorf("old memory holds %d, new %d", was, is)
	}
}

// testClosedIsClosed uses a closed queue, and the queue of a closed NIC: every operation must
// fail with ErrClosed, and closing again must not fail.
func testClosedIsClosed(t *testing.T, f Fabric) {
	from, to := twoMachines(t, f)
	a := join(t, f, 9)
	w := a.open(t, 0, nil)
	if err := from.q.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := a.nic.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, closed := range []*worker{from, w} {
		if err := closed.write(2, key, 0, words(1, 1)); !errors.Is(err, rdma.ErrClosed) {
			t.Errorf("write: %v, want ErrClosed", err)
		}
		if err := closed.read(2, key, 0, words(1, 1)); !errors.Is(err, rdma.ErrClosed) {
			t.Errorf("read: %v, want ErrClosed", err)
		}
		if err := closed.q.Ring(2); !errors.Is(err, rdma.ErrClosed) {
			t.Errorf("ring: %v, want ErrClosed", err)
		}
		if err := closed.q.Close(); err != nil {
			t.Errorf("close again: %v", err)
		}
		closed.none()
	}
	if _, err := a.nic.Open(1, nil); !errors.Is(err, rdma.ErrClosed) {
		t.Errorf("open: %v, want ErrClosed", err)
	}
	if err := a.nic.Register(1, to.memory); !errors.Is(err, rdma.ErrClosed) {
		t.Errorf("register: %v, want ErrClosed", err)
	}
}

// testOnlyTheGoneAreGone checks that Gone is false for a machine that lives, cannot be
// reached, or was never there.
func testOnlyTheGoneAreGone(t *testing.T, f Fabric) {
	from, to := twoMachines(t, f)
	observer := join(t, f, 3)
	observer.nic.Deaths(func(m rdma.MachineID) { t.Errorf("machine %d has died", m) })
	watching := observer.open(t, 0, nil)
	isHere := func(what string) {
		t.Helper()
		if observer.nic.Gone(2) {
			t.Errorf("%s: gone", what)
		}
	}
	isHere("a machine that is on the network")
	f.Cut(1, 2)
	f.Cut(3, 2)
	if err := from.write(2, key, 0, words(1, 1)); !errors.Is(err, rdma.ErrBroken) {
		t.Errorf("cut off: %v", err)
	}
	isHere("a machine that is cut off")
	f.Mend(1, 2)
	f.Mend(3, 2)
	if err := watching.write(2, key, 0, words(1, 1)); err != nil {
		t.Errorf("mended: %v", err)
	}
	if err := to.nic.Close(); err != nil {
		t.Fatal(err)
	}
	join(t, f, 2)
	isHere("a machine that has come back")
	if observer.nic.Gone(9) {
		t.Error("a machine that was never there: gone")
	}
	if err := observer.nic.Close(); err != nil {
		t.Fatal(err)
	}
	observer.nic.Deaths(func(rdma.MachineID) {}) // replaced before it is called
}

// testNothingLandsAfterwards takes memory away, in every possible way, while a busy writer writes
// to it. From then on the memory must not change.
func testNothingLandsAfterwards(t *testing.T, f Fabric) {
	for i, takeAway := range []func(from *worker, to *machine, ids [2]rdma.MachineID){
		func(_ *worker, to *machine, _ [2]rdma.MachineID) { to.nic.Deregister(key) },
		func(_ *worker, to *machine, _ [2]rdma.MachineID) { to.nic.Close() },
		func(_ *worker, _ *machine, ids [2]rdma.MachineID) { f.Cut(ids[0], ids[1]) },
		func(from *worker, _ *machine, _ [2]rdma.MachineID) { from.q.Close() },
	} {
		ids := [2]rdma.MachineID{rdma.MachineID(10 + 2*i), rdma.MachineID(11 + 2*i)}
		a, to := join(t, f, ids[0]), join(t, f, ids[1])
		to.open(t, 0, nil)
		from := a.open(t, 0, nil)
		var failed atomic.Bool
		go func() {
			cs := make([]rdma.Completion, 64)
			for n := uint64(1); !failed.Load(); n++ {
				_, err := from.q.Write(ids[1], key, 0, words(32, n), 1)
				from.q.Flush()
				failed.CompareAndSwap(false, err != nil && !errors.Is(err, rdma.ErrFull))
				for _, c := range cs[:from.q.Poll(cs)] {
					failed.CompareAndSwap(false, c.Err != nil)
				}
			}
		}()
		eventually(t, "first write", func() bool { return to.memory.Load(0) > 50 })
		takeAway(from, to, ids)
		before := make([]byte, 256)
		to.memory.CopyOut(before, 0)
		eventually(t, "writer to notice", failed.Load)
		time.Sleep(time.Millisecond)
		after := make([]byte, 256)
		to.memory.CopyOut(after, 0)
		if string(before) != string(after) {
			t.Errorf("case %d: memory changed from %d to %d", i, binary.NativeEndian.Uint64(before), binary.NativeEndian.Uint64(after))
		}
	}
}

// testManyWorkers makes all workers of several machines write and read each other's memory
// concurrently, each in its own place.
func testManyWorkers(t *testing.T, f Fabric) {
	const machines, workers, rounds = 3, 4, 200
	var all [machines]*machine
	for m := range all {
		all[m] = join(t, f, rdma.MachineID(m))
	}
	var open []*worker
	for _, m := range all {
		for w := range workers {
			open = append(open, m.open(t, w, nil))
		}
	}
	var group sync.WaitGroup
	for i, w := range open {
		group.Go(func() {
			if err := w.exercise(machines, uint64(i)*512, rounds); err != nil {
				t.Errorf("worker %d: %v", i, err)
			}
		})
	}
	group.Wait()
}

// exercise writes to 256 bytes at off of each machine and reads them back.
func (w *worker) exercise(machines int, off uint64, rounds int) error {
	buf := make([]byte, 256)
	for i := range rounds {
		to, stamp := rdma.MachineID(i%machines), off<<32|uint64(i)
		if err := w.write(to, key, off, words(32, stamp)); err != nil {
			return err
		}
		if err := w.read(to, key, off, buf); err != nil {
			return err
		}
		if string(buf) != string(words(32, stamp)) {
			return fmt.Errorf("round %d: read is not what was written", i)
		}
	}
	return nil
}
