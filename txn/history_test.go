package txn_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/farmsql/farmsql/internal/history"
	"github.com/farmsql/farmsql/internal/invariant"
	"github.com/farmsql/farmsql/internal/testnet"
	"github.com/farmsql/farmsql/internal/txntest"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/outcome"
)

// A client runs random transactions on few objects and records what it sees.
type client struct {
	r    *rig
	m    *txn.Machine
	rec  *history.Recorder
	rng  *rand.Rand
	name string
}

// errUser is what transactions fail with that their user gives up.
var errUser = errors.New("user")

// step runs one transaction, once.
func (c *client) step() error {
	h := c.rec.Begin(c.name)
	defer h.End(history.Unknown)
	if c.rng.IntN(10) == 0 {
		return c.lockFree(h)
	}
	t := c.m.Begin()
	defer t.Abort()
	err := c.body(t, h)
	if err == nil {
		err = t.Commit(ctx)
	} else if errors.Is(err, errUser) {
		if t.Validate() == nil {
			h.Shown() // what led to it was true
		}
	}
	switch {
	case err == nil:
		h.End(history.Committed)
	case errors.Is(err, outcome.ErrConflict), errors.Is(err, errUser):
		h.End(history.Aborted)
	default:
		return err
	}
	return nil
}

// lockFree is a transaction of a single read.
func (c *client) lockFree(h *history.Recording) error {
	i := c.pick()
	b := make([]byte, c.r.ptrs[i].Capacity())
	switch _, err := c.m.Read(c.r.ptrs[i], b); {
	case errors.Is(err, region.ErrLocked): // for as long as a reader waits, where nobody gets a processor
		h.End(history.Aborted)
	case err != nil:
		return err
	default:
		h.Read(history.Object(i), history.Value(number(b)))
		h.End(history.Committed)
	}
	return nil
}

// pick prefers the first objects.
func (c *client) pick() int { return c.rng.IntN(1 + c.rng.IntN(len(c.r.ptrs))) }

func (c *client) body(t *txn.Tx, h *history.Recording) error {
	readOnly := c.rng.IntN(4) == 0
	for range 1 + c.rng.IntN(6) {
		mark, recorded := t.Mark(), h.Mark()
		i := c.pick()
		if err := c.op(t, h, i, !readOnly && c.rng.IntN(2) == 0); err != nil {
			return err
		}
		switch c.rng.IntN(20) {
		case 0:
			t.Rollback(mark)
			h.Undo(recorded)
		case 1:
			if c.rng.IntN(4) == 0 {
				return errUser
			}
		}
	}
	return nil
}

func (c *client) op(t *txn.Tx, h *history.Recording, i int, write bool) error {
	if !write {
		v, err := read(t, c.r.ptrs[i])
		if err == nil {
			h.Read(history.Object(i), history.Value(v))
		}
		return err
	}
	b, err := t.Write(c.r.ptrs[i])
	if err != nil {
		return err
	}
	h.Read(history.Object(i), history.Value(number(b)))
	v := c.rec.Value()
	put(b, uint64(v))
	h.Write(history.Object(i), v)
	return nil
}

// runHistory runs transactions of clients on all machines, and returns the result of checking the
// history.
func runHistory(t *testing.T, r *rig, clients, transactions int) history.Report {
	rec := history.NewRecorder()
	var wg sync.WaitGroup
	for g := range clients {
		wg.Go(func() {
			c := client{r: r, m: r.Machine(g % r.Machines()), rec: rec, rng: rand.New(rand.NewPCG(5, uint64(g))), name: fmt.Sprintf("client %d", g)}
			for range transactions {
				if err := c.step(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return rec.Check(history.Options{})
}

// "Serializability in FaRM is also strict: the serialization point is always between
// the start of execution and the completion being reported to the application." The
// histories of clients on all machines are checked.
func TestPaper4_StrictSerializability(t *testing.T) {
	eachShape(t, func(t *testing.T, cfg txntest.Config) {
		r := open(t, cfg, 8)
		transactions := 1500
		if invariant.Enabled || strings.HasSuffix(t.Name(), string(testnet.Verbs)) { // slow, and where a processor is emulated
			transactions = 120
		}
		report := runHistory(t, r, 3*r.Machines(), transactions)
		if err := report.Err(); err != nil {
			t.Error(err)
		}
		if report.Committed < transactions {
			t.Errorf("only %d transactions committed", report.Committed)
		}
		r.quiet()
	})
}
