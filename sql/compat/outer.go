package compat

import (
	"maps"
	"slices"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/analyzer"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"
	"github.com/dolthub/go-mysql-server/sql/types"
)

// go-mysql-server moves conditions below outer joins, and reorders joins, in ways that change the
// NULL rows of an outer join.

// pushFiltersRule is the name of the rule that moves conditions down to their tables.
const pushFiltersRule = "pushFilters"

// aboveOuterJoins corrects the conditions of an inner join that contains an outer join. When
// go-mysql-server reorders joins, it looks only at the tables of each condition. It loses
// conditions on one table. It tests conditions on the outer join's optional side before that join,
// or as a part of it. So aboveOuterJoins moves the conditions itself. A condition that may be true
// although a row is missing goes above the inner join. Any other condition on a single table goes
// to that table. A condition that is false for a missing row also turns the outer join into an
// inner one.
func aboveOuterJoins(apply analyzer.RuleFunc) analyzer.RuleFunc {
	return func(ctx *gms.Context, a *analyzer.Analyzer, n gms.Node, scope *plan.Scope, sel analyzer.RuleSelector, flags *gms.QueryFlags) (gms.Node, transform.TreeIdentity, error) {
		pushed, same, err := notBelowLaterals(apply)(ctx, a, n, scope, sel, flags)
		if err != nil {
			return n, transform.SameTree, err
		}
		lifted, unchanged, err := transform.Node(ctx, pushed, liftConditions)
		if err != nil {
			return n, transform.SameTree, err
		}
		out, untouched, err := transform.Node(ctx, lifted, keepLateralLeft)
		return out, same && unchanged && untouched, err
	}
}

// keepLateralLeft gives a LEFT JOIN LATERAL without a condition the condition TRUE: go-mysql-server
// would turn it into a cross join.
func keepLateralLeft(_ *gms.Context, n gms.Node) (gms.Node, transform.TreeIdentity, error) {
	join, ok := n.(*plan.JoinNode)
	if !ok || join.Op != plan.JoinTypeLateralLeft || join.Filter != nil {
		return n, transform.SameTree, nil
	}
	return join.WithFilter(newAside(expression.NewLiteral(true, types.Boolean))), transform.NewTree, nil
}

// pushAliasFilters is the name of the rule that moves conditions into derived tables.
const pushAliasFilters = "pushdownSubqueryAliasFilters"

// notBelowLaterals keeps conditions on the right side of a LEFT JOIN LATERAL above the join.
// go-mysql-server does not treat the join as an outer one, and would push the conditions into or
// below it.
func notBelowLaterals(apply analyzer.RuleFunc) analyzer.RuleFunc {
	return func(ctx *gms.Context, a *analyzer.Analyzer, n gms.Node, scope *plan.Scope, sel analyzer.RuleSelector, flags *gms.QueryFlags) (gms.Node, transform.TreeIdentity, error) {
		if !n.Resolved() || !hasLateralLeft(n) {
			return apply(ctx, a, n, scope, sel, flags)
		}
		hidden, _, err := transform.Node(ctx, n, hideOverLateral)
		if err != nil {
			return n, transform.SameTree, err
		}
		out, _, err := apply(ctx, a, hidden, scope, sel, flags)
		if err != nil {
			return n, transform.SameTree, err
		}
		out, _, err = transform.Node(ctx, out, func(_ *gms.Context, n gms.Node) (gms.Node, transform.TreeIdentity, error) {
			if b, ok := n.(*barrier); ok {
				return b.Child, transform.NewTree, nil
			}
			return n, transform.SameTree, nil
		})
		if err != nil {
			return n, transform.SameTree, err
		}
		shown, _, err := showHidden(ctx, out)
		return shown, transform.NewTree, err
	}
}

func hasLateralLeft(n gms.Node) (has bool) {
	transform.Inspect(n, func(n gms.Node) bool {
		join, ok := n.(*plan.JoinNode)
		has = has || (ok && join.Op == plan.JoinTypeLateralLeft)
		return !has
	})
	return has
}

// hideOverLateral hides a filter's conditions on rows that may be missing, and puts a barrier over
// the join, so that no condition becomes a part of it.
func hideOverLateral(ctx *gms.Context, n gms.Node) (gms.Node, transform.TreeIdentity, error) {
	f, ok := n.(*plan.Filter)
	if !ok || !hasLateralLeft(f.Child) {
		return n, transform.SameTree, nil
	}
	n, _, err := hideOfMissing(ctx, f)
	if err != nil {
		return n, transform.SameTree, err
	}
	if join, ok := f.Child.(*plan.JoinNode); ok && join.Op == plan.JoinTypeLateralLeft {
		n = plan.NewFilter(n.(*plan.Filter).Expression, &barrier{plan.UnaryNode{Child: join}})
	}
	return n, transform.NewTree, nil
}

// A barrier is a node that one rule does not know: the rule moves no condition past it.
type barrier struct{ plan.UnaryNode }

// String implements gms.Node.
func (b *barrier) String() string { return b.Child.String() }

// Schema implements gms.Node.
func (b *barrier) Schema(ctx *gms.Context) gms.Schema { return b.Child.Schema(ctx) }

// IsReadOnly implements gms.Node.
func (b *barrier) IsReadOnly() bool { return b.Child.IsReadOnly() }

// WithChildren implements gms.Node.
func (b *barrier) WithChildren(_ *gms.Context, children ...gms.Node) (gms.Node, error) {
	if len(children) != 1 {
		return nil, gms.ErrInvalidChildrenNumber.New(b, len(children), 1)
	}
	return &barrier{plan.UnaryNode{Child: children[0]}}, nil
}

// replaceCrossJoinsRule is the name of the rule that makes inner joins of cross joins.
const replaceCrossJoinsRule = "replaceCrossJoins"

// notInOuterJoins prevents conditions on outer-joined tables, whose rows may be missing, from
// moving into a cross join inside the outer join.
func notInOuterJoins(apply analyzer.RuleFunc) analyzer.RuleFunc {
	return func(ctx *gms.Context, a *analyzer.Analyzer, n gms.Node, scope *plan.Scope, sel analyzer.RuleSelector, flags *gms.QueryFlags) (gms.Node, transform.TreeIdentity, error) {
		if !n.Resolved() {
			return apply(ctx, a, n, scope, sel, flags)
		}
		hidden, nothingHidden, err := transform.Node(ctx, n, hideOfMissing)
		if err != nil {
			return n, transform.SameTree, err
		}
		out, same, err := apply(ctx, a, hidden, scope, sel, flags)
		if err != nil || bool(nothingHidden) {
			return out, same, err
		}
		shown, _, err := showHidden(ctx, out)
		return shown, same, err
	}
}

// showHidden puts the hidden conditions back.
func showHidden(ctx *gms.Context, n gms.Node) (gms.Node, transform.TreeIdentity, error) {
	return transform.NodeExprs(ctx, n, func(_ *gms.Context, e gms.Expression) (gms.Expression, transform.TreeIdentity, error) {
		if h, ok := e.(*hiddenFor); ok {
			return h.Expression, transform.NewTree, nil
		}
		return e, transform.SameTree, nil
	})
}

// A hiddenFor wraps a condition to hide it from one rule.
type hiddenFor struct{ gms.Expression }

// Children implements gms.Expression: rules do not see which columns the condition uses.
func (h *hiddenFor) Children() []gms.Expression { return nil }

// WithChildren implements gms.Expression.
func (h *hiddenFor) WithChildren(_ *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	if len(children) != 0 {
		return nil, gms.ErrInvalidChildrenNumber.New(h, len(children), 0)
	}
	return h, nil
}

// hideOfMissing hides a filter's conditions on tables whose row may be missing.
func hideOfMissing(ctx *gms.Context, n gms.Node) (gms.Node, transform.TreeIdentity, error) {
	f, ok := n.(*plan.Filter)
	if !ok {
		return n, transform.SameTree, nil
	}
	missing := missingIn(f.Child)
	same := transform.SameTree
	all := expression.SplitConjunction(ctx, f.Expression)
	for i, e := range all {
		about, _ := mentions(ctx, e)
		if slices.ContainsFunc(about, func(t gms.TableId) bool { _, is := missing[t]; return is }) {
			all[i], same = &hiddenFor{e}, transform.NewTree
		}
	}
	if same {
		return n, same, nil
	}
	return plan.NewFilter(expression.JoinAnd(all...), f.Child), same, nil
}

// liftConditions corrects one join whose children are already correct.
func liftConditions(ctx *gms.Context, n gms.Node) (gms.Node, transform.TreeIdentity, error) {
	join, ok := n.(*plan.JoinNode)
	if !ok {
		return n, transform.SameTree, nil
	}
	join, above := hoist(join)
	hoisted := len(above) > 0 || n != gms.Node(join)
	if join.Op != plan.JoinTypeInner || join.Filter == nil {
		return filtered(above, join), transform.TreeIdentity(!hoisted), nil
	}
	c := sortConditions(ctx, join)
	above = append(above, c.above...)
	if len(above)+len(c.required)+len(c.below) == 0 {
		return join, transform.TreeIdentity(!hoisted), nil
	}
	var below gms.Node = plan.NewCrossJoin(join.Left(), join.Right())
	if len(c.stay) > 0 {
		below = join.WithFilter(expression.JoinAnd(c.stay...))
	}
	below, err := innerJoins(ctx, below, c.required)
	if err != nil {
		return n, transform.SameTree, err
	}
	for _, one := range c.below {
		if below, err = put(ctx, below, one); err != nil {
			return n, transform.SameTree, err
		}
	}
	return filtered(above, below), transform.NewTree, nil
}

// sortedConditions are the conditions of an inner join, sorted by their new place.
type sortedConditions struct {
	stay, above []gms.Expression
	// below are the conditions that use a single table.
	below []aboutTable
	// required has the tables that must have a row for some condition to be true.
	required map[gms.TableId]bool
}

// An aboutTable is a condition that uses a single table.
type aboutTable struct {
	table     gms.TableId
	condition gms.Expression
}

// sortConditions decides for each condition of an inner join whether it stays at the join, goes
// above it, or goes below it to the only table that it uses.
func sortConditions(ctx *gms.Context, join *plan.JoinNode) sortedConditions {
	inside, missing := tablesOf(join), missingIn(join.Left())
	maps.Copy(missing, missingIn(join.Right()))
	s := sortedConditions{required: make(map[gms.TableId]bool)}
	for _, e := range expression.SplitConjunction(ctx, join.Filter) {
		about, known := mentions(ctx, e)
		needs := needed(e)
		optional := slices.DeleteFunc(slices.Clone(about), func(t gms.TableId) bool { _, is := missing[t]; return !is })
		switch {
		case !known, slices.ContainsFunc(optional, func(t gms.TableId) bool { return !needs[t] || missing[t] != plan.JoinTypeLeftOuter }):
			// The condition may be true where a row is missing, or its tables are not known, or not
			// only LEFT JOINs can make the row miss.
			s.above = append(s.above, e)
			continue
		case len(about) == 1 && inside[about[0]]:
			s.below = append(s.below, aboutTable{about[0], e})
		default:
			s.stay = append(s.stay, e)
		}
		for _, t := range optional {
			s.required[t] = true
		}
	}
	return s
}

// put puts a condition over its table.
func put(ctx *gms.Context, n gms.Node, c aboutTable) (gms.Node, error) {
	join, ok := n.(*plan.JoinNode)
	if !ok {
		return plan.NewFilter(c.condition, n), nil
	}
	children := slices.Clone(join.Children())
	at := 0
	if !tablesOf(children[0])[c.table] {
		at = 1
	}
	var err error
	if children[at], err = put(ctx, children[at], c); err != nil {
		return nil, err
	}
	return join.WithChildren(ctx, children...)
}

// filtered returns a filter over a node; the node itself if there are no conditions.
func filtered(conditions []gms.Expression, n gms.Node) gms.Node {
	if len(conditions) == 0 {
		return n
	}
	return plan.NewFilter(expression.JoinAnd(conditions...), n)
}

// hoist removes the filters directly over a join's child joins, and returns their conditions:
// go-mysql-server loses filters between joins.
func hoist(join *plan.JoinNode) (*plan.JoinNode, []gms.Expression) {
	left, ofLeft := overJoin(join.Left())
	right, ofRight := overJoin(join.Right())
	if join.Op.IsPartial() { // only the left side's rows are returned
		right, ofRight = join.Right(), nil
	}
	if ofLeft == nil && ofRight == nil {
		return join, nil
	}
	switch {
	case join.Op.IsPartial():
		return plan.NewJoin(left, right, join.Op, join.Filter).WithComment(join.Comment()).(*plan.JoinNode), ofLeft
	case join.Op == plan.JoinTypeInner, join.Op == plan.JoinTypeCross:
		return plan.NewJoin(left, right, join.Op, join.Filter), append(ofLeft, ofRight...)
	case join.Op == plan.JoinTypeLeftOuter:
		on := ofRight
		if join.Filter != nil {
			on = append(on, join.Filter)
		}
		return plan.NewJoin(left, right, join.Op, expression.JoinAnd(on...)), ofLeft
	case join.Op.IsLateral() && ofRight == nil:
		return plan.NewJoin(left, right, join.Op, join.Filter), ofLeft
	}
	return join, nil
}

// overJoin splits a filter over a join into the join and the condition.
func overJoin(n gms.Node) (gms.Node, []gms.Expression) {
	if f, ok := n.(*plan.Filter); ok {
		if _, ok := f.Child.(*plan.JoinNode); ok {
			return f.Child, []gms.Expression{f.Expression}
		}
	}
	return n, nil
}

// innerJoins turns an outer join into an inner one if its optional side includes a required table,
// one whose row must not be missing. The outer join's conditions then move as those of an inner
// join do.
func innerJoins(ctx *gms.Context, n gms.Node, required map[gms.TableId]bool) (gms.Node, error) {
	if len(required) == 0 {
		return n, nil
	}
	changed, same, err := transform.Node(ctx, n, func(_ *gms.Context, n gms.Node) (gms.Node, transform.TreeIdentity, error) {
		outer, ok := n.(*plan.JoinNode)
		if !ok || outer.Op != plan.JoinTypeLeftOuter || !includes(outer.Right(), required) {
			return n, transform.SameTree, nil
		}
		return plan.NewInnerJoin(outer.Left(), outer.Right(), outer.Filter), transform.NewTree, nil
	})
	if err != nil || bool(same) {
		return changed, err
	}
	changed, _, err = transform.Node(ctx, changed, liftConditions)
	return changed, err
}

// missingIn returns the tables whose row may be missing, each with the type of the outer join that
// causes it; JoinTypeUnknown if joins of several types do.
func missingIn(n gms.Node) map[gms.TableId]plan.JoinType {
	all := make(map[gms.TableId]plan.JoinType)
	join, ok := n.(*plan.JoinNode)
	if !ok {
		for _, c := range n.Children() {
			maps.Copy(all, missingIn(c))
		}
		return all
	}
	maps.Copy(all, missingIn(join.Left()))
	maps.Copy(all, missingIn(join.Right()))
	note := func(side gms.Node) {
		for t := range tablesOf(side) {
			if before, ok := all[t]; ok && before != join.Op {
				all[t] = plan.JoinTypeUnknown
			} else {
				all[t] = join.Op
			}
		}
	}
	switch {
	case join.Op.IsFullOuter():
		note(join.Left())
		note(join.Right())
	case join.Op.IsLeftOuter(), join.Op == plan.JoinTypeLateralLeft:
		note(join.Right())
	case join.Op.IsOuter():
		note(join.Left())
	}
	return all
}

// tablesOf returns the tables below a node.
func tablesOf(n gms.Node) map[gms.TableId]bool {
	all := make(map[gms.TableId]bool)
	if t, ok := n.(plan.TableIdNode); ok {
		all[t.Id()] = true
	}
	for _, c := range n.Children() {
		maps.Copy(all, tablesOf(c))
	}
	return all
}

// includes reports whether any of the tables is below a node.
func includes(n gms.Node, tables map[gms.TableId]bool) bool {
	for t := range tablesOf(n) {
		if tables[t] {
			return true
		}
	}
	return false
}

// mentions returns the tables that a condition uses; false if they are not known, because it has a
// subquery.
func mentions(ctx *gms.Context, e gms.Expression) (about []gms.TableId, known bool) {
	known = true
	gms.Inspect(ctx, e, func(_ *gms.Context, e gms.Expression) bool {
		switch e := e.(type) {
		case *expression.GetField:
			if !slices.Contains(about, e.TableId()) {
				about = append(about, e.TableId())
			}
		case *plan.Subquery:
			known = false
		}
		return true
	})
	return about, known
}

// needed returns the tables that must have a row for the condition to be true. If an outer join has
// filled in NULLs for one of them, the condition is not true.
func needed(e gms.Expression) map[gms.TableId]bool {
	switch e := e.(type) {
	case *expression.And:
		all := needed(e.LeftChild)
		if all == nil {
			return needed(e.RightChild)
		}
		maps.Copy(all, needed(e.RightChild))
		return all
	case *expression.Or:
		all, other := needed(e.LeftChild), needed(e.RightChild)
		maps.DeleteFunc(all, func(t gms.TableId, _ bool) bool { return !other[t] })
		return all
	case *expression.Not: // NOT of NULL is NULL, so a NOT needs what a comparison below it needs
		switch c := e.Child.(type) {
		case *expression.IsNull:
			return nullFor(c.Child)
		case *expression.And, *expression.Or, *expression.Not: // what these need to be true, they do not need to be false
			return nil
		}
		return needed(e.Child)
	case *expression.Equals, *expression.LessThan, *expression.LessThanOrEqual, *expression.GreaterThan, *expression.GreaterThanOrEqual, *like:
		return nullFor(e.Children()...)
	case *expression.InTuple:
		return nullFor(e.Left())
	}
	return nil
}

// nullFor returns the tables whose missing row makes one of the values NULL.
func nullFor(values ...gms.Expression) map[gms.TableId]bool {
	all := make(map[gms.TableId]bool)
	for _, v := range values {
		switch v := v.(type) {
		case *expression.GetField:
			all[v.TableId()] = true
		case *expression.Arithmetic:
			maps.Copy(all, nullFor(v.Children()...))
		}
	}
	return all
}
