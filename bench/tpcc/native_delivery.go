package tpcc

import (
	"fmt"

	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// A deliveredOrder is an order that a Delivery delivers.
type deliveredOrder struct {
	district, number int
	at, lines        region.Ptr
	customer         int
	customerRow      region.Ptr
	sum              money
}

// deliver executes a Delivery (clause 2.7.4.2), for all districts in one transaction. It does each
// step for all districts before the next step, and fetches what the next step will read.
func (x *native) deliver(t *txn.Tx, in *delivery) error {
	if err := x.takeOldest(t, in); err != nil {
		return err
	}
	for _, step := range []func(*txn.Tx, *delivery, *deliveredOrder) error{x.deliverOrder, x.deliverLines, x.bill} {
		for i := range x.delivered {
			if err := step(t, in, &x.delivered[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// takeOldest removes the oldest order of each district from NEW-ORDER.
func (x *native) takeOldest(t *txn.Tx, in *delivery) error {
	home := x.part(in.warehouse)
	for d := 1; d <= districts; d++ {
		home.newOrders.Fetch(t, x.number(in.warehouse, d, 0))
	}
	x.delivered = x.delivered[:0]
	for d := 1; d <= districts; d++ {
		order, p, err := x.oldest(t, in.warehouse, d)
		if err != nil {
			return err
		}
		in.orders[d-1] = order
		if order == 0 {
			continue
		}
		t.Fetch(p)
		home.lines.Fetch(t, x.number(in.warehouse, d, order))
		x.delivered = append(x.delivered, deliveredOrder{district: d, number: order, at: p})
	}
	return nil
}

// oldest removes the oldest order of a district from NEW-ORDER, and returns its number, or 0 if
// there is none.
func (x *native) oldest(t *txn.Tx, warehouse, district int) (order int, p region.Ptr, err error) {
	tree := x.part(warehouse).newOrders
	x.low = appendKey(x.low[:0], warehouse, district, 0)
	x.high = appendKey(x.high[:0], warehouse, district+1, 0)
	key, p, ok, err := tree.Scan(t, x.low, x.high, false).Next()
	if err != nil || !ok {
		return 0, p, err
	}
	_, _, order = splitKey(key)
	_, err = tree.Delete(t, x.number(warehouse, district, order))
	return order, p, err
}

// deliverOrder changes the order and finds its lines.
func (x *native) deliverOrder(t *txn.Tx, in *delivery, o *deliveredOrder) error {
	order, err := t.Write(o.at)
	if err != nil {
		return err
	}
	orderCarrier.set(order, in.carrier)
	o.customer = orderCustomer.get(order)
	x.part(in.warehouse).customers.Fetch(t, x.number(in.warehouse, o.district, o.customer))
	if o.lines, err = x.linesOf(t, in.warehouse, o.district, o.number); err != nil {
		return err
	}
	t.Fetch(o.lines)
	return nil
}

// deliverLines changes the lines and finds the customer.
func (x *native) deliverLines(t *txn.Tx, in *delivery, o *deliveredOrder) error {
	lines, err := t.Write(o.lines)
	if err != nil {
		return err
	}
	for i := range linesCount.get(lines) {
		line := lineOf(lines, i)
		lineDelivered.set(line, in.at)
		o.sum += lineAmount.get(line)
	}
	o.customerRow, err = find(t, x.part(in.warehouse).customers, x.number(in.warehouse, o.district, o.customer))
	if err != nil {
		return err
	}
	t.Fetch(o.customerRow)
	return nil
}

// bill changes the customer.
func (x *native) bill(t *txn.Tx, _ *delivery, o *deliveredOrder) error {
	customer, err := t.Write(o.customerRow)
	if err != nil {
		return err
	}
	customerBalance.add(customer, o.sum)
	customerDeliveries.add(customer, 1)
	return nil
}

// linesOf returns the address of an order's lines.
func (x *native) linesOf(t *txn.Tx, warehouse, district, order int) (region.Ptr, error) {
	p, ok, err := x.part(warehouse).lines.Get(t, x.number(warehouse, district, order))
	if err == nil && !ok {
		err = fmt.Errorf("%w: lines of order %d of warehouse %d, district %d", errMissing, order, warehouse, district)
	}
	return p, err
}
