package fast

import (
	"errors"
	"io"
	"strconv"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/sql/compat"
	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/sql/row"
	"github.com/farmsql/farmsql/sql/store"
)

// A leaf replaces the plan's node that reads the table: its rows are those for the
// statement's own literals, not for the ones that were planned.
type leaf struct {
	node gms.Node
	rows gms.RowIter
}

// TakeLeaf returns the rows that replace a node, nil if there are none.
func (s *Session) TakeLeaf(n gms.Node) gms.RowIter {
	if s.leaf == nil || s.leaf.node != n {
		return nil
	}
	rows := s.leaf.rows
	s.leaf = nil
	return rows
}

// A selectPlan is go-mysql-server's plan of a statement: its root, and the leaf,
// which contains only the conditions and the table. One statement at a time uses
// it.
type selectPlan struct {
	root, leaf gms.Node
	access     *plan.IndexedTableAccess
	table      *store.Table
	// accesses are the lookups of a join, by the names of its tables.
	accesses map[string]*plan.IndexedTableAccess
}

// A planPool holds idle plans of a form.
type planPool struct {
	lockrank.Mutex[lockrank.Leaf]
	idle []*selectPlan
}

// plansMax bounds the idle plans of a statement.
const plansMax = 16

// take removes an idle plan from the pool and returns it; nil if there is none.
func (p *planPool) take() *selectPlan {
	p.Lock()
	defer p.Unlock()
	if len(p.idle) == 0 {
		return nil
	}
	last := p.idle[len(p.idle)-1]
	p.idle = p.idle[:len(p.idle)-1]
	return last
}

// give puts a plan back into the pool, unless the pool is full.
func (p *planPool) give(s *selectPlan) {
	p.Lock()
	defer p.Unlock()
	if len(p.idle) < plansMax {
		p.idle = append(p.idle, s)
	}
}

// compile makes the statement's form for a version of its table. It returns ErrPlan if only other
// literals can show whether the statement can be compiled.
func (c *Compiled) compile(ctx *gms.Context, info *store.TableInfo, values []Value) (*form, error) {
	refused := &form{info: info, refused: true}
	l, ok := c.lookup(info)
	if !ok && c.shape.join != nil && c.shape.kind == shapeSelect {
		return c.compileJoin(ctx, []*store.TableInfo{info}, values)
	}
	var rest []residual
	if !ok && c.shape.join != nil {
		l, rest, ok = c.shape.join.lookup(info)
	}
	if !ok || info.HasVirtual || (info.IsKeyless() && c.shape.kind != shapeInsert) {
		return refused, nil
	}
	if l.index != nil {
		if ranges, ok := l.ranges(values); len(ranges) == 0 || !ok {
			return nil, ErrPlan
		}
	}
	p, err := c.plan(ctx, values, false)
	if err != nil {
		return nil, err
	}
	isUsable := p != nil && p.table.Info == info && (p.access == nil || c.plannedAs(ctx, &l, p, values))
	if !isUsable {
		return refused, nil
	}
	if c.shape.kind != shapeSelect {
		return c.compileChange(info, l, rest), nil
	}
	f := &form{info: info, lookup: l, schema: &Header{Schema: p.root.Schema(ctx)}, first: c.shape.first}
	columns, returnsColumns := p.columns(ctx, info)
	f.columns = columns
	if f.first == nil {
		f.direct = newDirect(ctx, p, info)
	}
	switch {
	case returnsColumns:
	case f.first != nil || (l.isList() && f.direct == nil):
		return refused, nil
	case !l.isList(): // the plan of a list would hold the list
		f.plans = &planPool{idle: []*selectPlan{p}}
	}
	return f, nil
}

// compileChange makes the form of an INSERT, UPDATE or DELETE.
func (c *Compiled) compileChange(info *store.TableInfo, l lookup, rest []residual) *form {
	f := &form{info: info, lookup: l}
	var ok bool
	if c.shape.kind == shapeInsert {
		f.insert, ok = newInsertion(info, c.shape)
	} else {
		f.change, ok = newChange(info, &l, c.shape, rest)
	}
	f.refused = !ok
	return f
}

// lookup returns the index lookup for the conditions, preferably by a whole unique key; an empty
// lookup for an INSERT. It returns false if no index fits, or if several do that are not whole unique keys: go-mysql-server
// chooses one of these by statistics.
func (c *Compiled) lookup(info *store.TableInfo) (found lookup, ok bool) {
	if c.shape.kind == shapeInsert {
		return lookup{}, true
	}
	for _, k := range append([]*store.KeyInfo{info.PrimaryKey}, info.Secondary...) {
		l, fits := newLookup(info, k, c.shape.where)
		if !fits || (c.shape.first != nil && !c.shape.first.fits(info, &l)) {
			continue
		}
		if l.unique && len(l.parts) == len(k.Codecs) {
			return l, true
		}
		if ok {
			return found, false // go-mysql-server chooses by statistics
		}
		found, ok = l, true
	}
	return found, ok
}

// plan lets go-mysql-server plan the statement. It returns nil if the plan has
// nodes or expressions that may not be reusable.
func (c *Compiled) plan(ctx *gms.Context, values []Value, join bool) (*selectPlan, error) {
	ast, _, _, err := c.cache.gms.Parser.ParseWithOptions(ctx, c.text, ';', false, gms.LoadSqlMode(ctx).ParserOptions())
	if err != nil {
		return nil, ErrPlan
	}
	bound := make(map[string]sqlparser.Expr, len(values))
	for i, v := range values {
		bound["v"+strconv.Itoa(i+1)] = v.Expr()
	}
	tx, warnings := ctx.GetTransaction(), len(ctx.Warnings())
	root, err := c.cache.gms.BoundQueryPlan(ctx, c.text, ast, bound)
	if ctx.GetTransaction() == nil {
		ctx.SetTransaction(tx) // planning the statement again reports the error
	}
	if err != nil {
		return nil, ErrPlan
	}
	p := &selectPlan{root: root}
	if join {
		p.accesses = make(map[string]*plan.IndexedTableAccess)
	}
	if !p.inspectRoot(c.shape.first) || p.table == nil || len(ctx.Warnings()) > warnings {
		return nil, nil
	}
	return p, nil
}

// inspectRoot sets the plan's leaf, and reports whether it knows all nodes of the plan. If first is
// not nil, the plan must only sort by first's column and apply its limit. The node below the sort
// and the limit then becomes the root.
func (p *selectPlan) inspectRoot(first *firstRows) (ok bool) {
	if first == nil {
		return p.inspect(p.root)
	}
	p.root, ok = p.inspectFirst(first)
	return ok
}

// inspect sets the plan's leaf, and reports whether it knows n and all nodes below it.
func (p *selectPlan) inspect(n gms.Node) bool {
	switch n := n.(type) {
	case *plan.Project, *plan.GroupBy, *plan.Sort, *plan.Distinct:
		if x, ok := n.(gms.Expressioner); ok && !knownExpressions(x.Expressions()) {
			return false
		}
		return p.inspect(n.Children()[0])
	}
	if p.accesses != nil {
		p.leaf = n
		return p.inspectJoin(n, "")
	}
	switch n := n.(type) {
	case *plan.Update, *plan.UpdateSource, *plan.DeleteFrom:
		return p.inspect(n.Children()[0])
	case *plan.ForeignKeyHandler: // newChange and newInsertion check its foreign keys
		return p.inspect(n.OriginalNode)
	case *plan.InsertInto:
		return p.setTarget(n.Destination)
	case *plan.Filter:
		access, ok := n.Child.(*plan.IndexedTableAccess)
		p.leaf = n
		return ok && p.setAccess(access)
	case *plan.IndexedTableAccess:
		p.leaf = n
		return p.setAccess(n)
	}
	return false
}

// inspectJoin collects the tables of a join, and reports whether it knows all nodes. name, if not
// empty, is the table's alias.
func (p *selectPlan) inspectJoin(n gms.Node, name string) bool {
	switch n := n.(type) {
	case *plan.JoinNode:
		return p.inspectJoin(n.Left(), "") && p.inspectJoin(n.Right(), "")
	case *plan.Filter:
		return p.inspectJoin(n.Child, name)
	case *plan.TableAlias:
		return p.inspectJoin(n.Child, n.Name())
	case *plan.IndexedTableAccess:
		if name == "" {
			name = n.Name()
		}
		p.accesses[strings.ToLower(name)] = n
		return p.setAccess(n)
	}
	return false
}

// setTarget sets the plan's table to the one that an INSERT writes to; false if the table is not ours.
func (p *selectPlan) setTarget(n gms.Node) bool {
	if h, ok := n.(*plan.ForeignKeyHandler); ok {
		n = h.OriginalNode
	}
	d, ok := n.(*plan.InsertDestination)
	if !ok {
		return false
	}
	r, ok := d.Child.(*plan.ResolvedTable)
	if !ok {
		return false
	}
	p.table, ok = unwrapped(r.Table).(*store.Table)
	return ok
}

// unwrapped returns the table inside go-mysql-server's wrappers.
func unwrapped(t gms.Table) gms.Table {
	for {
		w, ok := t.(gms.TableWrapper)
		if !ok {
			return t
		}
		t = w.Underlying()
	}
}

// setAccess sets the plan's access to an index lookup, and its table to the one that the lookup reads.
// It returns false if the table is not ours or, except in a join, if the lookup's range is not given.
func (p *selectPlan) setAccess(n *plan.IndexedTableAccess) bool {
	if !n.IsStatic() && p.accesses == nil {
		return false
	}
	p.access = n
	x, ok := unwrapped(n.Table).(*store.IndexedTable)
	if ok {
		p.table = x.Table
	}
	return ok
}

// knownExpressions reports whether expressions are known to keep no state between executions, as
// only columns, sums and averages are.
func knownExpressions(list []gms.Expression) bool {
	for _, e := range list {
		switch e.(type) {
		case *expression.GetField, *expression.Alias, *compat.ExactAggregate:
		default:
			return false
		}
		if !knownExpressions(e.Children()) {
			return false
		}
	}
	return true
}

// plannedAs reports whether the plan reads the lookup's keys.
func (c *Compiled) plannedAs(ctx *gms.Context, l *lookup, p *selectPlan, values []Value) bool {
	g, _, err := p.access.GetLookup(ctx, nil)
	if err != nil || g.IsReverse {
		return false
	}
	x, ok := g.Index.(*store.Index)
	if !ok {
		return false
	}
	ranges, ok := g.Ranges.(gms.MySQLRangeCollection)
	return ok && l.matches(ctx, x, ranges, values)
}

// columns returns the positions of the columns that a plan returns; false if it
// does anything else.
func (p *selectPlan) columns(ctx *gms.Context, info *store.TableInfo) ([]int, bool) {
	var names []string
	project, ok := p.root.(*plan.Project)
	switch {
	case p.root == p.leaf:
		for _, c := range p.root.Schema(ctx) {
			names = append(names, c.Name)
		}
	case ok && project.Child == p.leaf:
		for _, e := range project.Projections {
			if a, ok := e.(*expression.Alias); ok {
				e = a.Child
			}
			f, ok := e.(*expression.GetField)
			if !ok {
				return nil, false
			}
			names = append(names, f.Name())
		}
	default:
		return nil, false
	}
	at := make([]int, len(names))
	for i, name := range names {
		if at[i] = info.Column(name); at[i] < 0 {
			return nil, false
		}
	}
	return at, true
}

// runSelect returns the rows of a SELECT.
func (f *form) runSelect(ctx *gms.Context, c *Compiled, s *Session, tr *store.Transaction, values []Value) (*Result, error) {
	if f.join != nil {
		return f.runJoin(ctx, c, s, tr, values)
	}
	if f.lookup.isList() {
		return f.runList(ctx, c, s, tr, values)
	}
	r, empty, ok := f.lookup.keys(values)
	if !ok {
		return nil, ErrPlan
	}
	if f.direct.isDirect(ctx, s, tr) {
		res, err := f.runDirect(ctx, s, tr, r, empty)
		if f.plans == nil || !errors.Is(err, ErrPlan) {
			return res, err
		} // otherwise a plan takes over
	}
	var rows []gms.Row
	var err error
	switch {
	case f.plans != nil:
		rows, err = f.runPlan(ctx, c, s, values, func(p *selectPlan) gms.RowIter {
			if empty {
				return gms.RowsToRowIter()
			}
			return f.scan(c.st, s, tr, p.table.Columns, r)
		})
	case empty:
	case f.first != nil:
		rows, err = f.runFirst(ctx, c, s, tr, r, values)
	case r.High == nil && r.Point:
		rows, err = f.point(s, tr, &r)
	default:
		rows, err = f.all(ctx, f.scan(c.st, s, tr, f.columns, r))
	}
	if err != nil {
		return nil, err
	}
	return &Result{Header: f.schema, Rows: rows}, nil
}

// point returns the row under one key.
func (f *form) point(s *Session, tr *store.Transaction, r *store.KeyRange) ([]gms.Row, error) {
	if s.ForUpdate && s.IsOpen() { // other open transactions may be changing the row
		s.Store.Turns.Await(tr, f.lookup.index.Index, r.Low)
	}
	p, ok, err := s.Store.Access(f.lookup.index.Index).Get(tr.Tx, r.Low)
	if err != nil || !ok {
		return nil, myerr.Storage(err)
	}
	if s.ForUpdate {
		if _, err := tr.Tx.Write(p); err != nil {
			return nil, myerr.Storage(err)
		}
	}
	load := row.Load
	if !s.ForUpdate && s.IsOpen() { // other transactions may then change columns that are not read
		load = row.LoadPart
	}
	row, err := load(tr.Tx, f.info.Rows, p, f.columns)
	if err != nil {
		return nil, myerr.Storage(err)
	}
	return []gms.Row{row}, nil
}

// scan returns the rows of ranges, by the form's index.
func (f *form) scan(st *store.Store, s *Session, tr *store.Transaction, columns []int, ranges ...store.KeyRange) gms.RowIter {
	t := &store.Table{Store: st, Info: f.info, Columns: columns}
	scan := &store.Scan{Index: f.lookup.index, Ranges: ranges}
	if len(ranges) > 1 { // unique keys, with a row each at most
		scan.First = len(ranges)
	}
	return t.Rows(&s.Session, tr, scan)
}

// runPlan runs a plan over the rows for the statement's literals.
func (f *form) runPlan(ctx *gms.Context, c *Compiled, s *Session, values []Value, source func(*selectPlan) gms.RowIter) ([]gms.Row, error) {
	p := f.plans.take()
	if p == nil {
		var err error
		if p, err = c.plan(ctx, values, f.join != nil); err != nil || p == nil || !f.accepts(ctx, p) {
			return nil, ErrPlan
		}
	}
	s.leaf = &leaf{node: p.leaf, rows: source(p)}
	iter, err := c.cache.gms.Analyzer.ExecBuilder.Build(ctx, p.root, nil)
	used := s.leaf == nil
	s.leaf = nil
	if err != nil || !used {
		return nil, ErrPlan
	}
	rows, err := f.all(ctx, iter)
	if err == nil {
		f.plans.give(p)
	}
	return rows, err
}

// accepts reports whether a plan can process the rows of the form's tables.
func (f *form) accepts(ctx *gms.Context, p *selectPlan) bool {
	if f.join != nil {
		return f.join.replannedAs(ctx, p)
	}
	return p.table.Info == f.info
}

// The largest result of a compiled statement. Its rows are collected before the
// listener counts them against its limit, so go-mysql-server runs statements with
// larger results.
const (
	compiledRowsMax  = 1000
	compiledBytesMax = 1 << 20
)

// all reads rows to their end; ErrPlan if there are too many.
func (f *form) all(ctx *gms.Context, iter gms.RowIter) ([]gms.Row, error) {
	var rows []gms.Row
	for bytes := 0; ; {
		row, err := iter.Next(ctx)
		if err == io.EOF {
			return rows, iter.Close(ctx)
		}
		if err == nil {
			err = ctx.Err()
		}
		if bytes += valueBytes(row); err == nil && (len(rows) == compiledRowsMax || bytes > compiledBytesMax) {
			err = ErrPlan
		}
		if err != nil {
			_ = iter.Close(ctx) // the first error is the one to return
			return nil, err
		}
		rows = append(rows, row)
	}
}

// valueBytes returns the size of a row's variable-length values.
func valueBytes(r gms.Row) int {
	n := 0
	for _, v := range r {
		switch v := v.(type) {
		case string:
			n += len(v)
		case []byte:
			n += len(v)
		case nil, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float32, float64:
		default:
			n += row.SpillBytesMin
		}
	}
	return n
}
