package tpcc

import (
	"context"
	"fmt"

	"github.com/farmsql/farmsql/index/btree"
	"github.com/farmsql/farmsql/index/hash"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// A reader fills a ledger from one partition. No transaction may change the partition meanwhile.
// To visit the rows, it checks every index completely.
type reader struct {
	*partition
	ctx    context.Context
	m      *txn.Machine
	ledger *ledger
	buf    []byte
}

// row returns an object. Its bytes are valid until the next call.
func (r *reader) row(p region.Ptr) ([]byte, error) {
	if n := p.Capacity(); cap(r.buf) < n {
		r.buf = make([]byte, n)
	}
	b := r.buf[:p.Capacity()]
	_, err := r.m.Read(p, b)
	return b, err
}

// A fixedIndex leads to the rows of a table, or to parts of the rows. It has one entry for each row.
type fixedIndex struct {
	table
	name string
	tb   *hash.Table
}

// rowsOf calls enter for each row that an index leads to, and counts the rows in the ledger.
func (r *reader) rowsOf(x fixedIndex, enter func(w, d, n int, row []byte) error) error {
	rows := 0
	err := r.rows(x.tb, func(w, d, n int, row []byte) error {
		rows++
		return enter(w, d, n, row)
	})
	r.ledger.count(x.table, x.name, rows)
	return err
}

// countParts counts the entries of an index in the ledger. It does not read the rows.
func (r *reader) countParts(x fixedIndex) error {
	parts := 0
	err := x.tb.Check(r.ctx, hash.Visitor{Pair: func(key, _ []byte) error {
		parts++
		w, d, n := splitKey(key)
		return r.ledger.refuse(x.table, w, d, n)
	}})
	r.ledger.count(x.table, x.name, parts)
	return err
}

// rows calls enter for each row of an index, with the three numbers of the key.
func (r *reader) rows(tb *hash.Table, enter func(w, d, n int, row []byte) error) error {
	return tb.Check(r.ctx, hash.Visitor{Pair: func(key, value []byte) error {
		p, err := region.DecodePtr(value)
		if err != nil {
			return err
		}
		row, err := r.row(p)
		if err != nil {
			return err
		}
		w, d, n := splitKey(key)
		return enter(w, d, n, row)
	}})
}

// count counts the pairs of an index.
func (r *reader) count(tb *hash.Table) (n int, err error) {
	err = tb.Check(r.ctx, hash.Visitor{Pair: func(_, _ []byte) error { n++; return nil }})
	return n, err
}

// read enters the whole partition in the ledger.
func (r *reader) read() error {
	for _, step := range []struct {
		name string
		read func() error
	}{
		{"warehouse", r.readWarehouses},
		{"district", r.readDistricts},
		{"customer", r.readCustomers},
		{"history", r.readHistory},
		{"orders", r.readOrders},
		{"new_order", r.readNewOrders},
		{"order_line", r.readLines},
		{"stock", r.readStock},
	} {
		if err := step.read(); err != nil {
			return fmt.Errorf("table %s: %w", step.name, err)
		}
	}
	return nil
}

func (r *reader) readWarehouses() error {
	err := r.countParts(fixedIndex{warehouseTable, "warehouse", r.warehouses})
	if err != nil {
		return err
	}
	return r.rowsOf(fixedIndex{warehouseTable, "warehouse (W_YTD)", r.warehouseYTD}, func(w, _, _ int, row []byte) error {
		return r.ledger.enterWarehouse(w, yearToDate.get(row))
	})
}

// readDistricts reads the two objects of each district, which the ledger keeps in one book.
func (r *reader) readDistricts() error {
	if err := r.countParts(fixedIndex{districtTable, "district", r.districts}); err != nil {
		return err
	}
	next := make(map[[2]int]int)
	err := r.rowsOf(fixedIndex{districtTable, "district (D_NEXT_O_ID)", r.districtOrders}, func(w, d, n int, row []byte) error {
		next[[2]int{w, d}] = nextOrder.get(row)
		return r.ledger.refuse(districtTable, w, d, n)
	})
	if err != nil {
		return err
	}
	return r.rowsOf(fixedIndex{districtTable, "district (D_YTD)", r.districtYTD}, func(w, d, _ int, row []byte) error {
		return r.ledger.enterDistrict(w, d, yearToDate.get(row), next[[2]int{w, d}])
	})
}

// readCustomers also checks that lastNames has an entry for each customer.
func (r *reader) readCustomers() error {
	customers := 0
	if err := r.countParts(fixedIndex{customerTable, "customer (C_DATA)", r.customerData}); err != nil {
		return err
	}
	err := r.rowsOf(fixedIndex{customerTable, "customer", r.customers}, func(w, d, n int, row []byte) error {
		customers++
		return r.ledger.enterCustomer(w, d, n, customerBalance.get(row), customerPaid.get(row), customerDeliveries.get(row))
	})
	if err != nil {
		return err
	}
	return r.sameCount(r.lastNames, customers)
}

func (r *reader) readHistory() error {
	return r.histories.Check(r.ctx, hash.Visitor{Pair: func(_, row []byte) error {
		return r.ledger.enterPayment(&historyRow{
			warehouse: historyOfWarehouse.get(row), district: historyOfDistrict.get(row), customer: historyCustomer.get(row),
			atWarehouse: historyWarehouse.get(row), atDistrict: historyDistrict.get(row), amount: historyAmount.get(row),
		})
	}})
}

// readOrders also checks that customerOrders has an entry for each order.
func (r *reader) readOrders() error {
	orders := 0
	err := r.rows(r.orders, func(w, d, n int, row []byte) error {
		orders++
		return r.ledger.enterOrder(w, d, n, orderCustomer.get(row), orderCarrier.get(row), orderLines.get(row))
	})
	if err != nil {
		return err
	}
	return r.sameCount(r.customerOrders, orders)
}

func (r *reader) readNewOrders() error {
	return r.newOrders.Check(r.ctx, func(key []byte, _ region.Ptr) error {
		return r.ledger.enterNewOrder(splitKey(key))
	})
}

func (r *reader) readLines() error {
	return r.lines.Check(r.ctx, func(key []byte, p region.Ptr) error {
		row, err := r.row(p)
		if err != nil {
			return err
		}
		w, d, order := splitKey(key)
		for i := range linesCount.get(row) {
			line := lineOf(row, i)
			if err := r.ledger.enterLine(w, d, order, lineAmount.get(line), lineDelivered.isSet(line)); err != nil {
				return err
			}
		}
		return nil
	})
}

// readStock also counts the items, of which each partition has a full copy. If a copy is
// incomplete, the ledger keeps the count of that copy.
func (r *reader) readStock() error {
	if err := r.countParts(fixedIndex{stockTable, "stock (S_DIST, S_DATA)", r.stockData}); err != nil {
		return err
	}
	err := r.rowsOf(fixedIndex{stockTable, "stock", r.stocks}, func(w, _, item int, _ []byte) error {
		return r.ledger.enterStock(w, item)
	})
	if err != nil {
		return err
	}
	n, err := r.count(r.items)
	if err != nil {
		return err
	}
	if r.ledger.items == 0 || n != r.ledger.cfg.Items {
		r.ledger.items = n
	}
	return nil
}

// sameCount checks that an index has as many entries as the table has rows.
func (r *reader) sameCount(tr *btree.Tree, rows int) error {
	shape, err := tr.Inspect(r.ctx, btree.Visitor{})
	if err == nil && shape.Entries != rows {
		err = fmt.Errorf("%d rows, %d in another index", rows, shape.Entries)
	}
	return err
}
