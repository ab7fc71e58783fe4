package worker

import (
	"errors"
	"fmt"
	"time"

	"github.com/farmsql/farmsql/rdma"
)

// A patientQueue is a worker's queue whose posts wait for room: while the provider's queue is full,
// they take completions. So a post fails only if the connection is broken, or if the peer counts as
// lost because it has made no room for roomPauses pauses.
//
// It waits with the worker locked, since its callers are in the middle of a step that must not be
// interrupted. A provider completes operations independently of its callers, so a live peer makes
// room soon. A silent peer must not hold up the worker for long: everything else on this machine
// that needs the worker waits, too, and if that includes the beats, the machine loses its lease.
type patientQueue struct {
	rdma.Queue
	w *Worker
}

const (
	// roomYields is how many times a post that finds no room yields before it sleeps.
	roomYields = spinWait
	// roomPauses is how many times it then sleeps, for roomPause each, before it takes the peer for
	// lost: in all as long as a provider may take to connect, or a gigabit network to carry the
	// largest records of some workers. It counts pauses and does not measure time, so that a
	// machine that was itself stopped does not blame its peer.
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

// Break implements rdma.Breaker, if the provider's queue does.
func (q *patientQueue) Break(to rdma.MachineID) {
	if b, ok := q.Queue.(rdma.Breaker); ok {
		b.Break(to)
	}
}

// awaitRoomLocked is called when a post to a machine has failed with err; tries is the number of
// failed attempts before. If the queue is full, it pauses and takes completions, which may make
// room, and returns nil: the caller tries again. Otherwise it returns the error of the post.
func (q *patientQueue) awaitRoomLocked(to rdma.MachineID, err error, tries int) error {
	if !errors.Is(err, rdma.ErrFull) {
		return err
	}
	w := q.w
	w.flushLocked() // the operations that fill the queue may not have been sent yet
	p := w.peerLocked(to)
	switch {
	case p != nil && p.broken != nil: // the peer already counts as lost
		return fmt.Errorf("%w: %w", rdma.ErrBroken, err)
	case tries < roomYields:
		w.m.cfg.Clock.Yield()
	case tries < roomYields+roomPauses:
		w.m.cfg.Clock.Sleep(roomPause)
	default:
		err = fmt.Errorf("%w: machine %d has completed nothing for %v: %w", rdma.ErrBroken, to, roomPauses*roomPause, err)
		if p != nil {
			w.fenceLocked(p, err) // the next post must not wait again, whatever the caller does with the error
		}
		return err
	}
	w.pollLocked()
	return nil
}

// flushLocked sends the operations that were posted since the last flush.
func (w *Worker) flushLocked() {
	if w.isUnflushed {
		w.isUnflushed = false
		w.gathering.Store(false)
		w.q.Flush()
	}
}
