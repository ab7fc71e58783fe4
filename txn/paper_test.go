package txn_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/farmsql/farmsql/internal/invariant"
	"github.com/farmsql/farmsql/internal/txntest"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/outcome"
	"github.com/farmsql/farmsql/txn/record"
	"github.com/farmsql/farmsql/txn/step"
	"github.com/farmsql/farmsql/txn/worker"
)

// This file has one test for each claim of SOSP'15 section 4, named after it.

// paperRig is an instance in which machine 0 coordinates, and which of the
// objects' replicas are elsewhere is known. Nothing is truncated by time.
func paperRig(t *testing.T, machines, replicas, objects int) (*rig, *handClock) {
	return rigWith(t, newHandClock(), machines, replicas, objects)
}

// hastyRig is a paperRig for tests in which patience runs out.
func hastyRig(t *testing.T, machines, replicas, objects int) (*rig, *handClock) {
	return rigWith(t, newHastyClock(), machines, replicas, objects)
}

func rigWith(t *testing.T, c *handClock, machines, replicas, objects int) (*rig, *handClock) {
	return open(t, txntest.Config{Machines: machines, Replicas: replicas, Workers: 1, Clock: c}, objects), c
}

// elsewhere returns an object that the coordinator, machine 0, has no replica of.
func (r *rig) elsewhere() region.Ptr {
	for _, p := range r.ptrs {
		if !slices.Contains(r.Machine(0).ReplicasOf(p), 0) {
			return p
		}
	}
	r.t.Fatal("machine 0 has a replica of everything")
	return region.Ptr{}
}

// settle truncates everything.
func (r *rig) settle() {
	r.t.Helper()
	for i := range r.Machines() {
		must(r.t, quiesce(r.Machine(i)))
	}
}

// quiesce waits until m is quiescent. A minute of a hasty clock can be over before a goroutine of an
// asynchronous network has run, so it waits for a minute of the world's time, too.
func quiesce(m *txn.Machine) error {
	for begin := time.Now(); ; {
		if err := m.Quiesce(time.Minute); err == nil || time.Since(begin) > time.Minute {
			return err
		}
	}
}

// stats sums up what all machines have done since before.
func (r *rig) stats() (s txn.Stats) {
	for i := range r.Machines() {
		m := r.Machine(i).Stats()
		s.Commits += m.Commits
		s.Messages += m.Messages
		s.Records += m.Records
		s.LocalReads += m.LocalReads
		s.RemoteReads += m.RemoteReads
		s.Retries += m.Retries
	}
	return s
}

func (r *rig) since(before txn.Stats) txn.Stats { return r.stats().Sub(before) }

// steps records the steps that all machines reach.
func (r *rig) steps() *[]step.Step {
	steps := new([]step.Step)
	for i := range r.Machines() {
		r.Machine(i).OnStep(func(s step.Step) { *steps = append(*steps, s) })
	}
	return steps
}

// A countingQueue counts what is posted to the NIC: reads of regions, and writes to
// logs and message queues. Others tell how much of a log is free.
type countingQueue struct {
	rdma.Queue
	reads, writes *int
}

func (q countingQueue) Read(to rdma.MachineID, k rdma.Key, off uint64, dst []byte, tag uint64) (bool, error) {
	if txn.IsRegion(k) {
		*q.reads++
	}
	return q.Queue.Read(to, k, off, dst, tag)
}

func (q countingQueue) Write(to rdma.MachineID, k rdma.Key, off uint64, src []byte, tag uint64) (bool, error) {
	if txn.IsLog(k) || txn.IsMessages(k) {
		*q.writes++
	}
	return q.Queue.Write(to, k, off, src, tag)
}

func (q countingQueue) WriteRing(to rdma.MachineID, k rdma.Key, off uint64, src []byte, tag uint64) (bool, error) {
	if txn.IsLog(k) || txn.IsMessages(k) {
		*q.writes++
	}
	return q.Queue.WriteRing(to, k, off, src, tag)
}

// count has all machines' operations counted from now on.
func (r *rig) count() (reads, writes *int) {
	reads, writes = new(int), new(int)
	for i := range r.Machines() {
		r.Machine(i).WrapQueue(0, func(q rdma.Queue) rdma.Queue { return countingQueue{q, reads, writes} })
	}
	return reads, writes
}

// disjoint returns n objects whose replicas are all on different machines, none of
// them machine 0.
func (r *rig) disjoint(n int) (ptrs []region.Ptr) {
	taken := []rdma.MachineID{0}
	for _, p := range r.ptrs {
		at := r.Machine(0).ReplicasOf(p)
		if len(ptrs) < n && !slices.ContainsFunc(at, func(m rdma.MachineID) bool { return slices.Contains(taken, m) }) {
			ptrs, taken = append(ptrs, p), append(taken, at...)
		}
	}
	if len(ptrs) < n {
		r.t.Fatalf("only %d objects are apart, not %d", len(ptrs), n)
	}
	return ptrs
}

// "The FaRM commit phase uses Pw(f + 3) one-sided RDMA writes where Pw is the
// number of machines that are primaries for objects written by the transaction,
// and Pr one-sided RDMA reads where Pr is the number of objects read from remote
// primaries but not written." Writes are LOCK, LOCK-REPLY, f COMMIT-BACKUP and
// COMMIT-PRIMARY. They are counted where they are posted to the NIC; what is read
// from the coordinator's own replica costs none.
func TestPaper4_WritesAndReadsOfACommit(t *testing.T) {
	for f := range 3 {
		r, _ := paperRig(t, 14, f+1, 14)
		reads, writes := r.count()
		for pw := 1; pw <= 3; pw++ {
			for pr := range 4 {
				written := r.disjoint(pw)
				tx := r.Machine(0).Begin()
				_, err := tx.Read(r.ptrs[0]) // local
				must(t, err)
				for i := range pr {
					_, err := tx.Read(r.ptrs[13-i])
					must(t, err)
				}
				must(t, writeAll(tx, written, 1))
				*reads, *writes = 0, 0
				must(t, tx.Commit(ctx))
				if *reads != pr || *writes != pw*(f+3) {
					t.Errorf("f=%d, Pw=%d, Pr=%d: %d reads, %d writes; want %d, %d", f, pw, pr, *reads, *writes, pr, pw*(f+3))
				}
				r.settle()
			}
		}
		r.quiet()
	}
}

// "For primaries and backups on the same machine as the coordinator, object reads
// and writes to the log use local memory accesses rather than RDMA": what is left
// are the writes of the other participant; and where there is none, everything
// goes without a NIC.
func TestPaper4_LocalAccesses(t *testing.T) {
	r, _ := paperRig(t, 2, 2, 2)
	reads, writes := r.count()
	for i, want := range []int{1, 3} { // COMMIT-BACKUP; LOCK, LOCK-REPLY and COMMIT-PRIMARY
		r.settle()
		*reads, *writes = 0, 0
		tx := r.Machine(0).Begin()
		must(t, write(tx, r.ptrs[i], 1))
		must(t, tx.Commit(ctx))
		if *reads != i || *writes != want { // to read the second object it takes one
			t.Errorf("object %d: %d reads, %d writes; want %d, %d", i, *reads, *writes, i, want)
		}
	}
	r.settle()
	r.quiet()
	testWithoutNIC(t)
}

func testWithoutNIC(t *testing.T) {
	r, _ := paperRig(t, 2, 1, 6)
	r.settle()
	must(t, r.Machine(0).NIC().Close())
	r.lost = true
	for i := uint64(1); i < 5; i++ {
		r.run(0, func(tx *txn.Tx) error {
			if _, err := tx.Read(r.ptrs[2]); err != nil {
				return err
			}
			if _, err := tx.Read(r.ptrs[4]); err != nil {
				return err
			}
			return write(tx, r.ptrs[0], i)
		})
		if got := r.get(0, 0); got != i {
			t.Errorf("read %d, want %d", got, i)
		}
	}
	tx := r.Machine(0).Begin()
	_, err := tx.Read(r.ptrs[1])
	tx.Abort()
	if !errors.Is(err, rdma.ErrClosed) && !errors.Is(err, rdma.ErrBroken) {
		t.Errorf("a remote object without the NIC: %v", err)
	}
}

// "The coordinator writes a LOCK record to the log on each machine that is a
// primary for any written object. This contains the versions and new values of
// all written objects on that primary, as well as the list of all regions with
// written objects." And "the COMMIT-BACKUP log record has the same payload as a
// LOCK record."
func TestPaper4_LockAndCommitBackupRecords(t *testing.T) {
	r, _ := paperRig(t, 4, 2, 8)
	r.settle()
	m := r.Machine(0)
	tx := m.Begin()
	regions := map[region.ID]bool{}
	for i := range r.ptrs {
		must(t, write(tx, r.ptrs[i], uint64(100+i)))
		regions[r.ptrs[i].Addr.Region()] = true
	}
	must(t, tx.Commit(ctx))
	locked, backed := 0, 0
	for at := range r.Machines() {
		records, err := r.Machine(at).LogRecords(0, 0)
		must(t, err)
		for _, rec := range records {
			if rec.Kind != record.Lock && rec.Kind != record.CommitBackup {
				continue
			}
			if len(rec.Regions) != len(regions) {
				t.Errorf("%v at machine %d names regions %v, written are %v", rec.Kind, at, rec.Regions, regions)
			}
			for _, w := range rec.Writes {
				i := slices.Index(r.ptrs, w.Ptr)
				where := slices.Index(m.ReplicasOf(w.Ptr), rdma.MachineID(at))
				if rec.Kind == record.Lock && where != 0 || rec.Kind == record.CommitBackup && where < 1 {
					t.Errorf("%v of %v at machine %d, its replicas are at %v", rec.Kind, w.Ptr, at, m.ReplicasOf(w.Ptr))
				}
				if number(w.Payload) != uint64(100+i) || w.Version != 1 {
					t.Errorf("%v at machine %d: object %d becomes %d, from version %d", rec.Kind, at, i, number(w.Payload), w.Version)
				}
				if rec.Kind == record.Lock {
					locked++
				} else {
					backed++
				}
			}
		}
	}
	// What machine 0 wrote to its own log is freed by now.
	own := 0
	for _, p := range r.ptrs {
		for _, at := range m.ReplicasOf(p) {
			if at == 0 {
				own++
			}
		}
	}
	if locked+backed != 2*len(r.ptrs)-own {
		t.Errorf("%d objects in LOCK and %d in COMMIT-BACKUP records, want %d in all", locked, backed, 2*len(r.ptrs)-own)
	}
	r.settle()
	r.quiet()
}

// "Primaries process these records by attempting to lock the objects at the
// specified versions using compare-and-swap": an object that was changed since
// it was read refuses; the coordinator writes an ABORT record to all the primaries
// that did lock, and returns an error.
func TestPaper4_LockRefusedAborts(t *testing.T) {
	r, _ := paperRig(t, 3, 1, 3)
	tx := r.Machine(0).Begin()
	for i := range r.ptrs {
		must(t, write(tx, r.ptrs[i], 7))
	}
	r.set(1, 2, 50)
	steps := r.steps()
	wantReason(t, tx.Commit(ctx), txn.ReasonLock)
	count := func(s step.Step) (n int) {
		for _, x := range *steps {
			if x == s {
				n++
			}
		}
		return n
	}
	if count(step.Lock) != 2 || count(step.Unlock) != 2 || count(step.Abort) != 1 {
		t.Errorf("locked %d, unlocked %d, %d ABORT records; want 2, 2 and 1 (to the other primary that locked): %v",
			count(step.Lock), count(step.Unlock), count(step.Abort), *steps)
	}
	for i, want := range []uint64{0, 0, 50} {
		if got := r.get(0, i); got != want {
			t.Errorf("object %d holds %d, want %d", i, got, want)
		}
	}
	r.settle()
	r.quiet()
}

// "Locking can fail if any object version changed since it was read by the
// transaction, or if the object is currently locked by another transaction." Then the
// primaries that did lock get ABORT records. An error is returned only if the other
// holds its lock for long: a lock alone shows no conflict yet (docs/internals/transactions.md).
func TestPaper4_LockedByAnotherAborts(t *testing.T) {
	r, _ := hastyRig(t, 3, 1, 3)
	r.settle()
	tx, holder := r.Machine(0).Begin(), r.Machine(1).Begin()
	must(t, writeAll(tx, r.ptrs, 7))
	must(t, write(holder, r.ptrs[2], 50))
	aborts, tried := 0, false
	r.Machine(0).OnStep(func(s step.Step) {
		if s == step.Abort {
			aborts++
		}
	})
	r.Machine(1).OnStep(func(s step.Step) {
		if s == step.Validate && !tried { // it has its lock
			tried = true
			wantReason(t, tx.Commit(ctx), txn.ReasonLock)
		}
	})
	must(t, holder.Commit(ctx))
	if !tried || aborts == 0 {
		t.Errorf("tried %v, %d ABORT records", tried, aborts)
	}
	for i, want := range []uint64{0, 0, 50} {
		if got := r.get(0, i); got != want {
			t.Errorf("object %d holds %d, want %d", i, got, want)
		}
	}
	r.settle()
	r.quiet()
}

// "FaRM performs read validation by reading, from their primaries, the versions
// of all objects that were read but not written by the transaction. If any
// object has changed, validation fails and the transaction is aborted.
// Validation uses one-sided RDMA reads by default. For primaries that hold more
// than tr objects, validation is done over RPC."
//
// tr follows from what the network's operations cost.
func TestPaper4_ValidationByReadsAndByMessage(t *testing.T) {
	for tr, costs := range map[int]rdma.Costs{1: {Read: 2, Message: 3}, 4: {Read: 10, Message: 49}, 7: {Read: 1, Message: 7}} {
		validationBy(t, tr, costs)
	}
}

// A costlyNIC has costs of its own.
type costlyNIC struct {
	rdma.NIC
	costs rdma.Costs
}

func (n costlyNIC) Costs() rdma.Costs { return n.costs }

func validationBy(t *testing.T, tr int, costs rdma.Costs) {
	wrap := func(n rdma.NIC) rdma.NIC { return costlyNIC{n, costs} }
	r := open(t, txntest.Config{Machines: 2, Workers: 1, Clock: newHandClock(), Wrap: wrap}, 40)
	for n := 1; n <= 2*tr; n++ {
		tx := r.Machine(0).Begin()
		read := 0
		for i := 1; i < len(r.ptrs) && read < n; i += 2 { // odd ones are at machine 1
			_, err := tx.Read(r.ptrs[i])
			must(t, err)
			read++
		}
		must(t, write(tx, r.ptrs[0], uint64(n)))
		before := r.stats()
		must(t, tx.Commit(ctx))
		want := uint64(0)
		if n > tr {
			want = 2 // VALIDATE and its reply
		}
		if d := r.since(before); d.Messages != want {
			t.Errorf("tr = %d: %d objects validated with %d messages, want %d", tr, n, d.Messages, want)
		}
		// The same, with the last object changed before the commit.
		tx = r.Machine(0).Begin()
		for i := 1; i < 2*n; i += 2 {
			_, err := tx.Read(r.ptrs[i])
			must(t, err)
		}
		must(t, write(tx, r.ptrs[0], 99))
		r.set(1, 2*n-1, 5)
		wantReason(t, tx.Commit(ctx), txn.ReasonValidate)
	}
	r.settle()
	r.quiet()
}

// "After all COMMIT-BACKUP writes have been acked, the coordinator writes a
// COMMIT-PRIMARY record": no step of a phase comes before the end of the one
// before it.
func TestPaper4_PhasesAreInOrder(t *testing.T) {
	r, _ := paperRig(t, 3, 3, 3)
	r.settle()
	tx := r.Machine(0).Begin()
	for i := range r.ptrs {
		must(t, write(tx, r.ptrs[i], 7))
	}
	steps := r.steps()
	must(t, tx.Commit(ctx))
	phase := map[step.Step]int{
		step.LockRecord: 0, step.Lock: 0, step.Validate: 1, step.CommitBackup: 2,
		step.CommitPrimary: 3, step.ApplyPrimary: 3, step.ApplyBackup: 3, step.FreeLog: 3,
	}
	counts := map[step.Step]int{}
	at := 0
	for _, s := range *steps {
		p, known := phase[s]
		if !known || p < at {
			t.Errorf("%v comes too late in %v", s, *steps)
		}
		at = max(at, p)
		counts[s]++
	}
	// Three primaries, each machine a backup of two regions: one record for both.
	for s, want := range map[step.Step]int{step.LockRecord: 3, step.Lock: 3, step.Validate: 1, step.CommitBackup: 3, step.CommitPrimary: 3, step.ApplyPrimary: 3} {
		if counts[s] != want {
			t.Errorf("%v %d times, want %d", s, counts[s], want)
		}
	}
	r.settle()
	r.quiet()
}

// "It reports completion to the application on receiving at least one hardware
// ack for such a record": one primary that is lost by then does not matter. And
// no transaction is reported committed if none is left.
func TestPaper4_CommitIsReportedAfterOnePrimary(t *testing.T) {
	for _, lost := range []int{1, 2} {
		r, _ := hastyRig(t, 4, 1, 4)
		tx := r.Machine(3).Begin()
		for i := range 2 {
			must(t, write(tx, r.ptrs[i], 7))
		}
		r.Machine(3).OnStep(func(s step.Step) {
			if s == step.Validate { // everything is locked, and there are no backups
				for i := range lost {
					r.Machine(i).NIC().Close()
				}
			}
		})
		err := tx.Commit(ctx)
		if lost == 1 && err != nil || lost == 2 && !errors.Is(err, outcome.ErrInDoubt) {
			t.Errorf("%d of 2 primaries lost: %v", lost, err)
		}
		r.lost = true
	}
}

// "Backups apply the updates to their copies of the objects at truncation time",
// and the coordinator truncates "by piggybacking identifiers of truncated
// transactions in other log records", to a primary or to a backup.
func TestPaper4_BackupsApplyAtTruncationWhichIsPiggybacked(t *testing.T) {
	r, _ := paperRig(t, 4, 2, 8)
	p := r.elsewhere()
	replicas := r.Machine(0).ReplicasOf(p)
	primary, backup := r.Machine(int(replicas[0])), r.Machine(int(replicas[1]))
	r.settle()
	steps := r.steps()
	version := primary.Header(p).Version()
	for k := range region.Version(5) {
		r.run(0, func(tx *txn.Tx) error { return write(tx, p, uint64(k)) })
		if v := primary.Header(p).Version(); v != version+k+1 {
			t.Errorf("primary has version %d after %d commits", v, k+1)
		}
		// The backup looks at its log only when it is rung.
		backup.Locked(0, func() {})
	}
	if slices.Contains(*steps, step.Truncate) {
		t.Error("a TRUNCATE record was written")
	}
	knock(r, backup) // so that the backup looks at what it has got
	if v := backup.Header(p).Version(); v != version+4 {
		t.Errorf("backup has version %d, want %d: all but the last are truncated", v, version+4)
	}
	r.settle()
	if !slices.Contains(*steps, step.Truncate) {
		t.Error("no TRUNCATE record was written")
	}
	if v := backup.Header(p).Version(); v != version+5 {
		t.Errorf("backup has version %d after everything was truncated, want %d", v, version+5)
	}
	r.quiet()
}

// knock has a machine's workers look at what has arrived.
func knock(r *rig, m *txn.Machine) {
	r.t.Helper()
	if _, err := r.Machine((int(m.ID())+1)%r.Machines()).ShipTo(ctx, m.ID(), 0x7fff, nil); err == nil {
		r.t.Error("a handler that is not registered answered")
	}
}

// "Coordinators reserve space for all commit protocol records including truncate
// records in primary and backup logs before starting the commit protocol." Where
// there is no room, nothing has been written anywhere.
func TestPaper4_ReservesBeforeItWrites(t *testing.T) {
	r, _ := hastyRig(t, 2, 2, 2)
	big := r.bigObjects(0, 30_000, 2)
	r.settle()
	steps := r.steps()
	hear := r.deaf(1)
	// The backup's log takes records until it is full; nobody frees them.
	var err error
	for i := uint64(0); err == nil && i < 20; i++ {
		*steps = nil
		err = r.Machine(0).Run(ctx, func(tx *txn.Tx) error {
			if err := write(tx, r.ptrs[0], i); err != nil {
				return err
			}
			return writeAll(tx, big, i)
		})
	}
	if !errors.Is(err, outcome.ErrLogFull) || errors.Is(err, outcome.ErrConflict) {
		t.Errorf("without room: %v", err)
	} else if !strings.Contains(err.Error(), "machine 1") {
		t.Errorf("%q does not say whose log is full", err)
	}
	for _, s := range *steps {
		if s != step.Truncate {
			t.Errorf("without room, %v", *steps)
		}
	}
	if h := r.Machine(0).Header(r.ptrs[0]); h.Locked() {
		t.Errorf("object is %v", h)
	}
	hear()
	r.settle()
	r.run(0, func(tx *txn.Tx) error { return writeAll(tx, big, 5) })
	r.quiet()
}

// "The coordinator truncates logs at primaries and backups lazily after receiving
// acks from all primaries": while one of two has not acknowledged COMMIT-PRIMARY
// the other is not told to truncate.
func TestPaper4_TruncatesAfterAllPrimaries(t *testing.T) {
	// told says whether machine 1 is told to truncate a transaction that
	// wrote there, and at machine 0.
	told := func(lost bool) bool {
		r, _ := hastyRig(t, 4, 1, 4)
		r.settle()
		m := r.Machine(3)
		tx := m.Begin()
		must(t, writeAll(tx, r.ptrs[:2], 7))
		m.OnStep(func(s step.Step) {
			if s == step.Validate && lost {
				lost, r.lost = false, true
				must(t, r.Machine(0).NIC().Close())
			}
		})
		must(t, tx.Commit(ctx))
		r.set(3, 1, 8) // the next records there
		records, err := r.Machine(1).LogRecords(3, 0)
		must(t, err)
		last := records[len(records)-1]
		first := last.ID.Seq - 1
		return last.LowBound > first || slices.Contains(last.Truncated, first)
	}
	if !told(false) {
		t.Error("not truncated when all primaries have acknowledged")
	}
	if told(true) {
		t.Error("truncated before all primaries have acknowledged")
	}
}

// "The reservation is released when the corresponding record is written. Truncation
// record reservations are also released if the truncation is piggybacked on
// another message."
func TestPaper4_ReservationsAreReleased(t *testing.T) {
	r, _ := paperRig(t, 3, 2, 6)
	p := r.elsewhere()
	r.settle()
	m := r.Machine(0)
	replicas := m.ReplicasOf(p)
	var uses [2][]txn.LogUse // of the primary's and the backup's log, as records are written
	note := func() {
		for i, at := range replicas {
			uses[i] = append(uses[i], m.LogUse(0, at))
		}
	}
	m.OnStep(func(s step.Step) {
		switch s {
		case step.LockRecord, step.CommitBackup, step.CommitPrimary:
			note()
		}
	})
	for range 3 { // the second and third piggyback the truncation of the one before
		note()
		must(t, m.Run(ctx, func(tx *txn.Tx) error { return write(tx, p, 7) }))
	}
	note()
	for i, at := range replicas {
		for k, u := range uses[i] {
			if written := k % 4; written == 0 {
				want := worker.TruncateReserve // what is left of the one before
				if k == 0 {
					want = 0
				}
				if u.Reserved != want {
					t.Errorf("machine %d: %d bytes reserved after %d transactions, want %d", at, u.Reserved, k/4, want)
				}
			} else if written > 1 {
				last := uses[i][k-1]
				if bytes := u.Tail - last.Tail; last.Reserved < u.Reserved+bytes || bytes == 0 && u.Reserved != last.Reserved {
					t.Errorf("machine %d, record %d: %d bytes written, reserved were %d and are %d", at, k, bytes, last.Reserved, u.Reserved)
				}
			}
		}
	}
	r.settle()
	for _, at := range replicas {
		if u := m.LogUse(0, at); u.Reserved != 0 {
			t.Errorf("machine %d: %d bytes reserved when all is truncated", at, u.Reserved)
		}
	}
	r.quiet()
}

// "If the log becomes full, the coordinator uses the reservations to write
// explicit truncate records to free up space in the log."
func TestPaper4_ExplicitTruncationWhenTheLogIsFull(t *testing.T) {
	r, _ := paperRig(t, 2, 2, 1)
	big := r.bigObjects(0, 30_000, 2)
	r.settle()
	hear := sync.OnceFunc(r.deaf(1)) // the backup
	truncates := 0
	r.Machine(0).OnStep(func(s step.Step) {
		if s == step.Truncate {
			truncates++
			hear()
		}
	})
	for i := range 20 { // 1.2 MB into logs of 256 KB
		if i > 10 {
			hear()
		}
		r.run(0, func(tx *txn.Tx) error { return writeAll(tx, big, uint64(i)) })
	}
	if truncates == 0 {
		t.Error("no TRUNCATE record was written")
	}
	r.quiet()
}

// "Committed read-only transactions" are serializable "at the point of their last
// read", and need no records: the primaries' processors do not hear of them, nor
// do backups of what a transaction only reads.
func TestPaper4_ReadOnlyParticipantsDoNoWork(t *testing.T) {
	r, _ := paperRig(t, 3, 3, 3)
	r.settle()
	before := r.stats()
	steps := r.steps()
	r.run(0, func(tx *txn.Tx) error {
		for _, p := range r.ptrs {
			if _, err := tx.Read(p); err != nil {
				return err
			}
		}
		return nil
	})
	if d := r.since(before); d.Records != 0 || d.Messages != 0 || len(*steps) != 0 {
		t.Errorf("%d records, %d messages, %v", d.Records, d.Messages, *steps)
	}
	tx := r.Machine(0).Begin()
	for _, p := range r.ptrs {
		_, err := tx.Read(p)
		must(t, err)
	}
	r.set(1, 2, 9)
	wantReason(t, tx.Commit(ctx), txn.ReasonValidate)
	r.quiet()
}

// Lock-free reads are "optimized single object read only transactions": one
// RDMA read, no commit.
func TestPaper4_LockFreeRead(t *testing.T) {
	r, _ := paperRig(t, 2, 1, 2)
	r.set(0, 1, 77)
	before := r.stats()
	if got := r.get(0, 1); got != 77 {
		t.Errorf("read %d", got)
	}
	if d := r.since(before); d.RemoteReads != 1 || d.LocalReads != 0 || d.Records != 0 || d.Messages != 0 {
		t.Errorf("%+v", d)
	}
	b := make([]byte, r.ptrs[1].Capacity())
	for machine, p := range []region.Ptr{r.ptrs[1], r.ptrs[1]} {
		if n := testing.AllocsPerRun(100, func() {
			if _, err := r.Machine(machine).Read(p, b); err != nil {
				t.Error(err)
			}
		}); n != 0 && !invariant.Enabled { // pools forget things under -race
			t.Errorf("a read from machine %d allocates %v times", machine, n)
		}
	}
	r.settle()
	r.quiet()
}

// "Individual object reads are atomic, they read only committed data, successive
// reads of the same object return the same data, and reads of objects written by
// the transaction return the latest value written" (section 3).
func TestPaper3_WhatATransactionSees(t *testing.T) {
	eachShape(t, func(t *testing.T, cfg txntest.Config) {
		r := open(t, cfg, 6)
		for i, p := range r.ptrs {
			tx := r.Machine(0).Begin()
			first, err := tx.Read(p)
			must(t, err)
			kept := bytes.Clone(first)
			r.set(i%r.Machines(), i, 5)
			again, err := tx.Read(p)
			must(t, err)
			if !bytes.Equal(again, kept) || !bytes.Equal(first, kept) {
				t.Errorf("object %d: read again, it is not the same", i)
			}
			must(t, write(tx, p, 6))
			if v, err := read(tx, p); err != nil || v != 6 {
				t.Errorf("object %d: own write is read as %d, %v", i, v, err)
			}
			wantReason(t, tx.Commit(ctx), txn.ReasonLock)
			if got := r.get(0, i); got != 5 {
				t.Errorf("object %d holds %d", i, got)
			}
		}
		r.quiet()
	})
}
