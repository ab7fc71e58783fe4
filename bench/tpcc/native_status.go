package tpcc

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/farmsql/farmsql/txn"
)

// status is Order-Status (clause 2.6.2.2).
func (x *native) status(t *txn.Tx, in *orderStatus) error {
	who := &in.customer
	p, err := x.whom(t, who)
	if err != nil {
		return err
	}
	customer, err := t.Read(p)
	if err != nil {
		return err
	}
	in.number, in.balance = customerID.get(customer), customerBalance.get(customer)
	x.low = appendKey(x.low[:0], who.warehouse, who.district, in.number)
	x.high = appendKey(x.high[:0], who.warehouse, who.district, in.number+1)
	key, p, ok, err := x.part(who.warehouse).customerOrders.Scan(t, x.low, x.high, true).Next()
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("%w: an order of customer %d of warehouse %d, district %d", errMissing, in.number, who.warehouse, who.district)
	}
	in.order = int(binary.BigEndian.Uint32(key[keyBytes:]))
	if _, err := t.Read(p); err != nil {
		return err
	}
	lines, err := x.linesOf(t, who.warehouse, who.district, in.order, t.Read)
	if err != nil {
		return err
	}
	in.lines, in.amount = linesCount.get(lines), 0
	for i := range in.lines {
		in.amount += lineAmount.get(lineOf(lines, i))
	}
	return nil
}

// level is Stock-Level (clause 2.8.2.2).
func (x *native) level(t *txn.Tx, in *stockLevel) error {
	home := x.part(in.warehouse)
	district, err := read(t, home.districtOrders, x.number(in.warehouse, in.district, 0))
	if err != nil {
		return err
	}
	next := nextOrder.get(district)
	x.low = appendKey(x.low[:0], in.warehouse, in.district, max(0, next-recentOrders))
	x.high = appendKey(x.high[:0], in.warehouse, in.district, next)
	x.seen = x.seen[:0]
	for c := home.lines.Scan(t, x.low, x.high, false); ; {
		_, p, ok, err := c.Next()
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		lines, err := t.Read(p)
		if err != nil {
			return err
		}
		for i := range linesCount.get(lines) {
			x.seen = append(x.seen, lineItem.get(lineOf(lines, i)))
		}
	}
	slices.Sort(x.seen)
	in.low = 0
	for _, item := range slices.Compact(x.seen) {
		stock, err := read(t, home.stocks, x.number(in.warehouse, 0, item))
		if err != nil {
			return err
		}
		if stockQuantity.get(stock) < in.threshold {
			in.low++
		}
	}
	return nil
}
