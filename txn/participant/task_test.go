package participant

import (
	"testing"

	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/message"
	"github.com/farmsql/farmsql/txn/record"
	"github.com/farmsql/farmsql/txn/step"
)

// The annex of a record that comes too late goes with the record: nobody else knows of it.
func TestLateRecordsGiveBackTheirAnnexes(t *testing.T) {
	const seq = 1<<record.LifeShift + 1
	l := newTestLog(t)
	l.withAnnexes()
	l.in.Freeze(2)
	l.in.Thaw(1)
	l.appendLarge(record.Lock, 1, seq, l.ptr)
	l.steps(1)
	if n := l.in.r.Annexes.Count(); n != 0 || l.isLocked(l.ptr) {
		t.Errorf("%d annexes are left, the object is locked: %v", n, l.isLocked(l.ptr))
	}
}

// An annex is there until the log's head has passed its record: a crash in between must
// find it.
func TestAnnexesGoAfterTheirRecords(t *testing.T) {
	const seq = 1<<record.LifeShift + 1
	l := newTestLog(t)
	r := l.in.r
	l.withAnnexes()
	freed := 0
	r.Step = func(s step.Step) {
		if s != step.FreeLog {
			return
		}
		if freed++; r.Annexes.Count() != 1 {
			t.Errorf("there are %d annexes when the record is freed", r.Annexes.Count())
		}
	}
	l.appendLarge(record.Lock, 1, seq, l.ptr)
	l.steps(3) // it is taken, makes sense, and is locked
	l.append(record.Abort, 1, seq, seq)
	l.steps(2)
	l.append(record.Truncate, 1, 0, seq+1)
	l.steps(1)
	if freed != 1 || r.Annexes.Count() != 0 {
		t.Errorf("freed %d times, %d annexes are left", freed, r.Annexes.Count())
	}

}

// A reconfiguration ends what a machine does about a large LOCK: from there on the log is
// evidence, and recovery locks.
func TestFreezeEndsTasks(t *testing.T) {
	const seq = 1<<record.LifeShift + 1
	l := newTestLog(t)
	l.withAnnexes()
	ptrs := []region.Ptr{l.ptr, l.object(), l.object()}
	l.appendLarge(record.Lock, 1, seq, ptrs...)
	l.steps(1 + len(ptrs) + 1)
	if !l.isLocked(ptrs[0]) || l.isLocked(ptrs[1]) {
		t.Fatal("it is not amid the locking")
	}
	l.in.Freeze(2)
	for more := true; more; {
		var err error
		_, more, err = l.in.Step()
		must(t, err)
	}
	if l.isLocked(ptrs[1]) || l.isLocked(ptrs[2]) {
		t.Error("it has gone on locking")
	}
	if p := l.in.txs[seq]; p == nil || !p.held || p.locked || l.in.r.Annexes.Count() != 1 {
		t.Errorf("held: %v, %d annexes", p != nil && p.held, l.in.r.Annexes.Count())
	}
}

// A large LOCK that is refused gives back the locks that it has got, and no others: not
// that of the transaction which has the object that it could not lock.
func TestRefusedLargeLocks(t *testing.T) {
	const seq = 1<<record.LifeShift + 1
	l := newTestLog(t)
	l.withAnnexes()
	ptrs := []region.Ptr{l.ptr, l.object(), l.object()}
	local := l.in.r.Routes.Of(1).Local
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
		l.withAnnexes()
		(*l.in.r.Routes.Load()).Of(1).PrimaryHere = !isBackup
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
		if h := l.header(); h.Locked() || h.Version() != before+1 || len(l.in.txs) != 0 || l.in.r.Annexes.Count() != 0 {
			t.Errorf("backup %v: %v after %d, %d transactions, %d annexes", isBackup, h, before, len(l.in.txs), l.in.r.Annexes.Count())
		}
	}
}
