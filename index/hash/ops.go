package hash

import (
	"errors"

	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// begin prepares an operation of t on key.
func (tb *Table) begin(t *txn.Tx, key []byte) (*opened, *overlay, *entry, error) {
	ov, err := tb.overlay(t)
	if err != nil {
		return nil, nil, nil, err
	}
	return ov.o, ov, ov.entry(sum(ov.o.seed, key), key), nil
}

// inTx turns ErrDestroyed into a conflict: the transaction found the table through
// an object that it read, and that object has changed since.
func inTx(err error, tb *Table) error {
	if errors.Is(err, ErrDestroyed) {
		return &txn.AbortError{Reason: txn.ReasonFreed, Addr: tb.anchor.Addr}
	}
	return err
}

// Get returns the value of key as transaction t sees it. The slice is valid until t ends and
// must not be modified. t commits only if the answer is the same at its commit.
func (tb *Table) Get(t *txn.Tx, key []byte) (value []byte, ok bool, err error) {
	_, ov, e, err := tb.begin(t, key)
	if err != nil {
		return nil, false, err
	}
	switch e.op {
	case opPut:
		return e.next, true, nil
	case opDelete:
		return nil, false, nil
	}
	if err := ov.ask(t, e, askedValue); err != nil {
		return nil, false, inTx(err, tb)
	}
	return e.value, e.found, nil
}

// GetPtr is like Get, for a value that is a pointer.
func (tb *Table) GetPtr(t *txn.Tx, key []byte) (region.Ptr, bool, error) {
	v, ok, err := tb.Get(t, key)
	if !ok || err != nil {
		return region.Ptr{}, false, err
	}
	p, err := region.DecodePtr(v)
	return p, err == nil, err
}

// Has reports whether key is in the table. t commits only if the answer is the same at its
// commit; other transactions may change the value meanwhile.
func (tb *Table) Has(t *txn.Tx, key []byte) (bool, error) {
	_, ov, e, err := tb.begin(t, key)
	if err != nil {
		return false, err
	}
	return tb.has(t, ov, e)
}

// has reports whether the transaction sees the key of an entry, by its own change or by a question.
func (tb *Table) has(t *txn.Tx, ov *overlay, e *entry) (bool, error) {
	if e.op != opNone {
		return e.op == opPut, nil
	}
	if err := ov.ask(t, e, askedExistence); err != nil {
		return false, inTx(err, tb)
	}
	return e.found, nil
}

// Insert adds key. It returns ErrExists if the key is in the table, and the transaction
// can go on; like every answer in a transaction, ErrExists is certain only after the
// commit has validated it. If two transactions insert the same key, one commits.
func (tb *Table) Insert(t *txn.Tx, key, value []byte) error {
	o, ov, e, err := tb.change(t, key, value)
	if err != nil {
		return err
	}
	if e.op == opNone {
		found, err := tb.has(t, ov, e)
		if err != nil {
			return err
		}
		if found {
			return ErrExists
		}
	} else if e.op == opPut {
		return ErrExists
	}
	tb.put(o, ov, t, e, value)
	return nil
}

// Put makes value the value of key, whether or not the key is in the table. It does not
// depend on the old value, so that it conflicts with no other transaction.
func (tb *Table) Put(t *txn.Tx, key, value []byte) error {
	o, ov, e, err := tb.change(t, key, value)
	if err == nil {
		tb.put(o, ov, t, e, value)
	}
	return err
}

func (tb *Table) put(o *opened, ov *overlay, t *txn.Tx, e *entry, value []byte) {
	ov.change(t, e, opPut, value)
	if e.asked == askedNothing {
		o.prefetch(t, e.h) // Prepare will need these buckets
	}
	if !ov.isNew {
		tb.reserve(o, ov.changed)
	}
}

// Delete removes key and reports whether it was in the table.
func (tb *Table) Delete(t *txn.Tx, key []byte) (bool, error) {
	_, ov, e, err := tb.change(t, key, nil)
	if err != nil {
		return false, err
	}
	found, err := tb.has(t, ov, e)
	if found {
		ov.change(t, e, opDelete, nil)
	}
	return found, err
}

// change is like begin, for an operation that changes the table. It also does a step of the table's
// growth, if one is due.
func (tb *Table) change(t *txn.Tx, key, value []byte) (*opened, *overlay, *entry, error) {
	if err := checkPair(len(key), len(value)); err != nil {
		return nil, nil, nil, err
	}
	o, ov, e, err := tb.begin(t, key)
	if err == nil && !ov.isNew {
		tb.maintain(o)
	}
	return o, ov, e, err
}
