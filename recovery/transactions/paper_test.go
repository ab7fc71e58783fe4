package transactions_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/testnet"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/recovery"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/evidence"
	"github.com/farmsql/farmsql/txn/outcome"
	"github.com/farmsql/farmsql/txn/record"
	"github.com/farmsql/farmsql/txn/step"
	"github.com/farmsql/farmsql/txn/wait"
)

// The claims of SOSP'15 section 5.3, one test each. Machine 3 coordinates; an
// object's region has machine 0 or 1 as its primary.

// stage is an instance in which one transaction is cut short.
type stage struct {
	*instance
	t *testing.T
}

func newStage(t *testing.T, machines int) *stage {
	x := start(t, shape{machines, 3, testnet.Local})
	x.populate(machines)
	return &stage{x, t}
}

// cut makes the coordinator write the objects, and kills the victims when it reaches the step at
// for the nth time. It returns the result of Commit.
func (s *stage) cut(coordinator rdma.MachineID, at step.Step, nth int32, objects []int, value uint64, victims ...rdma.MachineID) error {
	var count atomic.Int32
	s.onTxn.set(func(m rdma.MachineID, reached step.Step) {
		if m == coordinator && reached == at && count.Add(1) == nth {
			for _, v := range victims {
				s.kill(v)
			}
		}
	})
	return s.interrupted(coordinator, objects, value)
}

// interrupted makes the coordinator write the objects while a machine is killed, and recovery runs.
// It returns the result of Commit.
func (s *stage) interrupted(coordinator rdma.MachineID, objects []int, value uint64) error {
	ended := make(chan error, 1)
	go func() { ended <- s.write(coordinator, objects, value) }()
	<-s.failed
	s.reconfigure()
	if s.nodes[coordinator].dead.Load() {
		return nil
	}
	return <-ended
}

func (s *stage) write(from rdma.MachineID, objects []int, value uint64) error {
	t := s.nodes[from].m.Begin()
	defer t.Abort()
	for _, i := range objects {
		b, err := t.Write(s.ptrs[i])
		if err != nil {
			return err
		}
		binary.LittleEndian.PutUint64(b, value)
	}
	return t.Commit(context.Background())
}

func (s *stage) want(value uint64, objects ...int) {
	s.t.Helper()
	for _, n := range s.survivors() {
		for _, i := range objects {
			b := make([]byte, s.ptrs[i].Capacity())
			if _, err := n.m.Read(s.ptrs[i], b); err != nil || binary.LittleEndian.Uint64(b) != value {
				s.t.Errorf("machine %d: object %d holds %d (%v), want %d", n.id, i, binary.LittleEndian.Uint64(b), err, value)
			}
		}
	}
	s.check(nil)
}

// "a transaction is aborted if the coordinator fails and no commit record survives
// to attest to the success of validation" (section 4): locks fall.
func TestPaper5_3_OnlyLocksAbort(t *testing.T) {
	s := newStage(t, 5)
	s.cut(3, step.Validate, 1, []int{0, 1}, 7, 3)
	s.want(0, 0, 1)
}

// One COMMIT-BACKUP is enough if all others have at least locked (step 7).
func TestPaper5_3_OneCommitBackupCommits(t *testing.T) {
	s := newStage(t, 5)
	s.cut(3, step.CommitBackup, 1, []int{0, 1}, 7, 3)
	s.want(7, 0, 1)
}

// "commits any transaction that has previously committed": COMMIT-PRIMARY has
// arrived somewhere, then coordinator and that primary are gone.
func TestPaper5_3_CommitPrimaryCommits(t *testing.T) {
	s := newStage(t, 6)
	s.cut(3, step.CommitPrimary, 1, []int{0, 1}, 7, 3, 0)
	s.want(7, 0, 1)
}

// The coordinator does not change if it is still a member: its caller waits for
// recovery's decision, and is told.
func TestPaper5_3_CoordinatorIsTold(t *testing.T) {
	for _, c := range []struct {
		at        step.Step
		committed bool
	}{{step.LockRecord, false}, {step.Validate, false}, {step.CommitBackup, true}} {
		s := newStage(t, 5)
		err := s.cut(3, c.at, 1, []int{0, 1}, 7, 0)
		want := uint64(0)
		switch {
		case err == nil:
			want = 7
		case !errors.Is(err, outcome.ErrConflict):
			t.Errorf("%v: %v", c.at, err)
		case c.committed:
			t.Errorf("%v: aborted: %v", c.at, err)
		}
		s.want(want, 0, 1)
	}
}

// isPromoted reports whether a machine has just activated regions of which it is a new primary,
// among them that of an object: on a busy computer regions become active one by one.
func (s *stage) isPromoted(m rdma.MachineID, step recovery.Step, before cluster.Placement, p region.Ptr) bool {
	now, _ := s.configuration().Placement(before.Region)
	return step == recovery.StepActive && now.Primary == m && now.Primary != before.Primary && s.nodes[m].sees(p)
}

// TestPaper5_5_BlockHeadersAreSentAtOnce: a new primary sends the block headers to all
// backups right after NEW-CONFIG-COMMIT: also a new backup has them when the region
// becomes active, before any of its data.
func TestPaper5_5_BlockHeadersAreSentAtOnce(t *testing.T) {
	s := newStage(t, 5)
	id := s.ptrs[0].Addr.Region()
	before, _ := s.configuration().Placement(id)
	var compared atomic.Int32
	var isActive atomic.Bool
	s.onRecovery.set(func(m rdma.MachineID, step recovery.Step) {
		p, _ := s.configuration().Placement(id)
		if !s.isPromoted(m, step, before, s.ptrs[0]) || isActive.Swap(true) {
			return
		}
		off, n := s.nodes[m].region(id).Table()
		want, got := make([]byte, n), make([]byte, n)
		s.nodes[m].region(id).Memory().CopyOut(want, off)
		for _, b := range p.Backups {
			s.nodes[b].region(id).Memory().CopyOut(got, off)
			if !bytes.Equal(got, want) || bytes.Equal(got, make([]byte, n)) {
				s.t.Errorf("backup %d, new %v, has other block headers than the primary", b, !before.Has(b))
			}
			if !before.Has(b) {
				compared.Add(1)
			}
		}
	})
	s.quiesce() // the new primary has the object
	s.kill(before.Primary)
	s.reconfigure()
	if compared.Load() != 1 {
		t.Errorf("compared with %d new backups", compared.Load())
	}
	s.check(nil)
}

// A backup that is to be filled is told that the block table has come before the region is
// active, and so before anybody can write to it: it forgets then what it holds of blocks that have
// changed hands. Others are not told.
func TestBlocksAreComparedBeforeActivation(t *testing.T) {
	s := newStage(t, 5)
	id := s.ptrs[0].Addr.Region()
	before, _ := s.configuration().Placement(id)
	var told [5]atomic.Int32
	s.onBlocks.set(func(m rdma.MachineID, r region.ID) {
		if r != id {
			return
		}
		off, n := s.nodes[m].region(id).Table()
		got := make([]byte, n)
		if s.nodes[m].region(id).Memory().CopyOut(got, off); bytes.Equal(got, make([]byte, n)) {
			s.t.Error("told before the block table has come")
		}
		time.Sleep(5 * time.Millisecond) // the primary waits
		told[m].Add(1)
	})
	var checked atomic.Int32
	s.onRecovery.set(func(m rdma.MachineID, step recovery.Step) {
		p, _ := s.configuration().Placement(id)
		if !s.isPromoted(m, step, before, s.ptrs[0]) {
			return
		}
		for _, b := range p.Backups {
			if isNew := !before.Has(b); (told[b].Load() > 0) != isNew {
				s.t.Errorf("backup %d, new %v, has been told %d times", b, isNew, told[b].Load())
			}
			checked.Add(1)
		}
	})
	s.quiesce()
	s.kill(before.Primary)
	s.reconfigure()
	if checked.Load() == 0 {
		t.Error("the region has no new primary")
	}
	s.check(nil)
}

// Blocking and lock recovery: once a region is active, what recovering
// transactions write is locked until they are decided (steps 1 and 4).
func TestPaper5_3_LockedUntilDecided(t *testing.T) {
	s := newStage(t, 5)
	var seen, locked atomic.Int32
	s.onRecovery.set(func(m rdma.MachineID, step recovery.Step) {
		p, _ := s.configuration().Placement(s.ptrs[0].Addr.Region())
		if step == recovery.StepActive && p.Primary == m {
			seen.Add(1)
			if s.nodes[m].region(p.Region).Header(s.ptrs[0].Addr.Offset()).Locked() {
				locked.Add(1)
			}
		}
	})
	s.cut(3, step.CommitBackup, 1, []int{0, 1}, 7, 3)
	if seen.Load() != 1 || locked.Load() != 1 {
		t.Errorf("active %d times, locked %d times", seen.Load(), locked.Load())
	}
	s.want(7, 0, 1)
}

// "voting will produce the same results even if there are subsequent failures":
// the only backup that has seen COMMIT-BACKUP dies once votes are cast (step 5).
func TestPaper5_3_VotesSurviveTheirWitness(t *testing.T) {
	s := newStage(t, 6)
	p, _ := s.configuration().Placement(s.ptrs[0].Addr.Region())
	witness := p.Backups[0]
	var once atomic.Bool
	s.onRecovery.set(func(m rdma.MachineID, step recovery.Step) {
		if m == p.Primary && step == recovery.StepVoted && !once.Swap(true) {
			s.kill(witness)
		}
	})
	coordinator := rdma.MachineID(5)
	s.cut(coordinator, step.CommitBackup, 1, []int{0}, 7, coordinator)
	s.want(7, 0)
}

// Records of an older configuration that land after draining are rejected (step
// 2): an evicted machine that does not know it yet writes LOCK records, and locks
// nothing. Nobody looks at its logs any more; what members wrote before they froze
// and lands late is txn's TestPaper5_3_RecordsAfterTheDrainHaveNoEffect.
func TestPaper5_3_LateRecordsAreRejected(t *testing.T) {
	s := newStage(t, 5)
	zombie := s.nodes[1]
	s.zombie = true
	zombie.dead.Store(true)
	s.reconfigure()
	written := make(chan struct{})
	var once atomic.Bool
	s.onTxn.set(func(m rdma.MachineID, reached step.Step) {
		if m == 1 && reached == step.LockRecord && !once.Swap(true) {
			close(written)
		}
	})
	ended := make(chan error, 1)
	go func() { ended <- s.write(1, []int{0, 2}, 5) }()
	<-written
	if err := s.write(3, []int{0, 2}, 6); err != nil {
		t.Error(err)
	}
	zombie.m.Evict()
	if err := <-ended; !errors.Is(err, outcome.ErrInDoubt) {
		t.Errorf("the evicted machine's commit: %v", err)
	}
	s.want(6, 0, 2)
}

// damaged is an index that finds what cannot be when it is asked to change.
type damaged struct{}

var errDamaged = errors.New("a damaged index")

func (damaged) Prepare(*txn.Late) error { return errDamaged }

// An evicted machine reports nothing: neither a read, which may be stale, nor a
// commit, nor damage, which it may see where memory has got another use (section
// 5.2).
func TestPaper5_2_NothingIsReportedWithoutALease(t *testing.T) {
	s := newStage(t, 4)
	n := s.nodes[1]
	n.alive.Store(false)
	ended := make(chan error, 3)
	go func() { ended <- s.write(1, []int{1}, 5) }()
	go func() {
		tx := n.m.Begin()
		tx.Defer(damaged{})
		ended <- tx.Commit(context.Background())
	}()
	go func() {
		_, err := n.m.Read(s.ptrs[1], make([]byte, s.ptrs[1].Capacity()))
		ended <- err
	}()
	s.zombie = true
	n.dead.Store(true)
	s.reconfigure()
	open := cap(ended)
	for range len(ended) {
		t.Errorf("reported without a lease: %v", <-ended)
		open--
	}
	n.m.Evict()
	for range open {
		if err := <-ended; !errors.Is(err, outcome.ErrInDoubt) && !errors.Is(err, outcome.ErrEvicted) {
			t.Errorf("after the eviction: %v", err)
		}
	}
	s.check(nil)
}

// An error that an object is gone counts as an answer, too: the machine may have read memory that
// others have reused.
func TestPaper5_2_NothingIsMissingWithoutALease(t *testing.T) {
	s := newStage(t, 4)
	n, p := s.nodes[1], s.ptrs[1]
	missing := region.MakePtr(p.Addr, p.Class(), p.Incarnation()+1)
	read := func() error {
		_, err := n.m.Read(missing, make([]byte, missing.Capacity()))
		return err
	}
	if err := read(); !errors.Is(err, region.ErrFreed) {
		t.Fatalf("with a lease: %v", err)
	}
	n.alive.Store(false)
	ended := make(chan error, 1)
	go func() { ended <- read() }()
	select {
	case err := <-ended:
		t.Errorf("reported without a lease: %v", err)
	case <-time.After(50 * time.Millisecond):
		n.m.Evict()
		if err := <-ended; !errors.Is(err, outcome.ErrEvicted) {
			t.Errorf("after the eviction: %v", err)
		}
	}
}

// A machine that loses its lease when it has begun to expose a commit does not report it:
// its records may have come after the logs were drained.
func TestPaper5_2_NoCommitIsReportedWithoutALease(t *testing.T) {
	s := newStage(t, 4)
	n := s.nodes[1]
	s.onTxn.set(func(m rdma.MachineID, reached step.Step) {
		if m == 1 && reached == step.CommitPrimary {
			n.alive.Store(false)
		}
	})
	ended := make(chan error, 1)
	go func() { ended <- s.write(1, []int{1}, 5) }()
	for n.alive.Load() {
		runtime.Gosched()
	}
	select {
	case err := <-ended:
		t.Errorf("reported without a lease: %v", err)
	case <-time.After(50 * time.Millisecond):
		n.m.Evict()
		if err := <-ended; !errors.Is(err, outcome.ErrInDoubt) {
			t.Errorf("after the eviction: %v", err)
		}
	}
}

// A commit whose backups all have COMMIT-BACKUP when the machine has no lease for longer
// than operations wait is in doubt for its client, and goes on by itself: when the lease
// comes back, for no reconfiguration may come that would release its locks, or when
// a reconfiguration catches it. It counts as a commit once it has committed, and not before.
func TestPaper5_2_CommitGoesOnWithTheLease(t *testing.T) {
	for _, isCaught := range []bool{false, true} {
		t.Run(fmt.Sprintf("caught=%v", isCaught), func(t *testing.T) {
			s := newStage(t, 5)
			n := s.nodes[3]
			s.onTxn.set(func(m rdma.MachineID, reached step.Step) {
				if m == n.id && reached == step.CommitBackup {
					n.alive.Store(false)
				}
			})
			n.m.WaitAtMost(20 * time.Millisecond)
			before := n.m.Stats()
			err := s.write(n.id, []int{0, 1}, 7)
			if !errors.Is(err, outcome.ErrInDoubt) || !errors.Is(err, wait.ErrUnavailable) {
				t.Fatalf("without a lease: %v", err)
			}
			counted := func() (commits, aborts uint64) {
				since := n.m.Stats().Sub(before)
				for _, k := range since.Aborts {
					aborts += k
				}
				return since.Commits, aborts
			}
			if commits, aborts := counted(); commits+aborts != 0 {
				t.Errorf("in doubt: %d commits, %d aborts", commits, aborts)
			}
			if isCaught {
				s.kill(s.placement(0).Primary)
				s.reconfigure()
			}
			n.alive.Store(true)
			s.want(7, 0, 1)
			for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
				if commits, aborts := counted(); commits == 1 && aborts == 0 {
					break
				} else if time.Now().After(deadline) {
					t.Fatalf("in the end: %d commits, %d aborts", commits, aborts)
				}
			}
			if err := s.write(4, []int{0, 1}, 8); err != nil {
				t.Errorf("the next commit: %v", err)
			}
			s.want(8, 0, 1)
		})
	}
}

// A commit that waits for the lease does not keep its machine from ending.
func TestPaper5_2_CommitAwaitsNoLeaseThatCannotCome(t *testing.T) {
	s := newStage(t, 5)
	n := s.nodes[3]
	s.onTxn.set(func(m rdma.MachineID, reached step.Step) {
		if m == n.id && reached == step.CommitBackup {
			n.alive.Store(false)
		}
	})
	n.m.WaitAtMost(20 * time.Millisecond)
	if err := s.write(n.id, []int{0, 1}, 7); !errors.Is(err, outcome.ErrInDoubt) {
		t.Fatalf("without a lease: %v", err)
	}
	n.m.Evict()
	if err := n.m.Abandon(time.Minute); err != nil {
		t.Error(err)
	}
}

// A copy of REPLICATE-TX-STATE that comes when all is over brings nothing back,
// which would keep log space for ever.
func TestLateReplicateIsIgnored(t *testing.T) {
	s := newStage(t, 5)
	s.cut(3, step.CommitBackup, 1, []int{0}, 7, 3)
	in := s.ptrs[0].Addr.Region()
	late := evidence.Evidence{ID: record.ID{Config: 1, Machine: 3, Seq: 1<<44 + 2}, Regions: []region.ID{in}, Region: in, Seen: evidence.SeenLock}
	for _, n := range s.survivors() {
		if err := n.m.Recovery().Learn(s.configuration().ID, late, nil); err != nil {
			t.Error(err)
		}
		if open := n.m.Recovery().Open(); len(open) > 0 {
			t.Errorf("machine %d: %v", n.id, open)
		}
	}
	s.want(7, 0)
}
