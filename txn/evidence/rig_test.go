package evidence

import (
	"sync/atomic"
	"testing"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	rdmalocal "github.com/farmsql/farmsql/rdma/local"
	"github.com/farmsql/farmsql/rdma/ring"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/participant"
	"github.com/farmsql/farmsql/txn/record"
	"github.com/farmsql/farmsql/txn/route"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A testWorker is a worker with the given logs, whose siblings are not there.
type testWorker struct {
	r      *Recovery
	own    *participant.OwnLog
	window record.Window
	logs   []Log
}

func (w *testWorker) Locked(f func())                                  { f() }
func (w *testWorker) LogsLocked() []Log                                { return w.logs }
func (w *testWorker) OwnLocked() (*participant.OwnLog, *record.Window) { return w.own, &w.window }
func (w *testWorker) FencePeerLocked(rdma.MachineID, error)            { panic("there are no peers") }
func (w *testWorker) SettleLocked(bool) {
	if err := w.own.Settle(w.r.Replicas, &w.window); err != nil {
		panic(err)
	}
}

// awaiting returns the recovery of a machine that knows a region which is unavailable, or not, and
// parks in memory that the test keeps.
func awaiting(t *testing.T, unavailable bool) (r *Recovery, parked *[]*nvram.Memory) {
	t.Helper()
	parked = new([]*nvram.Memory)
	nic, err := rdmalocal.NewNetwork(rdmalocal.Options{}).Join(3)
	must(t, err)
	here := &participant.Replicas{ID: 3, Routes: new(route.Table), NIC: nic, Clock: clock.System{}}
	here.Init()
	rt := &route.Route{Placement: cluster.Placement{Region: 2}}
	if unavailable {
		rt.Away = []cluster.Memory{{Machine: 1, Token: 7}}
	}
	here.Routes.Store(&route.List{2: rt})
	r = &Recovery{Config: Config{Replicas: here, Configuration: new(atomic.Uint32)}}
	r.OpenParked = func(cluster.ID, int, int64) (*nvram.Memory, error) {
		memory := nvram.NewMemory(64 << 10)
		*parked = append(*parked, memory)
		return memory, nil
	}
	r.Init()
	return r, parked
}

// recoveringIn returns a recovery in progress at a machine with one worker whose own log has 64 KB
// and, if it may spill, memory for notes that do not fit there.
func recoveringIn(t *testing.T, in cluster.ID, maySpill bool) *Recovery {
	t.Helper()
	r, _ := awaiting(t, false)
	if maySpill {
		r.OpenNotes = func(cluster.ID, int, int64) (*nvram.Memory, error) { return nvram.NewMemory(64 << 10), nil }
	}
	r.Init()
	r.Begin(in)
	local, err := region.Format(2, nvram.NewMemory(region.MinSize))
	must(t, err)
	r.Replicas.Routes.Of(2).Local = local
	own, err := participant.NewOwnLog(nvram.NewMemory(64<<10), record.Coordinator{Machine: r.Replicas.ID, Worker: 0}, 1)
	must(t, err)
	r.Workers = []Worker{&testWorker{r: r, own: own, window: record.NewWindow(uint32(in))}}
	return r
}

// ownLog returns the memory of a worker's own log.
func ownLog(r *Recovery, worker int) *nvram.Memory {
	own, _ := r.Workers[worker].OwnLocked()
	return own.Memory()
}

// A peerLog is a log that machine 1 writes to machine 3, which is the primary of region 1 with one
// object.
type peerLog struct {
	t   *testing.T
	r   *Recovery
	tx  *ring.Sender
	in  *participant.Log
	ptr region.Ptr
}

func newPeerLog(t *testing.T) *peerLog {
	t.Helper()
	local, err := region.Format(1, nvram.NewMemory(region.MinSize))
	must(t, err)
	a := region.NewAllocator(region.AllocatorConfig{Workers: 1})
	a.Add(local)
	log := nvram.NewMemory(64 << 10)
	rx, err := record.CreateLog(log, 1)
	must(t, err)
	state, err := rx.State()
	must(t, err)
	r, _ := awaiting(t, false)
	here := r.Replicas
	here.Annex = func(_ uint64, bytes int64) (*nvram.Memory, error) { return nvram.NewMemory(bytes), nil }
	here.Routes.Store(&route.List{1: {PrimaryHere: true, Local: local, State: route.Active}})
	ptr, v, _, err := a.Alloc(region.Ordinary, 0, 100, 0)
	must(t, err)
	if !local.Lock(ptr, v) {
		t.Fatal("the slot is locked")
	}
	local.Write(ptr, nil, v+1, true, ptr.Incarnation())
	in := participant.NewLog(here, 1, 0, rx, record.NewLedger(log, record.Coordinator{Machine: 1, Worker: 0}))
	return &peerLog{t: t, r: r, tx: ring.NewLocalSender(state, log, 0), in: in, ptr: ptr}
}

// append appends a record of a transaction that writes to the object.
func (l *peerLog) append(kind record.Kind, config uint32, seq, low uint64) {
	l.t.Helper()
	v := l.r.Replicas.Routes.Of(1).Local.Header(l.ptr.Addr.Offset()).Version()
	l.appendRecord(&record.Record{Kind: kind, ID: record.ID{Config: config, Machine: 1, Seq: seq}, LowBound: low, Regions: []region.ID{1},
		Writes: []record.Write{{Ptr: l.ptr, Version: v, Payload: make([]byte, l.ptr.Capacity())}}})
}

func (l *peerLog) appendRecord(rec *record.Record) {
	l.t.Helper()
	_, _, err := l.tx.Append(rdma.Unsignalled, record.Append(nil, rec))
	must(l.t, err)
}

// steps processes n records, or slices of large ones.
func (l *peerLog) steps(n int) {
	l.t.Helper()
	for range n {
		_, more, err := l.in.Step()
		must(l.t, err)
		if !more {
			l.t.Fatal("there is nothing to do")
		}
	}
}

// annex makes an annex that belongs to the log, with an update of the object.
func (l *peerLog) annex() record.Annex {
	l.t.Helper()
	v := l.r.Replicas.Routes.Of(1).Local.Header(l.ptr.Addr.Offset()).Version()
	body := record.AppendWrite(nil, &record.Write{Ptr: l.ptr, Op: record.OpUpdate, Version: v, Payload: make([]byte, l.ptr.Capacity())})
	all := &l.r.Replicas.Annexes
	number, err := all.Add(uint64(len(body)))
	must(l.t, err)
	all.Give(number, l.in)
	must(l.t, all.Write(number, 0, body))
	return record.Annex{Number: number, Bytes: uint64(len(body)), Writes: 1}
}
