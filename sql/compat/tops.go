package compat

import (
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/analyzer"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/iters"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"
	"github.com/dolthub/go-mysql-server/sql/types"
)

// For ORDER BY with LIMIT, go-mysql-server allocates memory for as many rows as the LIMIT says.

// insertTopNRule is the name of the rule that merges ORDER BY and LIMIT into one node.
const insertTopNRule = "insertTopNNodes"

// topMax is the greatest LIMIT for which only the first rows are kept: go-mysql-server's node
// allocates memory for that many rows, even if there are fewer.
const topMax = 100_000

// countMax is greater than any number of rows. It bounds LIMIT and OFFSET: go-mysql-server adds
// them, and the sum would overflow with 18446744073709551615, which clients write to mean all rows.
const countMax = 1 << 61

// boundedCount replaces a number of LIMIT or OFFSET above countMax by countMax, and NULL, which a
// parameter can be, by 0.
func boundedCount(ctx *gms.Context, e gms.Expression) (gms.Expression, bool) {
	l, ok := e.(*expression.Literal)
	if !ok || !types.IsInteger(l.Type(ctx)) {
		return nil, false
	}
	if l.Value() == nil {
		return expression.NewLiteral(int64(0), types.Int64), true
	}
	n, in, err := types.Uint64.Convert(ctx, l.Value())
	if err != nil || in != gms.InRange || n.(uint64) <= countMax {
		return nil, false
	}
	return expression.NewLiteral(int64(countMax), types.Int64), true
}

// withBoundedCounts replaces the LIMIT and OFFSET of a set operation as boundedCount does.
func withBoundedCounts(ctx *gms.Context, s *plan.SetOp) (gms.Node, transform.TreeIdentity) {
	limit, isLimit := boundedCount(ctx, s.Limit)
	offset, isOffset := boundedCount(ctx, s.Offset)
	if !isLimit && !isOffset {
		return s, transform.SameTree
	}
	bounded := *s
	if isLimit {
		bounded.Limit = limit
	}
	if isOffset {
		bounded.Offset = offset
	}
	return &bounded, transform.NewTree
}

// withoutLongTops replaces a node with a large LIMIT by a sort of all rows and a limit.
func withoutLongTops(apply analyzer.RuleFunc) analyzer.RuleFunc {
	return func(ctx *gms.Context, a *analyzer.Analyzer, n gms.Node, scope *plan.Scope, sel analyzer.RuleSelector, flags *gms.QueryFlags) (gms.Node, transform.TreeIdentity, error) {
		out, same, err := apply(ctx, a, n, scope, sel, flags)
		if err != nil || bool(same) {
			return out, same, err
		}
		out, _, err = transform.Node(ctx, out, func(ctx *gms.Context, n gms.Node) (gms.Node, transform.TreeIdentity, error) {
			top, ok := n.(*plan.TopN)
			if !ok {
				return n, transform.SameTree, nil
			}
			if most, err := iters.GetInt64Value(ctx, top.Limit); err != nil || most <= topMax {
				return n, transform.SameTree, nil // executing the node reports the error
			}
			return plan.NewLimit(top.Limit, plan.NewSort(top.Fields, top.Child)).WithCalcFoundRows(top.CalcFoundRows), transform.NewTree, nil
		})
		return out, same, err
	}
}
