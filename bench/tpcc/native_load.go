package tpcc

import (
	"context"
	"encoding/binary"

	"github.com/farmsql/farmsql/txn"
)

// A nativeLoader loads many rows in each transaction. It puts the rows of a warehouse into their
// partition, and items into the partition at its machine.
type nativeLoader struct {
	native
	ctx  context.Context
	rows []func(*txn.Tx) error // rows that are not loaded yet
}

// rowsMax is the number of rows that are loaded in one transaction. One row of the loader may be
// several objects, of up to 1 KB together.
const rowsMax = 100

// add keeps a row until there are rowsMax, which it then loads.
func (l *nativeLoader) add(row func(*txn.Tx) error) error {
	l.rows = append(l.rows, row)
	if len(l.rows) < rowsMax {
		return nil
	}
	return l.flush()
}

// flush implements loader.
func (l *nativeLoader) flush() error {
	defer func() { l.rows = l.rows[:0] }()
	return l.m.Run(l.ctx, func(t *txn.Tx) error {
		for _, row := range l.rows {
			if err := row(t); err != nil {
				return err
			}
		}
		return nil
	})
}

// close implements loader.
func (l *nativeLoader) close() error { return nil }

// item implements loader.
func (l *nativeLoader) item(r *itemRow) error {
	row := *r
	return l.add(func(t *txn.Tx) error {
		part := &l.partitions[l.at]
		key := l.number(0, 0, row.id)
		_, b, err := insert(t, part.items, key, itemBytes, part.hint)
		if err != nil {
			return err
		}
		itemImage.set(b, row.image)
		itemPrice.set(b, row.price)
		itemName.set(b, row.name)
		itemData.set(b, row.data)
		return nil
	})
}

// warehouse implements loader.
func (l *nativeLoader) warehouse(r *placeRow) error {
	row := *r
	return l.add(func(t *txn.Tx) error {
		part := l.part(row.warehouse)
		key := l.number(row.warehouse, 0, 0)
		_, b, err := insert(t, part.warehouses, key, placeBytes, part.hint)
		if err != nil {
			return err
		}
		row.encode(b)
		if _, b, err = insert(t, part.warehouseYTD, key, ytdBytes, part.hint); err == nil {
			yearToDate.set(b, row.ytd)
		}
		return err
	})
}

func (r *placeRow) encode(b []byte) {
	placeTax.set(b, int(r.tax))
	placeName.set(b, r.name)
	setAddress(b, placeAddress, &r.address)
}

// district implements loader.
func (l *nativeLoader) district(r *placeRow) error {
	row := *r
	return l.add(func(t *txn.Tx) error {
		part := l.part(row.warehouse)
		key := l.number(row.warehouse, row.district, 0)
		_, b, err := insert(t, part.districts, key, placeBytes, part.hint)
		if err != nil {
			return err
		}
		row.encode(b)
		if _, b, err = insert(t, part.districtYTD, key, ytdBytes, part.hint); err != nil {
			return err
		}
		yearToDate.set(b, row.ytd)
		if _, b, err = insert(t, part.districtOrders, key, nextOrderBytes, part.hint); err == nil {
			nextOrder.set(b, row.next)
		}
		return err
	})
}

// stock implements loader.
func (l *nativeLoader) stock(r *stockRow) error {
	row := *r
	return l.add(func(t *txn.Tx) error {
		part := l.part(row.warehouse)
		key := l.number(row.warehouse, 0, row.item)
		_, b, err := insert(t, part.stocks, key, stockBytes, part.hint)
		if err != nil {
			return err
		}
		stockQuantity.set(b, row.quantity)
		if _, b, err = insert(t, part.stockData, key, stockDataBytes, part.hint); err != nil {
			return err
		}
		for d, info := range row.districts {
			stockInfo(d+1).set(b, info)
		}
		stockText.set(b, row.data)
		return nil
	})
}

// customer implements loader.
func (l *nativeLoader) customer(r *customerRow, paid *historyRow) error {
	row, history := *r, *paid
	return l.add(func(t *txn.Tx) error {
		part := l.part(row.warehouse)
		key := l.number(row.warehouse, row.district, row.id)
		p, b, err := insert(t, part.customers, key, customerBytes, part.hint)
		if err != nil {
			return err
		}
		row.encode(b)
		if _, b, err = insert(t, part.customerData, key, dataMax, part.hint); err != nil {
			return err
		}
		customerText.set(b, row.data)
		l.key = append(key, make([]byte, historyKeyBytes-keyBytes)...) // a key that belongs to no client
		b = make([]byte, historyBytes)
		history.encode(b)
		if err := part.histories.Insert(t, l.key, b); err != nil {
			return err
		}
		// Customers with the same last name are sorted by first name.
		l.key = appendName(l.key[:0], row.warehouse, row.district, row.last)
		l.key = append(append(l.key, row.first...), make([]byte, nameMax-len(row.first))...)
		return part.lastNames.Insert(t, binary.BigEndian.AppendUint32(l.key, uint32(row.id)), p)
	})
}

func (r *customerRow) encode(b []byte) {
	customerID.set(b, r.id)
	customerDiscount.set(b, int(r.discount))
	customerPayments.set(b, 1)
	customerBalance.set(b, r.balance)
	customerPaid.set(b, r.paid)
	customerLimit.set(b, r.limit)
	customerSince.set(b, r.since)
	customerFirst.set(b, r.first)
	customerMiddle.set(b, r.middle)
	customerLast.set(b, r.last)
	customerCredit.set(b, r.credit)
	customerPhone.set(b, r.phone)
	setAddress(b, customerAddress, &r.address)
}

// order implements loader.
func (l *nativeLoader) order(r *orderRow) error {
	row := *r
	return l.add(func(t *txn.Tx) error {
		part := l.part(row.warehouse)
		key := l.number(row.warehouse, row.district, row.id)
		p, b, err := insert(t, part.orders, key, orderBytes, part.hint)
		if err != nil {
			return err
		}
		orderCustomer.set(b, row.customer)
		orderCarrier.set(b, row.carrier)
		orderLines.set(b, len(row.lines))
		orderIsLocal.set(b, 1)
		orderAt.set(b, row.at)
		if row.carrier == 0 {
			if err := part.newOrders.Insert(t, key, p); err != nil {
				return err
			}
		}
		at, b, err := t.Alloc(linesBytes(len(row.lines)), part.hint)
		if err != nil {
			return err
		}
		linesCount.set(b, len(row.lines))
		for i := range row.lines {
			row.lines[i].encode(lineOf(b, i))
		}
		if err := part.lines.Insert(t, key, at); err != nil {
			return err
		}
		l.key = appendCustomerOrder(l.key[:0], row.warehouse, row.district, row.customer, row.id)
		return part.customerOrders.Insert(t, l.key, p)
	})
}

func (r *lineRow) encode(b []byte) {
	lineItem.set(b, r.item)
	lineSupply.set(b, r.supply)
	lineQuantity.set(b, r.quantity)
	lineAmount.set(b, r.amount)
	lineDelivered.set(b, r.delivered)
	lineInfo.set(b, r.info)
}
