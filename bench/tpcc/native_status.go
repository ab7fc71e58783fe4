package tpcc

import (
	"encoding/binary"
	"fmt"

	"github.com/farmsql/farmsql/txn"
)

// status executes an Order-Status (clause 2.6.2.2).
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
	t.Fetch(p)
	at, err := x.linesOf(t, who.warehouse, who.district, in.order)
	if err != nil {
		return err
	}
	t.Fetch(at)
	if _, err := t.Read(p); err != nil {
		return err
	}
	lines, err := t.Read(at)
	if err != nil {
		return err
	}
	in.lines, in.amount = linesCount.get(lines), 0
	for i := range in.lines {
		in.amount += lineAmount.get(lineOf(lines, i))
	}
	return nil
}
