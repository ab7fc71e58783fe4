package tpcc

import (
	"context"
	"fmt"
	"slices"

	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/worker"
)

// level executes a Stock-Level (clause 2.8.2.2). Stock is read without locks, outside of the
// transaction: neither serializability nor repeatable reads are required, only that the rows are
// committed and not older than the transaction (clause 2.8.2.3).
func (x *native) level(ctx context.Context, in *stockLevel) error {
	if err := x.m.Run(ctx, func(t *txn.Tx) error { return x.recentItems(t, in) }); err != nil {
		return err
	}
	slices.Sort(x.seen)
	return x.countLow(in, slices.Compact(x.seen))
}

// recentItems collects the items of a district's latest orders.
func (x *native) recentItems(t *txn.Tx, in *stockLevel) error {
	if err := x.recentLines(t, in); err != nil {
		return err
	}
	x.seen = x.seen[:0]
	for _, p := range x.found {
		lines, err := t.Read(p)
		if err != nil {
			return err
		}
		for i := range linesCount.get(lines) {
			x.seen = append(x.seen, lineItem.get(lineOf(lines, i)))
		}
	}
	return nil
}

// recentLines finds the lines of the latest orders, and fetches them.
func (x *native) recentLines(t *txn.Tx, in *stockLevel) error {
	home := x.part(in.warehouse)
	district, err := read(t, home.districtOrders, x.number(in.warehouse, in.district, 0))
	if err != nil {
		return err
	}
	next := nextOrder.get(district)
	x.low = appendKey(x.low[:0], in.warehouse, in.district, max(0, next-recentOrders))
	x.high = appendKey(x.high[:0], in.warehouse, in.district, next)
	x.found = x.found[:0]
	for c := home.lines.Scan(t, x.low, x.high, false); ; {
		_, p, ok, err := c.Next()
		if err != nil || !ok {
			return err
		}
		t.Fetch(p)
		x.found = append(x.found, p)
	}
}

// countLow counts the items whose stock in the warehouse is below the threshold. It waits for all
// lookups together, and then for all rows together.
func (x *native) countLow(in *stockLevel, items []int) error {
	x.keys, x.found = x.keys[:0], x.found[:0]
	x.low = slices.Grow(x.low[:0], len(items)*keyBytes) // holds all keys: no scan needs it now
	for i, item := range items {
		x.low = appendKey(x.low, in.warehouse, 0, item)
		x.keys = append(x.keys, x.low[i*keyBytes:])
	}
	op := x.m.Start()
	defer op.End()
	err := x.part(in.warehouse).stocks.LookupMany(x.keys, func(_ int, value []byte, ok bool) {
		if p, err := region.DecodePtr(value); ok && err == nil {
			op.Fetch(p)
			x.found = append(x.found, p)
		}
	})
	if err != nil {
		return err
	}
	if len(x.found) != len(items) {
		return fmt.Errorf("%w: %d of %d stocks of warehouse %d", errMissing, len(items)-len(x.found), len(items), in.warehouse)
	}
	in.low = 0
	for _, p := range x.found {
		n, err := x.quantity(op, p)
		if err != nil {
			return err
		}
		if n < in.threshold {
			in.low++
		}
	}
	return x.m.Confirm()
}

// quantity reads the quantity of a stock, in place if no transaction is changing it.
func (x *native) quantity(op worker.Operation, p region.Ptr) (int, error) {
	x.row = slices.Grow(x.row[:0], p.Capacity())[:p.Capacity()]
	if v, ok := op.Look(p); ok {
		v.Copy(x.row[:stockOrders], int(stockQuantity)) // only the quantity: stockOrders is the next field
		if v.Valid() {
			return stockQuantity.get(x.row), nil
		}
	}
	_, err := op.Read(p, x.row)
	return stockQuantity.get(x.row), err
}
