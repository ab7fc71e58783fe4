package worker

import (
	"errors"

	"github.com/farmsql/farmsql/rdma"
)

// A patientQueue is a worker's queue that is never full to its callers: if the provider has no room,
// it takes completions until there is some. Therefore a post fails only because the connection is
// broken.
//
// It waits with the worker locked. This is safe because a provider completes operations
// independently of its callers.
type patientQueue struct {
	rdma.Queue
	w *Worker
}

// Read implements rdma.Queue.
func (q *patientQueue) Read(to rdma.MachineID, k rdma.Key, off uint64, dst []byte, tag uint64) (bool, error) {
	for {
		done, err := q.Queue.Read(to, k, off, dst, tag)
		if err == nil || !q.drainLocked(err) { // locked: see patientQueue
			q.w.isUnflushed = q.w.isUnflushed || !done
			return done, err
		}
	}
}

// Write implements rdma.Queue.
func (q *patientQueue) Write(to rdma.MachineID, k rdma.Key, off uint64, src []byte, tag uint64) (bool, error) {
	for {
		done, err := q.Queue.Write(to, k, off, src, tag)
		if err == nil || !q.drainLocked(err) { // locked: see patientQueue
			q.w.isUnflushed = q.w.isUnflushed || !done
			return done, err
		}
	}
}

// WriteRing implements rdma.Queue.
func (q *patientQueue) WriteRing(to rdma.MachineID, k rdma.Key, off uint64, src []byte, tag uint64) (bool, error) {
	for {
		done, err := q.Queue.WriteRing(to, k, off, src, tag)
		if err == nil || !q.drainLocked(err) { // locked: see patientQueue
			q.w.isUnflushed = q.w.isUnflushed || !done
			return done, err
		}
	}
}

// Ring implements rdma.Queue.
func (q *patientQueue) Ring(to rdma.MachineID) error {
	for {
		err := q.Queue.Ring(to)
		if err == nil || !q.drainLocked(err) { // locked: see patientQueue
			q.w.isUnflushed = true
			return err
		}
	}
}

// drainLocked takes completions if err says that the queue is full, and reports whether it did.
func (q *patientQueue) drainLocked(err error) bool {
	if !errors.Is(err, rdma.ErrFull) {
		return false
	}
	q.w.flushLocked() // what takes up the room may not be on its way yet
	q.w.pollLocked()
	q.w.m.cfg.Clock.Yield()
	return true
}

// flushLocked puts on their way what has been posted since it was last called.
func (w *Worker) flushLocked() {
	if w.isUnflushed {
		w.isUnflushed = false
		w.q.Flush()
	}
}
