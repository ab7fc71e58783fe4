package hash

import (
	"context"
	"errors"
	"sync"

	"github.com/farmsql/farmsql/txn"
)

// Single operations are transactions of one operation on one key each. They are
// shipped to the primary of the key's shard, where the transaction is a local
// one, and concurrent ones on the same key are combined into one transaction
// (NSDI'14 section 3.6, after flat combining): with a hot key the conflicts and
// the replication of all but one of them are saved.

// A single is one operation, and later its result.
type single struct {
	kind  singleKind
	value []byte
	// done of a put and an insert: it took effect. Of a delete: the key was
	// there.
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
	_, err := tb.now(ctx, key, single{kind: singlePut, value: value})
	return err
}

// InsertNow adds key in a transaction of its own; ErrExists if it is there.
func (tb *Table) InsertNow(ctx context.Context, key, value []byte) error {
	done, err := tb.now(ctx, key, single{kind: singleInsert, value: value})
	if err == nil && !done {
		return ErrExists
	}
	return err
}

// DeleteNow removes key in a transaction of its own and reports whether it was
// there.
func (tb *Table) DeleteNow(ctx context.Context, key []byte) (bool, error) {
	return tb.now(ctx, key, single{kind: singleDelete})
}

func (tb *Table) now(ctx context.Context, key []byte, op single) (bool, error) {
	if err := checkPair(len(key), len(op.value)); err != nil {
		return false, err
	}
	ops := []single{op}
	err := tb.combine(ctx, key, ops)
	return ops[0].done, err
}

// combining brings together what is to be done to a key at the same time.
type combining struct {
	mu   sync.Mutex
	keys map[string]*queue
}

// A queue is what waits behind the transaction that is changing the key now.
type queue struct{ waiting []*request }

// A request is one caller's operations on a key.
type request struct {
	ops []single
	err error
	// turn is sent to once: true if the request has been done, false if its
	// caller is to do it, and all that came in since.
	turn chan bool
}

// combine does ops on key, and takes care of others' on the way.
func (tb *Table) combine(ctx context.Context, key []byte, ops []single) error {
	c := &tb.combining
	r := &request{ops: ops}
	c.mu.Lock()
	if q := c.keys[string(key)]; q != nil {
		r.turn = make(chan bool, 1)
		q.waiting = append(q.waiting, r)
		c.mu.Unlock()
		if <-r.turn {
			return r.err
		}
		c.mu.Lock()
	} else {
		if c.keys == nil {
			c.keys = make(map[string]*queue)
		}
		c.keys[string(key)] = &queue{}
	}
	// It is our turn: with all that waits.
	batch := append([]*request{r}, c.keys[string(key)].waiting...)
	c.keys[string(key)].waiting = nil
	c.mu.Unlock()

	tb.doBatch(ctx, key, batch)

	c.mu.Lock()
	defer c.mu.Unlock()
	if q := c.keys[string(key)]; len(q.waiting) > 0 {
		next := q.waiting[0]
		q.waiting = q.waiting[1:]
		next.turn <- false
	} else {
		delete(c.keys, string(key))
	}
	return r.err
}

// doBatch does the operations of all requests in one transaction and tells those
// who wait. The context is that of the first; it does not count once others
// depend on the outcome.
func (tb *Table) doBatch(ctx context.Context, key []byte, batch []*request) {
	if len(batch) > 1 {
		ctx = context.WithoutCancel(ctx)
		tb.stats.combined.Add(uint64(len(batch) - 1))
	}
	var all []single
	for _, r := range batch {
		all = append(all, r.ops...)
	}
	err := tb.do(ctx, key, all)
	for i, r := range batch {
		copy(r.ops, all)
		all = all[len(r.ops):]
		r.err = err
		if i > 0 {
			r.turn <- true
		}
	}
}

// do does ops on key in one transaction, at the primary of the key's shard if
// that can be told and reached with a message.
func (tb *Table) do(ctx context.Context, key []byte, ops []single) error {
	o, err := tb.open()
	if err != nil {
		return err
	}
	to := o.dir.find(sum(o.seed, key)).first.Addr
	if tb.m.IsPrimary(to) {
		return tb.doHere(ctx, key, ops)
	}
	arg := appendSingles(appendKey(tb.anchor.Append(nil), key), ops)
	reply, err := tb.m.Ship(ctx, to, handlerSingle, arg)
	var shipped *txn.ShippedError
	switch {
	case errors.Is(err, txn.ErrTooLarge):
		return tb.doHere(ctx, key, ops) // the message was
	case errors.As(err, &shipped) && !errors.Is(err, txn.ErrConflict):
		// What is wrong there may be wrong here too, and then the error is one
		// that can be told from others.
		return tb.doHere(ctx, key, ops)
	case err != nil:
		return err
	}
	tb.stats.shipped.Add(1)
	return decodeResults(reply, ops)
}

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
