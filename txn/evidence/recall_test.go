package evidence

import (
	"testing"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/ring"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/record"
	"github.com/farmsql/farmsql/txn/route"
)

// What earlier lives say of a region counts where the machine has a replica that has been
// there since: logs from when the transaction began, notes and what is parked from when
// they were written. The transaction may be older than the replica, which has its objects
// locked, and older than the last recovery that was settled.
func TestEvidenceOfEarlierLives(t *testing.T) {
	const parkedIn, before = 22, 25
	for _, c := range []struct {
		what     string
		config   uint32 // of the transaction
		replica  uint32 // since when there is one; 0: there is none
		noted    uint32 // in which configuration; 0: it does not say so
		isParked bool
		counts   bool
	}{
		{"a log of a transaction that the replica has been there for", 23, 7, 0, false, true},
		{"a log of one that is older than the replica", 23, 24, 0, false, false},
		{"a log, and no replica", 23, 0, 0, false, false},
		{"a note about an old transaction", 6, 7, 23, false, true},
		{"one of a recovery that is settled", 6, 7, 22, false, false},
		{"one that is older than the replica", 6, 24, 23, false, false},
		{"an old transaction that a replica knew when it was parked", 6, 7, 0, true, true},
		{"one that was parked before the replica was begun", 6, 24, 0, true, false},
		{"one that is parked, and no replica", 6, 0, 0, true, false},
	} {
		t.Run(c.what, func(t *testing.T) {
			id := record.ID{Config: c.config, Machine: 6, Worker: 3, Seq: 23}
			r, _ := awaiting(t, false)
			r.recalled.settled, r.recalled.parkedIn, r.recalled.firstConfig = parkedIn, parkedIn, before
			rt := &route.Route{Placement: cluster.Placement{Region: 2}}
			if c.replica > 0 {
				local, err := region.Format(2, nvram.NewMemory(1<<20))
				if err != nil {
					t.Fatal(err)
				}
				rt.Local = local
				local.SetSince(c.replica)
			}
			r.Replicas.Routes.Store(&route.List{2: rt})
			rec := record.Record{Kind: record.Replicate, ID: id, LowBound: packSeen(2, SeenLock), Regions: []region.ID{2, 3},
				Writes: []record.Write{{Ptr: region.MakePtr(region.MakeAddr(2, 0x440), 2, 0), Op: record.OpFree, Version: 6}}}
			if c.noted > 0 {
				rec.Truncated = []uint64{uint64(c.noted)}
			}
			log := logWith(t, &rec)
			if c.isParked {
				r.recalled.parked = []*nvram.Memory{log}
			} else {
				r.recalled.logs = []*nvram.Memory{log}
			}
			r.recalled.gatherLocked(r)
			r.leaveOutOlderLocked()
			r.recalled.gatherNotesLocked(r)
			if tr := r.traces[id]; (tr != nil && len(tr.parts) == 1 && len(tr.parts[0].writes) == 1) != c.counts {
				t.Errorf("%+v", tr)
			}
		})
	}
}

func logWith(t *testing.T, records ...*record.Record) *nvram.Memory {
	t.Helper()
	log := nvram.NewMemory(64 << 10)
	rx, err := record.CreateLog(log, 1)
	if err != nil {
		t.Fatal(err)
	}
	state, err := rx.State()
	if err != nil {
		t.Fatal(err)
	}
	tx := ring.NewLocalSender(state, log, 0)
	for _, rec := range records {
		if _, _, err := tx.Append(rdma.Unsignalled, record.Append(nil, rec)); err != nil {
			t.Fatal(err)
		}
	}
	return log
}
