package growth

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/farmsql/farmsql/bench"
)

// An endpoint is a machine that serves, to which clients connect.
type endpoint struct {
	machine  int
	target   *bench.Target
	workload bench.Workload
	clients  int  // guarded by clients.mu
	isClosed bool // nobody connects to it any more; guarded by clients.mu
}

// clients run the workload at all machines that serve, until stop.
type clients struct {
	n       int
	seed    uint64
	start   time.Time // the times in work count from it
	cancel  context.CancelCauseFunc
	running sync.WaitGroup

	mu        sync.Mutex
	isStopped bool
	endpoints []*endpoint
	work      work
}

// work is what clients have done.
type work struct {
	ends     []time.Duration // when transactions have ended
	failures []failed
	// acknowledged and doubtful count transactions by kind: those that have committed, and those
	// that have failed, perhaps in the commit.
	acknowledged, doubtful map[int]int
	aborts                 map[string]uint64 // conflicts after which a client repeated its transaction, by reason
	longest                wait
	err                    error // the first error that ends the run
}

// failed is an attempt at a transaction that failed because its machine stopped, or was away.
type failed struct {
	at     time.Duration
	reason string
}

// A wait is a time in which one client ended no transaction.
type wait struct {
	began, length time.Duration
}

func newClients(n int, seed uint64) *clients {
	return &clients{n: n, seed: seed, work: work{
		acknowledged: make(map[int]int), doubtful: make(map[int]int), aborts: make(map[string]uint64),
	}}
}

// open lets clients connect to one more machine.
func (c *clients) open(e *endpoint) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endpoints = append(c.endpoints, e)
}

// shut keeps further clients from connecting to a machine, as a load balancer does once it knows
// that the machine does not serve. Clients that are connected stay.
func (c *clients) shut(machine int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.endpoints {
		if e.machine == machine {
			e.isClosed = true
		}
	}
}

// begin starts the clients. If one of them meets an error that ends the run, all end.
func (c *clients) begin(ctx context.Context) {
	ctx, c.cancel = context.WithCancelCause(ctx)
	c.start = time.Now()
	for i := range c.n {
		x := &client{clients: c, index: i, random: rand.New(rand.NewPCG(c.seed, uint64(i)))}
		c.running.Go(func() { x.run(ctx) })
	}
}

// end stops the clients once their transactions have ended, and returns what they have done.
func (c *clients) end(patience time.Duration) (*work, error) {
	c.mu.Lock()
	c.isStopped = true
	c.mu.Unlock()
	late := time.AfterFunc(patience, func() { c.cancel(fmt.Errorf("growth: clients have got no answer after %v", patience)) })
	c.running.Wait()
	late.Stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cancel(nil)
	return &c.work, c.work.err
}

// failure returns the error that has ended the run, if there is one.
func (c *clients) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.work.err
}

// now returns the time since the clients began.
func (c *clients) now() time.Duration { return time.Since(c.start) }

// enter adds a client to the endpoint with the fewest clients, and returns this endpoint; nil when
// the clients are to stop.
func (c *clients) enter() *endpoint {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isStopped {
		return nil
	}
	e := c.leastLocked()
	e.clients++
	return e
}

// leastLocked returns the open endpoint with the fewest clients. At least one is open, because the
// first machine never leaves.
func (c *clients) leastLocked() (least *endpoint) {
	for _, e := range c.endpoints {
		if !e.isClosed && (least == nil || e.clients < least.clients) {
			least = e
		}
	}
	return least
}

func (c *clients) leave(e *endpoint) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e.clients--
}

// stays reports whether a client stays at its endpoint for another transaction. It leaves if the
// clients are stopped, or if an open endpoint has at least two clients fewer.
func (c *clients) stays(e *endpoint) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.isStopped && e.clients <= c.leastLocked().clients+1
}

// A client runs one transaction after the other.
type client struct {
	*clients
	index  int
	random *rand.Rand    // draws the seeds of bench.Threads
	last   time.Duration // when its latest transaction ended
}

// reconnectPause is the time after which a client that has met an error connects again.
const reconnectPause = 20 * time.Millisecond

// run runs transactions, now at one endpoint and now at another, until the clients are stopped or an
// error ends the run.
func (x *client) run(ctx context.Context) {
	for {
		e := x.enter()
		if e == nil {
			break
		}
		err := x.workAt(ctx, e)
		x.leave(e)
		if err != nil {
			x.abandon(errors.Join(err, context.Cause(ctx)))
			break
		}
	}
	x.note(func(*work) {}) // the last wait counts, too
}

// workAt runs transactions at an endpoint until the client leaves it. It returns an error that ends the
// run.
func (x *client) workAt(ctx context.Context, e *endpoint) error {
	th := &bench.Thread{Index: x.index, Number: uint32(x.index + 1), Seed: x.random.Uint64(), Machine: e.machine}
	c, err := e.workload.NewClient(ctx, th)
	if err != nil {
		return x.meet(ctx, e, noKind, err)
	}
	defer func() {
		_ = c.Close() // fails if the connection is lost, which has been noted
		x.countAborts(th.Aborts())
	}()
	for x.stays(e) {
		kind, err := c.Do(ctx)
		if err != nil && !errors.Is(err, bench.ErrMiss) {
			return x.meet(ctx, e, kind, err)
		}
		x.note(func(w *work) {
			w.ends = append(w.ends, x.now())
			if err == nil {
				w.acknowledged[kind]++
			}
		})
	}
	return nil
}

// noKind is the kind of a transaction that has not begun.
const noKind = -1

// meet handles an error of a client. Unless reasonOf knows a reason for which the client may connect
// again, or if ctx has ended, the error ends the run, and meet returns it. Otherwise meet notes the
// error and pauses.
func (x *client) meet(ctx context.Context, e *endpoint, kind int, err error) error {
	reason, ok := reasonOf(err)
	if !ok || ctx.Err() != nil {
		return unexpected(e.machine, err)
	}
	x.mu.Lock()
	x.work.failures = append(x.work.failures, failed{x.now(), reason})
	if kind != noKind {
		x.work.doubtful[kind]++
	}
	x.mu.Unlock()
	sleep(ctx, reconnectPause)
	return nil
}

// note measures the client's wait since its latest transaction, and lets f record what the client has
// done.
func (x *client) note(f func(*work)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	now := x.now()
	if waited := now - x.last; waited > x.work.longest.length {
		x.work.longest = wait{x.last, waited}
	}
	x.last = now
	f(&x.work)
}

func (x *client) countAborts(aborts map[string]uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for reason, n := range aborts {
		x.work.aborts[reason] += n
	}
}

// abandon ends the run with an error.
func (c *clients) abandon(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isStopped = true
	if c.work.err == nil {
		c.work.err = err
		c.cancel(err)
	}
}
