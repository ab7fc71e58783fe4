package rdma

import (
	"sync"
	"sync/atomic"
)

// Counts say what the queues of a NIC have asked of the network since the machine joined. Operations of a machine on itself
// are not counted: they are copies. A field that has no meaning for a provider is 0.
//
//	            verbs                         tcp                    shm
//	Operations  posts that were accepted, of READs, WRITEs and rings, to other machines
//	Bytes       of all work requests          of the operations      -
//	Calls       of C, with work requests      of the kernel to send  -
//	Polls       all other calls of C          -                      -
//	Answers     -                             of the kernel to send  -
//	Doorbells   of the card                   -                      bells of peers
//	Requests, Signalled, Inlined, Fenced      -                      -
//	Wakes       events that were waited for   -                      calls of the kernel that woke a peer
type Counts struct {
	Operations uint64
	// Bytes are the bytes of READs and WRITEs. On a card they include the READs that follow
	// WRITEs that somebody waits for.
	Bytes uint64
	// Calls are the calls that hand over operations. Each leaves Go, which costs time, so a
	// batch should need one, to however many machines it goes.
	Calls uint64
	// Polls are the calls that look for completions, hand over receives, or ask for events.
	Polls uint64
	// Answers are this machine's answers to operations of others.
	Answers uint64
	// Doorbells tell a card of work requests that it has not fetched: one for each chain of
	// requests on a queue pair.
	Doorbells uint64
	// Requests are the work requests that the card got for the operations: one for each, and
	// more for long ones.
	Requests uint64
	// Signalled are the requests whose completion the card reports. Inlined are the requests
	// that bring their bytes, so that the card need not fetch them. Fenced are the requests
	// that wait until earlier READs are done.
	Signalled, Inlined, Fenced uint64
	Wakes                      uint64
}

// A Counter is a NIC that counts.
type Counter interface{ Counts() Counts }

// Sub subtracts the earlier counts from c: it returns what was counted in between.
func (c Counts) Sub(before Counts) Counts {
	c.Operations -= before.Operations
	c.Bytes -= before.Bytes
	c.Calls -= before.Calls
	c.Polls -= before.Polls
	c.Answers -= before.Answers
	c.Doorbells -= before.Doorbells
	c.Requests -= before.Requests
	c.Signalled -= before.Signalled
	c.Inlined -= before.Inlined
	c.Fenced -= before.Fenced
	c.Wakes -= before.Wakes
	return c
}

// Add returns the sum of two counts.
func (c Counts) Add(o Counts) Counts { return c.Sub(Counts{}.Sub(o)) }

// Counters are the counters of Counts, with the same fields, while a NIC counts. They are safe
// for concurrent use.
type Counters struct {
	Operations, Bytes, Calls, Polls, Answers, Doorbells atomic.Uint64
	Requests, Signalled, Inlined, Fenced, Wakes         atomic.Uint64
}

// AddTo adds what has been counted to c.
func (n *Counters) AddTo(c *Counts) {
	c.Operations += n.Operations.Load()
	c.Bytes += n.Bytes.Load()
	c.Calls += n.Calls.Load()
	c.Polls += n.Polls.Load()
	c.Answers += n.Answers.Load()
	c.Doorbells += n.Doorbells.Load()
	c.Requests += n.Requests.Load()
	c.Signalled += n.Signalled.Load()
	c.Inlined += n.Inlined.Load()
	c.Fenced += n.Fenced.Load()
	c.Wakes += n.Wakes.Load()
}

// CountersOf are the counters of a NIC's workers. If a worker opens another queue, its counters
// go on.
type CountersOf struct{ workers sync.Map } // int to *Counters

// Worker returns the counters of a worker.
func (w *CountersOf) Worker(worker int) *Counters {
	n, _ := w.workers.LoadOrStore(worker, new(Counters))
	return n.(*Counters)
}

// Sum returns what the counters of all workers have counted.
func (w *CountersOf) Sum() (c Counts) {
	w.workers.Range(func(_, n any) bool {
		n.(*Counters).AddTo(&c)
		return true
	})
	return c
}
