package tpcc

import (
	"fmt"

	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// deliver is Delivery (clause 2.7.4.2), of all districts in one transaction.
func (x *native) deliver(t *txn.Tx, in *delivery) error {
	for d := 1; d <= districts; d++ {
		order, p, err := x.oldest(t, in.warehouse, d)
		if err != nil {
			return err
		}
		in.orders[d-1] = order
		if order == 0 {
			continue
		}
		if err := x.deliverOrder(t, in, d, order, p); err != nil {
			return err
		}
	}
	return nil
}

// oldest takes the oldest order of a district out of NEW-ORDER, and returns 0 if
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

func (x *native) deliverOrder(t *txn.Tx, in *delivery, district, number int, p region.Ptr) error {
	home := x.part(in.warehouse)
	order, err := t.Write(p)
	if err != nil {
		return err
	}
	orderCarrier.set(order, in.carrier)
	lines, err := x.linesOf(t, in.warehouse, district, number, t.Write)
	if err != nil {
		return err
	}
	sum := money(0)
	for i := range linesCount.get(lines) {
		line := lineOf(lines, i)
		lineDelivered.set(line, in.at)
		sum += lineAmount.get(line)
	}
	customer, err := write(t, home.customers, x.number(in.warehouse, district, orderCustomer.get(order)))
	if err != nil {
		return err
	}
	customerBalance.add(customer, sum)
	customerDeliveries.add(customer, 1)
	return nil
}

// linesOf returns the lines of an order, opened by t.Read or t.Write.
func (x *native) linesOf(t *txn.Tx, warehouse, district, order int, open func(region.Ptr) ([]byte, error)) ([]byte, error) {
	p, ok, err := x.part(warehouse).lines.Get(t, x.number(warehouse, district, order))
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("%w: lines of order %d of warehouse %d, district %d", errMissing, order, warehouse, district)
	}
	return open(p)
}
