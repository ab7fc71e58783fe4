package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/expression/function/aggregation"
	gmsplan "github.com/dolthub/go-mysql-server/sql/plan"

	"github.com/farmsql/farmsql/sql/compat"
	"github.com/farmsql/farmsql/sql/row"
	"github.com/farmsql/farmsql/sql/store"
)

// ErrRefused is the error of a tree that this package does not plan.
var ErrRefused = errors.New("plan: refused")

// refused returns an ErrRefused with the reason.
func refused(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrRefused}, args...)...)
}

// A Query is the plan of a statement.
type Query struct {
	// Rows are the rows that the statement returns, or changes.
	Rows Node
	// Change is set for UPDATE and DELETE.
	Change *Change
	// Insert is set for INSERT and REPLACE, which have no Rows.
	Insert *Insert
	// computed has the expressions without columns. Their values follow the values of the statement.
	computed []computed
	// subqueries has the subqueries in expressions; inner ones come first.
	subqueries []*Subquery
	// parameters has the parameters in all expressions.
	parameters []*Parameter
	// Shared is set if several goroutines may run the query at the same time.
	Shared bool
}

// Changed returns the tables that the statement changes.
func (q *Query) Changed() []*store.TableInfo {
	switch {
	case q.Insert != nil:
		return []*store.TableInfo{q.Insert.table}
	case q.Change == nil:
		return nil
	}
	return q.Change.tables
}

// String returns the plan as text.
func (q *Query) String() string {
	if q.Insert != nil {
		return q.Insert.String() + "\n"
	}
	var b strings.Builder
	for _, c := range q.computed {
		fmt.Fprintf(&b, "%s is %s\n", Operand{At: c.at}, c.expr)
	}
	if q.Change != nil {
		fmt.Fprintln(&b, q.Change)
	}
	b.WriteString(Describe(q.Rows))
	for _, s := range q.subqueries {
		fmt.Fprintf(&b, "subquery %d\n", s.number)
		s.Rows.describe(&b, 1)
	}
	return b.String()
}

// A builder makes a Query from a resolved tree.
type builder struct {
	ctx        *gms.Context
	tables     []*store.TableInfo
	parameters []int
	shared     bool // whether several goroutines may run what is built so far
	// values are the values for which the query is built.
	values []Value
	// bound has the parameters in expressions, computed the expressions without columns.
	bound    []*Parameter
	computed []computed
	// subqueries has the subqueries built so far, level the one that is being built.
	subqueries []*Subquery
	level      *level
}

// Build returns the plan for a tree that go-mysql-server has resolved. In the tree a variable v1
// stands for values[parameters[0]], and so on. tables are the tables that the tree reads. The error
// is an ErrRefused if the tree has a part that this package does not know.
func Build(ctx *gms.Context, root gms.Node, tables []*store.TableInfo, parameters []int, values []Value) (*Query, error) {
	b := &builder{ctx: ctx, tables: tables, parameters: parameters, shared: true, values: values}
	for _, t := range tables {
		if t.HasVirtual {
			return nil, refused("a virtual column")
		}
	}
	q := &Query{}
	source, err := changedRows(root)
	if err != nil {
		return nil, err
	}
	source, _, err = compat.ComparedRows(ctx, nil, source, nil, nil, nil)
	if err != nil {
		return nil, err
	}
	rows, s, err := b.node(source)
	if err != nil {
		return nil, err
	}
	if q.Change, err = b.change(root, rows, s); err != nil {
		return nil, err
	}
	if q.Rows, err = optimise(ctx, rows); err != nil {
		return nil, err
	}
	sources, err := b.finish(numberSources(q.Rows, 0))
	if err != nil {
		return nil, err
	}
	if sources > SourcesMax {
		return nil, refused("more than %d scans and joins", SourcesMax)
	}
	q.Shared, q.parameters, q.computed, q.subqueries = b.shared, b.bound, b.computed, b.subqueries
	if q.Change == nil {
		return q, prune(ctx, q.Rows)
	}
	if q.subqueries != nil {
		return nil, refused("a change with subqueries")
	}
	return q, q.Change.prune(ctx, q.Rows)
}

// node returns the plan of a node, and its scope.
func (b *builder) node(n gms.Node) (Node, scope, error) {
	switch n := n.(type) {
	case *gmsplan.ResolvedTable:
		return b.resolved(n, n.Columns())
	case *gmsplan.TableAlias:
		t, ok := n.Child.(*gmsplan.ResolvedTable)
		if !ok {
			return nil, scope{}, refused("an alias of %T", n.Child)
		}
		return b.resolved(t, n.Columns())
	case *gmsplan.SubqueryAlias:
		return b.derived(n)
	case *gmsplan.SetOp:
		return b.union(n)
	case *gmsplan.JoinNode:
		return b.join(n, nil, false)
	case *gmsplan.Filter:
		return b.filter(n)
	case *gmsplan.Having:
		return b.having(n)
	case *gmsplan.Project:
		return b.project(n)
	case *gmsplan.GroupBy:
		return b.group(n)
	case *gmsplan.Window:
		return b.window(n)
	case *gmsplan.Sort:
		return b.sort(n)
	case *gmsplan.Distinct:
		if len(n.Expressions()) > 0 {
			return nil, scope{}, refused("DISTINCT ON")
		}
		child, s, err := b.node(n.Child)
		if err != nil {
			return nil, scope{}, err
		}
		d := &Distinct{Child: child, Schema: n.Child.Schema(b.ctx)}
		return d, s, nil
	case *gmsplan.Limit:
		return b.limit(n)
	case *gmsplan.Offset:
		return b.offset(n)
	}
	return nil, scope{}, refused("node %T", n)
}

// resolved returns the scan of a table.
func (b *builder) resolved(n *gmsplan.ResolvedTable, columns gms.ColSet) (Node, scope, error) {
	if gmsplan.IsDualTable(n) {
		return One{}, scope{}, nil
	}
	if shown, s := b.shown(n, columns); shown != nil {
		return shown, s, nil
	}
	t, ok := n.Table.(*store.Table)
	if !ok || !slices.Contains(b.tables, t.Info) || n.AsOf != nil {
		return nil, scope{}, refused("table %s", n.Name())
	}
	var s scope
	columns.ForEach(func(id gms.ColumnId) { s.ids = append(s.ids, id) })
	if len(s.ids) != len(t.Info.Columns) {
		return nil, scope{}, refused("%d columns of %s", len(s.ids), n.Name())
	}
	for i := range t.Info.Columns {
		s.codecs = append(s.codecs, t.Info.Codec(i))
	}
	return &Scan{Table: t.Info}, s, nil
}

func (b *builder) filter(n *gmsplan.Filter) (Node, scope, error) {
	if b.isWhen(n) {
		return b.when(n)
	}
	if _, ok := n.Child.(*gmsplan.JoinNode); ok || b.hasSemiJoin(n.Expression) {
		return b.filteredJoin(n)
	}
	return b.filterRows(n)
}

// filterRows is filter for rows that are not joined. The condition's subqueries become values. A condition on a derived
// table goes into the table's SELECT if it can, and one on a table becomes the scan's.
func (b *builder) filterRows(n *gmsplan.Filter) (Node, scope, error) {
	if d, ok := n.Child.(*gmsplan.SubqueryAlias); ok {
		if d, ok = withCondition(b.ctx, d, n.Expression); ok {
			return b.derived(d)
		}
	}
	child, s, err := b.node(n.Child)
	if err != nil {
		return nil, scope{}, err
	}
	if shown, ok := child.(*Shown); ok {
		return b.shownFilter(shown, n.Expression, s)
	}
	scan, ok := child.(*Scan)
	if !ok || scan.Where != nil {
		f, err := b.expression(n.Expression, s)
		return &Filter{child, f}, s, err
	}
	c, err := b.condition(n.Expression, s)
	if err != nil {
		return nil, scope{}, err
	}
	scan.Where = Simplify(c)
	return scan, s, nil
}

func (b *builder) having(n *gmsplan.Having) (Node, scope, error) {
	child, s, err := b.node(n.Child)
	if err != nil {
		return nil, scope{}, err
	}
	cond, err := b.expression(n.Cond, s)
	return &Filter{child, cond}, s, err
}

func (b *builder) project(n *gmsplan.Project) (Node, scope, error) {
	if q := existsOf(n); q != nil {
		return b.exists(n, q)
	}
	if inner, ok := n.Child.(*gmsplan.Project); ok && b.hasSubquery(n.Projections) {
		return b.projectOnce(n, inner)
	}
	child, s, err := b.node(withoutDual(n.Child))
	if err != nil {
		return nil, scope{}, err
	}
	exprs, err := b.expressions(b.readComputed(n.Projections, s), s)
	return &Project{child, exprs}, scopeOf(n.Projections, s), err
}

// withoutDual returns the node below n if n is the projection that a SELECT without a table has only for ORDER BY and
// HAVING, and otherwise n.
func withoutDual(n gms.Node) gms.Node {
	p, ok := n.(*gmsplan.Project)
	if !ok || len(p.Projections) != 1 {
		return n
	}
	t, isTable := p.Child.(*gmsplan.ResolvedTable)
	if _, isColumn := p.Projections[0].(*expression.GetField); isColumn && isTable && gmsplan.IsDualTable(t) {
		return t
	}
	return n
}

// ids returns the scope of the rows of expressions, without codecs: their values are not compared with
// columns of tables.
func ids(exprs []gms.Expression) scope { return scopeOf(exprs, scope{}) }

// scopeOf returns the scope of the rows that expressions make of rows with the scope below. An
// expression to which nothing refers has no id.
func scopeOf(exprs []gms.Expression, below scope) scope {
	s := scope{ids: make([]gms.ColumnId, len(exprs))}
	if below.codecs != nil {
		s.codecs = make([]*row.KeyCodec, len(exprs))
	}
	for i, e := range exprs {
		if e, ok := e.(gms.IdExpression); ok {
			s.ids[i] = e.Id()
		}
		if at, ok := below.column(columnBehind(e)); ok {
			s.codecs[i] = below.codecs[at]
		}
	}
	return s
}

// columnBehind returns the operand of an alias, MIN or MAX, because the expression's values are the
// operand's. It returns other expressions unchanged.
func columnBehind(e gms.Expression) gms.Expression {
	switch e := e.(type) {
	case *expression.Alias:
		return columnBehind(e.Child)
	case *aggregation.Max, *aggregation.Min:
		return e.Children()[0]
	}
	return e
}

func (b *builder) group(n *gmsplan.GroupBy) (Node, scope, error) {
	child, s, err := b.node(n.Child)
	if err != nil {
		return nil, scope{}, err
	}
	g := &Group{Child: child}
	if g.By, err = b.expressions(n.GroupByExprs, s); err != nil {
		return nil, scope{}, err
	}
	if g.Exprs, err = b.expressions(n.SelectDeps, s); err != nil {
		return nil, scope{}, err
	}
	aggregates := 0
	for _, e := range g.Exprs {
		if _, ok := e.(gms.Aggregation); ok {
			aggregates++
			b.shared = false
			continue
		}
		if _, ok := e.(*expression.GetField); !ok {
			return nil, scope{}, refused("%s beside aggregates", e)
		}
	}
	if len(g.By) == 0 && (aggregates < len(g.Exprs) || aggregates == 0) {
		return nil, scope{}, refused("GROUP BY without aggregates")
	}
	return g, scopeOf(n.SelectDeps, s), nil
}

func (b *builder) sort(n *gmsplan.Sort) (Node, scope, error) {
	child, s, err := b.node(n.Child)
	if err != nil {
		return nil, scope{}, err
	}
	by, err := b.orders(n.SortFields, child, s)
	return &Sort{Child: child, By: by}, s, err
}

// orders returns the order of the rows of a node.
func (b *builder) orders(fields gms.SortFields, child Node, s scope) ([]Order, error) {
	by := make([]Order, len(fields))
	for i, f := range fields {
		e, err := b.expression(f.Column, s)
		if err != nil {
			return nil, err
		}
		if f.NullOrdering != gms.NullsFirst {
			return nil, refused("order of NULLs")
		}
		by[i] = Order{Expr: e, Desc: f.Order == gms.Descending, Column: -1}
		switch child.(type) {
		case *Scan, *Join:
			by[i].Column = columnOf(e)
		}
	}
	return by, nil
}

// columnOf returns the position of the column if the expression is a column, otherwise -1.
func columnOf(e gms.Expression) int {
	if a, ok := e.(*expression.Alias); ok {
		e = a.Child
	}
	if f, ok := e.(*expression.GetField); ok {
		return f.Index()
	}
	return -1
}

func (b *builder) limit(n *gmsplan.Limit) (Node, scope, error) {
	count, ok := b.operand(n.Limit)
	if !ok || n.CalcFoundRows || count.Negative {
		return nil, scope{}, refused("LIMIT %s", n.Limit)
	}
	child, s, err := b.node(n.Child)
	if err != nil {
		return nil, scope{}, err
	}
	if l, ok := child.(*Limit); ok && l.Count == nil { // the OFFSET of the same LIMIT
		l.Count = &count
		return l, s, nil
	}
	return &Limit{Child: child, Count: &count}, s, nil
}

func (b *builder) offset(n *gmsplan.Offset) (Node, scope, error) {
	offset, ok := b.operand(n.Offset)
	if !ok || offset.Negative {
		return nil, scope{}, refused("OFFSET %s", n.Offset)
	}
	child, s, err := b.node(n.Child)
	return &Limit{Child: child, Offset: &offset}, s, err
}
