package tpcc

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/farmsql/farmsql/bench"
)

// A sqlClient runs interactive transactions over a connection of its own: one prepared statement
// after the other.
type sqlClient struct {
	conn     *sql.Conn
	prepared [statements]*sql.Stmt
	thread   *bench.Thread
	ctx      context.Context // context of the transaction
	ids      []int
}

func newSQLClient(ctx context.Context, conn *sql.Conn, th *bench.Thread) (*sqlClient, error) {
	x := &sqlClient{conn: conn, thread: th}
	for s := range x.prepared {
		text := statement(s).text()
		var err error
		if x.prepared[s], err = conn.PrepareContext(ctx, text); err != nil {
			return nil, errors.Join(fmt.Errorf("preparing %q: %w", text, err), x.close())
		}
	}
	return x, nil
}

func (x *sqlClient) close() error {
	var errs []error
	for _, s := range x.prepared {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	err := x.conn.Close()
	if errors.Is(err, sql.ErrConnDone) { // a transaction was cancelled, which ends the connection
		err = nil
	}
	return errors.Join(append(errs, err)...)
}

// do runs statements in a transaction, and retries it after each conflict. It does not use
// database/sql's own transactions, which would prepare the statements again.
func (x *sqlClient) do(ctx context.Context, statements func() error) error {
	x.ctx = ctx
	return x.thread.Retry(ctx, func() error {
		if _, err := x.conn.ExecContext(ctx, "START TRANSACTION"); err != nil {
			return err
		}
		err := statements()
		if err == nil {
			_, err = x.conn.ExecContext(ctx, "COMMIT")
		}
		if err == nil {
			return nil
		}
		if _, undo := x.conn.ExecContext(ctx, "ROLLBACK"); undo != nil {
			return errors.Join(err, undo)
		}
		return err
	})
}

// get scans the first row of a statement's result into dst. Without a row it returns errMissing.
func (x *sqlClient) get(s statement, args []any, dst ...any) error {
	err := x.prepared[s].QueryRowContext(x.ctx, args...).Scan(dst...)
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("%w: %s %v", errMissing, s.text(), args)
	}
	return err
}

// change runs a statement. It returns errMissing if no row changes.
func (x *sqlClient) change(s statement, args ...any) error {
	res, err := x.prepared[s].ExecContext(x.ctx, args...)
	if err != nil {
		return err
	}
	n, err := res.RowsAffected()
	if err == nil && n == 0 {
		err = fmt.Errorf("%w: %s %v", errMissing, s.text(), args)
	}
	return err
}

// each calls row for each row of a statement's result; row scans it.
func (x *sqlClient) each(s statement, args []any, row func(*sql.Rows) error) error {
	rows, err := x.prepared[s].QueryContext(x.ctx, args...)
	if err != nil {
		return err
	}
	return eachRow(rows, row)
}

func eachRow(rows *sql.Rows, row func(*sql.Rows) error) error {
	defer rows.Close()
	for rows.Next() {
		if err := row(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// find returns the number of the customer that w describes.
func (x *sqlClient) find(w *whom) (int, error) {
	if w.number != 0 {
		return w.number, nil
	}
	x.ids = x.ids[:0]
	err := x.each(findCustomers, []any{w.warehouse, w.district, w.last}, func(rows *sql.Rows) error {
		id := 0
		err := rows.Scan(&id)
		x.ids = append(x.ids, id)
		return err
	})
	if err == nil && len(x.ids) == 0 {
		err = fmt.Errorf("%w: a customer %s", errMissing, w.last)
	}
	if err != nil {
		return 0, err
	}
	return x.ids[middle(len(x.ids))], nil
}

// newOrder implements database.
func (x *sqlClient) newOrder(ctx context.Context, in *newOrder) error {
	return x.do(ctx, func() error { return x.enter(in) })
}

// enter executes a New-Order (clause 2.4.2.2).
func (x *sqlClient) enter(in *newOrder) error {
	var warehouseTax, districtTax, discount rate
	var last, credit string
	if err := x.get(getWarehouseTax, []any{in.warehouse}, &warehouseTax); err != nil {
		return err
	}
	if err := x.get(getDistrictTax, []any{in.warehouse, in.district}, &districtTax, &in.number); err != nil {
		return err
	}
	if err := x.change(takeOrderNumber, in.warehouse, in.district); err != nil {
		return err
	}
	if err := x.get(getCustomerTerms, []any{in.warehouse, in.district, in.customer}, &discount, &last, &credit); err != nil {
		return err
	}
	local := 0
	if in.allLocal() {
		local = 1
	}
	if err := x.change(addOrder, in.number, in.district, in.warehouse, in.customer, in.entered, len(in.lines), local); err != nil {
		return err
	}
	if err := x.change(addNewOrder, in.number, in.district, in.warehouse); err != nil {
		return err
	}
	sum := money(0)
	for i := range in.lines {
		amount, err := x.enterLine(in, i)
		if err != nil {
			return err
		}
		sum += amount
	}
	in.total = sum.less(discount).plus(warehouseTax + districtTax)
	return nil
}

// enterLine enters a line of the order. It returns errUnusedItem if there is no such item.
func (x *sqlClient) enterLine(in *newOrder, i int) (money, error) {
	line := &in.lines[i]
	var price money
	var name, info string
	var itemData, data []byte
	err := x.get(getItem, []any{line.item}, &price, &name, &itemData)
	if errors.Is(err, errMissing) {
		return 0, errUnusedItem
	}
	if err != nil {
		return 0, err
	}
	quantity, remote := 0, 0
	if err := x.get(stockOf(in.district), []any{line.supply, line.item}, &quantity, &data, &info); err != nil {
		return 0, err
	}
	line.brand = brand(itemData, data)
	if line.supply != in.warehouse {
		remote = 1
	}
	if err := x.change(changeStock, restocked(quantity, line.quantity), line.quantity, remote, line.supply, line.item); err != nil {
		return 0, err
	}
	amount := money(line.quantity) * price
	return amount, x.change(addLine, in.number, in.district, in.warehouse, i+1, line.item, line.supply, line.quantity, amount, info)
}

// payment implements database.
func (x *sqlClient) payment(ctx context.Context, in *payment) error {
	return x.do(ctx, func() error { return x.pay(in) })
}

// pay executes a Payment (clause 2.5.2.2).
func (x *sqlClient) pay(in *payment) error {
	var warehouse, district placeRow
	if err := x.change(payWarehouse, in.amount, in.warehouse); err != nil {
		return err
	}
	if err := x.get(getWarehouse, []any{in.warehouse}, warehouse.shown()...); err != nil {
		return err
	}
	if err := x.change(payDistrict, in.amount, in.warehouse, in.district); err != nil {
		return err
	}
	if err := x.get(getDistrict, []any{in.warehouse, in.district}, district.shown()...); err != nil {
		return err
	}
	if err := x.payFor(in); err != nil {
		return err
	}
	who := &in.customer
	return x.change(addHistory, in.number, who.district, who.warehouse, in.district, in.warehouse, in.paid, in.amount,
		warehouse.name+historyGap+district.name)
}

// shown returns the fields of a warehouse or district that a terminal shows.
func (r *placeRow) shown() []any {
	return []any{&r.name, &r.street1, &r.street2, &r.city, &r.state, &r.zip}
}

// payFor changes the customer; one with bad credit also gets a note.
func (x *sqlClient) payFor(in *payment) (err error) {
	who := &in.customer
	if in.number, err = x.find(who); err != nil {
		return err
	}
	var credit, data string
	if err := x.get(getCredit, []any{who.warehouse, who.district, in.number}, &in.balance, &credit, &data); err != nil {
		return err
	}
	in.balance -= in.amount
	if credit != badCredit {
		return x.change(payCustomer, in.amount, in.amount, who.warehouse, who.district, in.number)
	}
	return x.change(payBadCustomer, in.amount, in.amount, in.note(data), who.warehouse, who.district, in.number)
}

// orderStatus implements database.
func (x *sqlClient) orderStatus(ctx context.Context, in *orderStatus) error {
	return x.do(ctx, func() error { return x.status(in) })
}

// status executes an Order-Status (clause 2.6.2.2).
func (x *sqlClient) status(in *orderStatus) (err error) {
	who := &in.customer
	if in.number, err = x.find(who); err != nil {
		return err
	}
	var first, middle, last string
	if err := x.get(getBalance, []any{who.warehouse, who.district, in.number}, &in.balance, &first, &middle, &last); err != nil {
		return err
	}
	var at any
	var carrier sql.NullInt64
	if err := x.get(getLastOrder, []any{who.warehouse, who.district, in.number}, &in.order, &at, &carrier); err != nil {
		return err
	}
	in.lines, in.amount = 0, 0
	return x.each(getLines, []any{who.warehouse, who.district, in.order}, func(rows *sql.Rows) error {
		var item, supply, quantity int
		var amount money
		var delivered any
		err := rows.Scan(&item, &supply, &quantity, &amount, &delivered)
		in.lines++
		in.amount += amount
		return err
	})
}

// delivery implements database.
func (x *sqlClient) delivery(ctx context.Context, in *delivery) error {
	return x.do(ctx, func() error {
		for d := 1; d <= districts; d++ {
			if err := x.deliver(in, d); err != nil {
				return err
			}
		}
		return nil
	})
}

// deliver delivers the oldest order of a district, if there is one.
func (x *sqlClient) deliver(in *delivery, district int) error {
	order := &in.orders[district-1]
	*order = 0
	err := x.get(getOldest, []any{in.warehouse, district}, order)
	if errors.Is(err, errMissing) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := x.change(removeNewOrder, in.warehouse, district, *order); err != nil {
		return err
	}
	customer, sum := 0, money(0)
	if err := x.get(getOrderCustomer, []any{in.warehouse, district, *order}, &customer); err != nil {
		return err
	}
	if err := x.change(setCarrier, in.carrier, in.warehouse, district, *order); err != nil {
		return err
	}
	if err := x.change(setDelivered, in.at, in.warehouse, district, *order); err != nil {
		return err
	}
	if err := x.get(sumLines, []any{in.warehouse, district, *order}, &sum); err != nil {
		return err
	}
	return x.change(deliverToCustomer, sum, in.warehouse, district, customer)
}

// stockLevel implements database.
func (x *sqlClient) stockLevel(ctx context.Context, in *stockLevel) error {
	return x.do(ctx, func() error {
		next := 0
		if err := x.get(getNextOrder, []any{in.warehouse, in.district}, &next); err != nil {
			return err
		}
		return x.get(countLow, []any{in.warehouse, in.district, next - recentOrders, next, in.threshold}, &in.low)
	})
}
