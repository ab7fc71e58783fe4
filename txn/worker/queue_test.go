package worker

import (
	"testing"

	"github.com/farmsql/farmsql/rdma"
)

// A holdingQueue holds what is posted until it is flushed.
type holdingQueue struct {
	rdma.Queue
	held    int // posted and not flushed
	flushes int // those of something
}

func (q *holdingQueue) post() error {
	q.held++
	return nil
}

func (q *holdingQueue) Read(_ rdma.MachineID, _ rdma.Key, _ uint64, _ []byte, _ uint64) (bool, error) {
	return false, q.post()
}

func (q *holdingQueue) Write(_ rdma.MachineID, _ rdma.Key, _ uint64, _ []byte, _ uint64) (bool, error) {
	return false, q.post()
}

func (q *holdingQueue) WriteRing(_ rdma.MachineID, _ rdma.Key, _ uint64, _ []byte, _ uint64) (bool, error) {
	return false, q.post()
}

func (q *holdingQueue) Ring(rdma.MachineID) error { return q.post() }

func (q *holdingQueue) Flush() {
	if q.held > 0 {
		q.held = 0
		q.flushes++
	}
}

func (q *holdingQueue) Poll([]rdma.Completion) int { return 0 }

// holding returns a worker with peers 1 and 2 and a queue that holds what is posted. It has nothing to
// step through.
func holding() (w *Worker, q *holdingQueue) {
	q = new(holdingQueue)
	w = newWorker(&Machine{}, 0)
	w.q, w.stopped = &patientQueue{q, w}, true
	w.peers = []*peer{nil, {id: 1}, {id: 2}}
	return w, q
}

// everyPost returns the posts of a queue.
func everyPost(q rdma.Queue) map[string]func(to rdma.MachineID) error {
	b := make([]byte, 8)
	return map[string]func(to rdma.MachineID) error{
		"Read":      func(to rdma.MachineID) error { _, err := q.Read(to, 5, 0, b, 1); return err },
		"Write":     func(to rdma.MachineID) error { _, err := q.Write(to, 5, 0, b, 1); return err },
		"WriteRing": func(to rdma.MachineID) error { _, err := q.WriteRing(to, 5, 0, b, 1); return err },
		"Ring":      func(to rdma.MachineID) error { return q.Ring(to) },
	}
}

// What is posted under the lock leaves when it is released: once, and whoever releases it.
func TestUnlockFlushes(t *testing.T) {
	for name := range everyPost(nil) {
		w, q := holding()
		post := everyPost(w.q)[name]
		w.Lock()
		for to := rdma.MachineID(1); to <= 2; to++ {
			must(t, post(to))
		}
		if q.held != 2 || q.flushes != 0 {
			t.Errorf("%s: %d posts are held after %d flushes", name, q.held, q.flushes)
		}
		w.Unlock()
		if q.held != 0 || q.flushes != 1 {
			t.Errorf("%s: %d posts are held after %d flushes and Unlock", name, q.held, q.flushes)
		}
	}

	w, q := holding()
	w.ringLocked(w.peers[1])
	w.kick()
	if q.held != 0 || q.flushes != 1 {
		t.Errorf("%d rings are held after %d flushes and a step", q.held, q.flushes)
	}
}
