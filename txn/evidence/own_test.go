package evidence

import (
	"testing"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/participant"
	"github.com/farmsql/farmsql/txn/record"
)

// A region may leave a machine that lives on, and come back. What the machine's logs and notes say from
// before counts no longer: the other replicas have decided without it.
func TestEvidenceOfAnEarlierReplica(t *testing.T) {
	const noted = 7
	for what, gather := range map[string]func(t *testing.T) *Recovery{
		"a record of a coordinator": func(t *testing.T) *Recovery {
			l := newPeerLog(t)
			l.append(record.Lock, noted, 1<<record.LifeShift+1, 1<<record.LifeShift+1)
			l.in.Freeze(noted + 1)
			log := Log{Log: l.in, From: 1, Memory: l.in.Ledger().Log()}
			own, err := participant.NewOwnLog(nvram.NewMemory(64<<10), record.Coordinator{Machine: 3, Worker: 0}, 1)
			must(t, err)
			l.r.Workers = []Worker{&testWorker{r: l.r, own: own, window: record.NewWindow(noted), logs: []Log{log}}}
			return l.r
		},
		"a note": func(t *testing.T) *Recovery {
			r := recoveringIn(t, noted, false)
			learn(t, r, noted, 1, 2)
			return r
		},
		"notes beside the own log": func(t *testing.T) *Recovery {
			r := recoveringIn(t, noted, true)
			learn(t, r, noted, 1, 300)
			return r
		},
		"a parked transaction": func(t *testing.T) *Recovery {
			r := recoveringIn(t, noted, false)
			r.recalled.parkedIn = noted
			r.recalled.parked = append(r.recalled.parked, logWith(t, &record.Record{Kind: record.Replicate, ID: idOf(1, 5, 1),
				LowBound: packSeen(2, SeenLock), Regions: []region.ID{2}}))
			return r
		},
	} {
		for since, counts := range map[uint32]bool{noted - 5: true, noted: true, noted + 1: false} {
			r := gather(t)
			r.recalled.firstConfig = 1
			for _, rt := range *r.Replicas.Routes.Load() {
				if rt != nil {
					rt.Local.SetSince(since)
				}
			}
			r.Begin(cluster.ID(noted + 2))
			found, err := r.Drain(noted + 2)
			must(t, err)
			if (len(found) > 0) != counts {
				t.Errorf("%s of configuration %d, a replica of %d: found %d times", what, noted, since, len(found))
			}
		}
	}
}
