package compat

import (
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/analyzer"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"
	"github.com/dolthub/go-mysql-server/sql/types"
)

// The columns of WITH RECURSIVE have the types of its first part. go-mysql-server makes DATETIME(6) of dates and times, so that
// a column of days shows times of day.

// recursiveRounds bounds how often types are passed on, from one derived table to the one around it.
const recursiveRounds = 10

// RecursiveTypes is a rule that gives the dates and times of WITH RECURSIVE the types of its first part.
func RecursiveTypes(ctx *gms.Context, _ *analyzer.Analyzer, n gms.Node, _ *plan.Scope, _ analyzer.RuleSelector, flags *gms.QueryFlags) (gms.Node, transform.TreeIdentity, error) {
	if !flags.IsSet(gms.QFlagRelSubquery) || !hasRecursive(ctx, n) {
		return n, transform.SameTree, nil
	}
	if insert, ok := n.(*plan.InsertInto); ok { // its source is not among its children
		source, same, err := recursiveTypes(ctx, insert.Source)
		if err != nil || bool(same) {
			return n, transform.SameTree, err
		}
		return insert.WithSource(source), transform.NewTree, nil
	}
	return recursiveTypes(ctx, n)
}

// hasRecursive reports whether a plan has a WITH RECURSIVE.
func hasRecursive(ctx *gms.Context, n gms.Node) (found bool) {
	if insert, ok := n.(*plan.InsertInto); ok {
		n = insert.Source
	}
	_, _, _ = withSubqueries(ctx, n, func(_ *gms.Context, n gms.Node) (gms.Node, transform.TreeIdentity, error) { // never fails
		transform.InspectWithOpaque(ctx, n, func(_ *gms.Context, n gms.Node) bool {
			_, isRecursive := n.(*plan.RecursiveCte)
			found = found || isRecursive
			return !found
		})
		return n, transform.SameTree, nil
	})
	return found
}

// columnTypes are the types of columns.
type columnTypes map[gms.ColumnId]gms.Type

// recursiveTypes gives the columns of WITH RECURSIVE in a plan their types, and passes these on to what reads them.
func recursiveTypes(ctx *gms.Context, n gms.Node) (gms.Node, transform.TreeIdentity, error) {
	same := transform.SameTree
	for range recursiveRounds {
		known := make(columnTypes)
		changed, unchanged, err := withSubqueries(ctx, n, known.learn)
		if err != nil {
			return n, same, err
		}
		changed, rewritten, err := withSubqueries(ctx, changed, known.apply)
		if err != nil {
			return n, same, err
		}
		if unchanged && rewritten {
			break
		}
		n, same = changed, transform.NewTree
	}
	return n, same, nil
}

// learn notes the types of the columns of WITH RECURSIVE, of derived tables and of aliases in a plan.
func (known columnTypes) learn(ctx *gms.Context, n gms.Node) (gms.Node, transform.TreeIdentity, error) {
	return transform.NodeWithOpaque(ctx, n, func(ctx *gms.Context, n gms.Node) (gms.Node, transform.TreeIdentity, error) {
		switch n := n.(type) {
		case *plan.RecursiveCte:
			return known.recursive(ctx, n)
		case *plan.SubqueryAlias:
			known.note(n.Columns(), n.Schema(ctx))
		case *plan.Project:
			known.computed(ctx, n.Projections)
		case *plan.GroupBy:
			known.computed(ctx, n.SelectDeps)
		case *plan.Window:
			known.computed(ctx, n.SelectExprs)
		}
		return n, transform.SameTree, nil
	})
}

// computed notes the types of the dates and times among expressions, to which nodes above refer by number.
func (known columnTypes) computed(ctx *gms.Context, all []gms.Expression) {
	for _, e := range all {
		if _, isColumn := e.(*expression.GetField); isColumn {
			continue
		}
		if x, ok := e.(gms.IdExpression); ok && x.Id() != 0 && types.IsTime(e.Type(ctx)) {
			known[x.Id()] = e.Type(ctx)
		}
	}
}

// note notes the types of the dates and times among columns.
func (known columnTypes) note(columns gms.ColSet, s gms.Schema) {
	i := 0
	columns.ForEach(func(id gms.ColumnId) {
		if i < len(s) && types.IsTime(s[i].Type) {
			known[id] = s[i].Type
		}
		i++
	})
}

// recursive gives the dates and times of a WITH RECURSIVE the types of its first part, to which those of the other part are converted.
func (known columnTypes) recursive(ctx *gms.Context, r *plan.RecursiveCte) (gms.Node, transform.TreeIdentity, error) {
	first, own := r.Left().Schema(ctx), r.Schema(ctx)
	if len(first) != len(own) {
		return r, transform.SameTree, nil
	}
	same := transform.SameTree
	for i, c := range own {
		if t := first[i].Type; types.IsTime(t) && !t.Equals(c.Type) {
			c.Type, same = t, transform.NewTree // the plan is this statement's own, and its working table has the same columns
		}
	}
	known.note(r.Columns(), own)
	right, ok := r.Right().(*plan.Project)
	if !ok || len(right.Projections) != len(own) {
		return r, same, nil
	}
	converted := append([]gms.Expression(nil), right.Projections...)
	isConverted := false
	for i, e := range converted {
		if types.IsDateType(own[i].Type) && !types.IsDateType(e.Type(ctx)) {
			converted[i], isConverted = asDate(e), true
		}
	}
	if !isConverted {
		return r, same, nil
	}
	out, err := r.WithChildren(ctx, r.Left(), plan.NewProject(converted, right.Child))
	return out, transform.NewTree, err
}

// asDate converts an expression, or what it is an alias of, to a DATE.
func asDate(e gms.Expression) gms.Expression {
	if a, ok := e.(*expression.Alias); ok {
		return expression.NewAlias(a.Name(), expression.NewConvert(a.Child, expression.ConvertToDate)).WithId(a.Id()).(gms.Expression)
	}
	return expression.NewConvert(e, expression.ConvertToDate)
}

// apply gives references to columns the types that are known of these.
func (known columnTypes) apply(ctx *gms.Context, n gms.Node) (gms.Node, transform.TreeIdentity, error) {
	return transform.NodeExprsWithOpaque(ctx, n, func(ctx *gms.Context, e gms.Expression) (gms.Expression, transform.TreeIdentity, error) {
		g, ok := e.(*expression.GetField)
		if !ok || !types.DatetimeMaxPrecision.Equals(g.Type(ctx)) {
			return e, transform.SameTree, nil
		}
		t, ok := known[g.Id()]
		if !ok || t.Equals(g.Type(ctx)) {
			return e, transform.SameTree, nil
		}
		of := expression.NewGetFieldWithTable(g.Index(), int(g.TableId()), t, g.Database(), g.Table(), g.Name(), g.IsNullable(ctx))
		return of.WithId(g.Id()).(gms.Expression), transform.NewTree, nil
	})
}
