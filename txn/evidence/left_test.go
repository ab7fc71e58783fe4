package evidence

import (
	"testing"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/participant"
	"github.com/farmsql/farmsql/txn/record"
	"github.com/farmsql/farmsql/txn/route"
)

// A handedOver is a machine that was the primary of region 1 in configuration 7. Then its role was given
// to another machine, and it is a backup.
type handedOver struct {
	*peerLog
	local *region.Region
	in    cluster.ID
	away  bool // region 2, which is elsewhere, is unavailable
}

// locked is the configuration of the transactions.
const locked = 7

// handOver returns such a machine, in whose log n transactions have LOCK records for one object.
func handOver(t *testing.T, n uint64) *handedOver {
	t.Helper()
	l := newPeerLog(t)
	for i := range n {
		l.append(record.Lock, locked, seqOf(i), seqOf(0))
		l.steps(1)
	}
	h := handOverWith(t, l)
	h.next(false)
	return h
}

// handOverWith returns such a machine with what its log has, before the next configuration begins.
func handOverWith(t *testing.T, l *peerLog) *handedOver {
	t.Helper()
	own, err := participant.NewOwnLog(nvram.NewMemory(64<<10), record.Coordinator{Machine: 3, Worker: 0}, 1)
	must(t, err)
	log := Log{Log: l.in, From: 1, Memory: l.in.Ledger().Log()}
	l.r.Workers = []Worker{&testWorker{r: l.r, own: own, window: record.NewWindow(locked), logs: []Log{log}}}
	return &handedOver{peerLog: l, local: l.r.Replicas.Routes.Of(1).Local, in: locked}
}

// lockRecord returns a LOCK record of transaction 0, which writes to the object.
func (l *peerLog) lockRecord() *record.Record {
	v := l.r.Replicas.Routes.Of(1).Local.Header(l.ptr.Addr.Offset()).Version()
	return &record.Record{Kind: record.Lock, ID: record.ID{Config: locked, Machine: 1, Seq: seqOf(0)}, LowBound: seqOf(0), Regions: []region.ID{1},
		Writes: []record.Write{{Ptr: l.ptr, Version: v, Payload: make([]byte, l.ptr.Capacity())}}}
}

func seqOf(i uint64) uint64 { return record.FirstOfLife(1<<record.LifeShift) + 1 + i }

// next begins the next configuration, in which the machine is the primary, or a backup.
func (h *handedOver) next(isPrimary bool) {
	h.t.Helper()
	h.in++
	h.l().Freeze(uint32(h.in))
	p := cluster.Placement{Region: 1, Primary: 1, Backups: nil}
	if isPrimary {
		p.Primary = 3
	}
	elsewhere := &route.Route{Placement: cluster.Placement{Region: 2, Primary: 1}}
	if h.away {
		elsewhere.Away = []cluster.Memory{{Machine: 1, Token: 7}}
	}
	h.r.Replicas.Routes.Store(&route.List{1: {Placement: p, PrimaryHere: isPrimary, Local: h.local}, 2: elsewhere})
	h.r.Begin(h.in)
	_, err := h.r.Drain(h.in)
	must(h.t, err)
}

func (h *handedOver) l() *participant.Log { return h.peerLog.in }

// decide carries out the decision about transaction i, and truncates it.
func (h *handedOver) decide(i uint64, commit bool) {
	h.t.Helper()
	id := record.ID{Config: 7, Machine: 1, Seq: seqOf(i)}
	must(h.t, h.r.Decide(h.in, id, commit))
	must(h.t, h.r.Decide(h.in, id, commit)) // a late copy of the call
	must(h.t, h.r.Truncate(h.in, id))
}

// is checks the object's version, counted from the one that was locked, and whether it is locked.
func (h *handedOver) is(what string, version int, locked bool) {
	h.t.Helper()
	got := h.local.Header(h.ptr.Addr.Offset())
	if int(got.Version())-1 != version || got.Locked() != locked {
		h.t.Errorf("%s: %v, want version %d more, locked: %v", what, got, version, locked)
	}
}

// The lock bits in the memory of a primary that has become a backup go when the transactions that have
// set them are decided, and not earlier. Without that, the objects would be locked for ever if the
// machine became the primary again.
func TestLeftLocks(t *testing.T) {
	for _, commit := range []bool{false, true} {
		version := 0
		if commit {
			version = 1
		}
		h := handOver(t, 1)
		h.is("before the decision", 0, true)
		h.decide(0, commit)
		h.is("after the decision", version, false)
		must(t, h.r.Settle(&cluster.Configuration{ID: h.in}))
		h.next(true)
		h.r.Replicas.Allocator = region.NewAllocator(region.AllocatorConfig{Workers: 1})
		must(t, h.r.LockRegions(h.in, []region.ID{1}))
		h.is("as the primary again", version, false)
	}
}

// If the next configuration comes before the decision, the machine finds the transaction again,
// whether it is still a backup or the primary once more.
func TestLeftLocksWhenRecoveryBeginsAnew(t *testing.T) {
	for _, isPrimary := range []bool{false, true} {
		h := handOver(t, 1)
		h.next(isPrimary)
		if isPrimary {
			h.r.Replicas.Allocator = region.NewAllocator(region.AllocatorConfig{Workers: 1})
			must(t, h.r.LockRegions(h.in, []region.ID{1}))
		}
		h.is("begun anew", 0, true)
		h.decide(0, true)
		h.is("decided", 1, false)
	}
}

// Of several transactions with LOCK records for an object only one has locked it. Its lock bit stays
// until all of them are decided: to local readers with an old route it says that the object may have
// changed already.
func TestLeftLocksOfSeveral(t *testing.T) {
	h := handOver(t, 3)
	h.decide(1, false)
	h.is("another was refused the lock", 0, true)
	h.next(false)
	h.decide(2, false)
	h.is("in the next configuration", 0, true)
	h.decide(0, true)
	h.is("all are decided", 1, false)
}

// A transaction that waits for an unavailable region keeps its bit. It is found among those that are
// parked, when its record is gone, and the bit goes with its decision.
func TestLeftLocksOfAParkedTransaction(t *testing.T) {
	l := newPeerLog(t)
	rec := l.lockRecord()
	rec.Regions = []region.ID{1, 2}
	l.appendRecord(rec)
	l.steps(1)
	h := handOverWith(t, l)
	h.away = true
	h.next(false)
	must(t, h.r.Settle(&cluster.Configuration{ID: h.in}))
	h.is("parked", 0, true)
	h.r.Workers[0].(*testWorker).logs = nil
	h.away = false
	h.next(false)
	h.is("the other region is back", 0, true)
	h.decide(0, false)
	h.is("decided", 0, false)
}

// A bit goes wherever its transaction's record is: in a peer's log, with the writes there or in an annex, in
// the log of the machine's own coordinator, or in a log of an earlier life; also if all that is left is a
// COMMIT-BACKUP record.
func TestLeftLocksOfAnyRecord(t *testing.T) {
	for what, begin := range map[string]func(l *peerLog) *handedOver{ // any order
		"an annex": func(l *peerLog) *handedOver {
			rec := l.lockRecord()
			rec.Writes, rec.Annex = nil, l.annex()
			l.appendRecord(rec)
			l.steps(3)
			return handOverWith(t, l)
		},
		"the own log": func(l *peerLog) *handedOver {
			rec := l.lockRecord()
			rec.ID.Machine = 3
			h := handOverWith(t, l)
			own, _ := h.r.Workers[0].OwnLocked()
			_, _, err := own.Log.Append(rdma.Unsignalled, record.Append(nil, rec))
			must(t, err)
			h.local.SetLock(l.ptr)
			return h
		},
		"an earlier life": func(l *peerLog) *handedOver {
			l.appendRecord(l.lockRecord())
			l.steps(1)
			return earlierLife(t, l)
		},
		"COMMIT-BACKUP in an earlier life": func(l *peerLog) *handedOver {
			rec := l.lockRecord()
			rec.Kind = record.CommitBackup
			l.appendRecord(rec)
			l.steps(1)
			l.r.Replicas.Routes.Of(1).Local.SetLock(l.ptr)
			return earlierLife(t, l)
		},
	} {
		h := begin(newPeerLog(t))
		h.next(false)
		h.is(what+", before the decision", 0, true)
		id := record.ID{Config: locked, Machine: 1, Seq: seqOf(0)}
		if h.r.traces[id] == nil {
			id.Machine = 3
		}
		must(t, h.r.Decide(h.in, id, false)) // applying the change would remove the bit anyway
		h.is(what+", after the decision", 0, false)
		must(t, h.r.Settle(&cluster.Configuration{ID: h.in}))
	}
}

// earlierLife returns the next life of the machine, with the memory of the replica and of the log.
func earlierLife(t *testing.T, l *peerLog) *handedOver {
	t.Helper()
	before := handOverWith(t, l)
	again := newPeerLog(t)
	again.ptr = l.ptr
	h := handOverWith(t, again)
	h.local = before.local
	h.r.Workers[0].(*testWorker).logs = nil
	must(t, h.r.Recall([]*nvram.Memory{l.in.Ledger().Log()}, nil, nil, locked-1))
	return h
}
