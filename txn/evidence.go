package txn

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/invariant"
	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/ring"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/record"
	"github.com/farmsql/farmsql/txn/route"
)

// The set of recovering transactions, and what is known of them, is always a function of a
// machine's NVRAM: of the records in its logs that coordinators wrote and that are not truncated,
// and of notes. The machine itself appends notes to its own log, or to memory beside it where the
// log was full (spill.go), during an earlier recovery; or it has parked them (park.go). The logs'
// ledgers say which transactions are truncated. So when another failure interrupts a recovery, the
// next one starts again from everything that it has found and decided.
//
// Every transaction of an older configuration that has a record somewhere is recovering. (The paper
// leaves out transactions that the change does not affect; here there are at most a few hundred.)
// Only Drain decides which they are.

// Seen is the set of records of a recovering transaction that a replica has seen.
type Seen uint8

const (
	SeenLock Seen = 1 << iota
	SeenCommitBackup
	SeenCommitPrimary
	SeenCommitRecovery
	SeenAbortRecovery
	// SeenTruncated: a parked transaction's records have been truncated.
	SeenTruncated
)

// Evidence is the content of one machine's logs about one transaction and one region that the
// transaction writes to.
type Evidence struct {
	ID      record.ID
	Regions []region.ID // all regions that the transaction writes to
	Region  region.ID
	Seen    Seen
	// At is where the writes to the region are stored; it is empty if this machine does not have
	// them.
	At Extent
}

// An Extent locates a record in a log of some machine: N bytes at offset Off of a registration, and
// More further bytes at Rest.
type Extent struct {
	Key                rdma.Key
	Off, N, Rest, More uint64
}

// Empty reports whether there is no record.
func (e *Extent) Empty() bool { return e.N+e.More == 0 }

// recoveryState is a machine's knowledge of recovering transactions. Its lock is taken before a
// worker's lock, and never held across a wait.
type recoveryState struct {
	m *Machine
	// going says that a reconfiguration has begun and is not settled yet.
	going atomic.Bool

	mu     lockrank.Mutex[lockrank.Recovery]
	traces map[record.ID]*trace
	locks  map[region.Addr]*recoveredLock
	// over are the transactions that this recovery has truncated: a late copy of a call must not
	// recreate their traces.
	over map[record.ID]bool
	// notes are the notes that this machine's own logs had no room for.
	notes spill
	// found are records that scanLocked has found in logs and takeFoundLocked has not taken yet.
	found []found
}

// found is a record, and where it is.
type found struct {
	record *record.Record
	at     Extent
}

func (r *recoveryState) init(m *Machine) {
	r.notes = spill{m: m, open: m.cfg.Note, key: route.NotesKey}
	r.m, r.traces, r.locks, r.over = m, make(map[record.ID]*trace), make(map[region.Addr]*recoveredLock), make(map[record.ID]bool)
}

// A trace is this machine's knowledge of one recovering transaction.
type trace struct {
	id      record.ID
	regions []region.ID
	parts   []*tracePart // one for each region; there are few
	// outcome is the decision noted at this machine: SeenCommitRecovery or SeenAbortRecovery.
	outcome Seen
}

type tracePart struct {
	region region.ID
	seen   Seen
	writes []record.Write
	at     Extent
	locked bool // recoveryState.locks counts its objects
}

func (t *trace) part(id region.ID) *tracePart {
	for _, p := range t.parts {
		if p.region == id {
			return p
		}
	}
	p := &tracePart{region: id}
	t.parts = append(t.parts, p)
	return p
}

func (t *trace) evidence(p *tracePart) Evidence {
	return Evidence{ID: t.id, Regions: t.regions, Region: p.region, Seen: p.seen | t.outcome, At: p.at}
}

// Recovering reports whether a reconfiguration has begun here and not been settled.
func (m *Machine) Recovering() bool { return m.recovery.going.Load() }

// Drain processes every record in every log of this machine, including the logs of machines that
// have left the configuration, and returns the evidence in the logs, in order. From then on,
// records of an older configuration that arrive late have no effect. Once the next configuration's
// Freeze has begun, Drain does nothing: its findings and locks would be forgotten.
func (m *Machine) Drain(in cluster.ID) ([]Evidence, error) {
	r := &m.recovery
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.check(in); err != nil {
		return nil, err
	}
	for _, w := range m.workers {
		w.lock()
		w.drainLocked()
		w.unlock()
	}
	r.traces, r.over = make(map[record.ID]*trace), make(map[record.ID]bool)
	m.recalled.gatherLocked(r)
	for _, w := range m.workers {
		w.lock()
		w.gatherLocked(r)
		w.unlock()
		r.takeFoundLocked() // read annexes without the worker's lock: it may take long
	}
	r.gatherNotesLocked()
	r.takeFoundLocked()
	maps.DeleteFunc(r.traces, func(_ record.ID, t *trace) bool {
		return len(t.parts) == 0 // nothing is left of it but its outcome
	})
	return r.evidenceLocked(), nil
}

func (r *recoveryState) evidenceLocked() []Evidence {
	var all []Evidence
	for _, id := range slices.SortedFunc(maps.Keys(r.traces), record.ID.Compare) {
		t := r.traces[id]
		for _, p := range t.parts {
			all = append(all, t.evidence(p))
		}
	}
	return all
}

// check returns an error unless the given configuration is the one that this recovery is for.
func (r *recoveryState) check(in cluster.ID) error {
	if now := r.m.config.Load(); now != uint32(in) {
		return fmt.Errorf("%w: %d, this is %d", ErrConfiguration, in, now)
	}
	return nil
}

func (w *worker) drainLocked() {
	for _, p := range w.peers {
		if p == nil {
			continue
		}
		for !sabotage.Drain.Skipped() {
			_, more, err := p.in.Step() // no machine waits for the reply any more
			if err != nil {
				w.fenceLocked(p, err)
			}
			if !more {
				break
			}
		}
		p.in.Ledger().Drain(w.config-1, p.in.Receiver().Next()) // the ledger must know the drain before anything is reported from the log
		p.in.Thaw(w.config - 1)
	}
}

// gatherLocked collects the evidence in the worker's logs.
func (w *worker) gatherLocked(r *recoveryState) {
	for _, p := range w.peers {
		if p == nil {
			continue
		}
		r.scanLocked(p.memory, route.LogKey(p.id, w.id, p.life), p.in.Receiver().Next(), func(rec *record.Record, _ uint64) bool {
			return p.in.IsHeld(rec.ID.Seq)
		})
	}
	r.scanLocked(w.selfMemory, route.LogKey(w.m.cfg.ID, w.id, 0), w.self.log.Tail(), func(rec *record.Record, _ uint64) bool {
		if rec.Kind.IsNote() {
			return w.m.recalled.countsLocked(rec)
		}
		return !w.window.finished(rec.ID.Seq)
	})
}

// scanLocked finds the records of a log up to position end that want selects, by content and
// position. takeFoundLocked takes them.
func (r *recoveryState) scanLocked(log *nvram.Memory, k rdma.Key, end uint64, want func(rec *record.Record, at uint64) bool) {
	rx, err := record.OpenLog(log)
	if err != nil || rx == nil {
		return
	}
	for {
		raw, ok, err := rx.Poll()
		if err != nil || !ok || raw.Pos >= end {
			return
		}
		rec := new(record.Record)
		if record.Decode(raw.Payload, rec) != nil {
			return // the writer of the log is fenced
		}
		if rec.Kind != record.Truncate && !rec.IsVoid() && want(rec, raw.Pos) {
			r.found = append(r.found, found{rec, extentOf(rx, k, raw)})
		}
	}
}

// takeFoundLocked takes the records that scanLocked has found, in order.
func (r *recoveryState) takeFoundLocked() {
	for i := range r.found {
		r.takeLocked(r.found[i].record, r.found[i].at)
	}
	clear(r.found)
	r.found = r.found[:0]
}

func extentOf(rx *ring.Receiver, k rdma.Key, raw ring.Record) Extent {
	e := Extent{Key: k}
	e.Off, e.N, e.Rest, e.More = rx.Extent(raw)
	return e
}

// packSeen packs a region and the records that a replica of it has seen of a transaction into one
// word of a note. In other records that word is the low bound.
func packSeen(id region.ID, s Seen) uint64 { return uint64(id)<<32 | uint64(s) }

func unpackSeen(v uint64) (region.ID, Seen) { return region.ID(v >> 32), Seen(v) }

// takeLocked adds one record to the traces.
func (r *recoveryState) takeLocked(rec *record.Record, at Extent) {
	t := r.traces[rec.ID]
	if t == nil {
		t = &trace{id: rec.ID}
		r.traces[rec.ID] = t
	}
	if len(rec.Regions) > 0 {
		t.regions = rec.Regions
	}
	if !rec.Annex.IsNone() {
		r.takeAnnexedLocked(t, rec)
		return
	}
	switch rec.Kind {
	case record.Lock:
		t.takeWrites(rec.Writes, SeenLock, at)
	case record.CommitBackup:
		t.takeWrites(rec.Writes, SeenCommitBackup, at)
	case record.CommitPrimary:
		for _, p := range t.parts {
			if p.seen&SeenLock != 0 {
				p.seen |= SeenCommitPrimary
			}
		}
	case record.Replicate:
		id, seen := unpackSeen(rec.LowBound)
		t.takeWrites(rec.Writes, 0, at)
		t.part(id).seen |= seen
	case record.CommitRecovery:
		t.outcome |= SeenCommitRecovery
	case record.AbortRecovery:
		t.outcome |= SeenAbortRecovery
	}
}

// takeWrites adds a record's writes, which must be sorted by address, to the parts of their
// regions.
func (t *trace) takeWrites(writes []record.Write, seen Seen, at Extent) {
	for len(writes) > 0 {
		id, n := writes[0].Ptr.Addr.Region(), 1
		for n < len(writes) && writes[n].Ptr.Addr.Region() == id { // ascending by address
			n++
		}
		p := t.part(id)
		if p.seen |= seen; p.writes == nil {
			p.writes, p.at = writes[:n:n], at
		}
		writes = writes[n:]
	}
}

// Evidence returns this machine's present evidence about a transaction and a region.
func (m *Machine) Evidence(id record.ID, in region.ID) (Evidence, bool) {
	r := &m.recovery
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.traces[id]
	if t == nil {
		return Evidence{}, false
	}
	for _, p := range t.parts {
		if p.region == in {
			return t.evidence(p), true
		}
	}
	return Evidence{}, false
}

// Truncated reports whether this machine's replica of a region has truncated a transaction. The
// transaction must have no record here: Truncated then tells whether its records were truncated, or
// never came.
func (m *Machine) Truncated(id record.ID, at region.ID) bool {
	if sabotage.Truncated.Skipped() {
		return false
	}
	r := &m.recovery
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case m.recalled.bounds.truncated(id) && (!r.hasHadSince(at, id.Config) || sabotage.ForeignBounds.Skipped()):
		return true
	case m.recalled.truncatedLocked(id):
		return true
	case m.recalled.hasLocked(id):
		return false
	}
	if int(id.Worker) >= len(m.workers) {
		return false
	}
	w := m.workers[id.Worker]
	w.lock()
	defer w.unlock()
	if id.Machine == m.cfg.ID {
		return w.window.finished(id.Seq)
	}
	p := w.peerLocked(id.Machine)
	return p != nil && p.in.Ledger().Has(id.Seq)
}

// Fetch reads a transaction's writes to a region out of a record at another machine.
func (m *Machine) Fetch(from rdma.MachineID, e Evidence) ([]record.Write, error) {
	raw := make([]byte, e.At.N+e.At.More)
	if err := m.readRemote(from, e.At.Key, e.At.Off, raw[:e.At.N]); err != nil {
		return nil, err
	}
	if e.At.More > 0 {
		if err := m.readRemote(from, e.At.Key, e.At.Rest, raw[e.At.N:]); err != nil {
			return nil, err
		}
	}
	if route.KindOf(e.At.Key) == route.KeyAnnex {
		writes, err := record.WritesIn(raw)
		if err == nil && !isOf(e.Region, writes) {
			err = fmt.Errorf("%w: writes of %v to other regions than %d", record.ErrBad, e.ID, e.Region)
		}
		return writes, err
	}
	var rec record.Record
	if err := record.Decode(raw, &rec); err != nil {
		return nil, err
	}
	if rec.ID != e.ID {
		return nil, fmt.Errorf("%w: %v of %v where %v is expected", record.ErrBad, rec.Kind, rec.ID, e.ID)
	}
	return slices.DeleteFunc(rec.Writes, func(w record.Write) bool { return w.Ptr.Addr.Region() != e.Region }), nil
}

// ReadReplica fills dst with what a machine's replica of a region holds at off. It uses a one-sided
// READ without any consistency check: data recovery copies with it. Bytes from a machine that is
// not the primary any more are useless, but do no harm: the caller ends with its configuration.
func (m *Machine) ReadReplica(from rdma.MachineID, id region.ID, off uint64, dst []byte) error {
	return m.readRemote(from, route.RegionKey(id), off, dst)
}

// readRemote reads in pieces, and releases the worker's lock between two pieces.
func (m *Machine) readRemote(from rdma.MachineID, k rdma.Key, off uint64, dst []byte) error {
	w, wait := m.anyWorker(), m.newWaiter()
	for len(dst) > 0 {
		n := min(len(dst), pieceBytes)
		w.lock()
		err := w.postLocked(from, k, off, dst[:n], &wait)
		w.unlock()
		if err := errors.Join(err, w.await(&wait)); err != nil {
			return err
		}
		off, dst = off+uint64(n), dst[n:]
	}
	return nil
}

// Learn notes durably the records of a transaction that other replicas of a region have seen, and
// its writes to the region if this machine does not have them. Repeating the call changes nothing.
// Learn fails with ring.ErrFull while there is no room for a note.
func (m *Machine) Learn(in cluster.ID, e Evidence, writes []record.Write) error {
	r := &m.recovery
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.check(in); err != nil {
		return err
	}
	if !r.going.Load() || r.over[e.ID] {
		return nil
	}
	t := r.traces[e.ID]
	if t == nil {
		t = &trace{id: e.ID, regions: e.Regions}
	}
	isKnown := t.knows(e.Region) || !m.awaits(e.Regions)
	p := t.part(e.Region)
	if p.writes != nil {
		writes = nil
	}
	// The information that a region has seen nothing of a waiting transaction is new, too.
	if isKnown && len(writes) == 0 && p.seen|e.Seen == p.seen {
		return nil
	}
	rec := record.Record{Kind: record.Replicate, ID: e.ID, LowBound: packSeen(e.Region, e.Seen), Regions: e.Regions, Writes: writes}
	at, err := r.noteLocked(in, &rec)
	if err != nil {
		return err
	}
	r.traces[e.ID] = t
	if p.seen |= e.Seen; writes != nil {
		p.writes, p.at = writes, at
	}
	return nil
}

// takeAnnexedLocked is takeLocked for a record whose writes are in an annex. If the annex does not
// decode, its writer is fenced, as after any malformed record. Recall and Bind have checked that
// the annex is there.
func (r *recoveryState) takeAnnexedLocked(t *trace, rec *record.Record) {
	seen := SeenLock
	if rec.Kind == record.CommitBackup {
		seen = SeenCommitBackup
	}
	body, err := r.m.replicas.Annexes.Body(&rec.Annex)
	if err != nil {
		invariant.Violated("a record that counts has its annex", err, rec.ID)
	}
	_ = t.takeAnnexed(&rec.Annex, body, seen)
}

func (t *trace) takeAnnexed(x *record.Annex, body []byte, seen Seen) error {
	writes, err := record.AnnexWrites(x, body)
	if err != nil {
		return err
	}
	at := Extent{Key: route.AnnexKey(x.Number)}
	for len(writes) > 0 {
		id, n := writes[0].Ptr.Addr.Region(), 0
		at.Off, at.N = at.Off+at.N, 0
		for n < len(writes) && writes[n].Ptr.Addr.Region() == id {
			at.N += uint64(record.WriteBytes(&writes[n]))
			n++
		}
		t.takeWrites(writes[:n:n], seen, at)
		writes = writes[n:]
	}
	return nil
}

// isOf reports whether all writes are to region id.
func isOf(id region.ID, writes []record.Write) bool {
	return !slices.ContainsFunc(writes, func(w record.Write) bool { return w.Ptr.Addr.Region() != id })
}
