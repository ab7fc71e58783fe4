package worker

import (
	"testing"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	rdmalocal "github.com/farmsql/farmsql/rdma/local"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/participant"
	"github.com/farmsql/farmsql/txn/record"
	"github.com/farmsql/farmsql/txn/step"
)

// small has everything done in the smallest slices.
type small struct{}

func (small) Meets(t clock.Trouble) bool { return t == clock.SmallLog }

// withAnnexes lets a machine make annexes, and work on them in the smallest slices.
func withAnnexes(t *testing.T, m *Machine) {
	t.Helper()
	m.troubled, m.cfg.Clock = small{}, clock.System{}
	m.cfg.Annex = func(_ uint64, bytes int64) (*nvram.Memory, error) { return nvram.NewMemory(bytes), nil }
	m.cfg.DropAnnex = func(uint64, *nvram.Memory) error { return nil }
	defer m.initReplicas()
	if m.cfg.NIC != nil {
		return
	}
	nic, err := rdmalocal.NewNetwork(rdmalocal.Options{}).Join(0)
	must(t, err)
	t.Cleanup(func() { _ = nic.Close() })
	m.cfg.NIC = nic
}

// fillAnnex makes an annex that belongs to a log, with an update of each object.
func fillAnnex(t *testing.T, m *Machine, owner *participant.Log, ptrs ...region.Ptr) record.Annex {
	t.Helper()
	var body []byte
	for _, p := range ptrs {
		v := region.Version(1)
		if rt := m.Route(p.Addr.Region()); rt != nil && rt.Local != nil {
			v = rt.Local.Header(p.Addr.Offset()).Version()
		}
		body = record.AppendWrite(body, &record.Write{Ptr: p, Op: record.OpUpdate, Version: v, Payload: make([]byte, p.Capacity())})
	}
	number, err := m.Replicas.Annexes.Add(uint64(len(body)))
	must(t, err)
	m.Replicas.Annexes.Give(number, owner)
	must(t, m.Replicas.Annexes.Write(number, 0, body))
	return record.Annex{Number: number, Bytes: uint64(len(body)), Writes: uint32(len(ptrs))}
}

// appendLarge appends a record of a transaction that has its writes in an annex.
func (l *testLog) appendLarge(kind record.Kind, config uint32, seq uint64, ptrs ...region.Ptr) {
	l.t.Helper()
	rec := &record.Record{Kind: kind, ID: record.ID{Config: config, Machine: 1, Seq: seq}, LowBound: seq, Regions: []region.ID{1}, Annex: fillAnnex(l.t, l.m, l.in, ptrs...)}
	_, _, err := l.tx.Append(rdma.Unsignalled, record.Append(nil, rec))
	must(l.t, err)
}

// isLocked reports whether an object is locked.
func (l *testLog) isLocked(p region.Ptr) bool {
	return l.m.Route(1).Local.Header(p.Addr.Offset()).Locked()
}

// Whoever waits for a worker, as the beat does by which the machine keeps its lease, waits
// for one slice of a large transaction.
func TestOneSliceAtATime(t *testing.T) {
	const seq = 1<<record.LifeShift + 1
	l := newTestLog(t)
	withAnnexes(t, l.m)
	ptrs := []region.Ptr{l.ptr, l.object(), l.object()}
	l.appendLarge(record.Lock, 1, seq, ptrs...)
	w := &Worker{m: l.m}
	for n := range 1 + 2*len(ptrs) {
		w.bell.Store(false)
		must(t, w.stepLogLocked(&peer{id: 1, in: l.in}))
		for i, p := range ptrs {
			if want := n > len(ptrs)+i; l.isLocked(p) != want {
				t.Fatalf("after %d slices object %d is locked: %v", n, i, !want)
			}
		}
		if l.in.IsAtWork() && !w.bell.Load() {
			t.Fatalf("after %d slices nobody goes on", n)
		}
	}
	if l.in.IsAtWork() {
		t.Error("it is not done")
	}
}

// The annex of a record in the own log goes when the log's head has passed it, and not before.
func TestOwnAnnexesGoAfterTheirRecords(t *testing.T) {
	l := newTestLog(t)
	m := l.m
	withAnnexes(t, m)
	freed := 0
	m.Replicas.Step = func(s step.Step) {
		if s != step.FreeLog {
			return
		}
		if freed++; m.Annexes() != 1 {
			t.Errorf("there are %d annexes when the record is freed", m.Annexes())
		}
	}
	self, err := participant.NewOwnLog(nvram.NewMemory(64<<10), record.Coordinator{Machine: 0, Worker: 0}, 1)
	must(t, err)
	w := record.NewWindow(1)
	rec := &record.Record{Kind: record.Lock, ID: record.ID{Config: 1, Seq: w.Begin()}, Regions: []region.ID{1}, Annex: fillAnnex(t, m, nil, l.ptr)}
	_, _, err = self.Log.Append(rdma.Unsignalled, record.Append(nil, rec))
	must(t, err)
	w.Finish(rec.ID.Seq)
	must(t, self.Free(&m.Replicas, &w))
	if freed != 1 || m.Annexes() != 0 {
		t.Errorf("freed %d times, %d annexes are left", freed, m.Annexes())
	}
}
