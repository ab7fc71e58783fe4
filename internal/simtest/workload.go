package simtest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/internal/history"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// A Workload adds clients of a layer above this package, which this package may not
// import. It has an engine at each machine, over the machine's transactions and its own
// catalog.
type Workload interface {
	// Open opens the engine of a machine, on a routine of it. The catalog's anchor is
	// in the object root.
	Open(m *txn.Machine, root region.Ptr, cfg catalog.Config) (Engine, error)
	// Name returns the name, for reports, of the history's object that Row returns for i.
	Name(i int) string
}

// An Engine belongs to one life of a machine. It runs on routines of the machine.
type Engine interface {
	Catalog() *catalog.Catalog
	// SetUp creates the sessions' data: once, before there are faults.
	SetUp() error
	// Session returns the session of a new client.
	Session() Session
	// Check walks all data, and passes each object in use, except the root, to object. It is called
	// only while no session runs.
	Check(root region.Ptr, object func(region.Ptr) error) error
}

// A Session runs transactions. They fail with errors that client.end knows, or ErrGivenUp.
type Session interface {
	// Transact runs a random transaction, which is recorded.
	Transact(Work) error
	// ReadAll reads everything in one transaction.
	ReadAll(Work) error
	// Define changes the definitions of the data, in as many transactions as it takes.
	// They are not recorded.
	Define(Work) error
}

// Work is one transaction of a Session: its recording, and its random numbers.
type Work struct {
	Record *history.Recording
	// Value returns a value that nobody has written yet.
	Value func() history.Value
	Rand  *rand.Rand
	// Think pauses the client.
	Think func()
	// Dead reports whether the client's machine has been killed. The client then runs on to its next
	// wait, and the results that it gets meanwhile do not count.
	Dead func() bool
}

// ErrGivenUp is the error of transactions that their user gives up.
var ErrGivenUp = errUser

// Row returns an object of the history for a Workload; i is from 0 to 65535.
func Row(i int) history.Object { return objectOf(inWorkload, i) }

// engineAt returns the engine of a machine, and opens it if necessary; nil while another
// client opens it.
func (r *run) engineAt(n *node) (Engine, error) {
	if n.engine != nil || n.opening {
		return n.engine, nil
	}
	n.opening = true
	defer func() { n.opening = false }()
	e, err := r.options.Workload.Open(n.m, r.store.workload, catalog.Config{Hashes: n.server, Lives: r.cluster.Lives(n.id)})
	if err != nil {
		return nil, err
	}
	e.Catalog().LivesChanged() // lives may have changed before the catalog was open
	n.engine = e
	return e, nil
}

// makeWorkload creates the object that points to the catalog, and the sessions' data.
func (r *run) makeWorkload(n *node) error {
	err := n.m.Run(ctx, func(t *txn.Tx) (err error) {
		r.store.workload, _, err = t.Alloc(region.PtrBytes, 0)
		return err
	})
	if err != nil {
		return err
	}
	e, err := r.engineAt(n)
	if err == nil {
		err = e.SetUp()
	}
	return err
}

// runSession runs a transaction of the client's session, or defines something.
func (c *client) runSession() error {
	if c.session == nil {
		e, err := c.engineAt(c.node)
		if err != nil || e == nil {
			return passes(c.outcome(err))
		}
		c.session = e.Session()
	}
	if c.rng.IntN(20) == 0 {
		err := c.outcome(c.session.Define(c.newWork(nil)))
		if err == nil && !c.process.Dead() {
			c.result.Tables++
		}
		return passes(err)
	}
	return c.recorded(c.session.Transact)
}

func (c *client) newWork(h *history.Recording) Work {
	return Work{Record: h, Value: c.rec.Value, Rand: c.rng, Dead: c.process.Dead, Think: func() {
		c.process.Sleep(time.Duration(c.rng.Int64N(int64(thinkMax))))
	}}
}

// recorded records what a session does in one transaction.
func (c *client) recorded(transact func(Work) error) error {
	c.h = c.rec.Begin(c.label)
	defer c.untold(c.h)
	return c.end(transact(c.newWork(c.h)))
}

// readWorkload reads all data of the workload in one transaction. No other client may run
// meanwhile.
func (c *client) readWorkload() error {
	e, err := c.engineAt(c.node)
	if err != nil {
		return err
	}
	const attempts = 100
	s := e.Session()
	for range attempts {
		before := c.commits[c.id]
		if err := c.recorded(s.ReadAll); err != nil || c.commits[c.id] > before {
			return err
		}
	}
	return errors.New("simtest: nobody else is there, and reading the workload conflicts")
}

// reachableWorkload returns all objects that the workload uses, its root included. No session may
// run meanwhile.
func (s *store) reachableWorkload(n *node) (ptrs []region.Ptr, err error) {
	err = n.engine.Check(s.workload, func(p region.Ptr) error {
		ptrs = append(ptrs, p)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("the workload: %w", err)
	}
	return append(ptrs, s.workload), nil
}
