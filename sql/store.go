package sql

import (
	"context"
	"errors"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/txn"
)

// A Store is the tables of one machine, and what transactions over them share. It is safe
// for concurrent use.
type Store struct {
	m        *txn.Machine
	cat      *catalog.Catalog
	cfg      StoreConfig
	counters *counters
	turns    *turns

	mu struct {
		lockrank.RWMutex[lockrank.Engine]
		infos map[uint64]*tableInfo // by table id: the latest committed one
		// pruneAt is how many of them are too many: see prune.
		pruneAt int
	}
}

// A StoreConfig says what a Store asks of those who know more than tables.
type StoreConfig struct {
	// Memory bounds what sessions hold; nil: nothing does.
	Memory *Memory
	// Processors is how many transactions are worth running at a time where most are in
	// conflict; 0: as many as this computer has processors.
	Processors int
	// Parse parses the text of the statement at work, of which go-mysql-server has
	// forgotten some.
	Parse func(ctx *gms.Context, query string, multi bool) (sqlparser.Statement, string, string, error)
	// IsSuper reports whether the context's session may write although read_only is set.
	IsSuper func(ctx *gms.Context) bool
}

// newStore returns the store of a machine's catalog.
func newStore(m *txn.Machine, cat *catalog.Catalog, cfg StoreConfig) *Store {
	st := &Store{m: m, cat: cat, cfg: cfg, counters: newCounters(m), turns: newTurns(m.Clock(), cfg.Processors)}
	st.mu.infos, st.mu.pruneAt = make(map[uint64]*tableInfo), pruneLeast
	return st
}

// view runs a read in the context's transaction, or in one of its own if the
// context has none.
func (st *Store) view(ctx *gms.Context, read func(*txn.Tx) error) error {
	if tr := currentOf(ctx); tr != nil {
		return read(tr.tx)
	}
	var c context.Context = context.Background()
	if ctx != nil && ctx.Context != nil {
		c = ctx.Context
	}
	return st.m.Run(c, read)
}

// info returns a descriptor made ready for use. What the transaction itself has
// changed is not kept for others.
func (st *Store) info(tr *transaction, tbl *catalog.Table) (*tableInfo, error) {
	st.mu.RLock()
	info := st.mu.infos[tbl.ID]
	st.mu.RUnlock()
	if info != nil && info.Table == tbl {
		return info, nil
	}
	info, err := newTableInfo(tbl)
	if err != nil || st.cat.Changed(tr.tx) {
		return info, err
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

// prune forgets what was made of tables that the catalog has forgotten. It does so when
// there is twice as much as was left the last time, which costs little for each.
func (st *Store) prune() {
	st.mu.Lock()
	defer st.mu.Unlock()
	for id, info := range st.mu.infos { // any order
		if !st.cat.Has(info.Table) {
			delete(st.mu.infos, id)
			st.counters.forget(info.Counter)
		}
	}
	st.mu.pruneAt = max(2*len(st.mu.infos), pruneLeast)
}

// pruneLeast is of how many tables something is kept at least when prune looks over it.
const pruneLeast = 256

// table finds a table.
func (st *Store) table(ctx *gms.Context, tr *transaction, db, name string) (*Table, bool, error) {
	tbl, err := st.descriptor(ctx, tr, db, name)
	if errors.Is(err, catalog.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	info, err := st.info(tr, tbl)
	if err != nil {
		return nil, false, err
	}
	return &Table{e: st, info: info}, true, nil
}

// descriptor finds a table's descriptor, and waits until nobody is altering it,
// as MySQL's metadata lock does.
func (st *Store) descriptor(ctx *gms.Context, tr *transaction, db, name string) (*catalog.Table, error) {
	for {
		tbl, err := st.cat.Table(tr.tx, db, name)
		if !errors.Is(err, catalog.ErrAltering) {
			return tbl, err
		}
		patience, err := lockWait(ctx)
		if err != nil {
			return nil, err
		}
		if err := st.cat.Await(ctx.Context, db, name, patience); err != nil {
			return nil, err
		}
	}
}

// awaitTables waits until nobody is altering a table of a database.
func (st *Store) awaitTables(ctx *gms.Context, tr *transaction, db string) error {
	tables, err := st.cat.Tables(tr.tx, db)
	for _, tbl := range tables {
		if _, err := st.descriptor(ctx, tr, db, tbl.Name); err != nil {
			return err
		}
	}
	return err
}
