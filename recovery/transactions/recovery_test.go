package transactions_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"github.com/farmsql/farmsql/internal/history"
	"github.com/farmsql/farmsql/internal/testnet"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/recovery"
	"github.com/farmsql/farmsql/txn/evidence"
	"github.com/farmsql/farmsql/txn/step"
)

// killAt has load on an instance while a machine dies at the nth time that it
// comes to a step, and checks what is left.
func killAt(t *testing.T, s shape, victim rdma.MachineID, at step.Step, nth int32) {
	x := start(t, s)
	x.populate(3 * s.machines)
	rec := history.NewRecorder()
	var count atomic.Int32
	x.onTxn.set(func(m rdma.MachineID, reached step.Step) {
		if m == victim && reached == at && count.Add(1) == nth {
			x.kill(victim)
		}
	})
	x.play(2, 40, uint64(nth), rec)
	x.check(rec)
}

// nths returns at which times of a step machines are killed: over TCP, which takes longer, at one each day.
func (s shape) nths() []int32 {
	if (s.way == testnet.TCP || s.way == testnet.Verbs) && os.Getenv("FARMSQL_NIGHTLY") == "" {
		return []int32{7}
	}
	return []int32{1, 7, 20}
}

// A machine under load dies at each step of the commit protocol: as coordinator,
// as primary and as backup, whichever comes there first, and later.
func TestKillAtEveryStep(t *testing.T) {
	for _, s := range []shape{{3, 3, testnet.Local}, {4, 2, testnet.Local}, {4, 3, testnet.LocalAsync}, {3, 3, testnet.TCP}, {4, 3, testnet.BadTCP}, {3, 3, testnet.Verbs}} {
		if s.way == testnet.BadTCP && !testnet.RunsBad(t) || s.way == testnet.Verbs && !testnet.HasCard(t) {
			continue
		}
		for at := range step.Step(step.Count) {
			t.Run(fmt.Sprintf("%d,%d,%s/%v", s.machines, s.replicas, s.way, at), func(t *testing.T) {
				for _, nth := range s.nths() {
					killAt(t, s, 1, at, nth)
				}
			})
		}
	}
}

// A second machine dies at each step of the recovery from the failure of the
// first.
func TestKillDuringRecovery(t *testing.T) {
	for at := recovery.StepDrained; at <= recovery.StepSettled; at++ {
		for _, second := range []rdma.MachineID{0, 2, 4} {
			way := []testnet.Way{testnet.LocalAsync, testnet.Local}[at%2]
			t.Run(fmt.Sprintf("%v/%d", at, second), func(t *testing.T) { killDuringRecovery(t, way, at, second) })
		}
	}
}

// The same over networks on which what machines say to each other in recovery is on its way for longer, or is lost. By day
// each step is tried once, over one network or the other.
func TestKillDuringRecoveryOverNetworks(t *testing.T) {
	ways, seconds := []testnet.Way{testnet.TCP, testnet.BadTCP, testnet.TLS, testnet.BadTLS}, []rdma.MachineID{0, 2, 4}
	if testnet.HasCard(t) {
		ways = append(ways, testnet.Verbs)
	}
	isNight := testnet.RunsBad(t)
	for at := recovery.StepDrained; at <= recovery.StepSettled; at++ {
		for w, way := range ways {
			for i, second := range seconds {
				if isNight || w == int(at)%2 && i == int(at)%len(seconds) || way == testnet.Verbs && i == int(at)%len(seconds) {
					t.Run(fmt.Sprintf("%v/%d,%s", at, second, way), func(t *testing.T) { killDuringRecovery(t, way, at, second) })
				}
			}
		}
	}
}

// killDuringRecovery has a machine die in commits, and a second one when it comes to a step of the recovery from that.
func killDuringRecovery(t *testing.T, way testnet.Way, at recovery.Step, second rdma.MachineID) {
	x := start(t, shape{5, 3, way})
	x.populate(15)
	rec := history.NewRecorder()
	var count, times atomic.Int32
	x.onTxn.set(func(m rdma.MachineID, s step.Step) {
		if m == 1 && s == step.CommitBackup && count.Add(1) == 13 {
			x.kill(1)
		}
	})
	x.onRecovery.set(func(m rdma.MachineID, s recovery.Step) {
		if m == second && s == at && times.Add(1) == 1 {
			x.kill(second)
		}
	})
	x.play(2, 40, uint64(at), rec)
	x.check(rec)
}

// A Commit that has begun goes on when the next configuration has been frozen, and
// when it has locked what recovers: it changes nothing any more.
func TestCommitIsOvertaken(t *testing.T) {
	for _, at := range []recovery.Step{recovery.StepFetched, recovery.StepLocked, recovery.StepVoted} {
		t.Run(at.String(), func(t *testing.T) {
			x := start(t, shape{5, 3, testnet.Local})
			x.populate(15)
			rec := history.NewRecorder()
			var commits atomic.Int32
			x.onTxn.set(func(m rdma.MachineID, s step.Step) {
				if m == 1 && s == step.CommitBackup && commits.Add(1) == 13 {
					x.kill(1)
				}
			})
			const late = rdma.MachineID(3)
			var goOn atomic.Pointer[func() error]
			var overtaken atomic.Bool
			x.onRecovery.set(func(m rdma.MachineID, s recovery.Step) {
				switch c := x.nodes[late].m.Config(); { // steps of the last recovery may come after x has gone on
				case m != late:
				case c == 2 && s == recovery.StepDrained && goOn.Load() == nil:
					f := x.nodes[late].t.Late(c)
					goOn.Store(&f)
					x.kill(0)
				case c == 3 && s == at && overtaken.CompareAndSwap(false, true):
					if err := (*goOn.Load())(); !errors.Is(err, evidence.ErrConfiguration) {
						t.Errorf("an overtaken commit: %v, want %v", err, evidence.ErrConfiguration)
					}
				}
			})
			x.play(2, 40, 1, rec)
			x.check(rec)
			if !overtaken.Load() {
				t.Error("no commit was overtaken")
			}
		})
	}
}

// The next configuration may come when the logs have just been drained: no commit
// begins in the one that it replaces.
func TestResumeIsOvertaken(t *testing.T) {
	x := start(t, shape{5, 3, testnet.Local})
	n := x.nodes[3]
	second, _ := x.c.Without([]rdma.MachineID{1}, 0)
	third, _ := second.Without([]rdma.MachineID{0}, 2)
	x.onRecovery.set(func(m rdma.MachineID, s recovery.Step) {
		if m == n.id && s == recovery.StepDrained {
			n.t.Freeze(third)
		}
	})
	n.t.Freeze(second)
	if err := n.t.Commit(context.Background(), second); !errors.Is(err, evidence.ErrConfiguration) {
		t.Errorf("an overtaken commit: %v, want %v", err, evidence.ErrConfiguration)
	}
}

// A machine that was evicted comes back with a new life, gets replicas and takes
// part; then another dies, and what the new one has is used.
func TestMachineComesBack(t *testing.T) {
	for _, way := range []testnet.Way{testnet.Local, testnet.LocalAsync, testnet.TCP, testnet.BadTCP, testnet.Verbs} {
		if way == testnet.BadTCP && !testnet.RunsBad(t) || way == testnet.Verbs && !testnet.HasCard(t) {
			continue
		}
		x := start(t, shape{4, 3, way})
		x.populate(12)
		rec := history.NewRecorder()
		x.play(2, 20, 1, rec)
		x.kill(1)
		x.play(2, 20, 2, rec)
		x.rejoin(1)
		x.play(2, 20, 3, rec)
		x.checkConnected()
		x.kill(2)
		x.play(2, 20, 4, rec)
		x.check(rec)
	}
}
