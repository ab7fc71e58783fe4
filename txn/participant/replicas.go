package participant

import (
	"encoding/binary"
	"fmt"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/message"
	"github.com/farmsql/farmsql/txn/record"
	"github.com/farmsql/farmsql/txn/route"
	"github.com/farmsql/farmsql/txn/step"
)

// Replicas are the replicas at one machine. Transactions of other machines lock and write their
// objects through records in logs (Log), the machine's own transactions by direct calls.
type Replicas struct {
	ID        rdma.MachineID
	Routes    *route.Table
	Allocator *region.Allocator // allocates in the regions whose primary is this machine
	NIC       rdma.NIC
	Clock     clock.Clock
	// Annex and DropAnnex create and free the memory of annexes; see worker.Config.
	Annex     func(number uint64, bytes int64) (*nvram.Memory, error)
	DropAnnex func(number uint64, memory *nvram.Memory) error
	// Background runs a function on a new goroutine, unless the machine is closed.
	Background func(func())
	// Step, if not nil, is called at each step. Troubles are the simulator's; nil in production.
	Step     func(step.Step)
	Troubles clock.Troubled

	Loans   Loans
	Annexes Annexes
}

// Init sets up the replicas; the exported fields must be set.
func (r *Replicas) Init() { r.Annexes.init(r) }

// Reached reports a step to tests.
func (r *Replicas) Reached(s step.Step) {
	if f := r.Step; f != nil {
		f(s)
	}
}

func (r *Replicas) meets(t clock.Trouble) bool { return r.Troubles != nil && r.Troubles.Meets(t) }

// Smallest returns n, the number of items in one slice of some work. In tests that try the smallest
// slices it returns 1.
func (r *Replicas) Smallest(n int) int {
	if r.meets(clock.SmallLog) {
		return 1
	}
	return n
}

// lockWrites locks the objects of a LOCK record at their versions, all or none. The reply names the
// first object that could not be locked, and why.
func (r *Replicas) lockWrites(writes []record.Write) message.Message {
	for i := range writes {
		if v := r.LockWrite(&writes[i]); v != message.Same {
			if !sabotage.AllLocks.Skipped() {
				r.unlockWrites(writes[:i])
			}
			return message.Message{Kind: message.LockReply, A: uint8(v), C: uint32(i)}
		}
	}
	return message.Message{Kind: message.LockReply, A: uint8(message.Same)}
}

// LockWrite locks the object of a write at its version.
func (r *Replicas) LockWrite(w *record.Write) message.Verdict {
	rt := r.Routes.Of(w.Ptr.Addr.Region())
	if rt == nil || !rt.PrimaryHere || !rt.Local.CanHold(w.Ptr.Addr.Offset()) {
		return message.Changed
	}
	if rt.Local.Lock(w.Ptr, w.Version) {
		r.Reached(step.Lock)
		return message.Same
	}
	// The lock that was in the way may be gone by now; the result is Locked all the same.
	return max(message.Locked, message.Judge(rt.Local.Header(w.Ptr.Addr.Offset()), w.Version))
}

func (r *Replicas) unlockWrites(writes []record.Write) {
	for i := range writes {
		r.unlockWrite(&writes[i])
	}
}

func (r *Replicas) unlockWrite(w *record.Write) {
	r.Routes.Of(w.Ptr.Addr.Region()).Local.Unlock(w.Ptr, w.Version)
	r.Reached(step.Unlock)
}

// ApplyPrimary gives a locked object its new state and unlocks it.
func (r *Replicas) ApplyPrimary(w *record.Write) {
	v, allocated, incarnation := w.After()
	local := r.Routes.Of(w.Ptr.Addr.Region()).Local
	switch w.Op {
	case record.OpFree:
		// The slot goes back to the allocator before it is unlocked: the scan that rebuilds the
		// free lists skips locked slots, and must not find this one a second time.
		local.ApplyLocked(w.Ptr, w.Payload, v, allocated, incarnation)
		if !sabotage.FreedSlots.Skipped() {
			r.Allocator.Release(w.Ptr)
		}
		local.ClearLock(w.Ptr)
	case record.OpAlloc:
		local.Write(w.Ptr, w.Payload, v, allocated, incarnation)
		r.Loans.Take(w.Ptr)
	default:
		local.Write(w.Ptr, w.Payload, v, allocated, incarnation)
	}
	r.Reached(step.ApplyPrimary)
}

// fetchReplicas makes the processor fetch all objects that a record writes to, so that their cache
// misses overlap. At a backup they most likely miss: nothing reads them there between two writes.
func (r *Replicas) fetchReplicas(writes []record.Write) {
	for i := range writes {
		p := writes[i].Ptr
		if rt := r.Routes.Of(p.Addr.Region()); rt != nil && rt.Local != nil {
			rt.Local.FetchAll(p)
		}
	}
}

// ApplyReplica applies a write to a replica that has no other writer. It changes nothing if the
// replica already has the write, or a newer one. It fails with record.ErrBad if the replica has no
// such slot.
func ApplyReplica(to *region.Region, w *record.Write) error {
	v, allocated, incarnation := w.After()
	if to.ApplyBackup(w.Ptr, w.Payload, v, allocated, incarnation) {
		return nil
	}
	if off := w.Ptr.Addr.Offset(); !to.CanHold(off) || to.Header(off).Version() < v {
		return fmt.Errorf("%w: no replica of %v here can take version %d", record.ErrBad, w.Ptr, v)
	}
	return nil
}

// ValidateBytes is the size of one object's entry in a VALIDATE message.
const ValidateBytes = 16

// Validate answers a VALIDATE message: a verdict for each object. An object whose primary is another
// machine by now counts as locked: the commit is tried again, and asks the other machine.
func (r *Replicas) Validate(msg message.Message) (message.Message, error) {
	if len(msg.Body) != int(msg.C)*ValidateBytes {
		return message.Message{}, fmt.Errorf("%w: VALIDATE of %d objects in %d bytes", message.ErrBad, msg.C, len(msg.Body))
	}
	verdicts := make([]byte, msg.C)
	for i := range verdicts {
		b := msg.Body[i*ValidateBytes:]
		addr := region.Addr(binary.LittleEndian.Uint64(b))
		rt := r.Routes.Of(addr.Region())
		if rt != nil && !rt.PrimaryHere { // the region has moved away since the coordinator looked
			verdicts[i] = byte(message.Locked)
			continue
		}
		if rt == nil || !rt.Local.CanHold(addr.Offset()) {
			return message.Message{}, fmt.Errorf("%w: VALIDATE of %v, which has no object here", message.ErrBad, addr)
		}
		if sabotage.ValidationReply.Skipped() {
			continue
		}
		verdicts[i] = byte(message.Judge(rt.Local.Header(addr.Offset()), region.Version(binary.LittleEndian.Uint64(b[8:]))))
	}
	return message.Message{Kind: message.ValidateReply, Tag: msg.Tag, Body: verdicts}, nil
}
