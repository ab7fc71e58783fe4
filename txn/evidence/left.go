package evidence

import (
	"github.com/farmsql/farmsql/internal/invariant"
	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/region"
)

// A primary that is handed over stays as a backup, with the lock bits that its transactions have set in
// its memory. At a backup they mean nothing: commits are applied there by version, whatever is locked.
// But they must be gone before the machine becomes the primary again, or objects would be locked for
// ever; and local readers that have looked up the route before may still take a locked object for one
// that is about to change, as they must.
//
// Each of these bits belongs to a transaction that is recovering: a primary sets it for a LOCK record,
// which is in one of its logs until the transaction is truncated, and a region is handed over only when
// no earlier recovery is going on, which sets lock bits without such a record. So the bits need not be
// searched for in the region: they go when the transactions are decided, which is before any of them is
// truncated, here as at the other replicas. If the next configuration comes first, the transactions are
// found again, and either stay where they are or are locked once more (LockRegions). A record that all
// others have truncated may still be in a log here, since logs are freed late; it is found with the rest.
//
// Several transactions may write an object, of which at most one has locked it. A bit goes when the last
// of them is decided: until then one that was reported as committed may not have been applied here. It
// may go earlier, when one of them is applied: a transaction that commits has had the lock.

// countLeftLocked counts, for each object of a backup here, the undecided transactions that write it. They
// may have locked it while the replica was the primary's. Which of them have is not asked: at a machine
// that has never been the primary, to drop a bit that is not there does no harm.
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

// checkLeft checks that no backup here has a lock bit. The recovery is over, and nothing is parked.
func (r *Recovery) checkLeft() {
	for _, rt := range *r.Replicas.Routes.Load() {
		if rt == nil || rt.Local == nil || rt.PrimaryHere || len(rt.Filling) > 0 {
			continue
		}
		for p, h := range rt.Local.Objects {
			if h.Locked() && rt.Local.HasLock(p) { // mostly a writer has it for a moment
				invariant.Violated("no lock bit is left at a backup", p, h)
			}
		}
	}
}
