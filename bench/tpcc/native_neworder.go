package tpcc

import (
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// enter executes a New-Order (clause 2.4.2.2).
func (x *native) enter(t *txn.Tx, in *newOrder) error {
	home := x.part(in.warehouse)
	x.fetchLines(t, in)
	warehouse, err := read(t, home.warehouses, x.number(in.warehouse, 0, 0))
	if err != nil {
		return err
	}
	district, err := read(t, home.districts, x.number(in.warehouse, in.district, 0))
	if err != nil {
		return err
	}
	customer, err := read(t, home.customers, x.number(in.warehouse, in.district, in.customer))
	if err != nil {
		return err
	}
	next, err := write(t, home.districtOrders, x.number(in.warehouse, in.district, 0))
	if err != nil {
		return err
	}
	in.number = nextOrder.get(next)
	nextOrder.add(next, 1)
	if err := x.enterOrder(t, in); err != nil {
		return err
	}
	sum, err := x.enterLines(t, in)
	if err != nil {
		return err
	}
	if len(x.rows) < len(in.lines) {
		return errUnusedItem // findLines has stopped at it
	}
	discount := rate(customerDiscount.get(customer))
	taxes := rate(placeTax.get(warehouse) + placeTax.get(district))
	in.total = sum.less(discount).plus(taxes)
	return nil
}

// enterOrder adds the order to ORDER and NEW-ORDER. Its number is new, since the district has just
// given it out. The insert into orders checks that, so the puts into the other indexes do not.
func (x *native) enterOrder(t *txn.Tx, in *newOrder) error {
	home := x.part(in.warehouse)
	p, order, err := insert(t, home.orders, x.number(in.warehouse, in.district, in.number), orderBytes, home.hint)
	if err != nil {
		return err
	}
	orderCustomer.set(order, in.customer)
	orderLines.set(order, len(in.lines))
	if in.allLocal() {
		orderIsLocal.set(order, 1)
	}
	orderAt.set(order, in.entered)
	if err := home.newOrders.Put(t, x.key, p); err != nil {
		return err
	}
	x.key = appendCustomerOrder(x.key[:0], in.warehouse, in.district, in.customer, in.number)
	return home.customerOrders.Put(t, x.key, p)
}

// enterLines adds the lines that findLines has found, and takes their items from stock. At an unused item findLines stops, and
// the caller aborts.
func (x *native) enterLines(t *txn.Tx, in *newOrder) (sum money, err error) {
	if err := x.findLines(t, in); err != nil {
		return 0, err
	}
	home := x.part(in.warehouse)
	p, lines, err := t.Alloc(linesBytes(len(in.lines)), home.hint)
	if err != nil {
		return 0, err
	}
	linesCount.set(lines, len(in.lines))
	for i := range x.rows {
		amount, err := x.enterLine(t, in, i, lineOf(lines, i))
		if err != nil {
			return 0, err
		}
		sum += amount
	}
	return sum, home.lines.Put(t, x.number(in.warehouse, in.district, in.number), p)
}

// fetchLines fetches the index entries of the lines' rows. Like findLines, it visits all lines
// before the first is needed: the cache misses of many lines then overlap.
func (x *native) fetchLines(t *txn.Tx, in *newOrder) {
	for i := range in.lines {
		line := &in.lines[i]
		x.partitions[x.at].items.Fetch(t, x.number(0, 0, line.item))
		supply := x.part(line.supply)
		supply.stocks.Fetch(t, x.number(line.supply, 0, line.item))
		supply.stockData.Fetch(t, x.key)
	}
}

// A lineRows has the addresses of the rows of a line.
type lineRows struct{ item, stock, data region.Ptr }

// findLines finds the lines' rows, and fetches them. It stops at an unused item.
func (x *native) findLines(t *txn.Tx, in *newOrder) error {
	x.rows = x.rows[:0]
	for i := range in.lines {
		line := &in.lines[i]
		item, ok, err := x.partitions[x.at].items.GetPtr(t, x.number(0, 0, line.item))
		if err != nil {
			return err
		}
		if !ok {
			return nil
		}
		t.Fetch(item)
		supply := x.part(line.supply)
		stock, err := find(t, supply.stocks, x.number(line.supply, 0, line.item))
		if err != nil {
			return err
		}
		t.Fetch(stock)
		data, err := find(t, supply.stockData, x.key) // x.key still has the number of the stock row
		if err != nil {
			return err
		}
		t.Fetch(data)
		x.rows = append(x.rows, lineRows{item, stock, data})
	}
	return nil
}

// enterLine takes the item of line i from stock, and writes the line into row. It returns the line's
// amount.
func (x *native) enterLine(t *txn.Tx, in *newOrder, i int, row []byte) (money, error) {
	line, rows := &in.lines[i], &x.rows[i]
	item, err := t.Read(rows.item)
	if err != nil {
		return 0, err
	}
	stock, err := t.Write(rows.stock)
	if err != nil {
		return 0, err
	}
	data, err := t.Read(rows.data)
	if err != nil {
		return 0, err
	}
	stockQuantity.set(stock, restocked(stockQuantity.get(stock), line.quantity))
	stockYTD.add(stock, line.quantity)
	stockOrders.add(stock, 1)
	if line.supply != in.warehouse {
		stockRemote.add(stock, 1)
	}
	line.brand = brand(itemData.get(item), stockText.get(data))
	amount := money(line.quantity) * itemPrice.get(item)
	lineItem.set(row, line.item)
	lineSupply.set(row, line.supply)
	lineQuantity.set(row, line.quantity)
	lineAmount.set(row, amount)
	copy(row[lineInfo.at:], stockInfo(in.district).get(data))
	return amount, nil
}
