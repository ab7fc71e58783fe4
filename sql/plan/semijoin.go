package plan

import (
	"errors"
	"slices"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	gmsplan "github.com/dolthub/go-mysql-server/sql/plan"

	"github.com/farmsql/farmsql/sql/compat"
)

// This file makes semi-joins of EXISTS and IN, and anti-joins of NOT EXISTS, in a WHERE. NOT IN is no
// anti-join where there are NULLs.

// A semiJoin is a condition that a subquery has, or has no, row.
type semiJoin struct {
	kind  JoinKind
	query *gmsplan.Subquery
	left  gms.Expression // what equals the subquery's column, nil for EXISTS
}

// semiJoinOf returns the semi-join that a condition is; false if it is none.
func semiJoinOf(e gms.Expression) (semiJoin, bool) {
	switch e := e.(type) {
	case *gmsplan.ExistsSubquery:
		return semiJoin{Semi, e.Query, nil}, true
	case *expression.Not:
		x, ok := e.Child.(*gmsplan.ExistsSubquery)
		if ok {
			return semiJoin{Anti, x.Query, nil}, true
		}
	case *gmsplan.InSubquery:
		q, ok := e.Right().(*gmsplan.Subquery)
		return semiJoin{Semi, q, e.Left()}, ok
	}
	return semiJoin{}, false
}

// hasSemiJoin reports whether a condition of a WHERE is a semi-join.
func (b *builder) hasSemiJoin(where gms.Expression) bool {
	return slices.ContainsFunc(expression.SplitConjunction(b.ctx, where), func(e gms.Expression) bool {
		_, ok := semiJoinOf(e)
		return ok
	})
}

// filteredJoin returns the plan of a join with a condition, or of rows with semi-joins. If there is none in which
// rows are looked up in the subqueries, and these use no columns of the query around, they are values.
func (b *builder) filteredJoin(n *gmsplan.Filter) (Node, scope, error) {
	before := *b
	node, s, err := b.join(n.Child, n.Expression, true)
	if !b.hasSemiJoin(n.Expression) {
		return node, s, err
	}
	if err == nil {
		err = findOrders(b.ctx, node.(*Join))
	}
	if err == nil || !errors.Is(err, ErrRefused) || !b.areValues(n.Expression) {
		return node, s, err
	}
	*b = before
	if _, ok := n.Child.(*gmsplan.JoinNode); ok {
		return b.join(n.Child, n.Expression, false)
	}
	return b.filterRows(n)
}

// areValues reports whether the semi-joins of a condition may be values: their subqueries use no columns of the query
// around, and those of IN have a WHERE. The rows of a whole table might be many more than those looked for in them.
func (b *builder) areValues(where gms.Expression) bool {
	for _, e := range expression.SplitConjunction(b.ctx, where) {
		semi, ok := semiJoinOf(e)
		if !ok {
			continue
		}
		if !semi.query.Correlated().Empty() || semi.left != nil && isWholeTable(semi.query.Query) {
			return false
		}
	}
	return true
}

// isWholeTable reports whether a SELECT returns all rows of a table.
func isWholeTable(n gms.Node) bool {
	p, ok := n.(*gmsplan.Project)
	if !ok {
		return false
	}
	switch p.Child.(type) {
	case *gmsplan.ResolvedTable, *gmsplan.TableAlias:
		return true
	}
	return false
}

// where adds the conditions of a WHERE to a join, and the tables of those that are semi-joins to the
// scope.
func (j *joinBuilder) where(where gms.Expression, s scope) (scope, error) {
	for _, e := range expression.SplitConjunction(j.ctx, where) {
		semi, ok := semiJoinOf(e)
		if !ok || !j.hasSemi {
			j.inner = append(j.inner, e)
			continue
		}
		if semi.isSet() {
			more, err := j.set(semi, s)
			if err != nil {
				return scope{}, err
			}
			s = scope{slices.Concat(s.ids, more.ids), slices.Concat(s.codecs, more.codecs)}
			continue
		}
		more, err := j.semiJoin(semi)
		if err != nil {
			return scope{}, err
		}
		s = scope{slices.Concat(s.ids, more.ids), slices.Concat(s.codecs, more.codecs)}
		if semi.left == nil {
			continue
		}
		t := len(j.Tables) - 1
		equals := expression.NewEquals(semi.left, semi.column())
		if _, ok := j.same(equals, Equal, s); !ok { // IN converts otherwise than = does
			return scope{}, refused("IN of other columns")
		}
		j.on[t] = append(slices.Clone(j.on[t]), equals)
	}
	return s, nil
}

// isSet reports whether a condition is IN of a subquery that is no SELECT of columns of one table: its
// rows are read before, or with, those of the query around it, on which they must not depend.
func (s *semiJoin) isSet() bool {
	if s.left == nil {
		return false
	}
	project, ok := s.query.Query.(*gmsplan.Project)
	if !ok {
		return true
	}
	from := project.Child
	if f, ok := from.(*gmsplan.Filter); ok {
		from = f.Child
	}
	switch from.(type) {
	case *gmsplan.ResolvedTable, *gmsplan.TableAlias:
		return false
	}
	return true
}

// set adds the rows of a subquery that a column is among, and returns their scope. Each counts once, so
// that an inner join has the rows that IN has. s is the scope of the tables so far.
func (j *joinBuilder) set(semi semiJoin, s scope) (scope, error) {
	left, ok := s.column(semi.left)
	if !ok || !semi.query.Correlated().Empty() {
		return scope{}, refused("IN of a subquery that depends on the query around it")
	}
	root, _, err := compat.ComparedRows(j.ctx, nil, semi.query.Query, nil, nil, nil)
	if err != nil {
		return scope{}, err
	}
	more, err := j.source(root)
	if err != nil {
		return scope{}, err
	}
	t := &j.Tables[len(j.Tables)-1]
	if len(t.codecs) != 1 || t.codecs[0] == nil || !areAlike(s.codecs[left], t.codecs[0]) { // IN converts otherwise than = does
		return scope{}, refused("IN of other columns")
	}
	t.IsSet = true
	j.sets = append(j.sets, Same{left, t.First})
	return more, nil
}

// column returns the first column of a subquery.
func (s *semiJoin) column() gms.Expression {
	e := s.query.Query.(*gmsplan.Project).Projections[0]
	if a, ok := e.(*expression.Alias); ok {
		return a.Child
	}
	return e
}

// semiJoin adds the table of a subquery, and returns its scope. The subquery must be a SELECT of columns
// of one table.
func (j *joinBuilder) semiJoin(semi semiJoin) (scope, error) {
	project, ok := semi.query.Query.(*gmsplan.Project)
	if !ok {
		return scope{}, refused("a subquery with %T", semi.query.Query)
	}
	from, on := project.Child, []gms.Expression(nil)
	if f, ok := from.(*gmsplan.Filter); ok {
		from, on = f.Child, expression.SplitConjunction(j.ctx, f.Expression)
	}
	if err := j.areKnown(project.Projections); err != nil {
		return scope{}, err
	}
	if semi.left != nil && len(project.Projections) != 1 {
		return scope{}, refused("a subquery of several columns")
	}
	switch from.(type) {
	case *gmsplan.ResolvedTable, *gmsplan.TableAlias:
	default:
		return scope{}, refused("a subquery from %T", from)
	}
	t := len(j.Tables)
	s, err := j.table(from)
	if err != nil {
		return scope{}, err
	}
	j.Tables[t].Kind, j.on[t] = semi.kind, on
	return s, nil
}

// areKnown returns an error if one of several expressions is not known.
func (b *builder) areKnown(all []gms.Expression) error {
	for _, e := range all {
		if err := b.known(e); err != nil {
			return err
		}
	}
	return nil
}
