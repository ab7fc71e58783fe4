package tpcc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/farmsql/farmsql/bench"
	"github.com/farmsql/farmsql/index/hash"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// small is the smallest database in which every condition can be violated: orders 1 to 7 of each
// district are delivered, 8 to 10 are new.
var small = Config{Customers: 10, Items: 20, Seed: 1}

// A damage breaks the data of warehouse 1, and repairs them again.
type damage struct {
	condition int
	name      string
	// caught are the conditions that it violates, in order.
	caught []int
	// native does the damage with by = 1, and repairs it with by = -1. It is nil if the native API
	// cannot do it: SQL has several rows where the native API has one object, or one row where it
	// has several objects.
	native func(x *native, t *txn.Tx, by int) error
	// sql are statements in which %d stands for 1 or -1, or two alternatives: the damage and its
	// repair. There are none if SQL cannot do it.
	sql []string
}

// gone removes an entry of an index on the native API. The repair makes the row again as it was, or
// empty if nobody reads it.
func gone(index func(p *partition) *hash.Table, warehouse, district, n, bytes int, fill func(row []byte)) func(x *native, t *txn.Tx, by int) error {
	return func(x *native, t *txn.Tx, by int) error {
		tb, key := index(x.only()), x.number(warehouse, district, n)
		if by < 0 {
			_, row, err := insert(t, tb, key, bytes, 0)
			if err == nil && fill != nil {
				fill(row)
			}
			return err
		}
		ok, err := tb.Delete(t, key)
		if err == nil && !ok {
			err = errMissing
		}
		return err
	}
}

// only is the partition that has all the data.
func (x *native) only() *partition { return &x.partitions[0] }

// addTo adds to a field of a row.
func addTo(t *txn.Tx, p region.Ptr, err error, change func(row []byte)) error {
	if err != nil {
		return err
	}
	row, err := t.Write(p)
	if err == nil {
		change(row)
	}
	return err
}

func (x *native) changeCustomer(t *txn.Tx, change func(row []byte)) error {
	p, err := find(t, x.only().customers, x.number(1, 1, 1))
	return addTo(t, p, err, change)
}

func (x *native) changeOrder(t *txn.Tx, n int, change func(row []byte)) error {
	p, err := find(t, x.only().orders, x.number(1, 1, n))
	return addTo(t, p, err, change)
}

func (x *native) changeYTD(t *txn.Tx, district int, by money) error {
	p, err := find(t, x.only().districtYTD, x.number(1, district, 0))
	return addTo(t, p, err, func(row []byte) { yearToDate.add(row, by) })
}

var damages = []damage{
	{0, "an item is gone", []int{0}, gone(func(p *partition) *hash.Table { return p.items }, 0, 0, 1, itemBytes, nil), []string{
		"DELETE FROM item WHERE i_id = 1|INSERT INTO item (i_id) VALUES (1)",
	}},
	{0, "a warehouse is gone", []int{0, 1, 8}, gone(func(p *partition) *hash.Table { return p.warehouseYTD }, 1, 0, 0, ytdBytes, func(row []byte) {
		yearToDate.set(row, 1000_00) // 10.00 of each customer
	}), []string{
		"DELETE FROM warehouse WHERE w_id = 1|INSERT INTO warehouse (w_id, w_ytd) VALUES (1, 1000)",
	}},
	{0, "what does not change of a warehouse is gone", []int{0},
		gone(func(p *partition) *hash.Table { return p.warehouses }, 1, 0, 0, placeBytes, nil), nil},
	{0, "a district is gone", []int{0, 1, 2, 9}, nil, []string{
		"DELETE FROM district WHERE d_w_id = 1 AND d_id = 10|INSERT INTO district (d_id, d_w_id, d_ytd, d_next_o_id) VALUES (10, 1, 100, 11)",
	}},
	{0, "what Payment changes of a district is gone", []int{0, 1, 2, 9},
		gone(func(p *partition) *hash.Table { return p.districtYTD }, 1, 10, 0, ytdBytes, func(row []byte) { yearToDate.set(row, 100_00) }), nil},
	{0, "what New-Order changes of a district is gone", []int{0, 2},
		gone(func(p *partition) *hash.Table { return p.districtOrders }, 1, 10, 0, nextOrderBytes, func(row []byte) { nextOrder.set(row, 11) }), nil},
	{0, "what does not change of a district is gone", []int{0},
		gone(func(p *partition) *hash.Table { return p.districts }, 1, 10, 0, placeBytes, nil), nil},
	{0, "a customer is gone", []int{0, 10}, nil, []string{
		"DELETE FROM customer WHERE c_d_id = 2 AND c_id = 3|INSERT INTO customer (c_id, c_d_id, c_w_id, c_balance, c_ytd_payment, c_delivery_cnt) VALUES (3, 2, 1, -10, 10, 0)",
	}},
	{0, "the data of a customer are gone", []int{0},
		gone(func(p *partition) *hash.Table { return p.customerData }, 1, 2, 3, dataMax, nil), nil},
	{0, "a stock is gone", []int{0}, gone(func(p *partition) *hash.Table { return p.stocks }, 1, 0, 20, stockBytes, nil), []string{
		"DELETE FROM stock WHERE s_w_id = 1 AND s_i_id = 20|INSERT INTO stock (s_i_id, s_w_id) VALUES (20, 1)",
	}},
	{0, "the data of a stock are gone", []int{0},
		gone(func(p *partition) *hash.Table { return p.stockData }, 1, 0, 20, stockDataBytes, nil), nil},
	{0, "there is a warehouse too many", []int{0}, nil, []string{
		// No query of a warehouse would find these rows.
		"INSERT INTO customer (c_id, c_d_id, c_w_id) VALUES (1, 1, 2)|DELETE FROM customer WHERE c_w_id = 2",
		"INSERT INTO stock (s_i_id, s_w_id) VALUES (1, 2)|DELETE FROM stock WHERE s_w_id = 2",
	}},
	{1, "W_YTD", []int{1, 8}, func(x *native, t *txn.Tx, by int) error {
		p, err := find(t, x.only().warehouseYTD, x.number(1, 0, 0))
		return addTo(t, p, err, func(row []byte) { yearToDate.add(row, money(by)) })
	}, []string{
		"UPDATE warehouse SET w_ytd = w_ytd + 0.01 * %d",
	}},
	{2, "D_NEXT_O_ID", []int{2}, func(x *native, t *txn.Tx, by int) error {
		p, err := find(t, x.only().districtOrders, x.number(1, 1, 0))
		return addTo(t, p, err, func(row []byte) { nextOrder.add(row, by) })
	}, []string{
		"UPDATE district SET d_next_o_id = d_next_o_id + %d WHERE d_id = 1",
	}},
	{3, "a new order in the middle is gone", []int{3, 5, 11}, func(x *native, t *txn.Tx, by int) error {
		if by < 0 {
			return x.only().newOrders.Put(t, x.number(1, 1, 9), region.Ptr{})
		}
		_, err := x.only().newOrders.Delete(t, x.number(1, 1, 9))
		return err
	}, []string{
		"DELETE FROM new_order WHERE no_d_id = 1 AND no_o_id = 9|INSERT INTO new_order VALUES (9, 1, 1)",
	}},
	{4, "O_OL_CNT", []int{4, 6}, func(x *native, t *txn.Tx, by int) error {
		return x.changeOrder(t, 1, func(row []byte) { orderLines.add(row, by) })
	}, []string{
		"UPDATE orders SET o_ol_cnt = o_ol_cnt + %d WHERE o_d_id = 1 AND o_id = 1",
	}},
	{5, "O_CARRIER_ID of a new order", []int{5, 7}, func(x *native, t *txn.Tx, by int) error {
		return x.changeOrder(t, 8, func(row []byte) { orderCarrier.add(row, by) })
	}, []string{
		"UPDATE orders SET o_carrier_id = 1 WHERE o_d_id = 1 AND o_id = 8|UPDATE orders SET o_carrier_id = NULL WHERE o_d_id = 1 AND o_id = 8",
	}},
	{6, "O_OL_CNT of two orders, whose sum is the same", []int{6}, func(x *native, t *txn.Tx, by int) error {
		return errors.Join(
			x.changeOrder(t, 1, func(row []byte) { orderLines.add(row, by) }),
			x.changeOrder(t, 2, func(row []byte) { orderLines.add(row, -by) }))
	}, []string{
		"UPDATE orders SET o_ol_cnt = o_ol_cnt + %d WHERE o_d_id = 1 AND o_id = 1",
		"UPDATE orders SET o_ol_cnt = o_ol_cnt - %d WHERE o_d_id = 1 AND o_id = 2",
	}},
	{7, "OL_DELIVERY_D", []int{7}, func(x *native, t *txn.Tx, by int) error {
		at := time.Time{}
		if by < 0 {
			at = time.Now()
		}
		p, err := x.linesOf(t, 1, 1, 1)
		if err != nil {
			return err
		}
		lines, err := t.Write(p)
		if err == nil {
			lineDelivered.set(lineOf(lines, 0), at)
		}
		return err
	}, []string{
		"UPDATE order_line SET ol_delivery_d = NULL WHERE ol_d_id = 1 AND ol_o_id = 1 AND ol_number = 1|UPDATE order_line SET ol_delivery_d = NOW() WHERE ol_d_id = 1 AND ol_o_id = 1",
	}},
	{8, "H_AMOUNT", []int{8, 9, 10}, func(x *native, t *txn.Tx, by int) error {
		key := make([]byte, historyKeyBytes)
		copy(key, x.number(1, 1, 1))
		value, ok, err := x.only().histories.Get(t, key)
		if err != nil || !ok {
			return fmt.Errorf("the first payment (there: %t): %w", ok, err)
		}
		row := slices.Clone(value)
		historyAmount.add(row, money(by))
		return x.only().histories.Put(t, key, row)
	}, []string{
		"UPDATE history SET h_amount = h_amount + 0.01 * %d WHERE h_d_id = 1 AND h_c_id = 1",
	}},
	{9, "D_YTD of two districts, whose sum is the same", []int{9}, func(x *native, t *txn.Tx, by int) error {
		return errors.Join(x.changeYTD(t, 1, money(by)), x.changeYTD(t, 2, -money(by)))
	}, []string{
		"UPDATE district SET d_ytd = d_ytd + 0.01 * %d WHERE d_id = 1",
		"UPDATE district SET d_ytd = d_ytd - 0.01 * %d WHERE d_id = 2",
	}},
	{10, "C_BALANCE and C_YTD_PAYMENT, whose sum is the same", []int{10}, func(x *native, t *txn.Tx, by int) error {
		return x.changeCustomer(t, func(row []byte) {
			customerBalance.add(row, money(by))
			customerPaid.add(row, -money(by))
		})
	}, []string{
		"UPDATE customer SET c_balance = c_balance + 0.01 * %d WHERE c_d_id = 1 AND c_id = 1",
		"UPDATE customer SET c_ytd_payment = c_ytd_payment - 0.01 * %d WHERE c_d_id = 1 AND c_id = 1",
	}},
	{11, "C_DELIVERY_CNT", []int{11}, func(x *native, t *txn.Tx, by int) error {
		return x.changeCustomer(t, func(row []byte) { customerDeliveries.add(row, by) })
	}, []string{
		"UPDATE customer SET c_delivery_cnt = c_delivery_cnt + %d WHERE c_d_id = 1 AND c_id = 1",
	}},
	{12, "C_YTD_PAYMENT", []int{12}, func(x *native, t *txn.Tx, by int) error {
		return x.changeCustomer(t, func(row []byte) { customerPaid.add(row, money(by)) })
	}, []string{
		"UPDATE customer SET c_ytd_payment = c_ytd_payment + 0.01 * %d WHERE c_d_id = 1 AND c_id = 1",
	}},
}

// requireCaught does every damage, and requires that the check reports it.
func requireCaught(t *testing.T, w *Workload, do func(d *damage, by int) error) {
	ctx := context.Background()
	for i := range damages {
		d := &damages[i]
		if isNative := w.target.API() == bench.Native; isNative && d.native == nil || !isNative && d.sql == nil {
			continue
		}
		if err := do(d, 1); err != nil {
			t.Fatalf("breaking condition %d, %s: %v", d.condition, d.name, err)
		}
		var found ConsistencyError
		err := w.Check(ctx)
		if !errors.Is(err, bench.ErrInconsistent) || !errors.As(err, &found) {
			t.Fatalf("condition %d, %s: the check says %v", d.condition, d.name, err)
		}
		var caught []int
		for _, f := range found {
			caught = append(caught, f.Condition)
		}
		slices.Sort(caught)
		if !slices.Equal(caught, d.caught) {
			t.Errorf("condition %d, %s: caught by %v, want %v\n%v", d.condition, d.name, caught, d.caught, found)
		}
		if err := do(d, -1); err != nil {
			t.Fatalf("repairing %s: %v", d.name, err)
		}
		if err := w.Check(ctx); err != nil {
			t.Fatalf("after the repair of %s: %v", d.name, err)
		}
	}
}

func TestBrokenDataAreCaught(t *testing.T) {
	tg, w := open(t, bench.TargetConfig{}, small)
	x := w.store.(*nativeStore).session(0)
	requireCaught(t, w, func(d *damage, by int) error {
		return tg.Machine(0).Run(context.Background(), func(tx *txn.Tx) error { return d.native(&x, tx, by) })
	})
}

// statements returns the SQL statements that do the damage, or repair it.
func (d *damage) statements(by int) (all []string) {
	for _, q := range d.sql {
		if broken, repaired, two := strings.Cut(q, "|"); two {
			if q = broken; by < 0 {
				q = repaired
			}
		} else {
			q = fmt.Sprintf(q, by)
		}
		all = append(all, q)
	}
	return all
}

func TestBrokenDataAreCaughtOverSQL(t *testing.T) {
	_, w := open(t, bench.TargetConfig{API: bench.SQL}, small)
	ctx := context.Background()
	conn, err := w.store.(*sqlStore).connect(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	requireCaught(t, w, func(d *damage, by int) error {
		for _, q := range d.statements(by) {
			if _, err := conn.ExecContext(ctx, q); err != nil {
				return fmt.Errorf("%s: %w", q, err)
			}
		}
		return nil
	})
}

// Some damage violates each condition of clause 3.3.2.
func TestEveryConditionIsBroken(t *testing.T) {
	for n := 0; n <= 12; n++ {
		if !slices.ContainsFunc(damages, func(d damage) bool { return d.condition == n && slices.Contains(d.caught, n) }) {
			t.Errorf("no data are broken for condition %d", n)
		}
	}
}

// A run that leaves broken data has no result.
func TestBrokenRunHasNoResult(t *testing.T) {
	tg, w := open(t, bench.TargetConfig{}, small)
	x := w.store.(*nativeStore).session(0)
	err := tg.Machine(0).Run(context.Background(), func(tx *txn.Tx) error { return x.changeYTD(tx, 1, 1) })
	if err != nil {
		t.Fatal(err)
	}
	res, err := bench.Run(context.Background(), tg, w, bench.Options{Transactions: 10, AnyBuild: true})
	if !errors.Is(err, bench.ErrInconsistent) || res != nil {
		t.Fatalf("a run over broken data returned %v, %v", res, err)
	}
}

// The ledger refuses rows that cannot exist, and does not look for them beyond its books.
func TestLedgerRefusesStrayRows(t *testing.T) {
	cfg := small
	if err := cfg.validate(); err != nil {
		t.Fatal(err)
	}
	l := newLedger(&cfg)
	for name, err := range map[string]error{
		"warehouse":  l.enterWarehouse(2, 0),
		"district":   l.enterDistrict(1, 11, 0, 1),
		"stock":      l.enterStock(1, 21),
		"stock of":   l.enterStock(2, 1),
		"customer":   l.enterCustomer(1, 1, 11, 0, 0, 0),
		"order":      l.enterOrder(1, 1, 0, 1, 1, 5),
		"order of":   l.enterOrder(1, 1, 1, 11, 1, 5),
		"new order":  l.enterNewOrder(1, 0, 1),
		"line":       l.enterLine(0, 1, 1, 0, false),
		"payment":    l.enterPayment(&historyRow{warehouse: 1, district: 1, customer: 1, atWarehouse: 1, atDistrict: 0}),
		"payment of": l.enterPayment(&historyRow{warehouse: 1, district: 1, customer: 0, atWarehouse: 1, atDistrict: 1}),
	} {
		if err == nil {
			t.Errorf("a stray %s was taken", name)
		}
	}
}

// A row that cannot exist does not make up for a missing row. On the native API this is true of
// every index with one entry for each row of a table.
func TestStrayRowsAreCaught(t *testing.T) {
	tg, w := open(t, bench.TargetConfig{}, small)
	x := w.store.(*nativeStore).session(0)
	p := x.only()
	for name, c := range map[string]struct {
		tb                     *hash.Table
		warehouse, district, n int
	}{
		"warehouse":         {p.warehouses, 2, 0, 0},
		"W_YTD":             {p.warehouseYTD, 2, 0, 0},
		"district":          {p.districts, 1, 11, 0},
		"D_YTD":             {p.districtYTD, 1, 11, 0},
		"D_NEXT_O_ID":       {p.districtOrders, 1, 11, 0},
		"customer":          {p.customers, 1, 1, 11},
		"C_DATA":            {p.customerData, 1, 1, 11},
		"stock":             {p.stocks, 1, 0, 21},
		"data of a stock":   {p.stockData, 1, 0, 21},
		"data of no person": {p.customerData, 1, 11, 1},
	} {
		key := appendKey(nil, c.warehouse, c.district, c.n)
		do := func(change func(t *txn.Tx) error) {
			t.Helper()
			if err := tg.Machine(0).Run(context.Background(), change); err != nil {
				t.Fatal(err)
			}
		}
		do(func(tx *txn.Tx) error { _, _, err := insert(tx, c.tb, key, placeBytes, 0); return err })
		if err := w.Check(context.Background()); !errors.Is(err, bench.ErrInconsistent) || !strings.Contains(err.Error(), "a row of ") {
			t.Errorf("%s: %v", name, err)
		}
		do(func(tx *txn.Tx) error { _, err := c.tb.Delete(tx, key); return err })
	}
	if err := w.Check(context.Background()); err != nil {
		t.Error(err)
	}
}
