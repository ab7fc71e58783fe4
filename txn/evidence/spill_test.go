package evidence

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

// learn has a machine learn of transactions that write an object each.
func learn(t *testing.T, r *Recovery, in cluster.ID, from, to uint64) {
	t.Helper()
	for n := from; n < to; n++ {
		if err := learnOne(r, in, n); err != nil {
			t.Fatal(err)
		}
	}
}

func learnOne(r *Recovery, in cluster.ID, n uint64) error {
	e := Evidence{ID: idOf(1, 5, n), Regions: []region.ID{2}, Region: 2, Seen: SeenLock}
	p := region.MakePtr(region.MakeAddr(2, 0x440), 10, 0)
	return r.Learn(in, e, []record.Write{{Ptr: p, Op: record.OpUpdate, Version: region.Version(n), Payload: make([]byte, p.Capacity())}})
}

// What a recovery notes is not bounded by the own log: the rest goes into memory of its
// own, where peers find it, the next recovery and the next life. It is given up with the
// recovery.
func TestNotesBeyondTheOwnLog(t *testing.T) {
	const in, all = 7, 300
	r := recoveringIn(t, in, true)
	learn(t, r, in, 1, all/2)
	learn(t, r, in, all/2, all+1)
	if n := len(r.notes.logs); n < 3 {
		t.Fatalf("%d logs beside the own one", n)
	}
	complete := func(when string, r *Recovery, memory map[rdma.Key]*nvram.Memory) {
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
	memory := map[rdma.Key]*nvram.Memory{route.LogKey(3, 0, 0): ownLog(r, 0)}
	logs := []*nvram.Memory{ownLog(r, 0)}
	for i := range r.notes.logs {
		l := &r.notes.logs[i]
		memory[l.key] = l.memory
		logs = append(logs, l.memory)
	}
	complete("as it is told", r, memory)

	r.Begin(in + 1)
	if _, err := r.Drain(in + 1); err != nil {
		t.Fatal(err)
	}
	complete("in the next recovery", r, memory)
	learn(t, r, in+1, all+1, all+100)

	again := recoveringIn(t, in+2, true)
	if err := again.Recall(logs, nil, nil, in-1); err != nil {
		t.Fatal(err)
	}
	local, err := region.Format(2, nvram.NewMemory(1<<20))
	if err != nil {
		t.Fatal(err)
	}
	local.SetSince(1)
	(*again.Replicas.Routes.Load()).Of(2).Local = local
	again.recalled.gatherNotesLocked(again)
	recalled := make(map[rdma.Key]*nvram.Memory)
	for i, l := range again.recalled.logs {
		recalled[route.RecalledKey(i)] = l
	}
	complete("in the next life", again, recalled)

	if err := r.Settle(&cluster.Configuration{ID: in + 1}); err != nil {
		t.Fatal(err)
	}
	if n := len(r.notes.logs); n != 0 {
		t.Errorf("%d logs are kept when the recovery is over", n)
	}
	for k := range memory {
		if err := r.Replicas.NIC.Register(k, nvram.NewMemory(4096)); err != nil {
			t.Errorf("still registered: %v", err)
		}
	}
}

// Without more memory who notes hears that there is no room, and why.
func TestNoMemoryForNotes(t *testing.T) {
	without, refused := recoveringIn(t, 7, false), recoveringIn(t, 7, true)
	refused.notes.open = func(cluster.ID, int, int64) (*nvram.Memory, error) { return nil, nvram.ErrNoSpace }
	for _, r := range []*Recovery{without, refused} {
		var err error
		for n := uint64(1); n < 200 && err == nil; n++ {
			err = learnOne(r, 7, n)
		}
		if !errors.Is(err, ring.ErrFull) || errors.Is(err, nvram.ErrNoSpace) != (r == refused) {
			t.Errorf("%v", err)
		}
	}
}

// Parking that has found room for only a part can be tried again: nothing of the earlier attempt is
// in the way.
func TestParkAgain(t *testing.T) {
	const in, all = 7, 300
	r := recoveringIn(t, in, true)
	(*r.Replicas.Routes.Load()).Of(2).Away = []cluster.Memory{{Machine: 1, Token: 7}}
	learn(t, r, in, 1, all)
	isFull := true
	r.OpenParked = func(_ cluster.ID, n int, _ int64) (*nvram.Memory, error) {
		if n == 1 && isFull {
			return nil, nvram.ErrNoSpace
		}
		return nvram.NewMemory(64 << 10), nil
	}
	if _, err := r.parkLocked(in); !errors.Is(err, nvram.ErrNoSpace) {
		t.Fatalf("without room: %v", err)
	}
	isFull = false
	if parked, err := r.parkLocked(in); err != nil || len(parked) < 2 {
		t.Errorf("with room: %d parked, %v", len(parked), err)
	}
}
