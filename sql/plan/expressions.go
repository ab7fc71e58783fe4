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

// This file takes expressions out of go-mysql-server's resolved tree.

// A scope describes the columns of a node's rows.
type scope struct {
	ids []gms.ColumnId
	// codecs are how the columns are compared, nil for those that are not those of tables; nil if none is.
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

// column returns the position of the table's column that an expression is; false if it is none.
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

// bind puts Parameters for the variables in an expression that stand for the statement's values; isSame
// is set if there are none.
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

// expressions applies expression to several.
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

// isStateless reports whether an expression may be evaluated by several goroutines at a time.
func isStateless(e gms.Expression) bool {
	switch e := e.(type) {
	case *expression.GetField, *expression.Literal:
		return true
	case *expression.Alias:
		return isStateless(e.Child)
	}
	return false
}

// correctAs wraps an expression in a node for the rules that correct nodes.
func correctAs(e gms.Expression) gms.Node {
	return gmsplan.NewProject([]gms.Expression{e}, gmsplan.NewResolvedDualTable())
}

// corrected returns an expression as go-mysql-server evaluates it in our sessions.
func corrected(ctx *gms.Context, e gms.Expression) (gms.Expression, error) {
	n := correctAs(e)
	var err error
	for _, rule := range []analyzer.RuleFunc{compat.Moved, compat.Fractions, compat.PossibleTimes} {
		if n, _, err = rule(ctx, nil, n, nil, nil, nil); err != nil {
			return nil, err
		}
	}
	// What replaces an expression may have to be replaced itself: go-mysql-server's plans are corrected
	// again for as long as that changes them.
	for same := transform.NewTree; !same; {
		if n, same, err = transform.OneNodeExprsWithNode(ctx, n, compat.Compared); err != nil {
			return nil, err
		}
	}
	return n.(*gmsplan.Project).Projections[0], nil
}

// operand returns the parameter that an expression is, or whose negative it is.
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
