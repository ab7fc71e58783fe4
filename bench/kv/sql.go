package kv

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/farmsql/farmsql/bench"
)

// sqlStore keeps the pairs in a table.
type sqlStore struct {
	w  *Workload
	db *sql.DB
}

func (s *sqlStore) create(ctx context.Context) error {
	if !s.w.target.Leads() {
		return nil
	}
	statements := []string{
		"CREATE DATABASE kv",
		fmt.Sprintf("CREATE TABLE kv.pairs (k BINARY(%d) NOT NULL PRIMARY KEY, v VARBINARY(%d) NOT NULL)", keyBytes, s.w.cfg.ValueBytes),
	}
	if s.w.cfg.Drop {
		statements = append([]string{"DROP DATABASE IF EXISTS kv"}, statements...)
	}
	for _, statement := range statements {
		if _, err := s.db.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

func (s *sqlStore) full() error { return nil }

type sqlPutter struct {
	s    *sqlStore
	conn *sql.Conn
}

func (s *sqlStore) newPutter(ctx context.Context) (putter, error) {
	conn, err := s.db.Conn(ctx)
	return &sqlPutter{s, conn}, err
}

func (p *sqlPutter) put(ctx context.Context, first, end int) error {
	var pairs []any
	for i := first; i < end; i++ {
		pairs = append(pairs, fillKey(make([]byte, keyBytes), i), fillValue(make([]byte, p.s.w.cfg.ValueBytes), i, 0))
	}
	_, err := p.conn.ExecContext(ctx, "INSERT INTO kv.pairs VALUES (?, ?)"+strings.Repeat(", (?, ?)", end-first-1), pairs...)
	return err
}

func (p *sqlPutter) close() error { return p.conn.Close() }

type sqlExecutor struct {
	conn           *sql.Conn
	thread         *bench.Thread
	find, exchange *sql.Stmt
	value          []byte
}

func (s *sqlStore) newExecutor(ctx context.Context, th *bench.Thread) (executor, error) {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	e := &sqlExecutor{conn: conn, thread: th}
	if e.find, err = conn.PrepareContext(ctx, "SELECT v FROM kv.pairs WHERE k = ?"); err == nil {
		e.exchange, err = conn.PrepareContext(ctx, "UPDATE kv.pairs SET v = ? WHERE k = ?")
	}
	if err != nil {
		return nil, errors.Join(err, e.close())
	}
	return e, nil
}

func (e *sqlExecutor) lookup(ctx context.Context, key []byte) ([]byte, error) {
	err := e.thread.Retry(ctx, func() error { return e.find.QueryRowContext(ctx, key).Scan(&e.value) })
	if errors.Is(err, sql.ErrNoRows) {
		err = goneError(key)
	}
	return e.value, err
}

func (e *sqlExecutor) lookupMany([][]byte, func(int, []byte, bool)) error {
	return errors.ErrUnsupported
}

func (e *sqlExecutor) update(ctx context.Context, key, value []byte) error {
	return e.thread.Retry(ctx, func() error {
		_, err := e.exchange.ExecContext(ctx, value, key)
		return err
	})
}

func (e *sqlExecutor) close() error {
	var errs []error
	for _, s := range []*sql.Stmt{e.find, e.exchange} {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	return errors.Join(append(errs, e.conn.Close())...)
}

func (s *sqlStore) each(ctx context.Context, fn func(key, value []byte) error) error {
	rows, err := s.db.QueryContext(ctx, "SELECT k, v FROM kv.pairs")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var key, value []byte
		if err := rows.Scan(&key, &value); err != nil {
			return err
		}
		if err := fn(key, value); err != nil {
			return err
		}
	}
	return rows.Err()
}
