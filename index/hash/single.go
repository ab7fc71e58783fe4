package hash

import (
	"context"
	"errors"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/internal/prefetch"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/outcome"
)

// Single operations are transactions of one operation on one key each. They are
// shipped to the primary of the key's shard, where the transaction is a local
// one, and concurrent operations on the same key are combined into one transaction
// (NSDI'14 section 3.6, after flat combining): so operations on a hot key do not
// conflict, and are replicated only once.

// A single is one operation, and later its result.
type single struct {
	kind  singleKind
	value []byte
	// done means for a put or an insert that it took effect, for a delete that the
	// key was in the table.
	done bool
}

type singleKind uint8

const (
	singlePut singleKind = iota
	singleInsert
	singleDelete
	singleKinds
)

// PutNow makes value the value of key in a transaction of its own.
func (tb *Table) PutNow(ctx context.Context, key, value []byte) error {
	_, err := tb.runNow(ctx, key, single{kind: singlePut, value: value})
	return err
}

// InsertNow adds key in a transaction of its own. It returns ErrExists if the key is in
// the table.
func (tb *Table) InsertNow(ctx context.Context, key, value []byte) error {
	done, err := tb.runNow(ctx, key, single{kind: singleInsert, value: value})
	if err == nil && !done {
		return ErrExists
	}
	return err
}

// DeleteNow removes key in a transaction of its own and reports whether it was in the
// table.
func (tb *Table) DeleteNow(ctx context.Context, key []byte) (bool, error) {
	return tb.runNow(ctx, key, single{kind: singleDelete})
}

// runNow runs one operation in a transaction of its own, at the shard's primary, together with
// other operations on the same key that wait.
func (tb *Table) runNow(ctx context.Context, key []byte, op single) (bool, error) {
	if err := checkPair(len(key), len(op.value)); err != nil {
		return false, err
	}
	o, err := tb.open()
	if err != nil {
		return false, err
	}
	ops := []single{op}
	if to := o.dir.find(sum(o.seed, key)).first.Addr; tb.m.IsPrimary(to) {
		err = tb.combine(&tb.here, key, ops, func(ops []single, alone bool) error {
			return tb.doHere(unless(ctx, !alone), key, ops)
		})
	} else {
		err = tb.combine(&tb.there, key, ops, func(ops []single, alone bool) error {
			return tb.doThere(unless(ctx, !alone), to, key, ops)
		})
	}
	return ops[0].done, err
}

// unless returns ctx, or, if the operations of other callers depend on it, a context that
// cannot be cancelled.
func unless(ctx context.Context, others bool) context.Context {
	if others {
		return context.WithoutCancel(ctx)
	}
	return ctx
}

// combining combines operations on the same key that arrive at the same time. A handle has
// two: one for operations that run here, from callers on this and on other machines, and one
// for operations that it ships. So an operation that was shipped here never waits for an
// operation that this machine ships, even if two machines disagree on which is the key's primary.
//
// The keys are in parts by their hash, each with a lock on cache lines of its own: operations on
// different keys seldom want the same lock.
type combining [combiningParts]combiningPart

const combiningParts = 64 // a power of two

type combiningPart struct {
	mu   lockrank.Mutex[lockrank.Leaf]
	keys map[string]*queue
	_    prefetch.Pad
}

// of returns the part of a key.
func (c *combining) of(key []byte) *combiningPart { return &c[sum(0, key)%combiningParts] }

// A queue holds the requests that wait while a transaction is changing their key.
type queue struct{ waiting []*request }

// A request is one caller's operations on a key.
type request struct {
	ops []single
	err error
	// turn is set once: either the request is settled, or its caller must now do it,
	// together with all requests that have arrived since.
	turn    clock.Event
	settled bool
}

// combine calls do with ops, and with the operations of all requests on key that are
// waiting, or waits until another caller has done so. alone says that all operations are
// the caller's own.
func (tb *Table) combine(parts *combining, key []byte, ops []single, do func(ops []single, alone bool) error) error {
	c, r := parts.of(key), &request{ops: ops}
	if c.join(tb.m.Clock(), key, r) {
		if r.turn.Wait(); r.settled {
			return r.err
		}
	}
	batch := c.take(key, r)
	all := make([]single, 0, len(batch))
	for _, r := range batch {
		all = append(all, r.ops...)
	}
	tb.stats.combined.Add(uint64(len(batch) - 1))
	err := do(all, len(batch) == 1)
	for i, r := range batch {
		all = all[copy(r.ops, all):]
		r.err = err
		if i > 0 {
			r.settled = true
			r.turn.Set()
		}
	}
	c.pass(key)
	return r.err
}

// join queues r and returns true if the key is being changed. Otherwise it returns
// false: it is r's turn.
func (c *combiningPart) join(cl clock.Clock, key []byte, r *request) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if q := c.keys[string(key)]; q != nil {
		r.turn = cl.NewEvent()
		q.waiting = append(q.waiting, r)
		return true
	}
	if c.keys == nil {
		c.keys = make(map[string]*queue)
	}
	c.keys[string(key)] = &queue{}
	return false
}

// take returns r, whose turn it is, and all waiting requests, which it removes from the
// queue.
func (c *combiningPart) take(key []byte, r *request) []*request {
	c.mu.Lock()
	defer c.mu.Unlock()
	q := c.keys[string(key)]
	batch := append([]*request{r}, q.waiting...)
	q.waiting = nil
	return batch
}

// pass gives the turn to the first waiting request.
func (c *combiningPart) pass(key []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	q := c.keys[string(key)]
	if len(q.waiting) == 0 {
		delete(c.keys, string(key))
		return
	}
	q.waiting[0].turn.Set()
	q.waiting = q.waiting[1:]
}

// doThere ships ops to the primary of a shard, which does them in one transaction.
func (tb *Table) doThere(ctx context.Context, to region.Addr, key []byte, ops []single) error {
	arg := appendSingles(appendKey(tb.anchor.Append(nil), key), ops)
	reply, err := tb.m.Ship(ctx, to, handlerSingle, arg)
	var shipped *outcome.ShippedError
	switch {
	case errors.Is(err, outcome.ErrTooLarge):
		return tb.doHere(ctx, key, ops) // the message was too large
	case errors.As(err, &shipped) && !errors.Is(err, outcome.ErrConflict) && !errors.Is(err, outcome.ErrInDoubt):
		// Callers can match an error that occurs here with errors.Is, but not a shipped one.
		return tb.doHere(ctx, key, ops)
	case err != nil:
		return err
	}
	tb.stats.shipped.Add(1)
	return decodeResults(reply, ops)
}

// doHere does ops on key in one transaction.
func (tb *Table) doHere(ctx context.Context, key []byte, ops []single) error {
	return tb.m.Run(ctx, func(t *txn.Tx) error {
		for i := range ops {
			if err := tb.doOne(t, key, &ops[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

func (tb *Table) doOne(t *txn.Tx, key []byte, op *single) (err error) {
	op.done = true
	switch op.kind {
	case singlePut:
		return tb.Put(t, key, op.value)
	case singleInsert:
		err = tb.Insert(t, key, op.value)
		if errors.Is(err, ErrExists) {
			op.done, err = false, nil
		}
	case singleDelete:
		op.done, err = tb.Delete(t, key)
	}
	return err
}
