package hash

import (
	"context"
	"errors"

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
	// done says that a put or an insert took effect, or that the key of a delete was in
	// the table.
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
// other operations on the same key that wait. It returns whether the operation was done: see doOne.
func (tb *Table) runNow(ctx context.Context, key []byte, op single) (bool, error) {
	if err := checkPair(len(key), len(op.value)); err != nil {
		return false, err
	}
	o, err := tb.open()
	if err != nil {
		return false, err
	}
	r := newRequest(key, op)
	if to := o.dir.find(sum(o.seed, key)).first.Addr; tb.m.IsPrimary(to) {
		err = tb.combine(tb.here, r, func(ops []single, alone bool) error {
			return tb.doHere(contextFor(ctx, alone), key, ops)
		})
	} else {
		err = tb.combine(tb.there, r, func(ops []single, alone bool) error {
			return tb.doThere(contextFor(ctx, alone), to, key, ops)
		})
	}
	return r.ops[0].done, err
}

// contextFor returns the context for a transaction. If the transaction does the operations of a single
// caller, that is ctx, the caller's own. Otherwise it is a context that the caller cannot cancel.
func contextFor(ctx context.Context, alone bool) context.Context {
	if alone {
		return ctx
	}
	return context.WithoutCancel(ctx)
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

// doOne does op in a transaction, and sets whether it was done: an insert is not if the key exists, a delete if it does not.
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
