package storetest

import (
	"errors"
	"reflect"
	"sync"
	"testing"

	"github.com/farmsql/farmsql/cluster"
)

// Every machine loads the configuration that was swapped in; swaps of other revisions fail and change nothing.
func testSwapAndLoad(t *testing.T, r *run) {
	if c := r.mustLoad(0); c != nil {
		t.Fatalf("a new store has %+v", c)
	}
	if err := r.swapOther(0, 1, r.next(nil).Revise()); !errors.Is(err, cluster.ErrMoved) {
		t.Errorf("swap of nothing: %v", err)
	}
	c := r.mustMove(0)
	for m := range r.system.Machines {
		if got := r.mustLoad(m); !reflect.DeepEqual(got, c) {
			t.Errorf("machine %d has loaded %+v, want %+v", m, got, c)
		}
		for _, old := range []uint64{0, 1, c.Revision + 100} { // revisions that the test does not reach
			next := r.next(c)
			next.Revision = old + 1
			if err := r.swapOther(m, old, next); !errors.Is(err, cluster.ErrMoved) {
				t.Errorf("machine %d: swap of %d: %v", m, old, err)
			}
		}
	}
	got := r.mustLoad(0)
	got.Machines[0] = 9
	if again := r.mustLoad(0); !reflect.DeepEqual(again, c) {
		t.Errorf("the store shares memory, or has changed: %+v, want %+v", again, c)
	}
}

// If many try to replace one configuration, exactly one succeeds.
func testOneOfMany(t *testing.T, r *run) {
	for range 5 {
		c := r.mustLoad(0)
		var all sync.WaitGroup
		won, unknown := make(chan int, 4*r.system.Machines), make(chan error, 4*r.system.Machines)
		for m := range r.system.Machines {
			for range 4 {
				all.Go(func() {
					switch err := r.swap(m, c, r.next(c)); {
					case err == nil:
						won <- m
					case errors.Is(err, cluster.ErrUnreachable): // a busy computer has elected another leader
						unknown <- err
					case !errors.Is(err, cluster.ErrMoved):
						t.Errorf("machine %d: %v", m, err)
					}
				})
			}
		}
		all.Wait()
		if len(won) > 1 || len(won)+len(unknown) == 0 {
			t.Errorf("%d swaps of revision %d succeeded", len(won), revisionOf(c))
		}
	}
}

// A history without faults is linearizable.
func testHistory(_ *testing.T, r *run) { r.work(20)() }

// Acknowledged swaps are there after a crash of everything.
func testRestart(t *testing.T, r *run) {
	for range 3 {
		c := r.mustMove(0)
		r.system.Restart()
		for m := range r.system.Machines {
			if got := r.mustLoad(m); !reflect.DeepEqual(got, c) {
				t.Fatalf("machine %d has loaded %+v, want %+v", m, got, c)
			}
		}
	}
	wait := r.work(10)
	r.system.Restart()
	wait()
}

// A machine that is cut off gets errors, in time; the others go on, and it follows when it is back.
func testPartition(t *testing.T, r *run) {
	r.partition(t, r.system.Machines-1)
}

// The same for the leader: it must not answer from what it was sure of before.
func testPartitionOfLeader(t *testing.T, r *run) {
	r.mustMove(0)
	r.partition(t, r.mustLeader())
}

func (r *run) partition(t *testing.T, machine int) {
	other := (machine + 1) % r.system.Machines
	before := r.mustMove(machine)
	heal := r.system.Cut(machine)
	if c, err := r.load(machine); !errors.Is(err, cluster.ErrUnreachable) {
		t.Errorf("machine %d, cut off, has loaded %+v: %v", machine, c, err)
	}
	if err := r.swap(machine, before, r.next(before)); !errors.Is(err, cluster.ErrUnreachable) {
		t.Errorf("machine %d, cut off: %v", machine, err)
	}
	after := r.mustMove(other)
	if _, err := r.load(machine); !errors.Is(err, cluster.ErrUnreachable) {
		t.Errorf("machine %d, still cut off: %v", machine, err)
	}
	heal()
	if c := r.mustLoad(machine); revisionOf(c) < after.Revision {
		t.Errorf("machine %d, back, has loaded revision %d, want %d", machine, revisionOf(c), after.Revision)
	}
	r.mustMove(machine)
}

// A history with partitions is linearizable, and afterwards everybody goes on.
func testHistoryWithPartitions(_ *testing.T, r *run) {
	wait := r.work(30)
	for i := range 2 * r.system.Machines {
		heal := r.system.Cut(i % r.system.Machines)
		r.mustLoad((i + 1) % r.system.Machines)
		heal()
		r.mustLoad(i % r.system.Machines)
	}
	wait()
	for m := range r.system.Machines {
		r.mustMove(m)
	}
}

// When the leader is killed, the others go on with all that it has acknowledged; the leader
// does so, too, when it is back.
func testLeaderKilled(t *testing.T, r *run) {
	wait := r.work(20)
	for range 2 {
		leader := r.mustLeader()
		c := r.mustMove(leader)
		start := r.system.Kill(leader)
		if got := r.mustMove((leader + 1) % r.system.Machines); got.Revision <= c.Revision {
			t.Errorf("revision %d after %d", got.Revision, c.Revision)
		}
		start()
		r.mustMove(leader)
	}
	wait()
}

// A swap whose answer is lost fails, but not with ErrMoved, and may be carried out.
func testAnswersLost(t *testing.T, r *run) {
	machine := r.system.Machines - 1
	if r.system.Leader != nil {
		machine = (r.mustLeader() + 1) % r.system.Machines
	}
	r.loseAnswer(t, machine)
}

// The same for the leader, which does not learn that the others have the entry.
func testAnswersToLeaderLost(t *testing.T, r *run) {
	r.mustMove(0)
	r.loseAnswer(t, r.mustLeader())
}

// loseAnswer has a machine swap while no answers reach it, and checks that the swap fails. It repeats
// that until such a swap has been carried out: it is not if the machine had lost its leader before it asked.
func (r *run) loseAnswer(t *testing.T, machine int) {
	other := (machine + 1) % r.system.Machines
	for range 20 {
		before := r.mustMove(machine)
		next := r.next(before)
		heal := r.system.CutAnswers(machine)
		if err := r.swap(machine, before, next); !errors.Is(err, cluster.ErrUnreachable) {
			t.Errorf("machine %d gets no answers: %v", machine, err)
		}
		c := r.mustLoad(other)
		heal()
		r.mustMove(machine)
		if writerOf(c) == writerOf(next) {
			return
		}
	}
	t.Error("no swap was carried out")
}
