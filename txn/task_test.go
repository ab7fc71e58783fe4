package txn

import (
	"errors"
	"testing"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	rdmalocal "github.com/farmsql/farmsql/rdma/local"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/message"
	"github.com/farmsql/farmsql/txn/record"
	"github.com/farmsql/farmsql/txn/step"
)

// small has everything done in the smallest slices.
type small struct{}

func (small) Meets(t clock.Trouble) bool { return t == clock.SmallLog }

// withAnnexes lets a machine make annexes, and work on them in the smallest slices.
func withAnnexes(t *testing.T, m *Machine) {
	t.Helper()
	m.annexes.init(m)
	m.troubled, m.cfg.Clock = small{}, clock.System{}
	m.cfg.Annex = func(_ uint64, bytes int64) (*nvram.Memory, error) { return nvram.NewMemory(bytes), nil }
	m.cfg.DropAnnex = func(uint64, *nvram.Memory) error { return nil }
	if m.cfg.NIC != nil {
		return
	}
	nic, err := rdmalocal.NewNetwork(rdmalocal.Options{}).Join(0)
	must(t, err)
	t.Cleanup(func() { _ = nic.Close() })
	m.cfg.NIC = nic
}

// fillAnnex makes an annex that belongs to a log, with an update of each object.
func fillAnnex(t *testing.T, m *Machine, owner *logReader, ptrs ...region.Ptr) record.Annex {
	t.Helper()
	var body []byte
	for _, p := range ptrs {
		v := region.Version(1)
		if rt := m.route(p.Addr.Region()); rt != nil && rt.Local != nil {
			v = rt.Local.Header(p.Addr.Offset()).Version()
		}
		body = record.AppendWrite(body, &record.Write{Ptr: p, Op: record.OpUpdate, Version: v, Payload: make([]byte, p.Capacity())})
	}
	number, err := m.annexes.add(uint64(len(body)))
	must(t, err)
	m.annexes.give(number, owner)
	must(t, m.annexes.write(number, 0, body))
	return record.Annex{Number: number, Bytes: uint64(len(body)), Writes: uint32(len(ptrs))}
}

// appendLarge appends a record of a transaction that has its writes in an annex.
func (l *testLog) appendLarge(kind record.Kind, config uint32, seq uint64, ptrs ...region.Ptr) {
	l.t.Helper()
	rec := &record.Record{Kind: kind, ID: record.ID{Config: config, Machine: 1, Seq: seq}, LowBound: seq, Regions: []region.ID{1}, Annex: fillAnnex(l.t, l.in.m, l.in, ptrs...)}
	_, _, err := l.tx.Append(rdma.Unsignalled, record.Append(nil, rec))
	must(l.t, err)
}

// steps does so many steps.
func (l *testLog) steps(n int) (reply message.Message) {
	l.t.Helper()
	for range n {
		r, more, err := l.in.step()
		must(l.t, err)
		if !more {
			l.t.Fatal("there is nothing to do")
		}
		if r.Kind != 0 {
			reply = r
		}
	}
	return reply
}

// isLocked says whether an object is locked.
func (l *testLog) isLocked(p region.Ptr) bool {
	return l.in.m.route(1).Local.Header(p.Addr.Offset()).Locked()
}

// The annex of a record that comes too late goes with the record: nobody else knows of it.
func TestLateRecordsGiveBackTheirAnnexes(t *testing.T) {
	const seq = 1<<record.LifeShift + 1
	l := newTestLog(t)
	withAnnexes(t, l.in.m)
	l.in.freeze(2)
	l.in.thaw(1)
	l.appendLarge(record.Lock, 1, seq, l.ptr)
	l.steps(1)
	if n := l.in.m.Annexes(); n != 0 || l.isLocked(l.ptr) {
		t.Errorf("%d annexes are left, the object is locked: %v", n, l.isLocked(l.ptr))
	}
}

// An annex is there until the log's head has passed its record: a crash in between must
// find it.
func TestAnnexesGoAfterTheirRecords(t *testing.T) {
	const seq = 1<<record.LifeShift + 1
	l := newTestLog(t)
	m := l.in.m
	withAnnexes(t, m)
	freed := 0
	m.cfg.Events.Step = func(s step.Step) {
		if s != step.FreeLog {
			return
		}
		if freed++; m.Annexes() != 1 {
			t.Errorf("there are %d annexes when the record is freed", m.Annexes())
		}
	}
	l.appendLarge(record.Lock, 1, seq, l.ptr)
	l.steps(3) // it is taken, makes sense, and is locked
	l.append(record.Abort, 1, seq, seq)
	l.steps(2)
	l.append(record.Truncate, 1, 0, seq+1)
	l.steps(1)
	if freed != 1 || m.Annexes() != 0 {
		t.Errorf("freed %d times, %d annexes are left", freed, m.Annexes())
	}

	self, err := newSelfLog(nvram.NewMemory(64<<10), record.Coordinator{Machine: 0, Worker: 0}, 1)
	must(t, err)
	w := newWindow(1)
	rec := &record.Record{Kind: record.Lock, ID: record.ID{Config: 1, Seq: w.begin()}, Regions: []region.ID{1}, Annex: fillAnnex(t, m, nil, l.ptr)}
	_, _, err = self.log.Append(rdma.Unsignalled, record.Append(nil, rec))
	must(t, err)
	w.finish(rec.ID.Seq)
	must(t, self.free(m, &w))
	if freed != 2 || m.Annexes() != 0 {
		t.Errorf("own log: freed %d times, %d annexes are left", freed, m.Annexes())
	}
}

// A reconfiguration ends what a machine does about a large LOCK: from there on the log is
// evidence, and recovery locks.
func TestFreezeEndsTasks(t *testing.T) {
	const seq = 1<<record.LifeShift + 1
	l := newTestLog(t)
	withAnnexes(t, l.in.m)
	ptrs := []region.Ptr{l.ptr, l.object(), l.object()}
	l.appendLarge(record.Lock, 1, seq, ptrs...)
	l.steps(1 + len(ptrs) + 1)
	if !l.isLocked(ptrs[0]) || l.isLocked(ptrs[1]) {
		t.Fatal("it is not amid the locking")
	}
	l.in.freeze(2)
	for more := true; more; {
		var err error
		_, more, err = l.in.step()
		must(t, err)
	}
	if l.isLocked(ptrs[1]) || l.isLocked(ptrs[2]) {
		t.Error("it has gone on locking")
	}
	if p := l.in.txs[seq]; p == nil || !p.held || p.locked || l.in.m.Annexes() != 1 {
		t.Errorf("held: %v, %d annexes", p != nil && p.held, l.in.m.Annexes())
	}
}

// Whoever waits for a worker, as the beat does by which the machine keeps its lease, waits
// for one slice of a large transaction.
func TestOneSliceAtATime(t *testing.T) {
	const seq = 1<<record.LifeShift + 1
	l := newTestLog(t)
	withAnnexes(t, l.in.m)
	ptrs := []region.Ptr{l.ptr, l.object(), l.object()}
	l.appendLarge(record.Lock, 1, seq, ptrs...)
	w := &worker{m: l.in.m}
	for n := range 1 + 2*len(ptrs) {
		w.bell.Store(false)
		must(t, w.stepLogLocked(&peer{id: 1, in: l.in}))
		for i, p := range ptrs {
			if want := n > len(ptrs)+i; l.isLocked(p) != want {
				t.Fatalf("after %d slices object %d is locked: %v", n, i, !want)
			}
		}
		if l.in.tasks != nil && !w.bell.Load() {
			t.Fatalf("after %d slices nobody goes on", n)
		}
	}
	if l.in.tasks != nil {
		t.Error("it is not done")
	}
}

// A large LOCK that is refused gives back the locks that it has got, and no others: not
// that of the transaction which has the object that it could not lock.
func TestRefusedLargeLocks(t *testing.T) {
	const seq = 1<<record.LifeShift + 1
	l := newTestLog(t)
	withAnnexes(t, l.in.m)
	ptrs := []region.Ptr{l.ptr, l.object(), l.object()}
	local := l.in.m.route(1).Local
	for _, p := range ptrs[1:] {
		if !local.Lock(p, local.Header(p.Addr.Offset()).Version()) {
			t.Fatal("it is locked")
		}
	}
	l.appendLarge(record.Lock, 1, seq, ptrs...)
	var reply message.Message
	for reply.Kind == 0 {
		reply = l.steps(1)
	}
	if reply.Kind != message.LockReply || message.Verdict(reply.A) != message.Locked || reply.C != 1 || reply.Tag != seq {
		t.Errorf("reply %+v", reply)
	}
	if l.isLocked(ptrs[0]) || !l.isLocked(ptrs[1]) || !l.isLocked(ptrs[2]) {
		t.Errorf("locked: %v, %v, %v", l.isLocked(ptrs[0]), l.isLocked(ptrs[1]), l.isLocked(ptrs[2]))
	}
}

// A small transaction after a large one, which has been aborted, or whose backup has been
// applied, has nothing of that.
func TestSmallAfterLarge(t *testing.T) {
	const seq = 1<<record.LifeShift + 1
	for _, isBackup := range []bool{false, true} {
		l := newTestLog(t)
		withAnnexes(t, l.in.m)
		(*l.in.m.routes.Load()).Of(1).PrimaryHere = !isBackup
		if isBackup {
			l.appendLarge(record.CommitBackup, 1, seq, l.ptr)
			l.steps(2)
		} else {
			l.appendLarge(record.Lock, 1, seq, l.ptr)
			l.steps(3)
			l.append(record.Abort, 1, seq, seq)
			l.steps(2)
		}
		l.append(record.Truncate, 1, 0, seq+1)
		for l.steps(1); l.in.tasks != nil; {
			l.steps(1)
		}
		before := l.header().Version()
		if isBackup {
			l.write(record.CommitBackup, 1, seq+1, seq+1)
		} else {
			l.write(record.Lock, 1, seq+1, seq+1)
			l.write(record.CommitPrimary, 1, seq+1, seq+1)
		}
		l.write(record.Truncate, 1, 0, seq+2)
		if h := l.header(); h.Locked() || h.Version() != before+1 || len(l.in.txs) != 0 || l.in.m.Annexes() != 0 {
			t.Errorf("backup %v: %v after %d, %d transactions, %d annexes", isBackup, h, before, len(l.in.txs), l.in.m.Annexes())
		}
	}
}

// A record that names an annex which is not there fences its writer, also while the log is
// frozen, and is no evidence: not beside another record of its transaction, and not in a
// later life, which would take its own memory for damaged.
func TestRecordsWithoutTheirAnnexAreNoEvidence(t *testing.T) {
	const seq = 1<<record.LifeShift + 1
	for _, isFrozen := range []bool{false, true} {
		l := newTestLog(t)
		m := l.in.m
		withAnnexes(t, m)
		m.recovery.init(m)
		l.appendLarge(record.Lock, 1, seq, l.ptr)
		l.steps(3)
		if isFrozen {
			l.in.freeze(2)
		}
		rec := &record.Record{Kind: record.CommitBackup, ID: record.ID{Config: 1, Machine: 1, Seq: seq}, LowBound: seq, Regions: []region.ID{1}, Annex: record.Annex{Number: 77, Writes: 1, Bytes: 4096}}
		_, _, err := l.tx.Append(rdma.Unsignalled, record.Append(nil, rec))
		must(t, err)
		if _, _, err := l.in.step(); !errors.Is(err, record.ErrBad) {
			t.Errorf("frozen %v: %v", isFrozen, err)
		}
		r, log := &m.recovery, l.in.ledger.Log()
		r.scanLocked(log, 1, l.in.rx.Next(), func(*record.Record, uint64) bool { return true })
		r.takeFoundLocked()
		tr := r.traces[rec.ID]
		if tr == nil || len(tr.parts) != 1 || tr.parts[0].seen != SeenLock {
			t.Errorf("frozen %v: %+v", isFrozen, tr)
		}
		m.recalled.logs = []*nvram.Memory{log}
		if err := m.checkAnnexesLocked(); err != nil {
			t.Errorf("frozen %v: a later life: %v", isFrozen, err)
		}
	}
}
