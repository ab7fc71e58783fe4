package exec

import (
	"errors"
	"slices"
	"sync/atomic"

	sqle "github.com/dolthub/go-mysql-server"
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/dolthub/vitess/go/sqltypes"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/sql/plan"
	"github.com/farmsql/farmsql/sql/store"
)

// ErrPlan means that nothing has been done for a statement yet, and that go-mysql-server has to
// plan and run it. Clients do not see ErrPlan.
var ErrPlan = errors.New("exec: the statement has to be planned")

// A Header describes the columns of a result. It also caches the listener's form of this
// description.
type Header struct {
	Schema gms.Schema
	// Fields is the listener's form of Schema.
	Fields atomic.Value
}

// A Result is what a statement returns: rows under a header, or OK.
type Result struct {
	Header *Header // nil for an OK packet
	// Rows has the rows as Go values, unless Values or Packets has them.
	Rows []gms.Row
	// Values has the rows in the protocol's form, unless Rows has them. Bytes is their size. They are
	// valid until the session's next statement. If Planned is set, the texts have the form of
	// go-mysql-server's types.
	Values [][]sqltypes.Value
	Bytes  int
	// Packets has the rows as packets, unless it is nil.
	Packets *Packets
	OK      types.OkResult
	// Warnings are those of a compiled statement.
	Warnings []*gms.Warning
	// Planned is set if a plan of package plan was run.
	Planned bool
}

// A Statement stands for all statements whose texts differ only in their literals, in one database
// and under the same settings. It is safe for concurrent use.
type Statement struct {
	st       *store.Store
	gms      *sqle.Engine
	text     string // with question marks in place of literals
	literals *plan.Literals
	narrow   Narrower
	selects  bool // whether it is a SELECT or a UNION
	mu       struct {
		lockrank.Mutex[lockrank.Leaf]
		prepared map[string]*prepared // by the fixed literals
		tables   []*store.TableInfo   // the versions of the tables for which prepared is valid
	}
}

const (
	// preparedMax bounds the combinations of fixed literals of a statement.
	preparedMax = 16
	// idleMax bounds the idle queries of a prepared statement.
	idleMax = 16
	// idleValuesMax bounds the values of an INSERT that stays idle as long as its statement is known.
	// Each value takes some 400 bytes.
	idleValuesMax = 64
)

// NewStatement returns the Statement for a syntax tree with n parameters in place of literals; nil
// if it cannot be planned. text is the statement's text.
func NewStatement(st *store.Store, engine *sqle.Engine, text string, ast sqlparser.Statement, n int, narrow Narrower) *Statement {
	l, ok := plan.LiteralsOf(ast, n)
	if !ok {
		return nil
	}
	_, selects := ast.(sqlparser.SelectStatement)
	return &Statement{st: st, gms: engine, text: text, literals: l, narrow: narrow, selects: selects}
}

// Auths are the privileges that the statement needs.
func (s *Statement) Auths() []sqlparser.AuthInformation { return s.literals.Auths }

// Run runs the statement for values in the transaction of a session. isFirst is set for the first execution of
// its text, which is planned if it may read many rows. packets is the memory for rows in packets, if its Form asks for them.
// After ErrPlan nothing has been done.
func (s *Statement) Run(ctx *gms.Context, session *store.Session, tr *store.Transaction, values []plan.Value, isFirst bool, packets *Packets) (*Result, error) {
	if s.st.Catalog.Changed(tr.Tx) {
		return nil, ErrPlan
	}
	var room [4]*store.TableInfo
	tables, err := s.describe(ctx, tr, room[:0])
	if err != nil {
		return nil, err
	}
	if isFirst && !s.isLarge(ctx, tables) {
		return nil, ErrPlan
	}
	p, err := s.prepare(ctx, tables, values)
	if err != nil {
		return nil, err
	}
	q, err := p.take(ctx, s, values)
	if err != nil {
		return nil, err
	}
	defer p.give(q)
	if err := s.runnable(tr, q); err != nil {
		return nil, err
	}
	r := &run{prepared: p, narrow: s.narrow, query: q, s: session, tr: tr, values: values, packets: packets}
	if s.literals.Inserts {
		return s.insert(ctx, r)
	}
	r.mayWarn = q.Change == nil
	if r.header, err = s.headerFor(p, values); err != nil {
		return nil, err
	}
	session.ClearWarnings()
	res, err := r.result(ctx)
	session.Holding.Give(r.taken)
	if err == nil || myerr.IsConflict(err) || ctx.Err() != nil {
		return res, err
	}
	session.ClearWarnings()
	return nil, ErrPlan // go-mysql-server reports the error
}

// largeRows is about how many rows go-mysql-server reads in the time that planning a statement once more takes.
const largeRows = 1000

// isLarge reports whether tables have many rows together.
func (s *Statement) isLarge(ctx *gms.Context, tables []*store.TableInfo) bool {
	sum := uint64(0)
	for _, t := range tables {
		rows, _, err := (&store.Table{Store: s.st, Info: t}).RowCount(ctx)
		if sum += rows; err != nil || sum >= largeRows {
			return err == nil
		}
	}
	return false
}

// runnable returns ErrPlan if the statement is a change, and changes are not allowed, or fire
// triggers.
func (s *Statement) runnable(tr *store.Transaction, q *plan.Query) error {
	for _, t := range q.Changed() {
		triggers, err := s.st.Catalog.Triggers(tr.Tx, t.DB, t.Name)
		if err != nil {
			return myerr.Storage(err)
		}
		if len(triggers) > 0 || tr.ReadOnly || store.Writers.Load() != store.WritersAll {
			return ErrPlan
		}
	}
	return nil
}

// Explain returns the plan for values as text; false if the statement is left to go-mysql-server.
func (s *Statement) Explain(ctx *gms.Context, tr *store.Transaction, values []plan.Value) (string, bool) {
	tables, err := s.describe(ctx, tr, nil)
	if err != nil || s.st.Catalog.Changed(tr.Tx) {
		return "", false
	}
	p, err := s.prepare(ctx, tables, values)
	if err != nil {
		return "", false
	}
	q, err := p.take(ctx, s, values)
	if err != nil {
		return "", false
	}
	defer p.give(q)
	return q.String(), s.runnable(tr, q) == nil
}

// describe appends the statement's tables as the transaction sees them to dst.
func (s *Statement) describe(ctx *gms.Context, tr *store.Transaction, dst []*store.TableInfo) ([]*store.TableInfo, error) {
	for _, t := range s.literals.Tables {
		if s.isShown(ctx, t) {
			continue
		}
		info, err := s.describeTable(ctx, tr, t.DB, t.Table)
		if err != nil {
			return nil, err
		}
		dst = append(dst, info)
	}
	return dst, nil
}

// isShown reports whether a SELECT reads a table of information_schema, which always has the same columns.
func (s *Statement) isShown(ctx *gms.Context, t plan.TableName) bool {
	if !s.selects {
		return false
	}
	db := t.DB
	if db == "" {
		db = ctx.GetCurrentDatabase()
	}
	return store.SameName(db, gms.InformationSchemaDatabaseName)
}

// describeTable returns a table as the transaction sees it; ErrPlan for a table that go-mysql-server has to read, or about
// which it has to report an error.
func (s *Statement) describeTable(ctx *gms.Context, tr *store.Transaction, db, table string) (*store.TableInfo, error) {
	if db == "" {
		db = ctx.GetCurrentDatabase()
	}
	if db == "" || store.SameName(db, store.SystemDatabase) || store.SameName(db, gms.InformationSchemaDatabaseName) {
		return nil, ErrPlan
	}
	tbl, err := s.st.Descriptor(ctx, tr, db, table)
	if err != nil {
		if err = myerr.Storage(err); myerr.IsConflict(err) {
			return nil, err
		}
		return nil, ErrPlan // go-mysql-server reports the error
	}
	info, err := s.st.Info(ctx, tr, tbl)
	if err != nil {
		return nil, ErrPlan
	}
	return info, nil
}

// prepare returns the prepared for the statement's fixed literals and these versions of its tables. It returns ErrPlan if
// there is none: the statement cannot be planned, or preparedMax others are kept.
func (s *Statement) prepare(ctx *gms.Context, tables []*store.TableInfo, values []plan.Value) (*prepared, error) {
	if s.literals.NamesDiffer(values) {
		return nil, ErrPlan
	}
	var room [64]byte
	key := s.literals.Key(room[:0], values)
	s.mu.Lock()
	if !slices.Equal(s.mu.tables, tables) {
		s.mu.tables, s.mu.prepared = slices.Clone(tables), nil
	}
	p, full := s.mu.prepared[string(key)], len(s.mu.prepared) >= preparedMax
	s.mu.Unlock()
	if p == nil && !full {
		var err error
		if p, err = s.newPrepared(ctx, slices.Clone(tables), values); err != nil {
			return nil, err
		}
		s.mu.Lock()
		if slices.Equal(s.mu.tables, tables) {
			if s.mu.prepared == nil {
				s.mu.prepared = make(map[string]*prepared)
			}
			s.mu.prepared[string(key)] = p
		}
		s.mu.Unlock()
	}
	if p == nil || p.refused {
		return nil, ErrPlan
	}
	return p, nil
}

// result runs the query.
func (r *run) result(ctx *gms.Context) (*Result, error) {
	var ok bool
	if r.values, ok = r.query.Bind(r.values); !ok {
		return nil, ErrPlan
	}
	r.query.Begin(r, r.values)
	defer r.query.End()
	if err := r.query.Compute(ctx, r.values); err != nil {
		return nil, unlessRefused(err)
	}
	if r.query.Change != nil {
		ok, err := r.change(ctx)
		return &Result{OK: ok, Planned: true}, err
	}
	res, err := r.read(ctx)
	if err == nil && int(r.s.WarningCount()) > r.warned {
		err = ErrPlan // go-mysql-server warns
	}
	return res, unlessRefused(err)
}

// read returns the rows of a query.
func (r *run) read(ctx *gms.Context) (*Result, error) {
	res := &Result{Header: r.header, Planned: true}
	if r.isDirect(ctx) {
		ok, err := r.direct(ctx, res)
		if ok || err != nil {
			return res, err
		}
		*res = Result{Header: r.header, Planned: true}
	}
	var err error
	res.Rows, err = r.all(ctx)
	return res, err
}
