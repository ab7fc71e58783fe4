package evidence

import (
	"slices"
	"testing"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/participant"
	"github.com/farmsql/farmsql/txn/record"
	"github.com/farmsql/farmsql/txn/route"
)

// idOf is a transaction of a life that began in a configuration.
func idOf(machine rdma.MachineID, life, n uint64) record.ID {
	return record.ID{Config: uint32(life), Machine: machine, Worker: 1, Seq: life<<record.LifeShift + n}
}

// What another machine has truncated is known here, also after a restart, as long as a
// region is unavailable: below the low bound of each life, and what is named above it.
func TestBoundsOfOthersCount(t *testing.T) {
	r, parked := awaiting(t, true)
	var named []uint64
	for n := range uint64(100) {
		named = append(named, idOf(1, 5, 2*n+30).Seq)
	}
	for _, b := range []Bound{
		{Machine: 1, Worker: 1, Low: idOf(1, 5, 20).Seq, Named: named},
		{Machine: 1, Worker: 1, Low: idOf(1, 5, 10).Seq}, // of one that has heard less
		{Machine: 1, Worker: 1, Low: idOf(1, 9, 4).Seq},  // a later life
		NamedBound(2, 1, idOf(2, 5, 8).Seq),
	} {
		if err := r.LearnBound(0, b); err != nil {
			t.Fatal(err)
		}
	}
	again, _ := awaiting(t, true)
	memory, err := r.parkLocked(7)
	if err != nil || len(memory) == 0 || len(memory) != len(*parked) {
		t.Fatalf("%d parked, %d made: %v", len(memory), len(*parked), err)
	}
	if err := again.Recall(nil, memory, nil, 7); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		id   record.ID
		want bool
	}{
		{idOf(1, 5, 19), true}, {idOf(1, 5, 20), false}, {idOf(1, 5, 30), true}, {idOf(1, 5, 31), false}, {idOf(1, 5, 228), true}, {idOf(1, 5, 230), false},
		{idOf(1, 9, 3), true}, {idOf(1, 9, 4), false}, {idOf(1, 4, 3), false}, {idOf(2, 5, 8), true}, {idOf(2, 5, 7), false}, {idOf(0, 5, 8), false},
	} {
		if now, later := r.Truncated(c.id, 2), again.Truncated(c.id, 2); now != c.want || later != c.want {
			t.Errorf("%v is truncated: %v, after a restart %v, want %v", c.id, now, later, c.want)
		}
	}
	if got := again.recalled.bounds.sorted(); !slices.EqualFunc(got, r.recalled.bounds.sorted(), func(a, b Bound) bool {
		return a.key() == b.key() && a.Low == b.Low && slices.Equal(a.Named, b.Named)
	}) {
		t.Errorf("after a restart %+v", got)
	}
	again.settleRecalledLocked(8, nil)
	if len(again.recalled.bounds) == 0 {
		t.Error("bounds are forgotten though a region is unavailable")
	}
	again.Replicas.Routes.Store(&route.List{2: &route.Route{Placement: cluster.Placement{Region: 2}}})
	if again.settleRecalledLocked(9, nil); len(again.recalled.bounds) != 0 {
		t.Error("bounds are kept though no region is unavailable")
	}
}

// A transaction is parked, and its coordinator goes on. A replica that was away meanwhile,
// and has had its region since before, is asked whether it has seen it: its own ledgers say
// so, and what others have truncated, which passes over what is parked, does not.
func TestBoundsSayNothingOfWhoWasThere(t *testing.T) {
	for _, c := range []struct {
		name         string
		since        uint32
		low          uint64 // in the own ledger
		isForeign    bool
		want, wanted bool // of the transaction, and of one that is named
	}{
		{"a replica since before", 5, 0, true, false, false},
		{"a replica since later", 6, 0, true, true, true},
		{"a replica that has truncated it", 5, idOf(1, 5, 21).Seq, true, true, false},
		{"nobody has", 6, 0, false, false, false},
	} {
		r, _ := awaiting(t, true)
		local, err := region.Format(1, nvram.NewMemory(region.MinSize))
		if err != nil {
			t.Fatal(err)
		}
		local.SetSince(c.since)
		next := append(*r.Replicas.Routes.Load(), nil)
		next[1] = &route.Route{Placement: cluster.Placement{Region: 1, Primary: 3}, Local: local, PrimaryHere: true}
		r.Replicas.Routes.Store(&next)
		l := record.NewLedger(nvram.NewMemory(64<<10), record.Coordinator{Machine: 1, Worker: 1})
		l.Raise(c.low)
		r.KeepLedgerLocked(record.Coordinator{Machine: 1, Worker: 1}, l)
		r.recalled.firstConfig = 9
		if c.isForeign {
			if err := r.LearnBound(0, Bound{Machine: 1, Worker: 1, Low: idOf(1, 5, 30).Seq, Named: []uint64{idOf(1, 5, 40).Seq}}); err != nil {
				t.Fatal(err)
			}
		}
		if got, named := r.Truncated(idOf(1, 5, 20), 1), r.Truncated(idOf(1, 5, 40), 1); got != c.want || named != c.wanted {
			t.Errorf("%s: truncated %v, %v, want %v, %v", c.name, got, named, c.want, c.wanted)
		}
	}
}

// A machine tells what its ledgers say, of this life and of earlier ones, and its own
// workers, as long as a region is unavailable.
func TestBounds(t *testing.T) {
	for _, unavailable := range []bool{true, false} {
		r, _ := awaiting(t, unavailable)
		w := &testWorker{window: record.NewWindow(9)}
		first := w.window.Begin()
		for range 3 {
			w.window.Begin()
		}
		w.window.Finish(first)
		w.window.Finish(first + 2)
		r.Workers = []Worker{w}
		log := nvram.NewMemory(64 << 10)
		l := record.NewLedger(log, record.Coordinator{Machine: 2, Worker: 1})
		l.Raise(idOf(2, 6, 40).Seq)
		l.Name(idOf(2, 6, 41).Seq)
		l.Name(idOf(2, 6, 50).Seq)
		l.Raise(idOf(2, 6, 43).Seq) // the first name is below it
		r.KeepLedgerLocked(record.Coordinator{Machine: 2, Worker: 1}, l)
		got := r.Bounds()
		if !unavailable {
			if len(got) != 0 {
				t.Errorf("%+v, and no region is unavailable", got)
			}
			continue
		}
		want := []Bound{
			{Machine: 2, Worker: 1, Low: idOf(2, 6, 43).Seq, Named: []uint64{idOf(2, 6, 50).Seq}},
			{Machine: 3, Low: first + 1, Named: []uint64{first + 2}},
		}
		if !slices.EqualFunc(got, want, func(a, b Bound) bool { return a.key() == b.key() && a.Low == b.Low && slices.Equal(a.Named, b.Named) }) {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}

// That a region has seen nothing of a transaction that waits is noted by who learns of it:
// otherwise low bounds would say later that it was truncated.
func TestNothingSeenIsLearned(t *testing.T) {
	for _, unavailable := range []bool{true, false} {
		r, _ := awaiting(t, unavailable)
		r.going.Store(true)
		own, err := participant.NewOwnLog(nvram.NewMemory(64<<10), record.Coordinator{Machine: 3, Worker: 0}, 1)
		must(t, err)
		r.Workers = []Worker{&testWorker{r: r, own: own}}
		e := Evidence{ID: idOf(1, 5, 8), Regions: []region.ID{2, 3}, Region: 3}
		if err := r.Learn(0, e, nil); err != nil {
			t.Fatal(err)
		}
		if got, known := r.Evidence(e.ID, 3); known != unavailable || got.Seen != 0 {
			t.Errorf("region unavailable: %v; known %v, seen %05b", unavailable, known, got.Seen)
		}
	}
}
