package recovery

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/ring"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// remains are three machines with two regions: region 1 has its primary at
// machine 0 and a backup at machine 1, region 2 at machines 1 and 2. Coordinator
// is machine 2, whose logs are the only ones.
type remains struct {
	t        *testing.T
	c        *cluster.Configuration
	machines []Machine
	logs     []*ring.Sender
	objects  [3]region.Ptr // of regions 1 and 2
	config   uint32        // of transactions
}

const logBytes = 64 << 10

func newRemains(t *testing.T) *remains {
	r := &remains{t: t, config: 7, c: &cluster.Configuration{
		ID: 7, Machines: []rdma.MachineID{0, 1, 2}, FailureDomain: []int{0, 1, 2}, Replicas: 2, NextRegion: 3,
		Regions: []cluster.Placement{{Region: 1, Primary: 0, Backups: []rdma.MachineID{1}}, {Region: 2, Primary: 1, Backups: []rdma.MachineID{2}}},
	}}
	for i := range 3 {
		mem := nvram.NewMemory(logBytes)
		rx, err := txn.CreateLog(mem, uint64(i))
		r.must(err)
		s, err := rx.State()
		r.must(err)
		r.logs = append(r.logs, ring.NewLocalSender(s, mem, 0))
		m := Machine{ID: rdma.MachineID(i), Regions: map[region.ID]*region.Region{}, Logs: []*nvram.Memory{mem, nvram.NewMemory(logBytes)}}
		for _, p := range r.c.Regions {
			if slices.Contains(p.Replicas(), m.ID) {
				if m.Regions[p.Region], err = region.Format(p.Region, nvram.NewMemory(region.MinSize)); err != nil {
					t.Fatal(err)
				}
			}
		}
		r.machines = append(r.machines, m)
	}
	for id := region.ID(1); id <= 2; id++ {
		r.objects[id] = r.object(id)
	}
	return r
}

// object makes a slot at every replica of a region.
func (r *remains) object(id region.ID) (p region.Ptr) {
	placement, _ := r.c.Placement(id)
	for _, m := range placement.Replicas() {
		a := region.NewAllocator(region.AllocatorConfig{Workers: 1})
		a.Add(r.machines[m].Regions[id])
		var err error
		p, _, err = a.Alloc(region.Ordinary, 0, 100, 0)
		r.must(err)
	}
	return p
}

func (r *remains) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// record appends a record of transaction seq to the log at a machine.
func (r *remains) record(machine int, kind txn.RecordKind, seq uint64, regions ...region.ID) {
	r.t.Helper()
	rec := txn.Record{Kind: kind, ID: txn.ID{Config: r.config, Machine: 2, Seq: seq}, LowBound: 1}
	if kind == txn.RecordLock || kind == txn.RecordCommitBackup {
		rec.Regions = []region.ID{1, 2}
		for _, id := range regions {
			rec.Writes = append(rec.Writes, r.write(id, seq))
		}
	}
	_, _, err := r.logs[machine].Append(1, txn.AppendRecord(nil, &rec))
	r.must(err)
}

// write makes the object, at first, and then changes it.
func (r *remains) write(id region.ID, seq uint64) txn.Write {
	w := txn.Write{Ptr: r.objects[id], Version: region.Version(seq - 1), Op: txn.OpAlloc, Payload: make([]byte, r.objects[id].Capacity())}
	w.Payload[0] = byte(seq)
	return w
}

// lock leaves the lock of a region's object behind.
func (r *remains) lock(id region.ID, v region.Version) {
	placement, _ := r.c.Placement(id)
	if !r.machines[placement.Primary].Regions[id].Lock(r.objects[id], v) {
		r.t.Fatal("cannot lock")
	}
}

func (r *remains) restart() (Report, error) {
	n := uint64(100)
	return Restart(r.c, r.machines, Options{Nonce: func() uint64 { n++; return n }})
}

// check checks every replica of both regions.
func (r *remains) check(want region.Version) {
	r.t.Helper()
	for _, m := range r.machines {
		for id, reg := range m.Regions {
			h := reg.Header(r.objects[id].Addr.Offset())
			if h.Locked() || h.Version() != want || h.Allocated() != (want > 0) {
				r.t.Errorf("machine %d: region %d: %v, want version %d", m.ID, id, h, want)
			}
			if want > 0 {
				b := make([]byte, r.objects[id].Capacity())
				if _, err := reg.ReadObject(r.objects[id], b); err != nil || b[0] != byte(want) {
					r.t.Errorf("machine %d: region %d holds %d: %v", m.ID, id, b[0], err)
				}
			}
		}
		for _, log := range m.Logs {
			if rx, err := txn.OpenLog(log); err != nil {
				r.t.Error(err)
			} else if rx != nil {
				if _, ok, err := rx.Poll(); ok || err != nil {
					r.t.Errorf("machine %d: log is not empty: %v", m.ID, err)
				}
			}
		}
	}
}

// How far a transaction got says how it ends.
func TestHowFarItGot(t *testing.T) {
	lock := func(r *remains) {
		r.record(0, txn.RecordLock, 1, 1)
		r.lock(1, 0)
		r.record(1, txn.RecordLock, 1, 2)
		r.lock(2, 0)
	}
	backup := func(r *remains) {
		r.record(1, txn.RecordCommitBackup, 1, 1)
		r.record(2, txn.RecordCommitBackup, 1, 2)
	}
	for _, c := range []struct {
		name      string
		write     func(r *remains)
		committed bool
	}{
		{"nothing", func(*remains) {}, false},
		{"one lock", func(r *remains) { r.record(0, txn.RecordLock, 1, 1) }, false},
		{"locked", lock, false},
		{"aborted", func(r *remains) { lock(r); r.record(0, txn.RecordAbort, 1) }, false},
		{"one backup", func(r *remains) { lock(r); r.record(1, txn.RecordCommitBackup, 1, 1) }, true},
		{"one backup that is void", func(r *remains) { lock(r); r.config = 0; r.record(1, txn.RecordCommitBackup, 1, 1) }, false},
		{"backups", func(r *remains) { lock(r); backup(r) }, true},
		{"one primary", func(r *remains) { lock(r); backup(r); r.record(0, txn.RecordCommitPrimary, 1) }, true},
		{"primaries", func(r *remains) {
			lock(r)
			backup(r)
			r.record(0, txn.RecordCommitPrimary, 1)
			r.record(1, txn.RecordCommitPrimary, 1)
		}, true},
		{"truncated but at a backup", func(r *remains) { r.record(2, txn.RecordCommitBackup, 1, 2); r.record(1, txn.RecordCommitBackup, 1, 1) }, true},
		{"truncated in one region", func(r *remains) {
			w := r.write(1, 1)
			for _, m := range r.machines {
				if reg := m.Regions[1]; reg != nil {
					r.must(txn.ApplyReplica(reg, &w))
				}
			}
			r.record(2, txn.RecordCommitBackup, 1, 2)
		}, true},
		{"truncated", func(r *remains) { r.record(0, txn.RecordTruncate, 0); r.record(1, txn.RecordCommitPrimary, 1) }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRemains(t)
			c.write(r)
			report, err := r.restart()
			r.must(err)
			want := region.Version(0)
			if c.committed {
				want = 1
			}
			r.check(want)
			if (report.Committed == 1) != c.committed {
				t.Errorf("%+v", report)
			}
			again, err := r.restart()
			r.must(err)
			if again != (Report{}) {
				t.Errorf("again: %+v", again)
			}
			r.check(want)
		})
	}
}

// Records of several transactions of one object are applied in the order of
// versions, wherever they are found, and whatever has been applied before.
func TestManyTransactionsOfOneObject(t *testing.T) {
	r := newRemains(t)
	for seq := uint64(1); seq <= 5; seq++ {
		r.record(0, txn.RecordLock, seq, 1)
		r.record(1, txn.RecordLock, seq, 2)
		r.record(1, txn.RecordCommitBackup, seq, 1)
		r.record(2, txn.RecordCommitBackup, seq, 2)
	}
	w := r.write(2, 3) // one replica is ahead
	for seq := uint64(1); seq <= 3; seq++ {
		w = r.write(2, seq)
		r.must(txn.ApplyReplica(r.machines[2].Regions[2], &w))
	}
	if _, err := r.restart(); err != nil {
		t.Fatal(err)
	}
	r.check(5)
}

// What recovery cannot make sense of it reports, and leaves as it is.
func TestDamage(t *testing.T) {
	for _, c := range []struct {
		name   string
		damage func(r *remains)
		want   error
		text   string
	}{
		{"garbage in a log", func(r *remains) { _, _, err := r.logs[1].Append(1, []byte("garbage!")); r.must(err) }, txn.ErrBadRecord, "machine 1"},
		{"damaged ring", func(r *remains) { r.machines[2].Logs[0].Store(24, 12345*8) }, ring.ErrCorrupt, "machine 2"},
		{"unknown region", func(r *remains) {
			r.record(1, txn.RecordCommitBackup, 1, 1)
			r.c.Regions = r.c.Regions[1:]
		}, nil, "region 1"},
		{"no slot", func(r *remains) {
			r.record(1, txn.RecordCommitBackup, 1, 1)
			r.machines[0].Regions[1], _ = region.Format(1, nvram.NewMemory(region.MinSize))
		}, txn.ErrBadRecord, "machine 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRemains(t)
			c.damage(r)
			_, err := r.restart()
			if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v", err)
			}
		})
	}
}
