package compat

import (
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"
	"github.com/dolthub/go-mysql-server/sql/types"
)

// go-mysql-server's search for indexes compares each range of a condition with all others, several
// times: it took minutes for an IN of 20,000 texts. So chains of a = 1 OR a = 2 ... become lists,
// long lists are hidden from that search, and this file chooses their index.

const (
	// ChainMin is the least number of terms of a chain that becomes a list.
	ChainMin = 16
	// ListMax is the longest list for which go-mysql-server searches indexes, and termsMax the
	// longest chain of other conditions. For a longer chain the search would take seconds, and is
	// left out.
	ListMax  = 200
	termsMax = 1000
	// rangesMax bounds the ranges of an index that the search makes of the lists and chains of a filter: one
	// for each combination of their values. Lists of five values for 16 columns would be 10^11.
	rangesMax = 1000
)

// withoutChains replaces chains of equalities with one column (c = 1 OR c = 2 ...) by lists (c
// IN (1, 2, ...)), and chains of their negations by NOT IN. It returns false if there are none.
func withoutChains(ctx *gms.Context, e gms.Expression) (gms.Expression, bool) {
	all := conjuncts(e)
	changed := false
	for i, part := range all {
		if or, ok := part.(*expression.Or); ok {
			if in := listOf(ctx, disjuncts(or)); in != nil {
				all[i], changed = in, true
			}
		}
	}
	if shorter := joinExclusions(ctx, all); len(shorter) < len(all) {
		all, changed = shorter, true
	}
	if !changed {
		return e, false
	}
	return expression.JoinAnd(all...), true
}

// joinExclusions turns conditions that each exclude one value of a column into a NOT IN, if the column has
// at least ChainMin of them.
func joinExclusions(ctx *gms.Context, all []gms.Expression) []gms.Expression {
	if len(all) < ChainMin {
		return all
	}
	terms := make(map[string][]gms.Expression)
	// excluded returns the equality that e negates, and its column; nil for other conditions.
	excluded := func(e gms.Expression) (gms.Expression, string) {
		if not, ok := e.(*expression.Not); ok {
			if column, _ := listTerm(ctx, not.Child); column != nil {
				return not.Child, column.String()
			}
		}
		return nil, ""
	}
	for _, e := range all {
		if equal, column := excluded(e); equal != nil {
			terms[column] = append(terms[column], equal)
		}
	}
	lists := make(map[string]gms.Expression)
	for column, equal := range terms { // any order
		if in := listOf(ctx, equal); in != nil {
			lists[column] = expression.NewNot(in)
		}
	}
	var kept []gms.Expression
	for _, e := range all {
		_, column := excluded(e)
		list, isPart := lists[column]
		switch {
		case !isPart:
			kept = append(kept, e)
		case list != nil: // the list replaces the first of its terms, and the others are left out
			kept, lists[column] = append(kept, list), nil
		}
	}
	return kept
}

// listOf returns the IN for a chain of equalities of one column with constants; nil for other
// chains.
func listOf(ctx *gms.Context, terms []gms.Expression) gms.Expression {
	if len(terms) < ChainMin {
		return nil
	}
	var of *expression.GetField
	values := make(expression.Tuple, 0, len(terms))
	for _, t := range terms {
		column, value := listTerm(ctx, t)
		if column == nil {
			return nil
		}
		if of != nil && (column.Id() != of.Id() || column.Table() != of.Table() || column.Name() != of.Name()) {
			return nil // the chain is about several columns
		}
		of, values = column, append(values, value)
	}
	return expression.NewInTuple(of, values)
}

// listTerm returns the column and the constant of an equality that may be part of a list: integers
// or texts, which = and IN compare in the same way.
func listTerm(ctx *gms.Context, e gms.Expression) (*expression.GetField, *expression.Literal) {
	eq, ok := e.(*expression.Equals)
	if !ok {
		return nil, nil
	}
	column, ok := eq.Left().(*expression.GetField)
	value, isValue := eq.Right().(*expression.Literal)
	if !ok {
		column, ok = eq.Right().(*expression.GetField)
		value, isValue = eq.Left().(*expression.Literal)
	}
	if !ok || !isValue || !Listable(ctx, column, value) {
		return nil, nil
	}
	return column, value
}

// Listable reports whether a constant may be in a list for a column: both integers or both texts,
// which = and IN compare in the same way.
func Listable(ctx *gms.Context, column *expression.GetField, value *expression.Literal) bool {
	columnType, valueType := column.Type(ctx), value.Type(ctx)
	return (types.IsInteger(columnType) && types.IsInteger(valueType)) || (types.IsTextOnly(columnType) && types.IsTextOnly(valueType))
}

// conjuncts returns the terms of a chain of AND, and disjuncts those of OR. They do not recurse on
// the left side, which may be deep.
func conjuncts(e gms.Expression) []gms.Expression {
	return chain(e, func(e gms.Expression) (l, r gms.Expression, ok bool) {
		and, ok := e.(*expression.And)
		if !ok {
			return nil, nil, false
		}
		return and.LeftChild, and.RightChild, true
	})
}

func disjuncts(e gms.Expression) []gms.Expression {
	return chain(e, func(e gms.Expression) (l, r gms.Expression, ok bool) {
		or, ok := e.(*expression.Or)
		if !ok {
			return nil, nil, false
		}
		return or.LeftChild, or.RightChild, true
	})
}

// chain returns the terms of a chain in order; split returns the two sides of an operator of the
// chain, and false for a term.
func chain(e gms.Expression, split func(gms.Expression) (l, r gms.Expression, ok bool)) (all []gms.Expression) {
	todo := []gms.Expression{e}
	for len(todo) > 0 {
		e := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if l, r, ok := split(e); ok {
			todo = append(todo, r, l)
			continue
		}
		all = append(all, e)
	}
	return all
}

// hideLists hides conditions of a filter from the search for indexes: long lists and chains, and
// lists and chains that would multiply the search's ranges beyond rangesMax.
func hideLists(_ *gms.Context, n gms.Node) (gms.Node, transform.TreeIdentity, error) {
	f, ok := n.(*plan.Filter)
	if !ok {
		return n, transform.SameTree, nil
	}
	all := conjuncts(f.Expression)
	changed := false
	ranges := 1
	for i, e := range all {
		if _, known := e.(*aside); known {
			continue
		}
		n := rangesOf(e)
		if len(all) > termsMax || isLong(e) || ranges*n > rangesMax {
			all[i], changed = newAside(e), true
			continue
		}
		ranges *= n
	}
	if !changed {
		return n, transform.SameTree, nil
	}
	return plan.NewFilter(expression.JoinAnd(all...), f.Child), transform.NewTree, nil
}

// rangesOf returns how many ranges the search for indexes makes of a condition at most, up to a bound above rangesMax.
func rangesOf(e gms.Expression) int {
	n := 1
	switch e := e.(type) {
	case *aside:
	case *expression.And:
		for _, part := range conjuncts(e) {
			n = min(n*rangesOf(part), rangesMax+1)
		}
	case *expression.Or:
		n = 0
		for _, part := range disjuncts(e) {
			n = min(n+rangesOf(part), rangesMax+1)
		}
	case *expression.Not:
		n = min(rangesOf(e.Child)+1, rangesMax+1)
	default:
		if _, values := listed(e); len(values) > 0 {
			n = min(len(values), rangesMax+1)
		}
	}
	return n
}

// isLong reports whether a condition is a list or a chain too long for the search for indexes.
func isLong(e gms.Expression) bool {
	switch e := e.(type) {
	case *expression.Not:
		return isLong(e.Child)
	case *expression.Or:
		return len(disjuncts(e)) > termsMax
	}
	_, values := listed(e)
	return len(values) > ListMax
}

// listed returns the two sides of an IN with a list.
func listed(e gms.Expression) (gms.Expression, expression.Tuple) {
	switch e.(type) {
	case *expression.InTuple, *expression.HashInTuple:
		if sides := e.Children(); len(sides) == 2 {
			values, _ := sides[1].(expression.Tuple)
			return sides[0], values
		}
	}
	return nil, nil
}

// A ListTable is a table that can look up long lists.
type ListTable interface {
	// LookupList returns the lookup for a list's values; false if there is no index for them, or
	// the table has fewer rows than the list has values.
	LookupList(ctx *gms.Context, column *expression.GetField, values expression.Tuple) (lookup gms.IndexLookup, ok bool, err error)
}

// lookupLists replaces a table below a filter by the lookup of a long list in the filter, if the
// table has no index lookup yet.
func lookupLists(ctx *gms.Context, n gms.Node) (gms.Node, transform.TreeIdentity, error) {
	f, ok := n.(*plan.Filter)
	if !ok {
		return n, transform.SameTree, nil
	}
	table, ok := f.Child.(gms.TableNode)
	if !ok {
		return n, transform.SameTree, nil
	}
	ours, ok := gms.GetUnderlyingTable(table.UnderlyingTable()).(ListTable)
	if !ok {
		return n, transform.SameTree, nil
	}
	for _, e := range conjuncts(f.Expression) {
		hidden, ok := e.(*aside)
		if !ok {
			continue
		}
		left, values := listed(hidden.Child)
		column, ok := left.(*expression.GetField)
		if !ok {
			continue
		}
		lookup, ok, err := ours.LookupList(ctx, column, values)
		if err != nil {
			return n, transform.SameTree, err
		}
		if !ok {
			continue
		}
		found, err := plan.NewStaticIndexedAccessForTableNode(ctx, table, lookup)
		if err != nil {
			return n, transform.SameTree, err
		}
		return plan.NewFilter(f.Expression, found), transform.NewTree, nil
	}
	return n, transform.SameTree, nil
}
