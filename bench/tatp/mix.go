package tatp

import (
	"context"
	"math/rand/v2"
)

// A kind is one of the seven transactions.
type kind int

const (
	getSubscriberData kind = iota
	getNewDestination
	getAccessData
	updateSubscriberData
	updateLocation
	insertCallForwarding
	deleteCallForwarding
	kinds
)

var kindNames = [kinds]string{
	"get subscriber data", "get new destination", "get access data",
	"update subscriber data", "update location", "insert call forwarding", "delete call forwarding",
}

// share is the percentage of transactions of each kind.
var share = [kinds]int{35, 10, 35, 2, 14, 2, 2}

// byPercent is the kind for each of a hundred numbers.
var byPercent = func() (all [100]kind) {
	n := 0
	for k, s := range share {
		for range s {
			all[n] = kind(k)
			n++
		}
	}
	return all
}()

// A request is one transaction with its parameters.
type request struct {
	kind       kind
	id         uint32
	which      uint8 // which of the kinds of access information or facilities is meant
	start, end uint8
	bit, data  uint8
	vlr        uint32
	number     [numberDigits]byte
}

// A mix draws requests.
type mix struct {
	rnd         *rand.Rand
	subscribers uint64
	// a is the description's parameter A, which determines how uneven the choice of subscribers is.
	a uint64
}

// newMix returns the mix of a client. a is the description's constant A of NURand, which depends on
// the number of subscribers.
func newMix(seed uint64, subscribers int) *mix {
	m := &mix{rnd: rand.New(rand.NewPCG(seed, 0x7a7b)), subscribers: uint64(subscribers)}
	switch {
	case subscribers <= 1_000_000:
		m.a = 65_535
	case subscribers <= 10_000_000:
		m.a = 1_048_575
	default:
		m.a = 2_097_151
	}
	return m
}

// subscriber draws a subscriber by the description's NURand, not uniformly: numbers with more bits set
// are more likely.
func (m *mix) subscriber() uint32 {
	return uint32((m.rnd.Uint64N(m.a+1)|(1+m.rnd.Uint64N(m.subscribers)))%m.subscribers) + 1
}

func (m *mix) next(r *request) {
	r.kind = byPercent[m.rnd.UintN(100)]
	r.id = m.subscriber()
	switch r.kind {
	case getNewDestination:
		r.which, r.start, r.end = m.which(), m.start(), 1+uint8(m.rnd.UintN(endMax))
	case getAccessData:
		r.which = m.which()
	case updateSubscriberData:
		r.which, r.bit, r.data = m.which(), uint8(m.rnd.UintN(2)), uint8(m.rnd.UintN(256))
	case updateLocation:
		r.vlr = positive(m.rnd)
	case insertCallForwarding:
		r.which, r.start, r.end = m.which(), m.start(), 1+uint8(m.rnd.UintN(endMax))
		digits(m.rnd, &r.number)
	case deleteCallForwarding:
		r.which, r.start = m.which(), m.start()
	}
}

func (m *mix) which() uint8 { return 1 + uint8(m.rnd.UintN(4)) }
func (m *mix) start() uint8 { return startStep * uint8(m.rnd.UintN(forwardMax)) }

// An executor executes requests through one API.
type executor interface {
	// execute executes a request, and repeats it after conflicts.
	execute(ctx context.Context, r *request) error
	close() error
}

// A client draws requests and executes them.
type client struct {
	w       *Workload
	mix     *mix
	request request
	executor
}

// Do implements bench.Client.
func (c *client) Do(ctx context.Context) (int, error) {
	r := &c.request
	c.mix.next(r)
	err := c.execute(ctx, r)
	if err == nil {
		switch r.kind {
		case insertCallForwarding:
			err = c.w.target.Count(1)
		case deleteCallForwarding:
			err = c.w.target.Count(-1)
		}
	}
	return int(r.kind), err
}

// Close implements bench.Client.
func (c *client) Close() error { return c.close() }
