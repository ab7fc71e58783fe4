package worker

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/txn/participant"
	"github.com/farmsql/farmsql/txn/record"
	"github.com/farmsql/farmsql/txn/wait"
)

// A holdingQueue holds what is posted until it is flushed, and has no room for some machines.
type holdingQueue struct {
	rdma.Queue
	held    int                    // posted and not flushed
	flushes int                    // those of something
	refuses map[rdma.MachineID]int // how many posts to a machine are still refused
	broken  []rdma.MachineID       // by Break
}

func (q *holdingQueue) Break(to rdma.MachineID) { q.broken = append(q.broken, to) }

func (q *holdingQueue) post(to rdma.MachineID) error {
	if q.refuses[to] > 0 {
		q.refuses[to]--
		return &rdma.Error{Op: rdma.OpWrite, To: to, Err: rdma.ErrFull}
	}
	q.held++
	return nil
}

func (q *holdingQueue) Read(to rdma.MachineID, _ rdma.Key, _ uint64, _ []byte, _ uint64) (bool, error) {
	return false, q.post(to)
}

func (q *holdingQueue) Write(to rdma.MachineID, _ rdma.Key, _ uint64, _ []byte, _ uint64) (bool, error) {
	return false, q.post(to)
}

func (q *holdingQueue) WriteRing(to rdma.MachineID, _ rdma.Key, _ uint64, _ []byte, _ uint64) (bool, error) {
	return false, q.post(to)
}

func (q *holdingQueue) Ring(to rdma.MachineID) error { return q.post(to) }

func (q *holdingQueue) Flush() {
	if q.held > 0 {
		q.held = 0
		q.flushes++
	}
}

func (q *holdingQueue) Poll([]rdma.Completion) int { return 0 }

// A countingClock counts pauses, which take no time.
type countingClock struct {
	clock.System
	yields, sleeps int
}

func (c *countingClock) Yield()              { c.yields++ }
func (c *countingClock) Sleep(time.Duration) { c.sleeps++ }

// holding returns a worker with peers 1 and 2 and a queue that holds what is posted. It has nothing to
// step through. lost gets the peers that it fences.
func holding() (w *Worker, q *holdingQueue, c *countingClock, lost *[]rdma.MachineID) {
	q, c, lost = &holdingQueue{refuses: make(map[rdma.MachineID]int)}, new(countingClock), new([]rdma.MachineID)
	m := &Machine{cfg: Config{Clock: c, Events: Events{Fenced: func(id rdma.MachineID, _ error) { *lost = append(*lost, id) }}}}
	w = newWorker(m, 0)
	w.q, w.stopped = &patientQueue{q, w}, true
	w.peers = []*peer{nil, {id: 1}, {id: 2}}
	return w, q, c, lost
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
		w, q, _, _ := holding()
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

	w, q, _, _ := holding()
	w.ringLocked(w.peers[1])
	w.kick()
	if q.held != 0 || q.flushes != 1 {
		t.Errorf("%d rings are held after %d flushes and a step", q.held, q.flushes)
	}
}

// Where flushes are system calls, goroutines gather their posts while others wait: the first of them to
// continue flushes for all, and nobody before it does.
func TestGather(t *testing.T) {
	w, q, c, _ := holding()
	w.m.gathers = true
	post := func(to rdma.MachineID) {
		t.Helper()
		w.Lock()
		must(t, w.q.Ring(to))
	}
	expect := func(when string, held, flushes, yields int) {
		t.Helper()
		if q.held != held || q.flushes != flushes || c.yields != yields {
			t.Errorf("%s: %d posts are held, after %d flushes and %d yields; want %d, %d, %d", when, q.held, q.flushes, c.yields, held, flushes, yields)
		}
	}
	none := wait.NewWaiter(c)

	post(1)
	w.GatherLocked()
	w.Unlock()
	expect("nobody else waits", 0, 1, 0)
	must(t, w.Await(&none))
	expect("nothing is gathered", 0, 1, 0)

	w.waiting.Store(gatherFrom)
	post(1)
	w.GatherLocked()
	w.Unlock()
	expect("others wait", 1, 1, 0)
	post(2)
	w.Unlock()
	expect("another goroutine that will not wait unlocks", 2, 1, 0)
	w.kick()
	expect("input is processed", 2, 1, 0)
	post(2)
	w.GatherLocked()
	w.Unlock()
	must(t, w.Await(&none))
	expect("the first goroutine waits", 0, 2, 1)
	must(t, w.AwaitWithin(&none, nil))
	expect("the other one waits", 0, 2, 1)
	if n := w.waiting.Load(); n != gatherFrom {
		t.Errorf("%d goroutines are said to wait after two have ended", n-gatherFrom)
	}

	post(1)
	w.GatherLocked()
	w.Unlock()
	q.refuses[2] = 1
	post(2)
	expect("a queue has become full", 1, 3, 2)
	w.Unlock()
	expect("what was posted after that flush leaves as ever", 0, 4, 2)
}

// The goroutine that gathers posts flushes them although another one has begun to gather meanwhile.
func TestGatherAgain(t *testing.T) {
	w, q, c, _ := holding()
	w.m.gathers = true
	w.waiting.Store(gatherFrom)
	none := wait.NewWaiter(c)
	for range 2 {
		w.Lock()
		must(t, w.q.Ring(1))
		w.GatherLocked()
		w.Unlock()
	}
	must(t, w.Await(&none))
	if q.held != 0 || w.gathering.Load() {
		t.Errorf("%d posts are held, gathering %v", q.held, w.gathering.Load())
	}
}

// Only where the kernel carries operations do goroutines gather posts, and sleep at once.
func TestEntersKernel(t *testing.T) {
	for _, c := range []struct {
		read    time.Duration
		gathers bool
		yields  int
	}{{50 * time.Nanosecond, false, spinWait}, {time.Microsecond, false, spinWait}, {2 * time.Microsecond, true, 0}} {
		costs := rdma.Costs{Read: c.read, Message: time.Millisecond}
		if entersKernel(costs) != c.gathers || yieldsFor(costs) != c.yields {
			t.Errorf("READs of %v: %v, %d yields", c.read, entersKernel(costs), yieldsFor(costs))
		}
	}
}

// A post to a full queue flushes, since what fills it may be held back, and waits for room.
func TestPostAwaitsRoom(t *testing.T) {
	for name := range everyPost(nil) {
		w, q, c, lost := holding()
		w.Lock()
		must(t, w.q.Ring(2))
		q.refuses[1] = roomYields + 2
		must(t, everyPost(w.q)[name](1))
		if q.flushes != 1 || q.held != 1 || c.yields != roomYields || c.sleeps != 2 || len(*lost) != 0 {
			t.Errorf("%s: %d flushes, %d posts held, %d yields, %d pauses, lost %v", name, q.flushes, q.held, c.yields, c.sleeps, *lost)
		}
		w.Unlock()
	}
}

// A peer that makes no room is taken for lost after a bounded wait: whoever waits for it learns that,
// the next post does not wait again, and others are not concerned.
func TestPeerThatMakesNoRoom(t *testing.T) {
	for name := range everyPost(nil) {
		w, q, c, lost := holding()
		w.Lock()
		waiting := &call{to: 1, wait: wait.NewWaiter(c)}
		waiting.wait.Add(1)
		w.openCallLocked(waiting)
		const refusals = 2 * (roomYields + roomPauses)
		q.refuses[1] = refusals
		post := everyPost(w.q)[name]
		if err := post(1); !errors.Is(err, rdma.ErrBroken) || !errors.Is(err, rdma.ErrFull) {
			t.Errorf("%s: %v", name, err)
		}
		if c.yields != roomYields || c.sleeps != roomPauses || len(*lost) != 1 || (*lost)[0] != 1 {
			t.Errorf("%s: lost %v after %d yields and %d pauses", name, *lost, c.yields, c.sleeps)
		}
		if err := waiting.wait.Failed(); waiting.wait.Open() != 0 || !errors.Is(err, rdma.ErrBroken) {
			t.Errorf("%s: a call waits, %v", name, err)
		}
		left := q.refuses[1]
		if err := post(1); !errors.Is(err, rdma.ErrBroken) || q.refuses[1] != left-1 || c.sleeps != roomPauses {
			t.Errorf("%s: the next post is refused %d times, %d pauses: %v", name, left-q.refuses[1], c.sleeps, err)
		}
		must(t, post(2))
		w.Unlock()
	}
}

// A configuration breaks the connections to those that it leaves out, and to nobody else: an operation
// that is pending at a machine that has left must not wait for the network.
func TestFreezeBreaksWhoHasLeft(t *testing.T) {
	m, _ := listener(t)
	self, err := participant.NewOwnLog(nvram.NewMemory(64<<10), record.Coordinator{Machine: 0, Worker: 0}, 1)
	must(t, err)
	w := m.workers[0]
	w.self = self
	for id := rdma.MachineID(1); id <= 2; id++ {
		_, err := m.Listen(id)
		must(t, err)
	}
	q := &holdingQueue{Queue: w.q}
	w.q = &patientQueue{q, w}
	c := &cluster.Configuration{ID: 3, NextRegion: 3}
	c.AddMember(cluster.Member{Machine: 0})
	c.AddMember(cluster.Member{Machine: 2})
	m.Freeze(c)
	if !slices.Equal(q.broken, []rdma.MachineID{1}) {
		t.Errorf("broken: %v, want that to machine 1", q.broken)
	}
	w.q = &patientQueue{q.Queue, w} // of a provider whose operations do not wait
	c.ID++
	m.Freeze(c)
}
