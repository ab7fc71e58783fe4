package evidence

import (
	"testing"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/nvram"
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
}

// handOver returns such a machine, in whose log n transactions have LOCK records for one object.
func handOver(t *testing.T, n uint64) *handedOver {
	t.Helper()
	const locked = 7
	l := newPeerLog(t)
	for i := range n {
		l.append(record.Lock, locked, seqOf(i), seqOf(0))
		l.steps(1)
	}
	own, err := participant.NewOwnLog(nvram.NewMemory(64<<10), record.Coordinator{Machine: 3, Worker: 0}, 1)
	must(t, err)
	log := Log{Log: l.in, From: 1, Memory: l.in.Ledger().Log()}
	l.r.Workers = []Worker{&testWorker{r: l.r, own: own, window: record.NewWindow(locked), logs: []Log{log}}}
	h := &handedOver{l, l.r.Replicas.Routes.Of(1).Local, locked}
	h.next(false)
	return h
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
	h.r.Replicas.Routes.Store(&route.List{1: {Placement: p, PrimaryHere: isPrimary, Local: h.local}})
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
		must(t, h.r.LockRegions(h.in, nil))
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
