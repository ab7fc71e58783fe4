package tpcc

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/farmsql/farmsql/bench"
)

// A sqlStore is the database over SQL, of farmsql or any server at a DSN.
type sqlStore struct {
	target *bench.Target
	db     *sql.DB
	drop   bool // drop an existing database first
}

// create implements store.
func (s *sqlStore) create(ctx context.Context) error {
	if !s.target.Leads() {
		return nil
	}
	if s.drop {
		if _, err := s.db.ExecContext(ctx, "DROP DATABASE IF EXISTS "+schemaName); err != nil {
			return err
		}
	}
	if _, err := s.db.ExecContext(ctx, "CREATE DATABASE "+schemaName); err != nil {
		return err
	}
	conn, err := s.connect(ctx)
	if err != nil {
		return err
	}
	for _, q := range schema {
		if _, err := conn.ExecContext(ctx, q); err != nil {
			return errors.Join(err, conn.Close())
		}
	}
	return conn.Close()
}

// connect returns a connection to the benchmark's tables.
func (s *sqlStore) connect(ctx context.Context) (*sql.Conn, error) {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := conn.ExecContext(ctx, "USE "+schemaName); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// itemLoaders implements store.
func (s *sqlStore) itemLoaders(ctx context.Context) ([]loader, error) {
	if !s.target.Leads() {
		return nil, nil
	}
	l, err := s.warehouseLoader(ctx, 0) // its loaders load rows of any table
	return []loader{l}, err
}

// warehouseLoader implements store.
func (s *sqlStore) warehouseLoader(ctx context.Context, _ int) (loader, error) {
	conn, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	return &sqlLoader{ctx: ctx, conn: conn, pending: make(map[string]*rows)}, nil
}

// client implements store. All clients have all warehouses.
func (s *sqlStore) client(ctx context.Context, th *bench.Thread, warehouses int) (database, []int, error) {
	conn, err := s.connect(ctx)
	if err != nil {
		return nil, nil, err
	}
	x, err := newSQLClient(ctx, conn, th)
	if err != nil {
		return nil, nil, err
	}
	all := make([]int, warehouses)
	for i := range all {
		all[i] = i + 1
	}
	return x, all, nil
}

// A sqlLoader inserts many rows with each statement.
type sqlLoader struct {
	ctx     context.Context
	conn    *sql.Conn
	pending map[string]*rows // rows that are not loaded yet, by table
}

// rows are the rows of one table that are not loaded yet.
type rows struct {
	n    int
	args []any
}

func (l *sqlLoader) add(table string, columns ...any) error {
	r := l.pending[table]
	if r == nil {
		r = new(rows)
		l.pending[table] = r
	}
	r.n++
	r.args = append(r.args, columns...)
	if r.n < rowsMax {
		return nil
	}
	return l.insert(table, r)
}

func (l *sqlLoader) insert(table string, r *rows) error {
	columns := len(r.args) / r.n
	row := "(?" + strings.Repeat(", ?", columns-1) + ")"
	q := "INSERT INTO " + table + " VALUES " + row + strings.Repeat(", "+row, r.n-1)
	_, err := l.conn.ExecContext(l.ctx, q, r.args...)
	delete(l.pending, table)
	if err != nil {
		return fmt.Errorf("table %s: %w", table, err)
	}
	return nil
}

// flush implements loader.
func (l *sqlLoader) flush() error {
	for table, r := range l.pending {
		if err := l.insert(table, r); err != nil {
			return err
		}
	}
	return nil
}

// close implements loader.
func (l *sqlLoader) close() error { return l.conn.Close() }

// item implements loader.
func (l *sqlLoader) item(r *itemRow) error {
	return l.add("item", r.id, r.image, r.name, r.price, r.data)
}

// warehouse implements loader.
func (l *sqlLoader) warehouse(r *placeRow) error {
	return l.add("warehouse", r.warehouse, r.name, r.street1, r.street2, r.city, r.state, r.zip, r.tax, r.ytd)
}

// district implements loader.
func (l *sqlLoader) district(r *placeRow) error {
	return l.add("district", r.district, r.warehouse, r.name, r.street1, r.street2, r.city, r.state, r.zip, r.tax, r.ytd, r.next)
}

// stock implements loader.
func (l *sqlLoader) stock(r *stockRow) error {
	columns := []any{r.item, r.warehouse, r.quantity}
	for _, info := range r.districts {
		columns = append(columns, info)
	}
	return l.add("stock", append(columns, 0, 0, 0, r.data)...)
}

// customer implements loader.
func (l *sqlLoader) customer(r *customerRow, h *historyRow) error {
	err := l.add("customer", r.id, r.district, r.warehouse, r.first, r.middle, r.last, r.street1, r.street2, r.city, r.state, r.zip,
		r.phone, r.since, r.credit, r.limit, r.discount, r.balance, r.paid, 1, 0, r.data)
	if err != nil {
		return err
	}
	return l.add("history", h.customer, h.district, h.warehouse, h.atDistrict, h.atWarehouse, h.at, h.amount, h.data)
}

// order implements loader.
func (l *sqlLoader) order(r *orderRow) error {
	carrier := sql.NullInt64{Int64: int64(r.carrier), Valid: r.carrier != 0}
	if err := l.add("orders", r.id, r.district, r.warehouse, r.customer, r.at, carrier, len(r.lines), 1); err != nil {
		return err
	}
	if r.carrier == 0 {
		if err := l.add("new_order", r.id, r.district, r.warehouse); err != nil {
			return err
		}
	}
	for i := range r.lines {
		line := &r.lines[i]
		err := l.add("order_line", r.id, r.district, r.warehouse, i+1, line.item, line.supply, nullTime(line.delivered), line.quantity,
			line.amount, line.info)
		if err != nil {
			return err
		}
	}
	return nil
}

func nullTime(t time.Time) sql.NullTime { return sql.NullTime{Time: t, Valid: !t.IsZero()} }
