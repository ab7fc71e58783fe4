package evidence

import (
	"github.com/farmsql/farmsql/internal/invariant"
	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/region"
)

// When a region is handed over, its old primary becomes a backup whose memory still has the
// lock bits that transactions have set. A backup ignores lock bits: it applies commits by
// version. But the bits must be gone before the machine becomes the primary again, or the
// objects would stay locked for ever. A local reader that looked up the route before the
// handover may still see a bit. It takes the object for one that is about to change, which is
// right.
//
// Each lock bit belongs to a recovering transaction. A primary sets the bit for a LOCK record,
// which stays in one of its logs until the transaction is truncated. (A recovery sets bits
// without such a record, but no region is handed over while a recovery is going on.) So nobody
// needs to search the region for bits: deciding a transaction drops its bits, and at all
// replicas every transaction is decided before any of them is truncated. If the next
// configuration comes first, its recovery finds the transactions again, and their bits stay or
// are set once more (LockRegions). Logs are freed late, so a log at this machine may still hold
// a record that all other machines have truncated; recovery finds that record with the rest.
//
// Several transactions may write an object; at most one of them has locked it. The bit is
// dropped when the last of them is decided: until then, the writes of one that was reported as
// committed may not have been applied at this machine. The bit may be dropped earlier, when one
// of them is applied: a transaction that commits has had the lock.

// countLeftLocked counts, for each object of a backup at this machine, the undecided
// transactions that write it. They may have locked the object while this replica was the
// primary. countLeftLocked does not ask which of them have: at a machine that has never been
// the primary, dropping a bit that is not set does no harm.
func (r *Recovery) countLeftLocked() {
	r.left = make(map[region.Addr]int)
	for _, t := range r.traces { // any order
		for _, p := range t.parts {
			rt := r.Replicas.Routes.Of(p.region)
			if len(p.writes) == 0 || rt == nil || rt.Local == nil || rt.PrimaryHere {
				continue
			}
			p.left = true
			for i := range p.writes {
				r.left[p.writes[i].Ptr.Addr]++
			}
		}
	}
}

// dropLeftLocked removes the lock bits of a part whose transaction has been decided, and whose writes, if
// it commits, have been applied to the backup here.
func (r *Recovery) dropLeftLocked(p *tracePart, backup *region.Region) {
	if !p.left {
		return
	}
	p.left = false
	for i := range p.writes {
		ptr := p.writes[i].Ptr
		r.left[ptr.Addr]--
		if r.left[ptr.Addr] > 0 && !sabotage.SharedLocks.Skipped() {
			continue
		}
		delete(r.left, ptr.Addr)
		if !sabotage.LeftLocks.Skipped() {
			backup.DropLock(ptr)
		}
	}
}

// checkLeft checks that no backup at this machine has a lock bit. Call it when the recovery is
// over and nothing is parked.
func (r *Recovery) checkLeft() {
	for _, rt := range *r.Replicas.Routes.Load() {
		if rt == nil || rt.Local == nil || rt.PrimaryHere || len(rt.Filling) > 0 {
			continue
		}
		for p, h := range rt.Local.Objects {
			if h.Locked() && rt.Local.HasLock(p) { // a writer may hold the lock for a moment: HasLock excludes that
				invariant.Violated("no lock bit is left at a backup", p, h)
			}
		}
	}
}
