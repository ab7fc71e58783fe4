package txn

import (
	"errors"
	"testing"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/ring"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/record"
	"github.com/farmsql/farmsql/txn/route"
)

// recoveringIn returns a machine in the midst of a recovery, with one worker whose own
// log has 64 KB and, if it may spill, memory for notes that do not fit there.
func recoveringIn(t *testing.T, in cluster.ID, maySpill bool) *Machine {
	t.Helper()
	m, _ := awaiting(t, false)
	if maySpill {
		m.cfg.Note = func(cluster.ID, int, int64) (*nvram.Memory, error) { return nvram.NewMemory(64 << 10), nil }
	}
	m.recovery.init(m)
	m.config.Store(uint32(in))
	m.recovery.going.Store(true)
	w := &worker{m: m, selfMemory: nvram.NewMemory(64 << 10)}
	w.window = newWindow(uint32(in))
	var err error
	if w.self, err = newSelfLog(w.selfMemory, record.Coordinator{Machine: m.cfg.ID, Worker: 0}, 1); err != nil {
		t.Fatal(err)
	}
	m.workers = []*worker{w}
	return m
}

// learn has a machine learn of transactions that write an object each.
func learn(t *testing.T, m *Machine, in cluster.ID, from, to uint64) {
	t.Helper()
	for n := from; n < to; n++ {
		if err := learnOne(m, in, n); err != nil {
			t.Fatal(err)
		}
	}
}

func learnOne(m *Machine, in cluster.ID, n uint64) error {
	e := Evidence{ID: idOf(1, 5, n), Regions: []region.ID{2}, Region: 2, Seen: SeenLock}
	p := region.MakePtr(region.MakeAddr(2, 0x440), 10, 0)
	return m.Learn(in, e, []record.Write{{Ptr: p, Op: record.OpUpdate, Version: region.Version(n), Payload: make([]byte, p.Capacity())}})
}

// What a recovery notes is not bounded by the own log: the rest goes into memory of its
// own, where peers find it, the next recovery and the next life. It is given up with the
// recovery.
func TestNotesBeyondTheOwnLog(t *testing.T) {
	const in, all = 7, 300
	m := recoveringIn(t, in, true)
	learn(t, m, in, 1, all/2)
	learn(t, m, in, all/2, all+1)
	if n := len(m.recovery.notes.logs); n < 3 {
		t.Fatalf("%d logs beside the own one", n)
	}
	complete := func(when string, r *recoveryState, memory map[rdma.Key]*nvram.Memory) {
		t.Helper()
		for n := uint64(1); n <= all; n++ {
			tr := r.traces[idOf(1, 5, n)]
			if tr == nil || len(tr.parts) != 1 || len(tr.parts[0].writes) != 1 || tr.parts[0].seen != SeenLock {
				t.Fatalf("%s: of transaction %d: %+v", when, n, tr)
			}
			at := tr.parts[0].at
			raw := make([]byte, at.N+at.More)
			memory[at.Key].CopyOut(raw[:at.N], at.Off)
			if at.More > 0 {
				memory[at.Key].CopyOut(raw[at.N:], at.Rest)
			}
			var rec record.Record
			if err := record.Decode(raw, &rec); err != nil || rec.ID != tr.id || rec.Writes[0].Version != region.Version(n) {
				t.Fatalf("%s: where transaction %d is said to be is %+v, %v", when, n, rec, err)
			}
		}
	}
	memory := map[rdma.Key]*nvram.Memory{route.LogKey(3, 0, 0): m.workers[0].selfMemory}
	logs := []*nvram.Memory{m.workers[0].selfMemory}
	for i := range m.recovery.notes.logs {
		l := &m.recovery.notes.logs[i]
		memory[l.key] = l.memory
		logs = append(logs, l.memory)
	}
	complete("as it is told", &m.recovery, memory)

	m.config.Store(in + 1)
	if _, err := m.Drain(in + 1); err != nil {
		t.Fatal(err)
	}
	complete("in the next recovery", &m.recovery, memory)
	learn(t, m, in+1, all+1, all+100)

	again := recoveringIn(t, in+2, true)
	if err := again.Recall(logs, nil, nil, in-1); err != nil {
		t.Fatal(err)
	}
	local, err := region.Format(2, nvram.NewMemory(1<<20))
	if err != nil {
		t.Fatal(err)
	}
	local.SetSince(1)
	(*again.routes.Load()).Of(2).Local = local
	again.recalled.gatherLocked(&again.recovery)
	recalled := make(map[rdma.Key]*nvram.Memory)
	for i, l := range again.recalled.logs {
		recalled[route.RecalledKey(i)] = l
	}
	complete("in the next life", &again.recovery, recalled)

	if err := m.Settle(&cluster.Configuration{ID: in + 1}); err != nil {
		t.Fatal(err)
	}
	if n := len(m.recovery.notes.logs); n != 0 {
		t.Errorf("%d logs are kept when the recovery is over", n)
	}
	for k := range memory {
		if err := m.cfg.NIC.Register(k, nvram.NewMemory(4096)); err != nil {
			t.Errorf("still registered: %v", err)
		}
	}
}

// Without more memory who notes hears that there is no room, and why.
func TestNoMemoryForNotes(t *testing.T) {
	without, refused := recoveringIn(t, 7, false), recoveringIn(t, 7, true)
	refused.recovery.notes.open = func(cluster.ID, int, int64) (*nvram.Memory, error) { return nil, nvram.ErrNoSpace }
	for _, m := range []*Machine{without, refused} {
		var err error
		for n := uint64(1); n < 200 && err == nil; n++ {
			err = learnOne(m, 7, n)
		}
		if !errors.Is(err, ring.ErrFull) || errors.Is(err, nvram.ErrNoSpace) != (m == refused) {
			t.Errorf("%v", err)
		}
	}
}

// Parking that has found room for a part only can be tried again: nothing of the attempt
// before is in the way.
func TestParkAgain(t *testing.T) {
	const in, all = 7, 300
	m := recoveringIn(t, in, true)
	(*m.routes.Load()).Of(2).Away = []cluster.Memory{{Machine: 1, Token: 7}}
	learn(t, m, in, 1, all)
	isFull := true
	m.cfg.Park = func(_ cluster.ID, n int, _ int64) (*nvram.Memory, error) {
		if n == 1 && isFull {
			return nil, nvram.ErrNoSpace
		}
		return nvram.NewMemory(64 << 10), nil
	}
	if _, err := m.recovery.parkLocked(in); !errors.Is(err, nvram.ErrNoSpace) {
		t.Fatalf("without room: %v", err)
	}
	isFull = false
	if parked, err := m.recovery.parkLocked(in); err != nil || len(parked) < 2 {
		t.Errorf("with room: %d parked, %v", len(parked), err)
	}
}
