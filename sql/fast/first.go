package fast

import (
	"io"
	"slices"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/sql/store"
)

// A firstRows is ORDER BY column LIMIT n. It reads the first n index entries below the key that the
// conditions give. go-mysql-server reads all of these entries, or writes them with FOR UPDATE, and
// sorts them.
type firstRows struct {
	column     string
	descending bool
	limit      operand
}

// addOrder adds the order and the limit of a SELECT to the shape; false if the shape cannot
// express them, or has a range or a list among its conditions.
func (s *shape) addOrder(n *sqlparser.Select) bool {
	if n.QueryOpts.Distinct || len(n.OrderBy) != 1 || n.Limit.Offset != nil {
		return false
	}
	first := &firstRows{descending: n.OrderBy[0].Direction == sqlparser.DescScr}
	var ok bool
	if first.column, ok = s.column(n.OrderBy[0].Expr); !ok {
		return false
	}
	first.limit, ok = s.literal(n.Limit.Rowcount)
	if !ok || first.limit.negative {
		return false
	}
	s.first = first
	return !slices.ContainsFunc(s.where, func(c condition) bool { return c.isRange || c.list != nil })
}

// fits reports whether the column follows the columns of the conditions in the index, and whether
// all these columns together contain the primary key. Otherwise rows could be equal in the column,
// and their order would be undefined.
func (r *firstRows) fits(info *store.TableInfo, l *lookup) bool {
	k, at := l.index, len(l.parts)
	if k.Access == catalog.AccessHash || at >= len(k.Codecs) || !k.Codecs[at].TakesLiterals() || !store.SameName(info.Columns[k.Columns[at]].Name, r.column) {
		return false
	}
	given := k.Columns[:at+1]
	return !slices.ContainsFunc(info.PrimaryKey.Columns, func(c int) bool { return !slices.Contains(given, c) })
}

// inspectFirst sets the plan's leaf, and returns the node that returns the columns. ok is false if
// the plan does more than sort by r's column and apply its limit.
func (p *selectPlan) inspectFirst(r *firstRows) (columns gms.Node, ok bool) {
	n := p.root
	if limit, ok := n.(*plan.Limit); ok { // skip a second limit, which changes nothing
		n = limit.Child
	}
	project, isProject := n.(*plan.Project)
	if isProject {
		n = project.Child
	}
	top, ok := n.(*plan.TopN)
	if !ok || top.CalcFoundRows || len(top.Fields) != 1 || !r.isOrder(top.Fields[0]) {
		return nil, false
	}
	if !p.inspect(top.Child) || p.leaf != top.Child {
		return nil, false
	}
	if isProject {
		return plan.NewProject(project.Projections, p.leaf), true
	}
	return p.leaf, true
}

// isOrder reports whether a plan sorts by the column and in the direction of r.
func (r *firstRows) isOrder(f gms.SortField) bool {
	column, ok := f.Column.(*expression.GetField)
	return ok && store.SameName(column.Name(), r.column) && (f.Order == gms.Descending) == r.descending
}

// rows returns the number of rows asked for; false if it is not a plain number.
func (r *firstRows) rows(values []Value) (int, bool) {
	v, ok := r.limit.in(values)
	if !ok || !v.IsNumber || v.Number < 0 || v.Number > compiledRowsMax {
		return 0, false
	}
	return int(v.Number), true
}

// runFirst returns the first rows of a range.
func (f *form) runFirst(ctx *gms.Context, c *Compiled, s *Session, tr *store.Transaction, r store.KeyRange, values []Value) ([]gms.Row, error) {
	n, ok := f.first.rows(values)
	if !ok {
		return nil, ErrPlan
	}
	t := &store.Table{Store: c.st, Info: f.info, Columns: f.columns}
	iter := t.Rows(&s.Session, tr, &store.Scan{Index: f.lookup.index, Ranges: []store.KeyRange{r}, Reverse: f.first.descending, First: n})
	return f.all(ctx, &firstIter{iter, n})
}

// A firstIter returns the first rows of another iterator, and reads no further: changes
// to later rows then do not conflict with the transaction.
type firstIter struct {
	gms.RowIter
	left int
}

// Next implements gms.RowIter.
func (i *firstIter) Next(ctx *gms.Context) (gms.Row, error) {
	if i.left == 0 {
		return nil, io.EOF
	}
	i.left--
	return i.RowIter.Next(ctx)
}
