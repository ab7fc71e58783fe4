package txn

import (
	"cmp"
	"slices"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/ring"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/message"
	"github.com/farmsql/farmsql/txn/record"
	"github.com/farmsql/farmsql/txn/route"
	"github.com/farmsql/farmsql/txn/set"
)

// A part is one participant of a commit: a machine, and the commit's records, reservation and reply
// there.
type part struct {
	machine rdma.MachineID
	peer    *peer // nil for the coordinator's own machine; set by admit
	// lockBytes and backupBytes are the bytes that objects take in its LOCK and COMMIT-BACKUP
	// records; lockWrites and backupWrites are the numbers of objects.
	lockBytes, backupBytes   int
	lockWrites, backupWrites int
	// reserved is the rest of the reservation in its log.
	reserved uint64
	// replied, verdict and refused hold the LOCK-REPLY.
	replied bool
	verdict message.Verdict
	refused int
}

// plan lists the writes and the participants.
func (s *state) plan() error {
	c := &s.commit
	c.routes = s.m.routes.Load()
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
	rt := c.routes.Of(e.Ptr.Addr.Region())
	switch {
	case rt == nil:
		return 0, cmp.Or(s.m.locate(e.Ptr.Addr), errMoved)
	case rt.State != route.Active && !(sabotage.InactiveWrite.Skipped() && rt.State == route.Readable):
		return 0, blockedError(rt.Region)
	case !s.reserved(rt, e):
		return 0, abort(ReasonMoved, e.Ptr.Addr)
	}
	if n := len(c.regions); n == 0 || c.regions[n-1] != rt.Region {
		c.regions = append(c.regions, rt.Region)
	}
	w := e.Write()
	bytes = record.WriteBytes(&w)
	i := c.part(rt.Primary)
	e.Part = int16(i)
	c.parts[i].lockBytes += bytes
	c.parts[i].lockWrites++
	for _, b := range rt.Backups {
		i := c.part(b)
		c.parts[i].backupBytes += bytes
		c.parts[i].backupWrites++
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
	return e.Config >= uint32(rt.LastPrimaryChange) && (rt.PrimaryHere || e.Connection == s.w.connectionTo(rt.Primary))
}

// owned returns the payload of e, one of the transaction's own writes, for the pointer p. If e has
// lost its slot, another transaction may have made an object there with the same pointer:
// incarnations only distinguish objects that were freed in between. owned therefore checks the slot
// before it compares pointers. If the slot is lost, a different pointer is not a stale one, and an
// index that looked elsewhere would be led to the same place again.
func (s *state) owned(e *set.Entry, p region.Ptr) ([]byte, error) {
	if rt := s.m.route(p.Addr.Region()); rt != nil && !s.reserved(rt, e) {
		return nil, abort(ReasonMoved, p.Addr)
	}
	if e.Ptr != p || e.Op == record.OpFree || e.Dead {
		return nil, abort(ReasonFreed, p.Addr)
	}
	return e.Payload, nil
}

// part finds machine's part, or adds one.
func (c *commit) part(machine rdma.MachineID) int {
	for i := range c.parts {
		if c.parts[i].machine == machine {
			return i
		}
	}
	c.parts = append(c.parts, part{machine: machine})
	return len(c.parts) - 1
}

// truncateReserve is the log space that naming one truncated transaction to a participant can take.
var truncateReserve = ring.Space(record.HeaderBytes(1, 0))

// reservation is the log space that all records of the transaction can take at
// one participant: LOCK, COMMIT-PRIMARY or ABORT, COMMIT-BACKUP and TRUNCATE.
func (c *commit) reservation(p *part) uint64 {
	n := truncateReserve
	header := record.HeaderBytes(0, len(c.regions))
	if p.lockWrites > 0 {
		n += ring.Space(header+c.writesBytes(p, record.Lock, p.lockBytes)) + ring.Space(record.HeaderBytes(0, 0))
	}
	if p.backupWrites > 0 {
		n += ring.Space(header + c.writesBytes(p, record.CommitBackup, p.backupBytes))
	}
	return n
}

// reserveLocked reserves log space for all parts of c, or none.
func (w *worker) reserveLocked(c *commit) bool {
	if w.m.Meets(clock.LogFull) {
		return false
	}
	for i := range c.parts {
		p := &c.parts[i]
		p.reserved = c.reservation(p)
		if !sabotage.Reservations.Skipped() && !w.logOfLocked(p).Reserve(p.reserved) {
			for j := range i {
				w.logOfLocked(&c.parts[j]).Release(c.parts[j].reserved)
			}
			return false
		}
	}
	return true
}

func (w *worker) logOfLocked(p *part) *ring.Sender {
	if p.peer == nil {
		return w.self.Log
	}
	return p.peer.log
}

func (c *commit) isBackup(e *set.Entry, machine rdma.MachineID) bool {
	return slices.Contains(c.routes.Of(e.Ptr.Addr.Region()).Backups, machine)
}

// brokenLocked returns an error if a participant is already lost.
func (c *commit) brokenLocked() error {
	for i := range c.parts {
		if p := c.parts[i].peer; p != nil && p.broken != nil {
			return p.broken
		}
	}
	return nil
}

func (c *commit) isRemote() bool { return len(c.parts) > 1 || c.parts[0].peer != nil }

// isPrimary reports whether the coordinator itself is the primary of an object written.
func (c *commit) isPrimary() bool {
	for i := range c.parts {
		if c.parts[i].peer == nil && c.parts[i].lockWrites > 0 {
			return true
		}
	}
	return false
}

// peers returns the participants at other machines.
func (c *commit) peers() []*peer {
	peers := make([]*peer, 0, len(c.parts))
	for i := range c.parts {
		if p := c.parts[i].peer; p != nil {
			peers = append(peers, p)
		}
	}
	return peers
}

// releaseReservationsLocked releases the log space that the commit's records did not use. It keeps
// the space for naming the truncated transaction to each peer.
func (w *worker) releaseReservationsLocked(c *commit) {
	for i := range c.parts {
		p := &c.parts[i]
		if p.peer != nil {
			p.reserved -= truncateReserve
		}
		w.logOfLocked(p).Release(p.reserved)
		p.reserved = 0
	}
}
