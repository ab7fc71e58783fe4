package tatp

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/farmsql/farmsql/bench"
)

// sqlStore keeps the tables in a database named tatp.
type sqlStore struct {
	w  *Workload
	db *sql.DB
}

// numbered repeats a column's definition for the numbers from 1 to 10.
func numbered(format string) string {
	var parts []string
	for i := range 10 {
		parts = append(parts, fmt.Sprintf(format, i+1))
	}
	return strings.Join(parts, ", ")
}

var schema = []string{
	"CREATE DATABASE tatp",
	"CREATE TABLE tatp.subscriber (s_id INT UNSIGNED NOT NULL PRIMARY KEY, sub_nbr VARCHAR(15) NOT NULL UNIQUE, " +
		numbered("bit_%d TINYINT NOT NULL") + ", " + numbered("hex_%d TINYINT NOT NULL") + ", " + numbered("byte2_%d SMALLINT NOT NULL") +
		", msc_location INT UNSIGNED NOT NULL, vlr_location INT UNSIGNED NOT NULL)",
	"CREATE TABLE tatp.access_info (s_id INT UNSIGNED NOT NULL, ai_type TINYINT NOT NULL, data1 SMALLINT NOT NULL, data2 SMALLINT NOT NULL, " +
		"data3 CHAR(3) NOT NULL, data4 CHAR(5) NOT NULL, PRIMARY KEY (s_id, ai_type), FOREIGN KEY (s_id) REFERENCES tatp.subscriber (s_id))",
	"CREATE TABLE tatp.special_facility (s_id INT UNSIGNED NOT NULL, sf_type TINYINT NOT NULL, is_active TINYINT NOT NULL, error_cntrl SMALLINT NOT NULL, " +
		"data_a SMALLINT NOT NULL, data_b CHAR(5) NOT NULL, PRIMARY KEY (s_id, sf_type), FOREIGN KEY (s_id) REFERENCES tatp.subscriber (s_id))",
	"CREATE TABLE tatp.call_forwarding (s_id INT UNSIGNED NOT NULL, sf_type TINYINT NOT NULL, start_time TINYINT NOT NULL, end_time TINYINT NOT NULL, " +
		"numberx VARCHAR(15) NOT NULL, PRIMARY KEY (s_id, sf_type, start_time), " +
		"FOREIGN KEY (s_id, sf_type) REFERENCES tatp.special_facility (s_id, sf_type))",
}

func (s *sqlStore) create(ctx context.Context) error {
	if !s.w.target.Leads() {
		return nil
	}
	if s.w.cfg.Drop {
		if _, err := s.db.ExecContext(ctx, "DROP DATABASE IF EXISTS tatp"); err != nil {
			return err
		}
	}
	for _, statement := range schema {
		if _, err := s.db.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

type sqlLoader struct {
	s    *sqlStore
	conn *sql.Conn
	g    *generator
}

func (s *sqlStore) newLoader(ctx context.Context) (loader, error) {
	conn, err := s.db.Conn(ctx)
	return &sqlLoader{s, conn, newGenerator(s.w.cfg.Seed)}, err
}

func (l *sqlLoader) close() error { return l.conn.Close() }

// An insert collects the rows of one statement.
type insert struct {
	table string
	rows  []string
}

func (i *insert) add(format string, args ...any) {
	i.rows = append(i.rows, "("+fmt.Sprintf(format, args...)+")")
}

// load inserts a range of subscribers, with one statement for each table.
func (l *sqlLoader) load(ctx context.Context, first, last uint32) error {
	tables := [4]insert{{table: "subscriber"}, {table: "access_info"}, {table: "special_facility"}, {table: "call_forwarding"}}
	for id := first; id <= last; id++ {
		p := l.g.person(id)
		var bits [10]uint16
		for i := range bits {
			bits[i] = (p.bits >> i) & 1
		}
		tables[0].add("%d,'%s',%s,%s,%s,%d,%d", id, numberOf(id), listed(bits), listed(p.hex), listed(p.bytes), p.msc, p.vlr)
		for _, a := range p.access {
			tables[1].add("%d,%d,%d,%d,'%s','%s'", id, a.kind, a.data1, a.data2, a.data3, a.data4)
		}
		for i := range p.facilities {
			f := &p.facilities[i]
			active := 0
			if f.active {
				active = 1
			}
			tables[2].add("%d,%d,%d,%d,%d,'%s'", id, f.kind, active, f.errorCntrl, f.dataA, f.dataB)
			for _, w := range f.forwards {
				tables[3].add("%d,%d,%d,%d,'%s'", id, f.kind, w.start, w.end, w.number)
			}
		}
	}
	return l.insert(ctx, tables[:])
}

// listed returns values as SQL text, with commas between.
func listed[T uint8 | uint16](values [10]T) string {
	var parts []string
	for _, v := range values {
		parts = append(parts, fmt.Sprint(v))
	}
	return strings.Join(parts, ",")
}

func (l *sqlLoader) insert(ctx context.Context, tables []insert) error {
	if _, err := l.conn.ExecContext(ctx, "START TRANSACTION"); err != nil {
		return err
	}
	for _, t := range tables {
		if len(t.rows) == 0 {
			continue
		}
		if _, err := l.conn.ExecContext(ctx, "INSERT INTO tatp."+t.table+" VALUES "+strings.Join(t.rows, ",")); err != nil {
			return err
		}
	}
	_, err := l.conn.ExecContext(ctx, "COMMIT")
	return err
}

// Statements of the transactions, each prepared once for a client.
type statement int

const (
	selectSubscriber statement = iota
	selectDestination
	selectAccess
	updateBit
	updateDataA
	updateVLR
	selectID
	selectFacilities
	insertForward
	deleteForward
	statements
)

var statementTexts = [statements]string{
	"SELECT s_id, sub_nbr, " + numbered("bit_%d") + ", " + numbered("hex_%d") + ", " + numbered("byte2_%d") +
		", msc_location, vlr_location FROM tatp.subscriber WHERE s_id = ?",
	"SELECT cf.numberx FROM tatp.special_facility AS sf, tatp.call_forwarding AS cf WHERE sf.s_id = ? AND sf.sf_type = ? AND sf.is_active = 1 " +
		"AND cf.s_id = sf.s_id AND cf.sf_type = sf.sf_type AND cf.start_time <= ? AND ? < cf.end_time",
	"SELECT data1, data2, data3, data4 FROM tatp.access_info WHERE s_id = ? AND ai_type = ?",
	"UPDATE tatp.subscriber SET bit_1 = ? WHERE s_id = ?",
	"UPDATE tatp.special_facility SET data_a = ? WHERE s_id = ? AND sf_type = ?",
	"UPDATE tatp.subscriber SET vlr_location = ? WHERE sub_nbr = ?",
	"SELECT s_id FROM tatp.subscriber WHERE sub_nbr = ?",
	"SELECT sf_type FROM tatp.special_facility WHERE s_id = ?",
	"INSERT INTO tatp.call_forwarding (s_id, sf_type, start_time, end_time, numberx) VALUES (?, ?, ?, ?, ?)",
	"DELETE FROM tatp.call_forwarding WHERE s_id = ? AND sf_type = ? AND start_time = ?",
}

type sqlClient struct {
	conn       *sql.Conn
	thread     *bench.Thread
	statements [statements]*sql.Stmt
}

func (s *sqlStore) newExecutor(ctx context.Context, th *bench.Thread) (executor, error) {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	c := &sqlClient{conn: conn, thread: th}
	for i, text := range statementTexts {
		if c.statements[i], err = conn.PrepareContext(ctx, text); err != nil {
			return nil, errors.Join(fmt.Errorf("tatp: preparing %q: %w", text, err), c.close())
		}
	}
	return c, nil
}

func (c *sqlClient) close() error {
	var errs []error
	for _, s := range c.statements {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	return errors.Join(append(errs, c.conn.Close())...)
}

func (c *sqlClient) execute(ctx context.Context, r *request) error {
	return c.thread.Retry(ctx, func() error { return c.attempt(ctx, r) })
}

// attempt carries out a request once.
func (c *sqlClient) attempt(ctx context.Context, r *request) error {
	number := numberOf(r.id)
	switch r.kind {
	case getSubscriberData:
		return c.query(ctx, selectSubscriber, nil, r.id)
	case getAccessData:
		return c.query(ctx, selectAccess, nil, r.id, r.which)
	case getNewDestination:
		return c.query(ctx, selectDestination, nil, r.id, r.which, r.start, r.end)
	case updateSubscriberData:
		return c.transaction(ctx, func() error {
			if err := c.exec(ctx, updateBit, r.bit, r.id); err != nil && !errors.Is(err, bench.ErrMiss) {
				return err // ErrMiss only says that the bit had the value already
			}
			return c.updateFacility(ctx, r)
		})
	case updateLocation:
		err := c.exec(ctx, updateVLR, r.vlr, number[:])
		if errors.Is(err, bench.ErrMiss) {
			err = nil // the location was the same before
		}
		return err
	case insertCallForwarding:
		return c.transaction(ctx, func() error { return c.insertForward(ctx, r, number[:]) })
	default:
		return c.transaction(ctx, func() error {
			var id uint32
			if err := c.query(ctx, selectID, &id, number[:]); err != nil {
				return err
			}
			return c.exec(ctx, deleteForward, id, r.which, r.start)
		})
	}
}

// updateFacility changes data_a. The server counts no changed row in two cases: the row does not
// exist, or it already has the value. A query tells them apart.
func (c *sqlClient) updateFacility(ctx context.Context, r *request) error {
	err := c.exec(ctx, updateDataA, r.data, r.id, r.which)
	if !errors.Is(err, bench.ErrMiss) {
		return err
	}
	rows, err := c.statements[selectFacilities].QueryContext(ctx, r.id)
	if err != nil {
		return err
	}
	defer rows.Close()
	found := false
	for rows.Next() {
		var kind uint8
		if err := rows.Scan(&kind); err != nil {
			return err
		}
		found = found || kind == r.which
	}
	if err := rows.Err(); err != nil || found {
		return err
	}
	return bench.ErrMiss
}

func (c *sqlClient) insertForward(ctx context.Context, r *request, number []byte) error {
	var id uint32
	if err := c.query(ctx, selectID, &id, number); err != nil {
		return err
	}
	if err := c.query(ctx, selectFacilities, nil, id); err != nil {
		return err
	}
	err := c.exec(ctx, insertForward, id, r.which, r.start, r.end, r.number[:])
	if bench.ViolatesKey(err) { // the benchmark's description expects this error
		return bench.ErrMiss
	}
	return err
}

// query reads all rows. If first is not nil, it scans the single column of the first row into it.
// Without rows it returns bench.ErrMiss.
func (c *sqlClient) query(ctx context.Context, s statement, first *uint32, args ...any) error {
	rows, err := c.statements[s].QueryContext(ctx, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	n := 0
	for ; rows.Next(); n++ {
		if n == 0 && first != nil {
			if err := rows.Scan(first); err != nil {
				return err
			}
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if n == 0 {
		return bench.ErrMiss
	}
	return nil
}

// exec runs a statement that changes rows. It returns bench.ErrMiss if no row changes.
func (c *sqlClient) exec(ctx context.Context, s statement, args ...any) error {
	result, err := c.statements[s].ExecContext(ctx, args...)
	if err != nil {
		return err
	}
	n, err := result.RowsAffected()
	if err == nil && n == 0 {
		err = bench.ErrMiss
	}
	return err
}

// transaction runs do between START TRANSACTION and COMMIT, or ROLLBACK if it
// fails.
func (c *sqlClient) transaction(ctx context.Context, do func() error) error {
	if _, err := c.conn.ExecContext(ctx, "START TRANSACTION"); err != nil {
		return err
	}
	if err := do(); err != nil {
		if _, undone := c.conn.ExecContext(ctx, "ROLLBACK"); undone != nil {
			return errors.Join(err, undone)
		}
		return err
	}
	_, err := c.conn.ExecContext(ctx, "COMMIT")
	return err
}

// check compares counts and sums with those of the loaded data.
func (s *sqlStore) check(ctx context.Context, loaded *totals, forwards span) error {
	n := exactly(s.w.cfg.Subscribers)
	for _, c := range []struct {
		what, query string
		want        span
	}{
		{"subscribers", "SELECT COUNT(*) FROM tatp.subscriber", n},
		{"subscribers with their number", "SELECT COUNT(*) FROM tatp.subscriber WHERE s_id BETWEEN 1 AND " + fmt.Sprint(s.w.cfg.Subscribers) + " AND sub_nbr = LPAD(CONCAT(s_id), 15, '0')", n},
		{"subscribers with fields out of range", "SELECT COUNT(*) FROM tatp.subscriber WHERE bit_1 NOT IN (0, 1) OR vlr_location = 0", span{}},
		{"access information", "SELECT COUNT(*) FROM tatp.access_info", exactly(loaded.access)},
		{"the sum of access information", "SELECT CAST(SUM(data1 + data2 + ai_type) AS SIGNED) FROM tatp.access_info", exactly(loaded.accessData)},
		{"facilities", "SELECT COUNT(*) FROM tatp.special_facility WHERE data_a BETWEEN 0 AND 255", exactly(loaded.facilities)},
		{"active facilities", "SELECT COUNT(*) FROM tatp.special_facility WHERE is_active = 1", exactly(loaded.active)},
		{"the sum of facilities", "SELECT CAST(SUM(error_cntrl) AS SIGNED) FROM tatp.special_facility", exactly(loaded.facilityError)},
		{"call forwardings", "SELECT COUNT(*) FROM tatp.call_forwarding", forwards},
		{"call forwardings with a facility", "SELECT COUNT(*) FROM tatp.call_forwarding cf JOIN tatp.special_facility sf ON cf.s_id = sf.s_id AND cf.sf_type = sf.sf_type", forwards},
		{"call forwardings with fields in range", "SELECT COUNT(*) FROM tatp.call_forwarding WHERE start_time IN (0, 8, 16) AND end_time BETWEEN 1 AND 24", forwards},
	} {
		var got sql.NullInt64
		if err := s.db.QueryRowContext(ctx, c.query).Scan(&got); err != nil {
			return fmt.Errorf("checking %s: %w", c.what, err)
		}
		if !c.want.has(got.Int64) {
			return broken("%s: %d, want %v", c.what, got.Int64, c.want)
		}
	}
	return nil
}
