package evidence

import (
	"maps"
	"slices"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/invariant"
	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/participant"
	"github.com/farmsql/farmsql/txn/record"
)

// A recoveredLock is the lock, at the primary, of an object that recovering transactions write. It
// is released when the last of them is decided (SOSP'15 section 5.3 step 4).
type recoveredLock struct {
	ptr   region.Ptr
	count int // the undecided transactions that write the object
	// release says that the slot goes back to the allocator if it holds no object in the end. The
	// scan for free lists has skipped the slot because it was locked, or one of the transactions has
	// freed the object.
	release bool
}

// LockRegions locks every object that a recovering transaction writes, whatever its version, in
// each of the given regions if this machine is its primary. No other transaction can then lock the
// object before the recovering one is decided. Then it attaches the regions to the allocator. The
// order matters: the allocator counts locked slots as in use. After that the regions can be
// activated. LockRegions fails once the next configuration has begun, since that may give a region
// to another machine.
func (r *Recovery) LockRegions(in cluster.ID, ids []region.ID) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.Check(in); err != nil {
		return err
	}
	before := r.locks
	r.locks = make(map[region.Addr]*recoveredLock)
	for addr, l := range before {
		if !slices.Contains(ids, addr.Region()) {
			r.locks[addr] = l
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(r.traces), record.ID.Compare) {
		for _, p := range r.traces[id].parts {
			if slices.Contains(ids, p.region) {
				r.lockPartLocked(p, before)
			}
		}
	}
	for _, addr := range slices.Sorted(maps.Keys(before)) {
		if r.locks[addr] == nil { // no recovering transaction writes this object any more
			r.unlockObjectLocked(before[addr])
		}
	}
	for _, id := range ids {
		if rt := r.Replicas.Routes.Of(id); rt != nil && rt.PrimaryHere {
			r.Replicas.Allocator.Attach(rt.Local)
		}
	}
	return nil
}

// lockPartLocked locks the objects of one transaction's part, or counts one more transaction where
// the lock exists. The map oldLocks has the locks of the previous configuration: a new lock keeps
// the release mark of the lock that it replaces.
func (r *Recovery) lockPartLocked(p *tracePart, oldLocks map[region.Addr]*recoveredLock) {
	rt := r.Replicas.Routes.Of(p.region)
	if p.locked || rt == nil || !rt.PrimaryHere {
		return
	}
	p.locked = true
	for i := range p.writes {
		ptr := p.writes[i].Ptr
		l := r.locks[ptr.Addr]
		if l == nil {
			l = &recoveredLock{ptr: ptr}
			// If Scan has yet to come to the slot, it will count the slot as in use, not as free.
			l.release = r.Replicas.Allocator.Hold(ptr, func() {
				if !sabotage.LockRecovery.Skipped() {
					rt.Local.SetLock(ptr)
				}
			})
			if was := oldLocks[ptr.Addr]; was != nil && was.release {
				l.release = true
			}
			r.locks[ptr.Addr] = l
		}
		l.count++
	}
}

// unlockObjectLocked unlocks an object that no recovering transaction writes any more.
func (r *Recovery) unlockObjectLocked(l *recoveredLock) {
	rt := r.Replicas.Routes.Of(l.ptr.Addr.Region())
	if rt == nil || !rt.PrimaryHere {
		return
	}
	if l.release && !rt.Local.Header(l.ptr.Addr.Offset()).Allocated() {
		r.Replicas.Allocator.Release(l.ptr) // the slot must be released before it is unlocked, as in ApplyPrimary
	}
	rt.Local.ClearLock(l.ptr)
}

// Decide durably notes the outcome of a transaction (COMMIT-RECOVERY, ABORT-RECOVERY), and then
// applies it to this machine's replicas. Repeating it changes nothing. Without a trace of the
// transaction there is nothing to do. It fails with ring.ErrFull while there is no room for a note.
func (r *Recovery) Decide(in cluster.ID, id record.ID, commit bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.Check(in); err != nil {
		return err
	}
	t := r.traces[id]
	if t == nil {
		return nil
	}
	rec, outcome := record.Record{Kind: record.AbortRecovery, ID: id}, SeenAbortRecovery
	if commit {
		rec.Kind, outcome = record.CommitRecovery, SeenCommitRecovery
	}
	if t.outcome&^outcome != 0 {
		invariant.Violated("a transaction is decided once", id, rec.Kind)
	}
	if t.outcome == 0 {
		if _, err := r.noteLocked(in, &rec); err != nil {
			return err
		}
		t.outcome = outcome
	}
	for _, p := range t.parts {
		if err := r.finishPartLocked(p, commit); err != nil {
			return err
		}
	}
	return nil
}

// finishPartLocked gives the objects of a part their final state at this machine's replica, if it has
// one: at the primary the objects that lockPartLocked has locked, at a backup the objects of a commit.
func (r *Recovery) finishPartLocked(p *tracePart, commit bool) error {
	rt := r.Replicas.Routes.Of(p.region)
	if rt == nil || rt.Local == nil {
		return nil
	}
	for i := range p.writes {
		w := &p.writes[i]
		switch {
		case rt.PrimaryHere && p.locked:
			r.finishPrimaryLocked(rt.Local, w, commit)
		case !rt.PrimaryHere && commit && !sabotage.BackupOutcome.Skipped():
			if err := participant.ApplyReplica(rt.Local, w); err != nil {
				return err
			}
		}
	}
	p.locked = false
	if !rt.PrimaryHere {
		r.dropLeftLocked(p, rt.Local) // only after all writes are applied: then their objects are final
	}
	return nil
}

// finishPrimaryLocked gives one object its final state at the primary, and unlocks it if no other
// undecided transaction writes it. ApplyLocked returns false if the object has that state or a later one.
func (r *Recovery) finishPrimaryLocked(local *region.Region, w *record.Write, commit bool) {
	l := r.locks[w.Ptr.Addr]
	v, allocated, incarnation := w.After()
	if commit && local.ApplyLocked(w.Ptr, w.Payload, v, allocated, incarnation) {
		switch w.Op {
		case record.OpAlloc:
			r.Replicas.Loans.Take(w.Ptr)
		case record.OpFree:
			l.release = true
		}
	}
	l.count--
	if l.count == 0 {
		delete(r.locks, w.Ptr.Addr)
		r.unlockObjectLocked(l)
	}
}

// Truncate forgets a transaction whose outcome all participants know (TRUNCATE-RECOVERY).
func (r *Recovery) Truncate(in cluster.ID, id record.ID) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.Check(in); err != nil {
		return err
	}
	delete(r.traces, id)
	r.over[id] = true
	if id.Machine == r.Replicas.ID || int(id.Worker) >= len(r.Workers) {
		return nil // Settle finishes this machine's own transactions
	}
	w := r.Workers[id.Worker]
	w.Locked(func() {
		if l := logFromLocked(w, id.Machine); l.Log != nil && !r.recalled.isOlderLocked(id) {
			if err := l.Release(id.Seq); err != nil {
				w.FencePeerLocked(l.From, err)
			}
		}
	})
	return nil
}

// Open returns this machine's evidence about the transactions that are not truncated.
func (r *Recovery) Open() []Evidence {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.evidenceLocked()
}

// Settle ends the recovery at this machine. By now every transaction that the machine coordinates or
// has evidence about is decided and truncated, or waits for an unavailable region; Settle parks the
// waiting ones. Then it frees the log space that recovery has held, and the slots lent to machines
// that are not in c, or over connections that have ended. It fails if there is no room to park in.
func (r *Recovery) Settle(c *cluster.Configuration) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.Check(c.ID); err != nil {
		return err
	}
	parked, err := r.parkLocked(c.ID)
	if err != nil {
		return err
	}
	if r.Settling != nil { // from here on the parked notes count instead of the logs, which may now be freed
		r.Settling(c.ID)
	}
	if invariant.Enabled && len(parked) == 0 && !r.awaitsAny() {
		r.checkLeft()
	}
	clear(r.traces)
	clear(r.over)
	r.left = nil
	r.settleRecalledLocked(c.ID, parked)
	r.notes.forget() // the recovery is over
	isWhole := !r.awaitsAny()
	for _, w := range r.Workers {
		w.Locked(func() { w.SettleLocked(isWhole) })
	}
	if !sabotage.LoansEnd.Skipped() {
		r.endLoansLocked()
	}
	r.going.Store(false)
	return nil
}
