package recovery

import (
	"fmt"
	"maps"
	"slices"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// A Machine is what is left of one machine: its replicas and the logs in its
// memory.
type Machine struct {
	ID      rdma.MachineID
	Regions map[region.ID]*region.Region
	Logs    []*nvram.Memory
	// Annexes are those that records in the logs name, by number.
	Annexes map[uint64]*nvram.Memory
}

// A Report says what recovery has found and done.
type Report struct {
	Records   int // complete records in the logs
	Committed int // transactions whose effects were applied to all replicas
	Aborted   int // transactions that are as if they had never been
	Unlocked  int // objects whose lock had been left behind
}

// Restart recovers the transactions of an instance all of whose machines went
// down, and leaves its logs empty. c is its last configuration; all machines
// that hold a region must be there.
func Restart(c *cluster.Configuration, machines []Machine, o Options) (Report, error) {
	r := restart{configuration: c, machines: machines, options: o, txs: make(map[txn.ID]*transaction)}
	if err := r.drain(); err != nil {
		return r.report, err
	}
	for _, id := range slices.SortedFunc(maps.Keys(r.txs), txn.ID.Compare) {
		t := r.txs[id]
		if Decide(t.votes()) == Abort {
			r.report.Aborted++
			continue
		}
		if err := r.apply(t); err != nil {
			return r.report, err
		}
		r.report.Committed++
	}
	if !sabotage.RestartLocks.Skipped() {
		r.unlock()
	}
	return r.report, r.clear()
}

// Options of a restart.
type Options struct {
	// Nonce draws random numbers for the logs.
	Nonce func() uint64
	// Step, if not nil, is called after each change to memory: a crash there
	// must be recovered from. It is for tests.
	Step func()
}

// changed tells of a change to memory.
func (r *restart) changed() {
	if r.options.Step != nil {
		r.options.Step()
	}
}

type restart struct {
	options       Options
	configuration *cluster.Configuration
	machines      []Machine
	txs           map[txn.ID]*transaction
	report        Report
}

// A transaction is what the logs say about one.
type transaction struct {
	id      txn.ID
	regions []region.ID
	// writes by address, as in its LOCK and COMMIT-BACKUP records.
	writes map[region.Addr]txn.Write
	// seen is, by region, the furthest that one of its replicas has seen.
	seen map[region.ID]Vote
}

// drain reads all logs. Records of one transaction are in several of them.
func (r *restart) drain() error {
	for _, m := range r.machines {
		for _, log := range m.Logs {
			if err := r.drainLog(m, log); err != nil {
				return fmt.Errorf("recovery: a log of machine %d: %w", m.ID, err)
			}
		}
	}
	return nil
}

func (r *restart) drainLog(m Machine, log *nvram.Memory) error {
	rx, err := txn.OpenLog(log)
	if err != nil || rx == nil {
		return err
	}
	for {
		raw, ok, err := rx.Poll()
		if err != nil || !ok {
			return err
		}
		var rec txn.Record
		if err := txn.DecodeRecord(raw.Payload, &rec); err != nil {
			return err
		}
		r.report.Records++
		if err := r.see(m, &rec); err != nil {
			return err
		}
	}
}

// see takes note of one record in a log of m.
func (r *restart) see(m Machine, rec *txn.Record) error {
	if rec.Kind == txn.RecordTruncate || rec.IsVoid() {
		return nil
	}
	for _, id := range rec.Regions { // in order: a slice
		if _, ok := r.configuration.Placement(id); !ok {
			return fmt.Errorf("transaction %v writes to region %d, which the configuration does not know", rec.ID, id)
		}
	}
	t := r.txs[rec.ID]
	if t == nil {
		t = &transaction{id: rec.ID, writes: make(map[region.Addr]txn.Write), seen: make(map[region.ID]Vote)}
		r.txs[rec.ID] = t
	}
	if len(rec.Regions) > 0 {
		t.regions = slices.Clone(rec.Regions)
	}
	for _, w := range rec.Writes {
		w.Payload = slices.Clone(w.Payload)
		t.writes[w.Ptr.Addr] = w
	}
	if err := t.seeAnnex(m, rec); err != nil {
		return err
	}
	t.note(r.configuration, m.ID, rec)
	return nil
}

// seeAnnex takes note of the writes that are in a record's annex, where they stay until
// the logs are empty.
func (t *transaction) seeAnnex(m Machine, rec *txn.Record) error {
	if rec.Annex.IsNone() {
		return nil
	}
	at := m.Annexes[rec.Annex.Number]
	if at == nil || at.Size() < rec.Annex.Bytes {
		return fmt.Errorf("%v of %v: its annex of %d bytes is not there", rec.Kind, rec.ID, rec.Annex.Bytes)
	}
	writes, err := txn.AnnexWrites(&rec.Annex, at.View(0, rec.Annex.Bytes))
	for _, w := range writes {
		t.writes[w.Ptr.Addr] = w
	}
	return err
}

// note raises the votes of the regions that the record is about: a LOCK or
// COMMIT-PRIMARY record those that m is primary of, a COMMIT-BACKUP record those
// that it backs up.
func (t *transaction) note(c *cluster.Configuration, m rdma.MachineID, rec *txn.Record) {
	for _, id := range t.regions {
		p, _ := c.Placement(id)
		primary := p.Primary == m
		switch {
		case rec.Kind == txn.RecordLock && primary:
			t.seen[id] = max(t.seen[id], VoteLock)
		case rec.Kind == txn.RecordCommitBackup && slices.Contains(p.Backups, m):
			t.seen[id] = max(t.seen[id], VoteCommitBackup)
		case rec.Kind == txn.RecordCommitPrimary && primary:
			t.seen[id] = max(t.seen[id], VoteCommitPrimary)
		}
	}
}

// votes returns one vote for each region that the transaction writes. A region
// none of whose logs has a record any more has truncated the transaction: with
// all memory there, records disappear in no other way, and no record of a region
// is truncated before every primary has COMMIT-PRIMARY or the transaction has
// aborted.
func (t *transaction) votes() []Vote {
	votes := make([]Vote, 0, len(t.regions))
	for _, id := range t.regions {
		v, ok := t.seen[id]
		if !ok && !sabotage.RestartVotes.Skipped() {
			v = VoteTruncated
		}
		votes = append(votes, v)
	}
	return votes
}

// apply gives every replica of what t writes its new state.
func (r *restart) apply(t *transaction) error {
	for _, a := range slices.Sorted(maps.Keys(t.writes)) {
		w := t.writes[a]
		p, ok := r.configuration.Placement(w.Ptr.Addr.Region())
		if !ok {
			return fmt.Errorf("recovery: transaction %v writes to region %d, which the configuration does not know", t.id, w.Ptr.Addr.Region())
		}
		for _, m := range r.machines {
			if slices.Contains(p.Replicas(), m.ID) {
				if err := txn.ApplyReplica(m.Regions[p.Region], &w); err != nil {
					return fmt.Errorf("recovery: transaction %v at machine %d: %w", t.id, m.ID, err)
				}
				r.changed()
			}
		}
	}
	return nil
}

// unlock clears all locks: no transaction that could own one is left.
func (r *restart) unlock() {
	for _, m := range r.machines {
		for _, id := range slices.Sorted(maps.Keys(m.Regions)) {
			reg := m.Regions[id]
			for p, h := range reg.Objects {
				if h.Locked() && reg.ClearLock(p) {
					r.report.Unlocked++
					r.changed()
				}
			}
		}
	}
}

// clear empties the logs.
func (r *restart) clear() error {
	for _, m := range r.machines {
		for _, log := range m.Logs {
			rx, err := txn.OpenLog(log)
			if err != nil {
				return fmt.Errorf("recovery: a log of machine %d: %w", m.ID, err)
			}
			if rx != nil {
				rx.Reset(r.options.Nonce())
				r.changed()
			}
		}
	}
	return nil
}
