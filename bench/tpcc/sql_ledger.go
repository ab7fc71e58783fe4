package tpcc

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// A query reads a table into a ledger. asks is the number of its parameters: none, a warehouse, or a
// warehouse and a district. enter scans a row and enters it in the ledger.
type query struct {
	text  string
	asks  int
	enter func(*ledger, *sql.Rows) error
}

var queries = []query{
	{"SELECT COUNT(*) FROM item", 0, func(l *ledger, rows *sql.Rows) error { return rows.Scan(&l.items) }},
	{"SELECT COUNT(*) FROM warehouse", 0, count(warehouseTable, "warehouse")},
	{"SELECT COUNT(*) FROM district", 0, count(districtTable, "district")},
	{"SELECT COUNT(*) FROM customer", 0, count(customerTable, "customer")},
	{"SELECT COUNT(*) FROM stock", 0, count(stockTable, "stock")},
	{"SELECT s_w_id, s_i_id FROM stock WHERE s_w_id = ?", 1, func(l *ledger, rows *sql.Rows) error {
		var w, item int
		err := rows.Scan(&w, &item)
		return errors.Join(err, l.enterStock(w, item))
	}},
	{"SELECT w_id, w_ytd FROM warehouse", 0, func(l *ledger, rows *sql.Rows) error {
		var w int
		var ytd money
		err := rows.Scan(&w, &ytd)
		return errors.Join(err, l.enterWarehouse(w, ytd))
	}},
	{"SELECT d_w_id, d_id, d_ytd, d_next_o_id FROM district", 0, func(l *ledger, rows *sql.Rows) error {
		var w, d, next int
		var ytd money
		err := rows.Scan(&w, &d, &ytd, &next)
		return errors.Join(err, l.enterDistrict(w, d, ytd, next))
	}},
	{"SELECT c_w_id, c_d_id, c_id, c_balance, c_ytd_payment, c_delivery_cnt FROM customer WHERE c_w_id = ?", 1, func(l *ledger, rows *sql.Rows) error {
		var w, d, n, deliveries int
		var balance, paid money
		err := rows.Scan(&w, &d, &n, &balance, &paid, &deliveries)
		return errors.Join(err, l.enterCustomer(w, d, n, balance, paid, deliveries))
	}},
	{"SELECT h_c_w_id, h_c_d_id, h_c_id, h_w_id, h_d_id, h_amount FROM history", 0, func(l *ledger, rows *sql.Rows) error {
		var h historyRow
		err := rows.Scan(&h.warehouse, &h.district, &h.customer, &h.atWarehouse, &h.atDistrict, &h.amount)
		return errors.Join(err, l.enterPayment(&h))
	}},
	{"SELECT o_w_id, o_d_id, o_id, o_c_id, o_carrier_id, o_ol_cnt FROM orders WHERE o_w_id = ? AND o_d_id = ?", 2, func(l *ledger, rows *sql.Rows) error {
		var w, d, n, customer, lines int
		var carrier sql.NullInt64
		err := rows.Scan(&w, &d, &n, &customer, &carrier, &lines)
		return errors.Join(err, l.enterOrder(w, d, n, customer, int(carrier.Int64), lines))
	}},
	{"SELECT no_w_id, no_d_id, no_o_id FROM new_order WHERE no_w_id = ?", 1, func(l *ledger, rows *sql.Rows) error {
		var w, d, n int
		err := rows.Scan(&w, &d, &n)
		return errors.Join(err, l.enterNewOrder(w, d, n))
	}},
	{"SELECT ol_w_id, ol_d_id, ol_o_id, ol_amount, ol_delivery_d IS NOT NULL FROM order_line WHERE ol_w_id = ? AND ol_d_id = ?", 2, func(l *ledger, rows *sql.Rows) error {
		var w, d, n int
		var amount money
		var isDelivered bool
		err := rows.Scan(&w, &d, &n, &amount, &isDelivered)
		return errors.Join(err, l.enterLine(w, d, n, amount, isDelivered))
	}},
}

// count stores the number of rows of a table in the ledger.
func count(t table, name string) func(*ledger, *sql.Rows) error {
	return func(l *ledger, rows *sql.Rows) error {
		var n int
		err := rows.Scan(&n)
		l.count(t, name, n)
		return err
	}
}

// read implements store.
func (s *sqlStore) read(ctx context.Context, l *ledger) error {
	conn, err := s.connect(ctx)
	if err != nil {
		return err
	}
	for i := range queries {
		if err := queries[i].read(ctx, conn, l); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", queries[i].text, err), conn.Close())
		}
	}
	return conn.Close()
}

// read runs the query once, for each warehouse, or for each district, depending on its parameters.
func (q *query) read(ctx context.Context, conn *sql.Conn, l *ledger) error {
	warehouses, districtsEach := 1, 1
	if q.asks > 0 {
		warehouses = len(l.warehouses)
	}
	if q.asks > 1 {
		districtsEach = districts
	}
	for w := 1; w <= warehouses; w++ {
		for d := 1; d <= districtsEach; d++ {
			rows, err := conn.QueryContext(ctx, q.text, []any{w, d}[:q.asks]...)
			if err != nil {
				return err
			}
			if err := eachRow(rows, func(rows *sql.Rows) error { return q.enter(l, rows) }); err != nil {
				return err
			}
		}
	}
	return nil
}
