package store

import (
	"context"
	"errors"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/txn"
)

// A Store holds the tables of one machine, and what transactions on them share. It is
// safe for concurrent use.
type Store struct {
	// Machine runs the transactions, and Catalog has the descriptors of tables.
	Machine *txn.Machine
	Catalog *catalog.Catalog
	cfg     Config
	// Counters keep the row counts; in Turns, transactions wait for each other.
	Counters *Counters
	Turns    *Turns

	mu struct {
		lockrank.RWMutex[lockrank.Engine]
		infos map[uint64]*TableInfo // the latest committed TableInfo of each table, by the table's id
		// pruneAt is the size of infos at which prune runs.
		pruneAt int
	}
}

// A Config holds what a Store needs from the packages above it.
type Config struct {
	// Memory bounds what sessions hold; nil: there is no bound.
	Memory *Memory
	// Processors is the number of transactions that run at a time when most of them conflict; 0:
	// the number of this computer's processors.
	Processors int
	// Parse parses the text of the running statement again: go-mysql-server drops parts
	// of it.
	Parse func(ctx *gms.Context, query string, multi bool) (sqlparser.Statement, string, string, error)
	// IsSuper reports whether the context's session may write although read_only is set.
	IsSuper func(ctx *gms.Context) bool
}

// New returns the store of a machine's catalog.
func New(m *txn.Machine, cat *catalog.Catalog, cfg Config) *Store {
	st := &Store{Machine: m, Catalog: cat, cfg: cfg, Counters: NewCounters(m), Turns: newTurns(m.Clock(), cfg.Processors)}
	st.mu.infos, st.mu.pruneAt = make(map[uint64]*TableInfo), pruneLeast
	return st
}

// View runs a read in the context's transaction, or in one of its own if the
// context has none.
func (st *Store) View(ctx *gms.Context, read func(*txn.Tx) error) error {
	if tr := CurrentOf(ctx); tr != nil {
		return read(tr.Tx)
	}
	var c context.Context = context.Background()
	if ctx != nil && ctx.Context != nil {
		c = ctx.Context
	}
	return st.Machine.Run(c, read)
}

// Info returns the TableInfo of a descriptor, as the context's session sees the table.
func (st *Store) Info(ctx *gms.Context, tr *Transaction, tbl *catalog.Table) (*TableInfo, error) {
	info, err := st.info(tr, tbl)
	if err != nil || info.zoned == nil {
		return info, err
	}
	return info.In(zoneOf(ctx)), nil
}

// newInfo returns the TableInfo of a descriptor that a statement is making.
func newInfo(ctx *gms.Context, tbl *catalog.Table) (*TableInfo, error) {
	info, err := NewTableInfo(tbl)
	if err != nil {
		return nil, err
	}
	return info.In(zoneOf(ctx)), nil
}

// info returns the TableInfo of a descriptor. It caches it, unless the transaction has changed the catalog.
func (st *Store) info(tr *Transaction, tbl *catalog.Table) (*TableInfo, error) {
	st.mu.RLock()
	info := st.mu.infos[tbl.ID]
	st.mu.RUnlock()
	if info != nil && info.Table == tbl {
		return info, nil
	}
	info, err := NewTableInfo(tbl)
	if err != nil {
		return nil, err
	}
	info.refer(func(db, name string) (*catalog.Table, error) { return st.Catalog.Table(tr.Tx, db, name) })
	if st.Catalog.Changed(tr.Tx) {
		return info, nil
	}
	st.mu.Lock()
	st.mu.infos[tbl.ID] = info
	tooMany := len(st.mu.infos) > st.mu.pruneAt
	st.mu.Unlock()
	if tooMany {
		st.prune()
	}
	return info, nil
}

// prune removes the infos of tables that the catalog no longer caches. It runs when the store has twice as many infos
// as the last run has left, so that its cost per table is small.
func (st *Store) prune() {
	st.mu.Lock()
	defer st.mu.Unlock()
	for id, info := range st.mu.infos { // any order
		if !st.Catalog.Has(info.Table) {
			delete(st.mu.infos, id)
			st.Counters.forget(info.Counter)
		}
	}
	st.mu.pruneAt = max(2*len(st.mu.infos), pruneLeast)
}

// pruneLeast is the least number of infos at which prune runs.
const pruneLeast = 256

// Table finds a table.
func (st *Store) Table(ctx *gms.Context, tr *Transaction, db, name string) (*Table, bool, error) {
	tbl, err := st.Descriptor(ctx, tr, db, name)
	if errors.Is(err, catalog.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	info, err := st.Info(ctx, tr, tbl)
	if err != nil {
		return nil, false, err
	}
	return &Table{Store: st, Info: info}, true, nil
}

// Descriptor returns a table's descriptor. It waits while the table is being altered, as
// for MySQL's metadata lock.
func (st *Store) Descriptor(ctx *gms.Context, tr *Transaction, db, name string) (*catalog.Table, error) {
	for {
		tbl, err := st.Catalog.Table(tr.Tx, db, name)
		if !errors.Is(err, catalog.ErrAltering) {
			return tbl, err
		}
		patience, err := lockWait(ctx)
		if err != nil {
			return nil, err
		}
		if err := st.Catalog.Await(ctx.Context, db, name, patience); err != nil {
			return nil, err
		}
	}
}

// AwaitTables waits while any table of a database is being altered.
func (st *Store) AwaitTables(ctx *gms.Context, tr *Transaction, db string) error {
	tables, err := st.Catalog.Tables(tr.Tx, db)
	for _, tbl := range tables {
		if _, err := st.Descriptor(ctx, tr, db, tbl.Name); err != nil {
			return err
		}
	}
	return err
}

// SystemDatabase is the database in which go-mysql-server would keep its users. It asks
// for the database with every statement.
const SystemDatabase = "mysql"
