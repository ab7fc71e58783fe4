package tpcc

import (
	"context"
	"errors"
	"fmt"

	"github.com/farmsql/farmsql/index/hash"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// errMissing means that a row does not exist though it must.
var errMissing = errors.New("tpcc: row is missing")

// A native runs transactions on the native API for one client.
type native struct {
	m          *txn.Machine
	at         int // the machine's index
	partitions []partition
	// client is the number that makes the client's keys in the history unique;
	// payments counts its payments.
	client   uint32
	payments uint32

	key   []byte // buffer for a key
	low   []byte
	high  []byte
	found []region.Ptr
	seen  []int
	keys  [][]byte
	row   []byte
	rows  []lineRows
	// delivered are the orders of a Delivery.
	delivered []deliveredOrder
}

// part returns the partition of a warehouse.
func (x *native) part(warehouse int) *partition {
	return &x.partitions[partitionOf(warehouse, len(x.partitions))]
}

// number returns a key, which is also in x.key. It is valid until the next call, which uses the same
// memory.
func (x *native) number(warehouse, district, number int) []byte {
	x.key = appendKey(x.key[:0], warehouse, district, number)
	return x.key
}

// find returns the address of a row.
func find(t *txn.Tx, tb *hash.Table, key []byte) (region.Ptr, error) {
	p, ok, err := tb.GetPtr(t, key)
	if err == nil && !ok {
		w, d, n := splitKey(key)
		err = fmt.Errorf("%w: warehouse %d, district %d, number %d", errMissing, w, d, n)
	}
	return p, err
}

// read returns a row.
func read(t *txn.Tx, tb *hash.Table, key []byte) ([]byte, error) {
	p, err := find(t, tb, key)
	if err != nil {
		return nil, err
	}
	return t.Read(p)
}

// write returns a row to be changed.
func write(t *txn.Tx, tb *hash.Table, key []byte) ([]byte, error) {
	p, err := find(t, tb, key)
	if err != nil {
		return nil, err
	}
	return t.Write(p)
}

// insert creates a row, near hint, under a key.
func insert(t *txn.Tx, tb *hash.Table, key []byte, bytes int, hint region.Addr) (region.Ptr, []byte, error) {
	p, row, err := t.Alloc(bytes, hint)
	if err != nil {
		return p, nil, err
	}
	var value [region.PtrBytes]byte
	return p, row, tb.Insert(t, key, p.Append(value[:0]))
}

// whom returns the address of the customer with w's number or, without one, of the middle one of those
// with w's last name.
func (x *native) whom(t *txn.Tx, w *whom) (region.Ptr, error) {
	part := x.part(w.warehouse)
	if w.number != 0 {
		return find(t, part.customers, x.number(w.warehouse, w.district, w.number))
	}
	x.low = appendName(x.low[:0], w.warehouse, w.district, w.last)
	x.high = append(append(x.high[:0], x.low...), 0xff)
	x.found = x.found[:0]
	for c := part.lastNames.Scan(t, x.low, x.high, false); ; {
		_, p, ok, err := c.Next()
		if err != nil {
			return p, err
		}
		if !ok {
			break
		}
		x.found = append(x.found, p)
	}
	if len(x.found) == 0 {
		return region.Ptr{}, fmt.Errorf("%w: warehouse %d, district %d, customer %s", errMissing, w.warehouse, w.district, w.last)
	}
	return x.found[middle(len(x.found))], nil
}

func (x *native) close() error { return nil }

// newOrder implements database.
func (x *native) newOrder(ctx context.Context, in *newOrder) error {
	return x.m.Run(ctx, func(t *txn.Tx) error { return x.enter(t, in) })
}

// payment implements database.
func (x *native) payment(ctx context.Context, in *payment) error {
	return x.m.Run(ctx, func(t *txn.Tx) error { return x.pay(t, in) })
}

// orderStatus implements database.
func (x *native) orderStatus(ctx context.Context, in *orderStatus) error {
	return x.m.Run(ctx, func(t *txn.Tx) error { return x.status(t, in) })
}

// delivery implements database.
func (x *native) delivery(ctx context.Context, in *delivery) error {
	return x.m.Run(ctx, func(t *txn.Tx) error { return x.deliver(t, in) })
}

// stockLevel implements database.
func (x *native) stockLevel(ctx context.Context, in *stockLevel) error {
	return x.level(ctx, in)
}
