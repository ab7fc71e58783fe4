package sim

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/rdma"
)

// Options describe a world. The zero value of each field means its default.
type Options struct {
	Seed uint64
	// Latency is the least time that a message takes between machines, 2 us by default;
	// normally a message takes up to twice as long, and now and then much longer.
	Latency time.Duration
	// Loss is how many of a thousand datagrams are lost, until World.Lose.
	Loss int
	// Drift bounds by how many millionths a machine's clock runs fast or slow.
	Drift int
	// Processors is the number of processors of each machine. Costs are the times that operations
	// take on them. Bandwidth is the number of bytes that a machine's card sends in a second.
	// Without them nothing takes time.
	Processors int
	Costs      Costs
	Bandwidth  float64
	// Packet is the time that a card takes for a packet. It bounds how many messages the card carries.
	// An operation has two packets at each card: a request and an answer.
	Packet time.Duration
	// Steady makes the network the same at all times: a message takes Latency, an operation takes effect as
	// a whole, and a completion rings at once. So a run says how fast machines are, and not what they survive.
	Steady bool
	// Trouble is how many of a thousand chances for trouble are taken at first. World.Trouble changes
	// that.
	Trouble int
	// Small is how many of a thousand transactions that may be treated as large are treated so,
	// until World.Small is called.
	Small int
	// Stale is how many of a thousand refreshes of a cache are lost, until World.Stale
	// is called.
	Stale int
	// TimeMax and EventsMax end a run that does not end by itself; an hour, and a
	// billion.
	TimeMax   time.Duration
	EventsMax uint64
	// Trace, if not nil, is called for every event.
	Trace func(at time.Duration, what string)
}

// ErrStuck means that a run has not ended: no event is left, or too many have happened.
var ErrStuck = errors.New("sim: stuck")

// A World is one simulated cluster. It belongs to the goroutine that calls Run.
type World struct {
	options  Options
	rng      *rand.Rand
	now      time.Duration
	events   events
	count    uint64 // number of events so far
	hash     uint64
	outside  *Process
	machines []*Machine // by id
	current  *routine
	worked   time.Duration // cost of the running turn so far
	routines uint64        // number of routines made so far
	idle     []*routine
	failure  error
	network  network
	troubles [clock.Troubles]int // number of times that each trouble has happened
}

// New returns a world without machines.
func New(o Options) *World {
	o.Latency = cmp.Or(o.Latency, 2*time.Microsecond)
	o.TimeMax = cmp.Or(o.TimeMax, time.Hour)
	o.EventsMax = cmp.Or(o.EventsMax, 1e9)
	w := &World{options: o, rng: rand.New(rand.NewPCG(o.Seed, 0x5eed)), hash: o.Seed}
	w.network.init()
	w.outside = &Process{world: w}
	return w
}

// Machine returns a machine, and creates it on the first call.
func (w *World) Machine(id rdma.MachineID) *Machine {
	i, found := slices.BinarySearchFunc(w.machines, id, func(m *Machine, id rdma.MachineID) int { return int(m.id) - int(id) })
	if !found {
		m := &Machine{world: w, id: id, domain: int(id), shelf: newShelf()}
		if w.options.Drift > 0 {
			m.drift = float64(w.rng.IntN(2*w.options.Drift+1)-w.options.Drift) / 1e6
		}
		m.offset = time.Duration(w.rng.Int64N(int64(time.Hour)))
		w.machines = slices.Insert(w.machines, i, m)
	}
	return w.machines[i]
}

// Outside returns a clock that belongs to no machine and never dies.
func (w *World) Outside() *Process { return w.outside }

// Now returns the virtual time since the world began.
func (w *World) Now() time.Duration { return w.now }

// Rand draws from the world's seed. Use it within Run only, or before.
func (w *World) Rand() *rand.Rand { return w.rng }

// Hash returns a hash of all events.
func (w *World) Hash() uint64 { return w.hash }

// Events returns the number of events so far.
func (w *World) Events() uint64 { return w.count }

// Run runs f on a routine that belongs to no machine, and everything that f starts, until f
// returns. It returns an error if a routine panics, or if the run is stuck. In the end it
// unwinds all routines that are left.
func (w *World) Run(f func()) error {
	ended := false
	w.outside.Go(func() {
		f()
		ended = true
	})
	for !ended && w.failure == nil {
		if !w.step() && w.failure == nil {
			w.failure = fmt.Errorf("%w: after %v, everything waits", ErrStuck, w.now)
		}
	}
	w.unwindAll()
	return w.failure
}

// HasProcessors reports whether processors are limited.
func (w *World) HasProcessors() bool { return w.options.Processors > 0 }

// step runs the next event, and reports whether there was one. If the run has reached TimeMax or EventsMax, step
// sets the failure instead and returns false.
func (w *World) step() bool {
	if w.events.len() == 0 {
		return false
	}
	e := w.events.pop()
	w.now, w.worked = e.at, 0
	w.count++
	w.mix(uint64(e.at))
	if w.now > w.options.TimeMax || w.count > w.options.EventsMax {
		w.failure = fmt.Errorf("%w: not at its end after %v and %d events", ErrStuck, w.now, w.count)
		return false
	}
	e.do()
	return true
}

// after makes f happen after d.
func (w *World) after(d time.Duration, f func()) { w.at(w.time()+max(d, 0), f) }

func (w *World) at(at time.Duration, f func()) { w.events.push(event{at: at, do: f}) }

// Every calls f every d, beside all events, until f returns false. It draws no random numbers, so
// the run is the same without it. f must not wait.
func (w *World) Every(d time.Duration, f func() bool) {
	w.at(w.now+d, func() {
		if f() {
			w.Every(d, f)
		}
	})
}

// upTo draws a duration below d.
func (w *World) upTo(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return time.Duration(w.rng.Int64N(int64(d)))
}

// mix mixes numbers into the hash.
func (w *World) mix(xs ...uint64) {
	for _, x := range xs {
		w.hash = (w.hash ^ x) * 0x9e3779b97f4a7c15
		w.hash ^= w.hash >> 29
	}
}

// tell passes an event to Options.Trace.
func (w *World) tell(format string, args ...any) {
	if w.options.Trace != nil {
		w.options.Trace(w.now, fmt.Sprintf(format, args...))
	}
}

// Note adds an action of the world's user to its trace and hash.
func (w *World) Note(what string) {
	for _, c := range []byte(what) {
		w.mix(uint64(c))
	}
	w.tell("%s", what)
}

// An event is something that will happen at a time.
type event struct {
	at  time.Duration
	seq uint64
	do  func()
}

func (a *event) before(b *event) bool { return a.at < b.at || (a.at == b.at && a.seq < b.seq) }

// events is a heap with the first event at the top; of events at one time, the one pushed
// first.
type events struct {
	heap []event
	seq  uint64
}

func (q *events) len() int { return len(q.heap) }

func (q *events) push(e event) {
	q.seq++
	e.seq = q.seq
	q.heap = append(q.heap, e)
	i := len(q.heap) - 1
	for i > 0 && q.heap[i].before(&q.heap[(i-1)/2]) {
		q.heap[i], q.heap[(i-1)/2] = q.heap[(i-1)/2], q.heap[i]
		i = (i - 1) / 2
	}
}

// pop removes the first event. There must be one.
func (q *events) pop() event {
	top := q.heap[0]
	last := len(q.heap) - 1
	q.heap[0], q.heap[last] = q.heap[last], event{}
	q.heap = q.heap[:last]
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			return top
		}
		if child+1 < last && q.heap[child+1].before(&q.heap[child]) {
			child++
		}
		if !q.heap[child].before(&q.heap[i]) {
			return top
		}
		q.heap[i], q.heap[child] = q.heap[child], q.heap[i]
		i = child
	}
}
