package plan

import (
	"slices"
	"strconv"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/analyzer"
	"github.com/dolthub/go-mysql-server/sql/expression"
	gmsplan "github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"

	"github.com/farmsql/farmsql/sql/compat"
	"github.com/farmsql/farmsql/sql/row"
)

// This file converts expressions of go-mysql-server's resolved tree.

// A scope describes the columns of a node's rows.
type scope struct {
	ids []gms.ColumnId
	// codecs say how the columns are compared. A column that does not belong to a table has nil. codecs
	// itself is nil if no column belongs to a table.
	codecs []*row.KeyCodec
}

// place returns the position of a column, -1 if the rows do not have it.
func (s scope) place(f *expression.GetField) int { return s.placeOf(f.Id()) }

// placeOf is place for the id of a column.
func (s scope) placeOf(column gms.ColumnId) int {
	for i, id := range s.ids {
		if id != 0 && id == column {
			return i
		}
	}
	return -1
}

// column returns the position of a table's column; false if the expression is not one, or the scope has no codecs.
func (s scope) column(e gms.Expression) (int, bool) {
	f, ok := e.(*expression.GetField)
	if !ok || s.codecs == nil {
		return 0, false
	}
	at := s.place(f)
	return at, at >= 0 && s.codecs[at] != nil
}

// expression returns an expression over the rows of a scope, with the corrections that
// go-mysql-server's expressions need.
func (b *builder) expression(e gms.Expression, s scope) (gms.Expression, error) {
	e, _, err := b.withValues(e, s)
	if err != nil {
		return nil, err
	}
	if e, _, err = b.bind(e); err != nil {
		return nil, err
	}
	if err := b.known(e); err != nil {
		return nil, err
	}
	e, err = corrected(b.ctx, e)
	if err != nil {
		return nil, err
	}
	b.shared = b.shared && isStateless(e)
	e, _, err = transform.Expr(b.ctx, e, func(_ *gms.Context, e gms.Expression) (gms.Expression, transform.TreeIdentity, error) {
		f, ok := e.(*expression.GetField)
		if !ok {
			return e, transform.SameTree, nil
		}
		placed, err := b.placed(f, s)
		return placed, transform.NewTree, err
	})
	return e, err
}

// bind replaces the variables that stand for the statement's values by Parameters; isSame is set if there are none.
func (b *builder) bind(e gms.Expression) (bound gms.Expression, isSame bool, err error) {
	if o, ok := b.operand(e); ok {
		p, ok := NewParameter(b.ctx, o, b.values)
		if !ok {
			return nil, false, refused("the value of %s", o)
		}
		p.class = p.classOf(b.values)
		b.bound = append(b.bound, p)
		return p, false, nil
	}
	children := slices.Clone(e.Children())
	isSame = true
	for i, c := range children {
		if c == nil {
			continue
		}
		x, same, err := b.bind(c)
		if err != nil {
			return nil, false, err
		}
		children[i], isSame = x, isSame && same
	}
	if isSame {
		return e, true, nil
	}
	bound, err = e.WithChildren(b.ctx, children...)
	return bound, false, err
}

// expressions applies expression to all.
func (b *builder) expressions(all []gms.Expression, s scope) ([]gms.Expression, error) {
	out := make([]gms.Expression, len(all))
	var err error
	for i, e := range all {
		if out[i], err = b.expression(e, s); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// isStateless reports whether several goroutines may evaluate an expression at the same time.
func isStateless(e gms.Expression) bool {
	switch e := e.(type) {
	case *expression.GetField, *expression.Literal:
		return true
	case *expression.Alias:
		return isStateless(e.Child)
	}
	return false
}

// correctAs wraps an expression in a node, because the rules for corrections apply to nodes.
func correctAs(e gms.Expression) gms.Node {
	return gmsplan.NewProject([]gms.Expression{e}, gmsplan.NewResolvedDualTable())
}

// corrected returns an expression with all corrections for our sessions.
func corrected(ctx *gms.Context, e gms.Expression) (gms.Expression, error) {
	n := correctAs(e)
	var err error
	for _, rule := range []analyzer.RuleFunc{compat.Moved, compat.Fractions, compat.PossibleTimes} {
		if n, _, err = rule(ctx, nil, n, nil, nil, nil); err != nil {
			return nil, err
		}
	}
	// A replacement may need corrections, too. So the rules are applied until they change nothing, as
	// to plans of go-mysql-server.
	for same := transform.NewTree; !same; { // NewTree is false
		if n, same, err = transform.OneNodeExprsWithNode(ctx, n, compat.Compared); err != nil {
			return nil, err
		}
	}
	return n.(*gmsplan.Project).Projections[0], nil
}

// operand returns the operand for a parameter, or for the negative of one.
func (b *builder) operand(e gms.Expression) (Operand, bool) {
	if m, ok := e.(*expression.UnaryMinus); ok {
		o, ok := b.operand(m.Child)
		o.Negative = !o.Negative
		return o, ok
	}
	v, ok := e.(*expression.BindVar)
	if !ok {
		return Operand{}, false
	}
	n, err := strconv.Atoi(strings.TrimPrefix(v.Name, "v"))
	if err != nil || n < 1 || n > len(b.parameters) {
		return Operand{}, false
	}
	return Operand{At: b.parameters[n-1]}, true
}
