package participant

import (
	"testing"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	rdmalocal "github.com/farmsql/farmsql/rdma/local"
	"github.com/farmsql/farmsql/rdma/ring"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/message"
	"github.com/farmsql/farmsql/txn/record"
	"github.com/farmsql/farmsql/txn/route"
)

// A testLog is a log that machine 1 writes to machine 0, which is the primary of a
// region with one object.
type testLog struct {
	t    *testing.T
	tx   *ring.Sender
	in   *Log
	free *region.Allocator
	ptr  region.Ptr
}

func newTestLog(t *testing.T) *testLog {
	t.Helper()
	r, err := region.Format(1, nvram.NewMemory(region.MinSize))
	must(t, err)
	a := region.NewAllocator(region.AllocatorConfig{Workers: 1})
	a.Add(r)

	log := nvram.NewMemory(64 << 10)
	rx, err := record.CreateLog(log, 1)
	must(t, err)
	state, err := rx.State()
	must(t, err)
	here := &Replicas{Routes: new(route.Table)}
	here.Init()
	here.Routes.Store(&route.List{1: {PrimaryHere: true, Local: r, State: route.Active}})
	l := record.NewLedger(log, record.Coordinator{Machine: 1, Worker: 0})
	tl := &testLog{t: t, tx: ring.NewLocalSender(state, log, 0), in: NewLog(here, 1, 0, rx, l), free: a}
	tl.ptr = tl.object()
	return tl
}

// object makes an object.
func (l *testLog) object() region.Ptr {
	l.t.Helper()
	ptr, v, _, err := l.free.Alloc(region.Ordinary, 0, 100, 0)
	must(l.t, err)
	r := l.in.r.Routes.Of(1).Local
	if !r.Lock(ptr, v) {
		l.t.Fatal("the slot is locked")
	}
	r.Write(ptr, nil, v+1, true, ptr.Incarnation())
	return ptr
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// header is that of the object.
func (l *testLog) header() region.Header {
	return l.in.r.Routes.Of(1).Local.Header(l.ptr.Addr.Offset())
}

// append appends a record of a transaction.
func (l *testLog) append(kind record.Kind, config uint32, seq, low uint64) {
	l.t.Helper()
	rec := &record.Record{Kind: kind, ID: record.ID{Config: config, Machine: 1, Seq: seq}, LowBound: low}
	if kind == record.Lock || kind == record.CommitBackup {
		rec.Regions = []region.ID{1}
		rec.Writes = []record.Write{{Ptr: l.ptr, Version: l.header().Version(), Payload: make([]byte, l.ptr.Capacity())}}
	}
	_, _, err := l.tx.Append(rdma.Unsignalled, record.Append(nil, rec))
	must(l.t, err)
}

// write appends one, and has the reader look at it.
func (l *testLog) write(kind record.Kind, config uint32, seq, low uint64) (reply message.Message) {
	l.t.Helper()
	l.append(kind, config, seq, low)
	reply, more, err := l.in.Step()
	must(l.t, err)
	if !more {
		l.t.Fatalf("%v is not there", kind)
	}
	return reply
}

// small has everything done in the smallest slices.
type small struct{}

func (small) Meets(t clock.Trouble) bool { return t == clock.SmallLog }

// withAnnexes lets the machine make annexes, and work on them in the smallest slices.
func (l *testLog) withAnnexes() {
	l.t.Helper()
	nic, err := rdmalocal.NewNetwork(rdmalocal.Options{}).Join(0)
	must(l.t, err)
	l.t.Cleanup(func() { _ = nic.Close() })
	r := l.in.r
	r.NIC, r.Clock, r.Troubles = nic, clock.System{}, small{}
	r.Annex = func(_ uint64, bytes int64) (*nvram.Memory, error) { return nvram.NewMemory(bytes), nil }
	r.DropAnnex = func(uint64, *nvram.Memory) error { return nil }
	r.Background = func(f func()) { go f() }
}

// fillAnnex makes an annex that belongs to the log, with an update of each object.
func (l *testLog) fillAnnex(ptrs ...region.Ptr) record.Annex {
	l.t.Helper()
	var body []byte
	for _, p := range ptrs {
		v := l.in.r.Routes.Of(1).Local.Header(p.Addr.Offset()).Version()
		body = record.AppendWrite(body, &record.Write{Ptr: p, Op: record.OpUpdate, Version: v, Payload: make([]byte, p.Capacity())})
	}
	annexes := &l.in.r.Annexes
	number, err := annexes.Add(uint64(len(body)))
	must(l.t, err)
	annexes.Give(number, l.in)
	must(l.t, annexes.Write(number, 0, body))
	return record.Annex{Number: number, Bytes: uint64(len(body)), Writes: uint32(len(ptrs))}
}

// appendLarge appends a record of a transaction that has its writes in an annex.
func (l *testLog) appendLarge(kind record.Kind, config uint32, seq uint64, ptrs ...region.Ptr) {
	l.t.Helper()
	rec := &record.Record{Kind: kind, ID: record.ID{Config: config, Machine: 1, Seq: seq}, LowBound: seq, Regions: []region.ID{1}, Annex: l.fillAnnex(ptrs...)}
	_, _, err := l.tx.Append(rdma.Unsignalled, record.Append(nil, rec))
	must(l.t, err)
}

// steps does so many steps.
func (l *testLog) steps(n int) (reply message.Message) {
	l.t.Helper()
	for range n {
		r, more, err := l.in.Step()
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

// isLocked reports whether an object is locked.
func (l *testLog) isLocked(p region.Ptr) bool {
	return l.in.r.Routes.Of(1).Local.Header(p.Addr.Offset()).Locked()
}
