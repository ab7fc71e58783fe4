package compat

import (
	"bytes"
	"strings"

	"github.com/dolthub/vitess/go/vt/sqlparser"
)

// This file makes statements call functions that stand in for go-mysql-server's (standins.go), or
// go-mysql-server's own functions with other arguments.

// The names of our functions in a syntax tree. No client can write them.
const (
	ExactSumName     = "farmsql.sum"
	ExactAvgName     = "farmsql.avg"
	ExactLiteralName = "farmsql.literal"
)

// CallOurs makes a syntax tree call our functions where go-mysql-server's differ from MySQL's:
//
//   - SUM and AVG, which it computes as DOUBLE, except in windows;
//   - comparisons with decimals, which it rounds to the scale of a column;
//   - STDDEV and VARIANCE, which must get doubles;
//   - GROUP_CONCAT, which uses only the first of several expressions;
//   - aggregates in subqueries;
//   - casts to CHAR, whose type lacks the collation;
//   - CASE of decimals and whole numbers, which has too many digits;
//   - CUME_DIST, and intervals of several units or with a minus before them.
func CallOurs(query string, stmt sqlparser.Statement) {
	endLoops(stmt)
	nestAggregates(query, stmt)
	if ContainsFold(query, "any") || ContainsFold(query, "some") || (ContainsFold(query, "all") && containsTwice(query, "select")) {
		compareAll(stmt)
	}
	if ContainsFold(query, "distinct") && ContainsFold(query, "order") {
		nameOrdinals(stmt)
	}
	if ContainsFold(query, "order") && (ContainsFold(query, "union") || ContainsFold(query, "intersect") || ContainsFold(query, "except")) {
		nameConstants(stmt)
	}
	if ContainsFold(query, "case") {
		if d, ok := stmt.(*sqlparser.DDL); ok && d.OptSelect != nil {
			decideCases(d.OptSelect)
		} else if runsNow(stmt) {
			decideCases(stmt)
		}
	}
	aggregates := ContainsFold(query, "sum") || ContainsFold(query, "avg") || ContainsFold(query, "std") || ContainsFold(query, "var")
	groups := ContainsFold(query, "group_concat")
	decimals := runsNow(stmt) && containsDecimal(query)
	casts := runsNow(stmt) && ContainsFold(query, "char") && (ContainsFold(query, "cast") || ContainsFold(query, "convert"))
	inverts := strings.IndexByte(query, '~') >= 0 && (runsNow(stmt) || isView(stmt))
	intervals := ContainsFold(query, "interval")
	shares := ContainsFold(query, "cume_dist")
	if stmt == nil || !(aggregates || groups || decimals || casts || inverts || intervals || shares) {
		return // walking costs more than parsing
	}
	// The visitor never fails, so neither does Walk.
	_ = sqlparser.Walk(func(node sqlparser.SQLNode) (bool, error) {
		switch n := node.(type) {
		case *sqlparser.FuncExpr:
			useOurAggregate(n)
			countPeers(n)
		case *sqlparser.GroupConcatExpr:
			concatAll(n)
		case *sqlparser.UnaryExpr:
			if inverts {
				invertBits(n)
			}
		case *sqlparser.IntervalExpr:
			splitInterval(n)
		case *sqlparser.BinaryExpr:
			if intervals {
				subtractInterval(n)
			}
		case *sqlparser.ComparisonExpr:
			if decimals {
				n.Left, n.Right = exactDecimal(n.Left), exactDecimal(n.Right)
			}
		case *sqlparser.ConvertExpr:
			if casts {
				cutByCharacters(n)
			}
		case *sqlparser.AliasedExpr:
			n.Expr = castToText(n.Expr)
		case *sqlparser.Order:
			n.Expr = castToText(n.Expr)
		case *sqlparser.Select:
			for i, e := range n.GroupBy {
				n.GroupBy[i] = castToText(e)
			}
		}
		return true, nil
	}, stmt)
}

// useOurAggregate replaces the call of an aggregate by a call of ours, except SUM and AVG in a
// window.
func useOurAggregate(f *sqlparser.FuncExpr) {
	switch f.Name.Lowered() {
	case "std", "stddev", "stddev_pop", "stddev_samp", "variance", "var_pop", "var_samp":
		ofDoubles(f)
		return
	}
	if f.Over != nil {
		return
	}
	switch f.Name.Lowered() {
	case "sum":
		f.Name = sqlparser.NewColIdent(ExactSumName)
	case "avg":
		f.Name = sqlparser.NewColIdent(ExactAvgName)
	}
}

// ofDoubles converts the argument of a deviation or variance to DOUBLE, because
// go-mysql-server's result has the argument's type: an integer for integers.
func ofDoubles(f *sqlparser.FuncExpr) {
	for _, e := range f.Exprs {
		if a, ok := e.(*sqlparser.AliasedExpr); ok {
			a.Expr = &sqlparser.BinaryExpr{Operator: sqlparser.PlusStr, Left: a.Expr, Right: sqlparser.NewFloatVal([]byte("0e0"))}
		}
	}
}

// concatAll replaces the expressions of a GROUP_CONCAT by their CONCAT, because go-mysql-server
// uses only the first.
func concatAll(g *sqlparser.GroupConcatExpr) {
	if len(g.Exprs) > 1 {
		all := &sqlparser.FuncExpr{Name: sqlparser.NewColIdent("concat"), Exprs: g.Exprs}
		g.Exprs = sqlparser.SelectExprs{&sqlparser.AliasedExpr{Expr: all}}
	}
}

// subtractInterval turns -INTERVAL + date into date - INTERVAL: go-mysql-server negates the interval,
// and panics.
func subtractInterval(b *sqlparser.BinaryExpr) {
	minus, ok := b.Left.(*sqlparser.UnaryExpr)
	if !ok || minus.Operator != sqlparser.UMinusStr || b.Operator != sqlparser.PlusStr {
		return
	}
	if interval, ok := minus.Expr.(*sqlparser.IntervalExpr); ok {
		b.Operator, b.Left, b.Right = sqlparser.MinusStr, b.Right, interval
	}
}

// runsNow reports whether the expressions of a statement are evaluated when it runs; other
// statements may keep them as text.
func runsNow(stmt sqlparser.Statement) bool {
	switch stmt.(type) {
	case *sqlparser.Select, *sqlparser.SetOp, *sqlparser.ParenSelect, *sqlparser.Insert, *sqlparser.Update, *sqlparser.Delete:
		return true
	}
	return false
}

// isView reports whether a statement makes a view, which is kept as the client has written it.
func isView(stmt sqlparser.Statement) bool {
	d, ok := stmt.(*sqlparser.DDL)
	return ok && d.ViewSpec != nil
}

// exactDecimal encloses a literal that is a decimal in a call of ExactLiteralName. It returns other
// expressions unchanged; a literal with an exponent is a DOUBLE.
func exactDecimal(e sqlparser.Expr) sqlparser.Expr {
	v, ok := e.(*sqlparser.SQLVal)
	if !ok || v.Type != sqlparser.FloatVal || bytes.ContainsAny(v.Val, "eE") {
		return e
	}
	return &sqlparser.FuncExpr{Name: sqlparser.NewColIdent(ExactLiteralName), Exprs: sqlparser.SelectExprs{&sqlparser.AliasedExpr{Expr: v}}}
}

// containsDecimal reports whether a text may have a decimal: a point before a digit.
func containsDecimal(s string) bool {
	for i := strings.IndexByte(s, '.'); i >= 0; {
		s = s[i+1:]
		if s != "" && s[0] >= '0' && s[0] <= '9' {
			return true
		}
		i = strings.IndexByte(s, '.')
	}
	return false
}

// ContainsFold reports whether s contains the lower-case ASCII word, in any case
// of letters.
func ContainsFold(s, word string) bool { return indexFold(s, word) >= 0 }

// indexFold returns the index at which ContainsFold finds the word, or -1.
func indexFold(s, word string) int {
	for i := 0; i+len(word) <= len(s); i++ {
		if s[i]|0x20 == word[0] && strings.EqualFold(s[i:i+len(word)], word) {
			return i
		}
	}
	return -1
}
