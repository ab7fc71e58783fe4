package worker

import (
	"errors"
	"fmt"
	"time"

	"github.com/farmsql/farmsql/rdma"
)

// A patientQueue is a worker's queue that is hardly ever full to its callers: if the provider has no
// room, it takes completions until there is some. So a post fails only because the connection is
// broken, or because its peer is taken for lost: it has made no room for roomPauses pauses.
//
// It waits with the worker locked, since its callers are in the middle of a step that nothing may come
// between. A provider completes operations independently of its callers, so a peer that lives makes
// room soon. One that is silent may not hold up the worker for long: nothing else of this machine that
// needs the worker goes on meanwhile, and if that includes its beats, the machine loses its lease.
type patientQueue struct {
	rdma.Queue
	w *Worker
}

const (
	// roomYields is how often a post that finds no room yields before it sleeps.
	roomYields = spinWait
	// roomPauses is how often it sleeps then, for roomPause each, before it takes the peer for lost: as
	// long as a provider may take to connect, or a gigabit network to carry the largest records of some
	// workers. Pauses are counted, and no time is measured, so that a machine that was stopped itself
	// blames nobody for that.
	roomPauses = 2500
	roomPause  = time.Millisecond
)

// Read implements rdma.Queue.
func (q *patientQueue) Read(to rdma.MachineID, k rdma.Key, off uint64, dst []byte, tag uint64) (bool, error) {
	done, err := q.Queue.Read(to, k, off, dst, tag)
	for n := 0; err != nil; n++ {
		if err = q.awaitRoomLocked(to, err, n); err != nil { // locked: see patientQueue
			return false, err
		}
		done, err = q.Queue.Read(to, k, off, dst, tag)
	}
	q.w.isUnflushed = q.w.isUnflushed || !done
	return done, nil
}

// Write implements rdma.Queue.
func (q *patientQueue) Write(to rdma.MachineID, k rdma.Key, off uint64, src []byte, tag uint64) (bool, error) {
	done, err := q.Queue.Write(to, k, off, src, tag)
	for n := 0; err != nil; n++ {
		if err = q.awaitRoomLocked(to, err, n); err != nil { // locked: see patientQueue
			return false, err
		}
		done, err = q.Queue.Write(to, k, off, src, tag)
	}
	q.w.isUnflushed = q.w.isUnflushed || !done
	return done, nil
}

// WriteRing implements rdma.Queue.
func (q *patientQueue) WriteRing(to rdma.MachineID, k rdma.Key, off uint64, src []byte, tag uint64) (bool, error) {
	done, err := q.Queue.WriteRing(to, k, off, src, tag)
	for n := 0; err != nil; n++ {
		if err = q.awaitRoomLocked(to, err, n); err != nil { // locked: see patientQueue
			return false, err
		}
		done, err = q.Queue.WriteRing(to, k, off, src, tag)
	}
	q.w.isUnflushed = q.w.isUnflushed || !done
	return done, nil
}

// Ring implements rdma.Queue.
func (q *patientQueue) Ring(to rdma.MachineID) error {
	err := q.Queue.Ring(to)
	for n := 0; err != nil; n++ {
		if err = q.awaitRoomLocked(to, err, n); err != nil { // locked: see patientQueue
			return err
		}
		err = q.Queue.Ring(to)
	}
	q.w.isUnflushed = true
	return nil
}

// awaitRoomLocked is called after an attempt to post to a machine, of which there have been tries
// before, has failed with err. It returns nil if the post is to be tried again: the queue is full, and
// completions have been taken, after a pause, which may have made room.
func (q *patientQueue) awaitRoomLocked(to rdma.MachineID, err error, tries int) error {
	if !errors.Is(err, rdma.ErrFull) {
		return err
	}
	w := q.w
	w.flushLocked() // what takes up the room may not be on its way yet
	p := w.peerLocked(to)
	switch {
	case p != nil && p.broken != nil: // it had its chance
		return fmt.Errorf("%w: %w", rdma.ErrBroken, err)
	case tries < roomYields:
		w.m.cfg.Clock.Yield()
	case tries < roomYields+roomPauses:
		w.m.cfg.Clock.Sleep(roomPause)
	default:
		err = fmt.Errorf("%w: machine %d has completed nothing for %v: %w", rdma.ErrBroken, to, roomPauses*roomPause, err)
		if p != nil {
			w.fenceLocked(p, err) // whatever the caller makes of the error: the next post must not wait again
		}
		return err
	}
	w.pollLocked()
	return nil
}

// flushLocked puts on their way what has been posted since it was last called.
func (w *Worker) flushLocked() {
	if w.isUnflushed {
		w.isUnflushed = false
		w.q.Flush()
	}
}
