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
	f.change = func(cfg *Config) { cfg.stall = 100 * time.Millisecond }
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

// Requests that nobody waits for, and for which no completion comes, are not pending.
func TestUnsignalledIsNotPending(t *testing.T) {
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
	a.q.Flush()
	eventually(t, "the timer ends", func() bool {
		a.q.mu.Lock()
		defer a.q.mu.Unlock()
		return before.mu.stall == nil
	})
	if err := a.write(2, 0, 2); err != nil || connection() != before {
		t.Errorf("the connection was broken: %v", err)
	}
}
