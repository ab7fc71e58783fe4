package worker

import (
	"fmt"
	"time"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/ring"
	"github.com/farmsql/farmsql/txn/message"
	"github.com/farmsql/farmsql/txn/outcome"
	"github.com/farmsql/farmsql/txn/record"
)

// A Participant is one participant of a commit: a machine, and the commit's records, reservation and
// reply there.
type Participant struct {
	Machine rdma.MachineID
	peer    *peer // nil for the coordinator's own machine; set by AdmitLocked
	// LockBytes and BackupBytes are the bytes that objects take in its LOCK and COMMIT-BACKUP
	// records; LockWrites and BackupWrites are the numbers of objects.
	LockBytes, BackupBytes   int
	LockWrites, BackupWrites int
	// Reserved is the log space that ReserveLocked reserves in its log, and then the rest of it.
	Reserved uint64
	// Verdict and Refused are the result of locking its objects: if one could not be locked, why, and
	// which. replied says that it has sent its LOCK-REPLY.
	Verdict message.Verdict
	Refused int
	replied bool
}

// IsOwn reports whether the participant is the coordinator's own machine. The commit must have been
// admitted.
func (p *Participant) IsOwn() bool { return p.peer == nil }

// AddParticipant returns the index of a machine among the participants. It adds the machine if it is
// missing.
func (c *Commit) AddParticipant(machine rdma.MachineID) int {
	for i := range c.Participants {
		if c.Participants[i].Machine == machine {
			return i
		}
	}
	c.Participants = append(c.Participants, Participant{Machine: machine})
	return len(c.Participants) - 1
}

// TruncateReserve is the log space that naming one truncated transaction to a participant can take.
var TruncateReserve = ring.Space(record.HeaderBytes(1, 0))

// ReserveLocked reserves log space at all participants, or at none: Participant.Reserved bytes each.
func (w *Worker) ReserveLocked(c *Commit) bool {
	if w.m.Meets(clock.LogFull) {
		return false
	}
	for i := range c.Participants {
		p := &c.Participants[i]
		if !sabotage.Reservations.Skipped() && !w.logOfLocked(p).Reserve(p.Reserved) {
			for j := range i {
				w.logOfLocked(&c.Participants[j]).Release(c.Participants[j].Reserved)
			}
			return false
		}
	}
	return true
}

// MakeRoomLocked asks the participants to free what they can of their logs, after ReserveLocked has
// found no room.
func (w *Worker) MakeRoomLocked(c *Commit) {
	w.flushTruncationsLocked()
	for i := range c.Participants {
		if p := c.Participants[i].peer; p != nil {
			w.refreshLocked(p)
		}
	}
}

// ReleaseReservationsLocked releases the log space that the commit's records did not use. It keeps
// the space for naming the truncated transaction to each peer.
func (w *Worker) ReleaseReservationsLocked(c *Commit) {
	for i := range c.Participants {
		p := &c.Participants[i]
		if p.peer != nil {
			p.Reserved -= TruncateReserve
		}
		w.logOfLocked(p).Release(p.Reserved)
		p.Reserved = 0
	}
}

// LogFull returns the error of a commit that has found no log space to reserve for the given time.
func (w *Worker) LogFull(c *Commit, waited time.Duration) error {
	w.Lock()
	defer w.Unlock()
	for i := range c.Participants {
		p := &c.Participants[i]
		if free := w.logOfLocked(p).Available(); p.Reserved > free {
			return fmt.Errorf("%w: machine %d has %d bytes free, %d are needed, and nothing was truncated for %v", outcome.ErrLogFull, p.Machine, free, p.Reserved, waited)
		}
	}
	return outcome.ErrLogFull
}

func (w *Worker) logOfLocked(p *Participant) *ring.Sender {
	if p.peer == nil {
		return w.self.Log
	}
	return p.peer.log
}

// BrokenLocked returns an error if a participant is already lost.
func (c *Commit) BrokenLocked() error {
	for i := range c.Participants {
		if p := c.Participants[i].peer; p != nil && p.broken != nil {
			return p.broken
		}
	}
	return nil
}

// IsRemote reports whether another machine is a participant.
func (c *Commit) IsRemote() bool {
	return len(c.Participants) > 1 || c.Participants[0].peer != nil
}

// IsPrimary reports whether the coordinator itself is the primary of an object written.
func (c *Commit) IsPrimary() bool {
	for i := range c.Participants {
		if c.Participants[i].peer == nil && c.Participants[i].LockWrites > 0 {
			return true
		}
	}
	return false
}

// peers returns the participants at other machines.
func (c *Commit) peers() []*peer {
	peers := make([]*peer, 0, len(c.Participants))
	for i := range c.Participants {
		if p := c.Participants[i].peer; p != nil {
			peers = append(peers, p)
		}
	}
	return peers
}
