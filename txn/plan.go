package txn

import (
	"cmp"
	"slices"

	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/ring"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/record"
	"github.com/farmsql/farmsql/txn/route"
	"github.com/farmsql/farmsql/txn/set"
	"github.com/farmsql/farmsql/txn/worker"
)

// plan lists the commit's writes in ascending order of address, its regions and its participants, and
// determines whether it is large.
func (s *state) plan() error {
	c := &s.commit
	c.Routes = s.m.Routes.Load()
	for i := range s.writes.Entries {
		if e := &s.writes.Entries[i]; !e.Dead {
			c.writes = append(c.writes, e)
		}
	}
	for i := range s.late.set.Entries {
		if e := &s.late.set.Entries[i]; e.Written() {
			c.writes = append(c.writes, e)
		}
	}
	slices.SortFunc(c.writes, func(a, b *set.Entry) int {
		if a.Ptr.Addr < b.Ptr.Addr {
			return -1
		}
		return 1
	})
	total := 0
	for _, e := range c.writes {
		n, err := s.planWrite(e)
		if err != nil {
			return err
		}
		total += n
	}
	return s.size(total)
}

// planWrite checks that a write can be committed by the planned routes, and adds it to the
// participants' records. It returns the number of bytes that the write takes in a record.
func (s *state) planWrite(e *set.Entry) (bytes int, err error) {
	c := &s.commit
	rt := c.Routes.Of(e.Ptr.Addr.Region())
	switch {
	case rt == nil:
		return 0, cmp.Or(s.m.Locate(e.Ptr.Addr), worker.ErrMoved)
	case rt.State != route.Active && !(sabotage.InactiveWrite.Skipped() && rt.State == route.Readable):
		return 0, worker.BlockedError(rt.Region)
	case !s.reserved(rt, e):
		return 0, abort(ReasonMoved, e.Ptr.Addr)
	}
	if n := len(c.Regions); n == 0 || c.Regions[n-1] != rt.Region { // the writes of a region follow each other
		c.Regions = append(c.Regions, rt.Region)
	}
	w := e.Write()
	bytes = record.WriteBytes(&w)
	primary := c.AddParticipant(rt.Primary)
	e.Part = int16(primary)
	c.Participants[primary].LockBytes += bytes
	c.Participants[primary].LockWrites++
	for _, b := range rt.Backups {
		backup := c.AddParticipant(b)
		c.Participants[backup].BackupBytes += bytes
		c.Participants[backup].BackupWrites++
	}
	return bytes, nil
}

// reserved reports whether e, if it is an OpAlloc, still has the slot that was reserved for it. It
// has lost the slot if the region has a new primary, whose allocator does not know of the
// reservation, or if the loan has ended.
func (s *state) reserved(rt *route.Route, e *set.Entry) bool {
	if e.Op != record.OpAlloc || sabotage.LostSlot.Skipped() {
		return true
	}
	hasNewPrimary := e.Config < uint32(rt.LastPrimaryChange)
	return !hasNewPrimary && (rt.PrimaryHere || e.Connection == s.w.ConnectionTo(rt.Primary))
}

// owned returns the payload of e, one of the transaction's own writes, for the pointer p. If e
// has lost its slot, another transaction may have made an object in it with the same pointer:
// incarnations only distinguish objects that were freed in between. owned therefore checks the
// slot before it compares pointers. Once the slot is lost, a pointer that differs from e's need
// not be stale: an index that took it for stale and looked elsewhere would come to the same
// place again.
func (s *state) owned(e *set.Entry, p region.Ptr) ([]byte, error) {
	if rt := s.m.Route(p.Addr.Region()); rt != nil && !s.reserved(rt, e) {
		return nil, abort(ReasonMoved, p.Addr)
	}
	if e.Ptr != p || e.Op == record.OpFree || e.Dead {
		return nil, abort(ReasonFreed, p.Addr)
	}
	return e.Payload, nil
}

// planReservations sets the log space to be reserved at each participant.
func (c *commit) planReservations() {
	for i := range c.Participants {
		c.Participants[i].Reserved = c.reservation(&c.Participants[i])
	}
}

// reservation is the log space that all records of the transaction can take at
// one participant: LOCK, COMMIT-PRIMARY or ABORT, COMMIT-BACKUP and TRUNCATE.
func (c *commit) reservation(p *worker.Participant) uint64 {
	n := worker.TruncateReserve
	header := record.HeaderBytes(0, len(c.Regions))
	if p.LockWrites > 0 {
		n += ring.Space(header+c.writesBytes(p, record.Lock, p.LockBytes)) + ring.Space(record.HeaderBytes(0, 0))
	}
	if p.BackupWrites > 0 {
		n += ring.Space(header + c.writesBytes(p, record.CommitBackup, p.BackupBytes))
	}
	return n
}

func (c *commit) isBackup(e *set.Entry, machine rdma.MachineID) bool {
	return slices.Contains(c.Routes.Of(e.Ptr.Addr.Region()).Backups, machine)
}
