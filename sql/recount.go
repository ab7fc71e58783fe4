package sql

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/txn"
)

// countedSetting is the catalog's setting that says whether row counts are exact: it is 1 after an
// orderly end, until the next start.
const countedSetting = "counted"

// These bound the cost of a recount, so that a start does not take seconds. A table
// with more than recountTable rows keeps its count: the few rows that a crash makes
// it miss matter little. After recountTotal rows, no further tables are counted.
const (
	recountTable = 1 << 16
	recountTotal = 1 << 20
)

// Recount corrects the row counts that a crash has left too low, and returns the
// number of corrected tables. One engine of an instance calls it, before the first
// statement; after an orderly end it has nothing to do.
func (e *Engine) Recount(ctx context.Context) (tables int, err error) {
	exact, err := e.setCounted(ctx, 0)
	if err != nil || exact {
		return 0, err
	}
	all, err := e.allTables(ctx)
	if err != nil {
		return 0, fmt.Errorf("sql: recount rows: %w", err)
	}
	looked := 0
	for _, tbl := range all {
		if looked >= recountTotal {
			break
		}
		n, err := e.recount(ctx, tbl)
		switch {
		case err != nil:
			return tables, fmt.Errorf("sql: recount the rows of %s.%s: %w", tbl.DB, tbl.Name, err)
		case n <= recountTable:
			tables++
		}
		looked += n
	}
	return tables, nil
}

// Counted notes that all row counts are exact. Call it when every engine of the
// instance has been closed.
func (e *Engine) Counted(ctx context.Context) error {
	_, err := e.setCounted(ctx, 1)
	return err
}

// setCounted writes the setting, and returns whether it was 1 before.
func (e *Engine) setCounted(ctx context.Context, setting byte) (was bool, err error) {
	err = e.Store.Machine.Run(ctx, func(t *txn.Tx) error {
		b, err := e.Store.Catalog.Setting(t, countedSetting)
		if err != nil {
			return err
		}
		was = len(b) == 1 && b[0] == 1
		return e.Store.Catalog.PutSetting(t, countedSetting, []byte{setting})
	})
	if err != nil {
		err = fmt.Errorf("sql: note whether rows are counted: %w", err)
	}
	return was, err
}

func (e *Engine) allTables(ctx context.Context) (all []*catalog.Table, err error) {
	err = e.Store.Machine.Run(ctx, func(t *txn.Tx) error {
		all = nil
		dbs, err := e.Store.Catalog.Databases(t)
		if err != nil {
			return err
		}
		for _, db := range dbs {
			tables, err := e.Store.Catalog.Tables(t, db.Name)
			if err != nil {
				return err
			}
			all = append(all, tables...)
		}
		return nil
	})
	return all, err
}

// recount counts a table's rows, and stores the count if it is at most
// recountTable. It returns the number of rows that it has read.
func (e *Engine) recount(ctx context.Context, tbl *catalog.Table) (n int, err error) {
	err = e.Store.Machine.Run(ctx, func(t *txn.Tx) error {
		n = 0
		cur := e.Store.Access(&tbl.Primary).Keys(t, nil, nil)
		for n <= recountTable {
			_, _, ok, err := cur.Next()
			if err != nil {
				return err
			}
			if !ok {
				break
			}
			n++
		}
		if n > recountTable {
			return nil
		}
		b, err := catalog.OpenNumber(t, tbl.Counter)
		if err == nil {
			binary.LittleEndian.PutUint64(b, uint64(n))
		}
		return err
	})
	if errors.Is(err, catalog.ErrGone) {
		err = nil // the count is gone with its table
	}
	return n, err
}
