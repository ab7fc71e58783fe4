package plan

import (
	"errors"
	"slices"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	gmsplan "github.com/dolthub/go-mysql-server/sql/plan"

	"github.com/farmsql/farmsql/sql/compat"
)

// This file turns EXISTS and IN in a WHERE into semi-joins, and NOT EXISTS into anti-joins. NOT IN
// cannot be an anti-join if there are NULLs.

// A semiJoin is the condition that a subquery has a row, or has none.
type semiJoin struct {
	kind  JoinKind
	query *gmsplan.Subquery
	left  gms.Expression // the operand that equals the subquery's column; nil for EXISTS
}

// semiJoinOf returns the semi-join for a condition; false if the condition is not one.
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

// filteredJoin returns the plan of a join with a condition, or of other rows with semi-joins. If no
// order looks up rows in the subqueries, the semi-joins become values, provided that the subqueries
// have no Outers.
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

// areValues reports whether the semi-joins of a condition may become values: their subqueries use
// no columns of the outer query, and each subquery of IN has a WHERE. Without a WHERE, IN would
// read a whole table, perhaps to look for few rows.
func (b *builder) areValues(where gms.Expression) bool {
	for _, e := range expression.SplitConjunction(b.ctx, where) {
		semi, ok := semiJoinOf(e)
		if !ok {
			continue
		}
		if !semi.query.Correlated().Empty() || (semi.left != nil && isWholeTable(semi.query.Query)) {
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

// where adds the conditions of a WHERE to a join. It adds the tables of semi-joins to the scope.
func (j *joinBuilder) where(where gms.Expression, s scope) (scope, error) {
	for _, e := range expression.SplitConjunction(j.ctx, where) {
		semi, ok := semiJoinOf(e)
		if !ok || !j.allowsSemi {
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
		if _, ok := j.same(equals, Equal, s); !ok { // IN and = convert differently
			return scope{}, refused("IN of other columns")
		}
		j.on[t] = append(slices.Clone(j.on[t]), equals)
	}
	return s, nil
}

// isSet reports whether a condition is IN of a subquery that is not a SELECT of columns of one
// table. The subquery's rows are read before the outer rows, or together with them, so the subquery
// must not depend on these.
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

// set adds the rows of a subquery of IN as a set, and returns their scope. Equal rows count once,
// so an inner join returns the same rows as IN. s is the scope of the tables so far.
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
	if len(t.codecs) != 1 || t.codecs[0] == nil || !areAlike(s.codecs[left], t.codecs[0]) { // IN and = convert differently
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
	j.Tables[t].Kind, j.Tables[t].isIn, j.on[t] = semi.kind, semi.left != nil, on
	return s, nil
}

// areKnown returns an error if one of the expressions is not known.
func (b *builder) areKnown(all []gms.Expression) error {
	for _, e := range all {
		if err := b.known(e); err != nil {
			return err
		}
	}
	return nil
}
