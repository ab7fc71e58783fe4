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

// annexedLog makes a log of an earlier life with a LOCK record of transaction n, whose
// writes, one to each of two regions, are in an annex.
func annexedLog(t *testing.T, n uint64) (log, annex *nvram.Memory, rec record.Record) {
	t.Helper()
	var body []byte
	for _, id := range []region.ID{2, 3} {
		p := region.MakePtr(region.MakeAddr(id, 0x440), 10, 0)
		body = record.AppendWrite(body, &record.Write{Ptr: p, Op: record.OpUpdate, Version: region.Version(n), Payload: make([]byte, p.Capacity())})
	}
	annex = nvram.NewMemory(8192)
	annex.CopyIn(0, body)
	rec = record.Record{Kind: record.Lock, ID: idOf(1, 5, n), Regions: []region.ID{2, 3}, Annex: record.Annex{Number: 77, Writes: 2, Bytes: uint64(len(body))}}
	log = nvram.NewMemory(64 << 10)
	record.NewLedger(log, record.Coordinator{Machine: 1, Worker: 0})
	rx, err := record.CreateLog(log, 1)
	must(t, err)
	state, err := rx.State()
	must(t, err)
	_, _, err = ring.NewLocalSender(state, log, 0).Append(rdma.Unsignalled, record.Append(nil, &rec))
	must(t, err)
	return log, annex, rec
}

// A record of an earlier life is evidence with what its annex says, of each region where
// that is; without the annex, or with less of it, its memory is damaged.
func TestAnnexOfAnEarlierLife(t *testing.T) {
	log, annex, rec := annexedLog(t, 1)
	for name, annexes := range map[string]map[uint64]*nvram.Memory{
		"missing":   nil,
		"another":   {78: annex},
		"too small": {77: nvram.NewMemory(64)},
	} {
		r := recoveringIn(t, 6, true)
		if err := r.Recall([]*nvram.Memory{log}, nil, annexes, 0); !errors.Is(err, errDamagedLog) {
			t.Errorf("%s: %v", name, err)
		}
	}
	r := recoveringIn(t, 6, true)
	must(t, r.Recall([]*nvram.Memory{log}, nil, map[uint64]*nvram.Memory{77: annex}, 0))
	var seen []region.ID
	for p := range r.RecalledWrites {
		seen = append(seen, p.Addr.Region())
	}
	if len(seen) != 2 || seen[0] != 2 || seen[1] != 3 {
		t.Errorf("it writes to %v", seen)
	}
	r.scanLocked(log, route.RecalledKey(0), ^uint64(0), func(*record.Record, uint64) bool { return true })
	r.takeFoundLocked()
	half := rec.Annex.Bytes / 2
	for i, id := range rec.Regions {
		e, ok := r.Evidence(rec.ID, id)
		want := Extent{Key: route.AnnexKey(77), Off: uint64(i) * half, N: half}
		if !ok || e.Seen != SeenLock || e.At != want {
			t.Errorf("region %d: %+v", id, e)
		}
		writes, err := record.WritesIn(annex.View(e.At.Off, e.At.N))
		if err != nil || len(writes) != 1 || !isOf(id, writes) || isOf(9, writes) {
			t.Errorf("region %d: %v, %v", id, writes, err)
		}
	}
	r.settleRecalledLocked(7, nil)
	if r.Replicas.Annexes.Count() != 0 {
		t.Error("the annex is still there when the recovery is over")
	}
	must(t, r.Replicas.NIC.Register(route.AnnexKey(77), annex)) // nobody reads it any more
}

// Whoever asks what earlier lives have written, once a configuration has begun, meets no
// memory that is being removed: what the recovery of an older one has not given up by then
// it will not.
func TestRecalledWritesAreThere(t *testing.T) {
	writes := func(r *Recovery) (n int) {
		for range r.RecalledWrites {
			n++
		}
		return n
	}
	for _, isSettled := range []bool{false, true} {
		log, annex, _ := annexedLog(t, 1)
		r := recoveringIn(t, 6, true)
		must(t, r.Recall([]*nvram.Memory{log}, nil, map[uint64]*nvram.Memory{77: annex}, 0))
		before, want := &cluster.Configuration{ID: 6}, 2
		if isSettled {
			must(t, r.Settle(before))
			want = 0
		}
		r.Begin(8)
		if err := r.Settle(before); !errors.Is(err, ErrConfiguration) {
			t.Errorf("settled in another configuration: %v", err)
		}
		if n := writes(r); n != want {
			t.Errorf("settled %v: %d objects are written to, want %d", isSettled, n, want)
		}
	}
}

// The annex of a record that no longer counts may be missing.
func TestAnnexOfWhatIsSettled(t *testing.T) {
	log, _, _ := annexedLog(t, 1)
	r := recoveringIn(t, 8, true)
	must(t, r.Recall([]*nvram.Memory{log}, nil, nil, 6))
	for p := range r.RecalledWrites {
		t.Errorf("it writes to %v", p)
	}
}

// A note that has more writes than a log holds gets memory of its own that is large enough,
// in this life and the next.
func TestNoteLargerThanALog(t *testing.T) {
	const in, writes = 7, 200
	r := recoveringIn(t, in, true)
	var made []*nvram.Memory
	r.LogBytes = 64 << 10
	r.notes.open = func(_ cluster.ID, n int, bytes int64) (*nvram.Memory, error) {
		made = append(made, nvram.NewMemory(bytes))
		return made[n], nil
	}
	e := Evidence{ID: idOf(1, 5, 1), Regions: []region.ID{2}, Region: 2, Seen: SeenLock}
	var all []record.Write
	for i := range uint32(writes) {
		p := region.MakePtr(region.MakeAddr(2, 0x440+0x400*i), 10, 0)
		all = append(all, record.Write{Ptr: p, Op: record.OpUpdate, Version: 1, Payload: make([]byte, p.Capacity())})
	}
	must(t, r.Learn(in, e, all))
	must(t, learnOne(r, in, 2)) // small ones still go where they did
	if len(made) != 1 || made[0].Size() <= 64<<10 {
		t.Fatalf("made %d", len(made))
	}
	again := recoveringIn(t, in+2, true)
	must(t, again.Recall([]*nvram.Memory{made[0]}, nil, nil, in-1))
	again.scanLocked(made[0], 1, ^uint64(0), func(*record.Record, uint64) bool { return true })
	again.takeFoundLocked()
	got, ok := again.Evidence(e.ID, 2)
	if !ok || len(again.traces[e.ID].parts[0].writes) != writes || got.Seen != SeenLock {
		t.Errorf("the next life knows %+v", got)
	}
}
