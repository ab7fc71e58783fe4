package plan

import (
	"slices"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	gmsplan "github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/types"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/sql/compat"
	"github.com/farmsql/farmsql/sql/row"
)

// This file turns the subqueries in expressions into values. Within the subquery, a column of the
// outer query is an Outer. An expression of Outers that is compared with a column is a value of the
// statement, computed for each outer row, so that an index can be used.

// A level is a subquery that is being built. around is the scope of the query that contains it, and next is the level of
// that query; nil if that is the statement.
type level struct {
	*Subquery
	around scope
	next   *level
}

// isOuter reports whether an expression depends on the outer row.
func isOuter(ctx *gms.Context, e gms.Expression) (is bool) {
	gms.Inspect(ctx, e, func(_ *gms.Context, e gms.Expression) bool {
		if _, ok := e.(*Outer); ok {
			is = true
		}
		return !is
	})
	return is
}

// outer returns a column of an outer query as an Outer of the subquery that is being built.
func (b *builder) outer(f *expression.GetField) (gms.Expression, error) {
	l := b.level
	if l == nil {
		return nil, refused("column %s", f)
	}
	for _, o := range l.outer {
		if o.Id() == f.Id() {
			return o, nil
		}
	}
	if l.around.place(f) < 0 && (l.next == nil || !l.next.has(f)) {
		return nil, refused("column %s", f)
	}
	o := &Outer{GetField: f}
	l.outer = append(l.outer, o)
	return o, nil
}

// has reports whether a column belongs to one of the outer queries.
func (l *level) has(f *expression.GetField) bool {
	return l.around.place(f) >= 0 || (l.next != nil && l.next.has(f))
}

// withValues returns an expression with values in place of its subqueries; isSame is set if it has none.
func (b *builder) withValues(e gms.Expression, s scope) (out gms.Expression, isSame bool, err error) {
	switch e := e.(type) {
	case *gmsplan.Subquery:
		v, err := b.scalar(e, s)
		return v, false, err
	case *gmsplan.ExistsSubquery:
		v, err := b.existence(e, s)
		return v, false, err
	case *gmsplan.InSubquery:
		v, err := b.membership(e, s)
		return v, false, err
	}
	children := slices.Clone(e.Children())
	isSame = true
	for i, c := range children {
		if c == nil {
			continue
		}
		x, same, err := b.withValues(c, s)
		if err != nil {
			return nil, false, err
		}
		children[i], isSame = x, isSame && same
	}
	if isSame {
		return e, true, nil
	}
	out, err = e.WithChildren(b.ctx, children...)
	return out, false, err
}

// existence returns the value of EXISTS: whether the subquery has rows.
func (b *builder) existence(e *gmsplan.ExistsSubquery, s scope) (*Scalar, error) {
	v, err := b.subquery(e.Query, s)
	if err != nil {
		return nil, err
	}
	v.query.Rows, v.typ, v.of = &Exists{v.query.Rows}, types.Boolean, e
	return v, nil
}

// scalar returns the value of a subquery of one column.
func (b *builder) scalar(q *gmsplan.Subquery, s scope) (*Scalar, error) {
	columns := q.Query.Schema(b.ctx)
	if len(columns) != 1 {
		return nil, refused("a subquery of %d columns", len(columns))
	}
	v, err := b.subquery(q, s)
	if err != nil {
		return nil, err
	}
	v.typ, v.of = columns[0].Type, q
	return v, nil
}

// subquery returns a subquery in an expression over the rows of scope s, which gives the values of its Outers. The caller
// sets typ and of.
func (b *builder) subquery(q *gmsplan.Subquery, s scope) (*Scalar, error) {
	root, _, err := compat.ComparedRows(b.ctx, nil, q.Query, nil, nil, nil)
	if err != nil {
		return nil, err
	}
	l := &level{&Subquery{}, s, b.level}
	b.level = l
	l.Rows, _, err = b.node(root)
	b.level = l.next
	if err != nil {
		return nil, err
	}
	v := &Scalar{query: l.Subquery}
	for _, o := range l.outer {
		e, err := b.placed(o.GetField, s)
		if err != nil {
			return nil, err
		}
		v.args = append(v.args, e)
	}
	b.subqueries = append(b.subqueries, l.Subquery)
	l.number = len(b.subqueries)
	b.shared = false
	return v, nil
}

// placed returns a column as an expression over the rows of a scope, or of the outer queries.
func (b *builder) placed(f *expression.GetField, s scope) (gms.Expression, error) {
	if at := s.place(f); at >= 0 {
		return f.WithIndex(at), nil
	}
	return b.outer(f)
}

// isTextLike reports whether an expression is an Outer or the value of a subquery, and a text that
// is compared with a column in the same way as the column's values.
func isTextLike(ctx *gms.Context, e gms.Expression, k *row.KeyCodec) bool {
	switch e.(type) {
	case *Outer, *Scalar:
	default:
		return false
	}
	t, ok := e.Type(ctx).(gms.StringType)
	return ok && row.IsCharacter(k.Kind) && types.IsTextOnly(t) && t.Collation() == k.Collation
}

// isFiner reports whether an expression with an Outer or a subquery returns decimals with more
// digits than a column has. Few such decimals, for example results of AVG, can be values of the
// column.
func isFiner(ctx *gms.Context, e gms.Expression, k *row.KeyCodec) bool {
	t, ok := e.Type(ctx).(gms.DecimalType)
	return ok && k.Kind == catalog.KindDecimal && int32(t.Scale()) > k.Scale && isOfSubquery(ctx, e)
}

// isOfSubquery reports whether an expression contains an Outer or the value of a subquery.
func isOfSubquery(ctx *gms.Context, e gms.Expression) (is bool) {
	gms.Inspect(ctx, e, func(_ *gms.Context, e gms.Expression) bool {
		switch e.(type) {
		case *Outer, *Scalar:
			is = true
		}
		return !is
	})
	return is
}

// hasSubquery reports whether one of the expressions contains a subquery.
func (b *builder) hasSubquery(all []gms.Expression) (has bool) {
	for _, e := range all {
		gms.Inspect(b.ctx, e, func(_ *gms.Context, e gms.Expression) bool {
			switch e.(type) {
			case *gmsplan.Subquery, *gmsplan.ExistsSubquery:
				has = true
			}
			return !has
		})
	}
	return has
}

// projectOnce returns the plan of a projection over another one, inner, which has computed the same
// for ORDER BY and HAVING. If the projection needs nothing from inner, it reads the rows below
// inner.
func (b *builder) projectOnce(n, inner *gmsplan.Project) (Node, scope, error) {
	before := *b
	below := gmsplan.NewProject(n.Projections, inner.Child)
	if node, s, err := b.project(below); err == nil {
		return node, s, nil
	}
	*b = before
	child, s, err := b.node(inner)
	if err != nil {
		return nil, scope{}, err
	}
	exprs, err := b.expressions(b.readComputed(n.Projections, s), s)
	return &Project{child, exprs}, scopeOf(n.Projections, s), err
}

// readComputed replaces expressions with subqueries by the columns of a scope that already have their values.
func (b *builder) readComputed(all []gms.Expression, s scope) []gms.Expression {
	out := slices.Clone(all)
	for i, e := range all {
		a, ok := e.(*expression.Alias)
		if !ok || !slices.Contains(s.ids, a.Id()) || !b.hasSubquery(all[i:i+1]) {
			continue
		}
		out[i] = expression.NewGetField(int(a.Id()), a.Type(b.ctx), a.Name(), a.IsNullable(b.ctx)).WithId(a.Id()).(gms.Expression)
	}
	return out
}
