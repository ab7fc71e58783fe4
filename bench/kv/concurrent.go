package kv

import (
	"time"

	"github.com/farmsql/farmsql/bench"
	"github.com/farmsql/farmsql/index/hash"
)

// concurrent is a set of pending lookups, which a client begins one after the other.
type concurrent struct {
	th      *bench.Thread
	w       *Workload
	lookups *hash.Lookups
	// asked are the pending lookups: lookup i is at i modulo its length.
	asked [hash.ConcurrentMax]asked
	begun uint
	// ended counts the lookups that have ended in this call of do; first is when the
	// first of them began.
	ended int
	first time.Duration
	err   error // the error of the first wrong answer
}

// asked is a pending lookup.
type asked struct {
	key    [keyBytes]byte
	number int
	began  time.Duration
}

func newConcurrent(w *Workload, th *bench.Thread, e executor) *concurrent {
	c := &concurrent{th: th, w: w}
	c.lookups = e.lookups(w.cfg.Concurrent, c.see)
	return c
}

// do begins lookups until at least one of the pending ones has ended. The client draws their keys.
func (c *concurrent) do(cl *client) error {
	for c.ended = 0; c.ended == 0; {
		a := &c.asked[c.begun%hash.ConcurrentMax]
		c.begun++
		a.number, a.began = cl.draw(), c.th.Now
		if err := c.lookups.Start(fillKey(a.key[:], a.number)); err != nil {
			return err
		}
	}
	c.th.Together, c.th.Began = c.ended, c.first
	return c.err
}

// see checks the value of key i.
func (c *concurrent) see(i int, value []byte, ok bool) {
	a := &c.asked[uint(i)%hash.ConcurrentMax]
	if c.ended == 0 || a.began < c.first {
		c.first = a.began
	}
	c.ended++
	if c.err == nil {
		c.err = c.w.checkAnswer(a.key[:], a.number, value, ok)
	}
}
