package verbs

import (
	"errors"
	"testing"
	"time"

	"github.com/farmsql/farmsql/rdma"
)

// impatient returns a fabric whose connections may stall for a short time only.
func impatient(t *testing.T) *fabric {
	needsMapping(t)
	f := newFabric(t)
	f.change = func(cfg *Config) { cfg.stall = 300 * time.Millisecond }
	return f
}

func (f *fabric) set(flag *bool, value bool) {
	f.wire.mu.Lock()
	defer f.wire.mu.Unlock()
	*flag = value
}

// A card that completes nothing breaks the connection, and the next one works.
func TestCardCompletesNothing(t *testing.T) {
	f := impatient(t)
	a, _ := two(t, f, 1<<12)
	if err := a.write(2, 0, 1); err != nil {
		t.Fatal(err)
	}
	f.set(&f.wire.isMute, true)
	if err := a.write(2, 0, 2); !errors.Is(err, errStalled) || !errors.Is(err, rdma.ErrBroken) {
		t.Errorf("%v, want %v", err, errStalled)
	}
	if n := a.nudges(); n == 0 || n >= stallLooks {
		t.Errorf("%d nudges of a connection with %d looks", n, stallLooks)
	}
	f.set(&f.wire.isMute, false)
	if err := a.write(2, 0, 3); err != nil {
		t.Error(err)
	}
}

// A completion whose event is lost is found, and the connection stays.
func TestEventIsLost(t *testing.T) {
	f := impatient(t)
	f.machine(t, 2, 1<<12)
	q, rung := f.belled(t)
	for round := range 2 { // the first connects
		f.wire.quiet(t)
		f.set(&f.wire.isDeaf, round > 0)
		if _, err := q.Read(2, key, 0, make([]byte, 8), 1); err != nil {
			t.Fatal(err)
		}
		q.Flush()
		select {
		case <-rung:
		case <-time.After(10 * time.Second):
			t.Fatalf("round %d: the bell has not rung", round)
		}
		var cs [2]rdma.Completion
		if n := q.Poll(cs[:]); n != 1 || cs[0].Err != nil {
			t.Errorf("%d completions, the first %v", n, cs[0].Err)
		}
	}
}

// A peer that answers no question about memory is left.
func TestQuestionIsNotAnswered(t *testing.T) {
	f := impatient(t)
	a := f.machine(t, 1, 1<<12)
	f.strangePeer(t, nil)
	if err := a.write(2, 0, 1); !errors.Is(err, errStalled) {
		t.Errorf("%v, want %v", err, errStalled)
	}
}

// A card that has forgotten requests is nudged, and carries them out. Nudges are not counted as requests of operations.
func TestRequestsAreForgotten(t *testing.T) {
	f := impatient(t)
	a, b := two(t, f, 1<<12)
	for _, post := range []func() error{
		func() error { return a.write(2, 0, 2) },
		func() error { // nobody waits for a ring
			rung := b.bells.Load()
			err := a.q.Ring(2)
			a.q.Flush()
			eventually(t, "the bell of the peer", func() bool { return b.bells.Load() > rung })
			return err
		},
	} {
		eventually(t, "nothing is pending", func() bool { return !a.isWatched(2) })
		nudges, counts := a.nudges(), a.Counts()
		f.set(&f.wire.forgets, true)
		if err := post(); err != nil {
			t.Error(err)
		}
		eventually(t, "nothing is pending", func() bool { return !a.isWatched(2) })
		if a.nudges() == nudges {
			t.Error("the card was not nudged")
		}
		if n := a.Counts().Sub(counts); n.Calls != 1 || n.Requests > 2 || n.Doorbells != 1 {
			t.Errorf("%+v, with nudges", n)
		}
	}
}

func (m *machine) nudges() uint64 {
	m.q.mu.Lock()
	defer m.q.mu.Unlock()
	return m.q.mu.nudges
}

// isWatched reports whether something of the connection to a machine may be pending.
func (m *machine) isWatched(to rdma.MachineID) bool {
	m.q.mu.Lock()
	defer m.q.mu.Unlock()
	return m.q.mu.conns[to].mu.stall != nil
}

// Requests that nobody waits for do not break the connection, although no completion comes for them.
func TestUnsignalledBreaksNothing(t *testing.T) {
	f := impatient(t)
	a, _ := two(t, f, 1<<12)
	if err := a.write(2, 0, 1); err != nil {
		t.Fatal(err)
	}
	connection := func() *conn {
		a.q.mu.Lock()
		defer a.q.mu.Unlock()
		return a.q.mu.conns[2]
	}
	before := connection()
	if _, err := a.q.Write(2, key, 0, make([]byte, 8), rdma.Unsignalled); err != nil {
		t.Fatal(err)
	}
	time.Sleep(400 * time.Millisecond) // what is not flushed is not pending
	a.q.Flush()
	eventually(t, "the timer ends", func() bool { return !a.isWatched(2) })
	if err := a.write(2, 0, 2); err != nil || connection() != before {
		t.Errorf("the connection was broken: %v", err)
	}
}

// A peer that is gone is noticed even if nobody waits for what was sent to it.
func TestNobodyWaitsForTheDead(t *testing.T) {
	f := impatient(t)
	a, _ := two(t, f, 1<<12)
	if err := a.write(2, 0, 1); err != nil {
		t.Fatal(err)
	}
	f.set(&f.wire.isMute, true)
	if err := a.q.Ring(2); err != nil {
		t.Fatal(err)
	}
	a.q.Flush()
	if err := a.wait(1); !errors.Is(err, errStalled) {
		t.Errorf("%v, want %v", err, errStalled)
	}
}

// A card that may forget fenced requests gets none: WRITEs and rings are held back until the READs before them are done.
func TestNoFencesForACardThatForgets(t *testing.T) {
	needsMapping(t)
	for _, isRxe := range []bool{true, false} {
		f := newFabric(t)
		f.wire.isRxe = isRxe
		a, b := two(t, f, 1<<12)
		for i := range 3 { // the first connects
			f.wire.quiet(t)
			f.wire.counted()
			rung := b.bells.Load()
			got := make([]byte, 8)
			for tag, post := range []func() (bool, error){
				func() (bool, error) { return a.q.Read(2, key, 0, got, 0) },
				func() (bool, error) { return a.q.Write(2, key, 0, []byte{byte(i + 1), 0, 0, 0, 0, 0, 0, 0}, 1) },
				func() (bool, error) { return a.q.WriteRing(2, key, 8, make([]byte, 8), 2) },
			} {
				if _, err := post(); err != nil {
					t.Fatal(tag, err)
				}
			}
			if err := a.wait(3); err != nil {
				t.Fatal(err)
			}
			if int(got[0]) != i {
				t.Errorf("round %d: the READ has got %d", i, got[0])
			}
			eventually(t, "the bell", func() bool { return b.bells.Load() > rung })
			if n := f.wire.counted().fenced; (n == 0) != isRxe {
				t.Errorf("round %d, soft-RoCE %v: %d fenced requests", i, isRxe, n)
			}
		}
	}
}
