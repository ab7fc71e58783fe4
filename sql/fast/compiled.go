package fast

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	sqle "github.com/dolthub/go-mysql-server"
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/sql/compat"
	"github.com/farmsql/farmsql/sql/exec"
	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/sql/row"
	"github.com/farmsql/farmsql/sql/store"
)

// ErrPlan means that nothing has been done for a statement yet, and that go-mysql-server has to
// plan and run it. Clients do not see ErrPlan.
var ErrPlan = exec.ErrPlan

// A Compiled is the compiled form of all statements that differ only in their literals, in one
// database and under the same settings. It runs directly on the indexes. go-mysql-server has
// planned it once; that plan says which index it uses and which columns it returns.
// go-mysql-server runs every statement that the compiled form does not clearly cover. Both ways
// return the same rows, types, warnings and errors.
//
// A Compiled is safe for concurrent use.
type Compiled struct {
	st    *store.Store
	cache *Cache
	text  string // with parameters in place of literals
	seen  atomic.Bool
	once  sync.Once
	ast   sqlparser.Statement
	// shape is nil if statements of this form cannot be compiled.
	shape *shape
	// query is the statement for package exec, which runs it if the compiled form cannot; nil if exec cannot run it either.
	query *exec.Statement
	// form is the statement compiled for the present descriptor of its table.
	form atomic.Pointer[form]
	sets setCache // of a SET
}

// A form is a statement compiled for one version of its table.
type form struct {
	info *store.TableInfo
	// infos are the tables of a join.
	infos []*store.TableInfo
	join  *join
	// refused is set if the statement cannot be compiled for this version.
	refused bool
	// schema describes the columns of the returned rows.
	schema *Header
	lookup lookup
	// columns are the positions of the returned columns, if the statement returns rows unchanged.
	// Otherwise plans is set: its plans process the rows.
	columns []int
	plans   *planPool
	// direct does the plan's work without making Go values; nil if it cannot.
	direct *direct
	// first is set if only the first rows are returned.
	first *firstRows
	// change and insert are set for INSERT, UPDATE and DELETE.
	change *change
	insert *insertion
}

type (
	// A Header describes the columns of a result.
	Header = exec.Header
	// A Result is what a statement returns: rows under a header, or OK.
	Result = exec.Result
)

// A Cache holds the Compiled statements, by database, settings and text.
type Cache struct {
	st       *store.Store
	gms      *sqle.Engine
	readOnly bool
	narrow   exec.Narrower
	lockrank.RWMutex[lockrank.Leaf]
	statements map[string]*Compiled
	// savepoints are statements about savepoints with names that only their executions know.
	savepoints []*Compiled
}

// statementsMax bounds the cache. Otherwise a client that generates names, or lists of any length,
// would fill it with statements that never come again.
const statementsMax = 4096

// NewCache returns an empty cache for statements over a store, planned by gms. With
// readOnly, it compiles no changes.
func NewCache(st *store.Store, gms *sqle.Engine, readOnly bool, narrow exec.Narrower) *Cache {
	c := &Cache{st: st, gms: gms, readOnly: readOnly, narrow: narrow}
	c.savepoints = newSavepoints(c)
	return c
}

// get returns the Compiled for a key, and creates it if there is none. The statement's text begins
// at index text of the key.
func (c *Cache) get(key []byte, text int) *Compiled {
	c.RLock()
	s := c.statements[string(key)]
	c.RUnlock()
	if s != nil {
		return s
	}
	c.Lock()
	defer c.Unlock()
	if s = c.statements[string(key)]; s != nil {
		return s
	}
	if c.statements == nil || len(c.statements) >= statementsMax {
		c.statements = make(map[string]*Compiled)
	}
	s = &Compiled{st: c.st, cache: c, text: string(key[text:])}
	c.statements[string(key)] = s
	return s
}

// An Execution is a statement to run. Without a Compiled there is none: go-mysql-server has to run the statement.
type Execution struct {
	*Compiled
	// Values are the literals. They are valid until the session's next statement.
	Values []Value
	// Packets is the form of the packets into which rows may be written.
	Packets row.Form
	// isFirst is set if the text has not been seen before: see isWorthAPlan.
	isFirst bool
}

// Compiled returns the execution of a statement by its compiled form, if it has one. bound has the parameters' values of
// a prepared statement.
func (s *Session) Compiled(query string, prepared bool, bound []Value) Execution {
	if x, ok := s.savepoint(query); ok && s.compiles() {
		return x
	}
	c, values := s.find(query, prepared, bound)
	if c == nil {
		return Execution{}
	}
	isFirst := !c.seen.Swap(true) && !isInGroups(c.text)
	if (isFirst && !isSelect(c.text)) || !c.isKnown(s, values) || (isFirst && !c.isWorthAPlan()) {
		return Execution{}
	}
	return Execution{Compiled: c, Values: values, isFirst: isFirst}
}

// isWorthAPlan reports whether a SELECT is worth being planned when its text is first seen. Most texts that were seen once
// are never seen again, so only one that may read many rows by a plan of package exec is. Most that have the shape of a read
// by a key, and no other, do not.
func (c *Compiled) isWorthAPlan() bool { return c.query != nil && (c.shape == nil || !c.shape.simple) }

// isSelect reports whether a statement may be a SELECT from tables.
func isSelect(text string) bool {
	first, rest, _ := strings.Cut(strings.TrimLeft(text, " \t\r\n("), " ")
	return (strings.EqualFold(first, "select") || strings.EqualFold(first, "with")) && compat.ContainsFold(rest, "from")
}

// inGroups matches IN of a subquery that groups.
var inGroups = regexp.MustCompile(`(?is)\bin\s*\(\s*select\b.*\bgroup\s+by\b`)

// isInGroups reports whether a statement may have an IN of a subquery that groups. Beside such an
// IN, go-mysql-server does not reorder the tables of a join, and reads each row of one table for
// each row of the others. So package exec plans such a statement from its first execution on.
func isInGroups(text string) bool {
	return compat.ContainsFold(text, "group") && inGroups.MatchString(text)
}

// find returns the Compiled of a statement and its literals. It returns nil if the statement has something
// that the normaliser does not know or is the name of a prepared statement, and if the session compiles nothing.
func (s *Session) find(query string, prepared bool, bound []Value) (*Compiled, []Value) {
	if !s.compiles() {
		return nil, nil
	}
	n := normaliser{key: append(s.key[:0], s.GetCurrentDatabase()...), values: s.values[:0], bound: bound, prepared: prepared, ansiQuotes: s.Settings().AnsiQuotes}
	n.key = append(append(n.key, 0), s.Settings().Key...)
	text := len(n.key)
	ok := n.add(query)
	s.key, s.values = n.key, n.values
	if !ok {
		return nil, nil
	}
	if !prepared {
		if _, named := s.GetPreparedQuery(query); named {
			return nil, nil // go-mysql-server runs prepared statements itself
		}
	}
	return s.cache.get(n.key, text), n.values
}

// compiles reports whether the session's statements may run compiled.
func (s *Session) compiles() bool { return !s.PlanOnly && s.Body == nil && s.Settings().Compile }

// isKnown reports whether the statement has a shape, or is one that package exec may run.
func (c *Compiled) isKnown(s *Session, values []Value) bool {
	c.once.Do(func() { c.parse(s, len(values)) })
	return c.shape != nil || c.query != nil
}

// Explain returns the plan by which package exec would run a statement, as text; false if
// go-mysql-server would run it, if it may run compiled, or if the user may not run it.
func (s *Session) Explain(ctx *gms.Context, query string) (string, bool) {
	c, values := s.find(query, false, nil)
	if c == nil || !c.isKnown(s, values) || c.query == nil {
		return "", false
	}
	if f := c.form.Load(); (f != nil && !f.refused) || !c.allowed(ctx, s) {
		return "", false
	}
	return c.query.Explain(ctx, s.Began(ctx), values)
}

// parse parses the statement's text, which has a number of parameters, and computes its shape, which
// stays nil if the statement cannot be compiled.
func (c *Compiled) parse(s *Session, parameters int) {
	ctx := gms.NewContext(context.Background(), gms.WithSession(s.self), gms.WithProcessList(c.cache.gms.ProcessList), gms.WithMemoryManager(c.cache.gms.MemoryManager))
	s.Begun(ctx)
	ast, _, _, err := c.cache.gms.Parser.ParseWithOptions(ctx, c.text, ';', false, gms.LoadSqlMode(ctx).ParserOptions())
	if err != nil {
		return
	}
	c.ast, c.shape = ast, shapeOf(ast)
	if c.shape != nil && c.shape.kind == shapeSet {
		return
	}
	if strings.Contains(c.text, variable) { // the parser takes these for columns
		c.shape = nil
	}
	if c.shape != nil && c.shape.kind.changes() && c.cache.readOnly {
		c.shape = nil
	}
	if _, isSelect := ast.(*sqlparser.Select); isSelect || !c.cache.readOnly {
		c.query = exec.NewStatement(c.st, c.cache.gms, c.text, ast, parameters, c.cache.narrow)
	}
}

// AST returns the statement with parameters for its literals.
func (c *Compiled) AST() sqlparser.Statement { return c.ast }

// Run runs a statement in the session's transaction, which it begins
// if there is none, and commits as go-mysql-server would. The context is that of the
// session that embeds s. After ErrPlan nothing has been done, and go-mysql-server has to
// run the statement. After another error there is a result if a plan was run.
func (s *Session) Run(ctx *gms.Context, x Execution) (*Result, error) {
	c, values := x.Compiled, x.Values
	if c.shape != nil {
		switch kind := c.shape.kind; {
		case kind.controls():
			return c.control(ctx, s)
		case kind == shapeSet:
			return c.set(ctx, s, values)
		case kind.isSavepoint():
			return c.atSavepoint(ctx, s, values)
		}
	}
	tr := s.Began(ctx)
	if !c.allowed(ctx, s) {
		return nil, ErrPlan
	}
	s.packets.Begin(x.Packets)
	var res *Result
	err := ErrPlan
	if areKnown(values) && !x.isFirst {
		res, err = c.runForm(ctx, s, tr, values)
	}
	if errors.Is(err, ErrPlan) && c.query != nil {
		res, err = c.query.Run(ctx, &s.Session, tr, values, x.isFirst, &s.packets)
	}
	if errors.Is(err, ErrPlan) {
		return nil, ErrPlan
	}
	if err != nil {
		return res, err
	}
	if !res.Planned { // a plan has cleared the warnings, and may have added some
		s.ClearWarnings()
		for _, w := range res.Warnings {
			s.Warn(w)
		}
	}
	s.note(res)
	return res, s.autocommitted(ctx, tr)
}

// runForm runs the compiled form of the statement; ErrPlan if there is none.
func (c *Compiled) runForm(ctx *gms.Context, s *Session, tr *store.Transaction, values []Value) (*Result, error) {
	if c.shape == nil {
		return nil, ErrPlan
	}
	f, err := c.current(ctx, tr, values)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return f.run(ctx, c, s, tr, values)
}

// run runs the form by its kind: SELECT, INSERT, UPDATE or DELETE.
func (f *form) run(ctx *gms.Context, c *Compiled, s *Session, tr *store.Transaction, values []Value) (*Result, error) {
	switch {
	case f.change != nil:
		return f.runChange(ctx, c, s, tr, values)
	case f.insert != nil:
		return f.runInsert(ctx, c, s, tr, values)
	}
	return f.runSelect(ctx, c, s, tr, values)
}

// note sets the values of FOUND_ROWS() and ROW_COUNT().
func (s *Session) note(res *Result) {
	last := s.GetLastQueryInfo()
	if res.Header != nil {
		last.RowCount.Store(-1)
		rows := len(res.Rows) + len(res.Values)
		if res.Packets != nil {
			rows += res.Packets.Rows
		}
		last.FoundRows.Store(int64(rows))
		return
	}
	if u, ok := res.OK.Info.(plan.UpdateInfo); ok {
		last.FoundRows.Store(int64(u.Matched))
	}
	last.RowCount.Store(int64(res.OK.RowsAffected))
}

// autocommitted commits the statement's transaction if autocommit is on.
func (s *Session) autocommitted(ctx *gms.Context, tr *store.Transaction) error {
	if s.GetIgnoreAutoCommit() || !s.Settings().Autocommit {
		return nil
	}
	if err := s.CommitTransaction(ctx, tr); err != nil {
		return err
	}
	ctx.SetTransaction(nil)
	return nil
}

// current returns the form for the tables as the transaction sees them.
func (c *Compiled) current(ctx *gms.Context, tr *store.Transaction, values []Value) (*form, error) {
	if c.st.Catalog.Changed(tr.Tx) {
		return nil, ErrPlan // other sessions use the form, and do not see the change
	}
	f, err := c.formOf(ctx, tr, values)
	if err != nil {
		return nil, err
	}
	if f != c.form.Load() {
		c.form.Store(f)
	}
	if f.refused {
		return nil, ErrPlan
	}
	return f, nil
}

// formOf returns the form for the present descriptor of the statement's table or tables. It
// compiles the statement again if a descriptor has changed.
func (c *Compiled) formOf(ctx *gms.Context, tr *store.Transaction, values []Value) (*form, error) {
	f := c.form.Load()
	if !c.shape.simple {
		return c.formOfJoin(ctx, tr, f, values)
	}
	info, err := c.table(ctx, tr, c.shape.db, c.shape.table)
	if err != nil || (f != nil && f.info == info) {
		return f, err
	}
	return c.compile(ctx, info, values)
}

// formOfJoin returns the form for a join's tables; f if none has changed.
func (c *Compiled) formOfJoin(ctx *gms.Context, tr *store.Transaction, f *form, values []Value) (*form, error) {
	var room [4]*store.TableInfo
	infos := room[:0]
	for i := range c.shape.join.tables {
		t := &c.shape.join.tables[i]
		info, err := c.table(ctx, tr, t.db, t.table)
		if err != nil {
			return nil, err
		}
		infos = append(infos, info)
	}
	if f != nil && slices.Equal(f.infos, infos) {
		return f, nil
	}
	return c.compileJoin(ctx, slices.Clone(infos), values)
}

// table returns a table as the transaction sees it.
func (c *Compiled) table(ctx *gms.Context, tr *store.Transaction, db, table string) (*store.TableInfo, error) {
	if db == "" {
		db = ctx.GetCurrentDatabase()
	}
	if db == "" || store.SameName(db, store.SystemDatabase) || store.SameName(db, gms.InformationSchemaDatabaseName) {
		return nil, ErrPlan
	}
	tbl, err := c.st.Descriptor(ctx, tr, db, table)
	if err != nil {
		if myerr.IsConflict(myerr.Storage(err)) {
			return nil, myerr.Storage(err)
		}
		return nil, ErrPlan // go-mysql-server reports the error
	}
	info, err := c.st.Info(ctx, tr, tbl)
	if err != nil {
		return nil, ErrPlan
	}
	return info, nil
}

// allowed reports whether the session's user may run the statement; go-mysql-server
// reports the error if not. The answer is cached until any grants change.
func (c *Compiled) allowed(ctx *gms.Context, s *Session) bool {
	catalog := c.cache.gms.Analyzer.Catalog
	if !catalog.MySQLDb.Enabled() {
		return true
	}
	if !catalog.MySQLDb.UserActivePrivilegeSet(ctx).HasPrivileges() {
		return false // the user has no privileges, or has been dropped
	}
	_, grants := s.GetPrivilegeSet()
	if s.grants != grants {
		s.allowed, s.grants = nil, grants
	}
	if slices.Contains(s.allowed, c) {
		return true
	}
	h := catalog.AuthorizationHandler()
	state := h.NewQueryState(ctx)
	if state.Error() != nil {
		return false
	}
	for _, auth := range c.auths() {
		if h.HandleAuth(ctx, state, auth) != nil {
			return false
		}
	}
	if len(s.allowed) >= allowedMax {
		s.allowed = nil
	}
	s.allowed = append(s.allowed, c)
	return true
}

// auths returns the privileges that the statement needs.
func (c *Compiled) auths() []sqlparser.AuthInformation {
	if c.shape != nil {
		return c.shape.auths()
	}
	return c.query.Auths()
}

// allowedMax bounds the statements that a session remembers as allowed.
const allowedMax = 32
