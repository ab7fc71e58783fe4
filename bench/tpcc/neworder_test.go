package tpcc

import (
	"context"
	"errors"
	"testing"

	"github.com/farmsql/farmsql/bench"
	"github.com/farmsql/farmsql/txn"
)

func TestBrand(t *testing.T) {
	for _, c := range []struct {
		item, stock string
		want        byte
	}{
		{"xORIGINALy", "ORIGINAL", 'B'}, {"ORIGINAL", "ORIGINA", 'G'}, {"original", "ORIGINAL", 'G'}, {"", "zzORIGINAL", 'G'}, {"", "", 'G'},
	} {
		if got := brand([]byte(c.item), []byte(c.stock)); got != c.want {
			t.Errorf("item %q, stock %q: %c, want %c", c.item, c.stock, got, c.want)
		}
	}
}

// An order with an unused item has all its other lines entered, and their stock
// changed, before it is rolled back (clause 2.4.2.3).
func TestOrderWithUnusedItem(t *testing.T) {
	cfg := Config{Customers: 10, Items: 100, Seed: 1}
	for _, api := range []bench.API{bench.Native, bench.SQL} {
		t.Run(string(api), func(t *testing.T) {
			_, w := open(t, bench.TargetConfig{API: api}, cfg)
			c, err := w.NewClient(t.Context(), &bench.Thread{Seed: 1, Number: 1})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			x := c.(*client)
			in := &x.newOrder
			in.draw(x.random, 1)
			in.lines = in.lines[:5]
			for i := range in.lines {
				in.lines[i].item = i + 1
			}
			in.lines[4].item = w.cfg.Items + 1
			if err := entered(t.Context(), x.database, in); !errors.Is(err, errUnusedItem) || errors.Is(err, errNotEntered) {
				t.Fatal(err)
			}
			if err := w.Check(t.Context()); err != nil {
				t.Errorf("what was rolled back has left something: %v", err)
			}
		})
	}
}

// entered enters an order, and returns its error. The error includes errNotEntered if the other
// lines had not been entered by then.
func entered(ctx context.Context, db database, in *newOrder) error {
	if x, ok := db.(*native); ok {
		return x.m.Run(ctx, func(tx *txn.Tx) error { return errors.Join(x.enter(tx, in), x.linesEntered(tx, in)) })
	}
	x := db.(*sqlClient)
	return x.do(ctx, func() error { return errors.Join(x.enter(in), x.linesEntered(in)) })
}

var errNotEntered = errors.New("a line was not entered")

func (x *native) linesEntered(tx *txn.Tx, in *newOrder) error {
	home := x.part(in.warehouse)
	_, p, ok, err := home.lines.Scan(tx, x.number(in.warehouse, in.district, in.number), nil, false).Next()
	if err != nil || !ok {
		return errors.Join(errNotEntered, err)
	}
	lines, err := tx.Read(p)
	if err != nil {
		return err
	}
	for i, line := range in.lines[:len(in.lines)-1] {
		stock, err := read(tx, home.stocks, x.number(line.supply, 0, line.item))
		if err != nil {
			return err
		}
		if lineItem.get(lineOf(lines, i)) != line.item || stockOrders.get(stock) != 1 {
			return errNotEntered
		}
	}
	return nil
}

func (x *sqlClient) linesEntered(in *newOrder) error {
	n, orders := 0, 0
	err := x.conn.QueryRowContext(x.ctx, `SELECT COUNT(*), SUM(s_order_cnt) FROM order_line JOIN stock ON s_w_id = ol_w_id AND s_i_id = ol_i_id
		WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?`, in.warehouse, in.district, in.number).Scan(&n, &orders)
	if err == nil && (n != len(in.lines)-1 || orders != n) {
		err = errNotEntered
	}
	return err
}
