package sql

import (
	"math"
	"slices"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/memo"
)

// A coster is go-mysql-server's coster with corrections. go-mysql-server has no cost for a
// Max1Row, plans joins that lose rows or find too many, and assumes that any range of an index has half of the table's rows. Where the ranges
// are known when a join is planned, the coster counts their keys, as MySQL does.
type coster struct {
	memo.Coster
	e *Engine
}

// EstimateCost implements memo.Coster.
func (c coster) EstimateCost(ctx *gms.Context, r memo.RelExpr, s gms.StatsProvider) (float64, error) {
	if err := ctx.Err(); err != nil { // check often: a query can have very many join orders
		return 0, err
	}
	switch r := r.(type) {
	case *memo.Max1Row:
		return 0, nil // a Max1Row costs no more than its child
	case *memo.MergeJoin:
		if losesNulls(ctx, r) {
			return math.MaxFloat64, nil
		}
		c.countJoin(ctx, r)
	case *memo.LookupJoin:
		if findsNulls(r) {
			return math.MaxFloat64, nil
		}
		c.countJoin(ctx, r)
	case memo.JoinRel:
		c.countJoin(ctx, r)
	}
	if l, ok := r.(*memo.LookupJoin); ok && isCounted(l.Group()) {
		defer payForLookups(l)()
	}
	return c.Coster.EstimateCost(ctx, r, s)
}

// losesNulls reports whether a join merges by several columns of which one may be NULL. The
// merge expects NULLs last, and the indexes have them first, so that rows would be lost.
func losesNulls(ctx *gms.Context, r *memo.MergeJoin) bool {
	if len(r.Filter) == 0 {
		return false
	}
	columns, mayBeNull := 0, false
	gms.Inspect(ctx, r.Filter[0], func(ctx *gms.Context, e gms.Expression) bool {
		if f, ok := e.(*expression.GetField); ok {
			columns++
			mayBeNull = mayBeNull || f.IsNullable(ctx)
		}
		return true
	})
	return columns > 2 && mayBeNull // each comparison has two columns
}

// findsNulls reports whether a lookup finds NULL by NULL in a column of which the join's condition is =, and no longer
// checks that condition. go-mysql-server takes a condition for <=> if there is a <=> before it, also about another column.
func findsNulls(l *memo.LookupJoin) bool {
	mask, columns := l.Lookup.Table.NullMask(), l.Lookup.Index.Cols()
	for r := l.Group().First; r != nil; r = r.Next() {
		j, ok := r.(memo.JoinRel)
		if !ok {
			continue
		}
		for _, f := range j.JoinPrivate().Filter {
			for i := range mask {
				if mask[i] && isEquality(f, columns[i]) && !slices.Contains(l.Filter, f) {
					return true
				}
			}
		}
	}
	return false
}

// isEquality reports whether a condition is column = value or value = column.
func isEquality(e gms.Expression, column gms.ColumnId) bool {
	equals, ok := e.(*expression.Equals)
	if !ok {
		return false
	}
	for _, side := range equals.Children() {
		if f, ok := side.(*expression.GetField); ok && f.Id() == column {
			return true
		}
	}
	return false
}

// payForLookups sets the row count of a join to the number of rows that its lookups read, until
// restore is called: go-mysql-server would charge for the join's result rows. A lookup by a whole
// unique key reads one row, even if a filter then drops it. If other lookups are filtered, the
// number of rows that they read is unknown: payForLookups takes the greater of go-mysql-server's
// guess and the corrected number of result rows.
func payForLookups(l *memo.LookupJoin) (restore func()) {
	g := l.Group()
	s := g.RelProps.GetStats()
	rows, guess := rowsOf(g)
	switch left, _ := rowsOf(l.Left); {
	case l.Injective: // by a whole unique key
		rows = left
	case len(l.Filter) > 0:
		rows = max(rows, guess)
	}
	putRows(g, rows)
	return func() { g.RelProps.SetStats(s) }
}

// A counted is a statistic with a corrected row count; guess is go-mysql-server's row count.
type counted struct {
	gms.Statistic
	guess float64
}

// rowsOf returns the expected number of rows of a group of plans, and go-mysql-server's own
// guess.
func rowsOf(g *memo.ExprGroup) (rows, guess float64) {
	s := g.RelProps.GetStats()
	if c, ok := s.(counted); ok {
		return float64(c.RowCount()), c.guess
	}
	return float64(s.RowCount()), float64(s.RowCount())
}

// putRows sets the expected number of rows of a group of plans.
func putRows(g *memo.ExprGroup, rows float64) {
	_, guess := rowsOf(g)
	s := g.RelProps.GetStats()
	if c, ok := s.(counted); ok {
		s = c.Statistic
	}
	g.RelProps.SetStats(counted{s.WithRowCount(uint64(max(rows, 1))), guess})
}

// isCounted reports whether the row count of a group of plans is corrected already.
func isCounted(g *memo.ExprGroup) bool {
	_, ok := g.RelProps.GetStats().(counted)
	return ok
}

// countJoin corrects go-mysql-server's row counts of a join and of its two sides.
func (c coster) countJoin(ctx *gms.Context, r memo.JoinRel) {
	j := r.JoinPrivate()
	left, right := c.countGroup(ctx, j.Left), c.countGroup(ctx, j.Right) // whether they could be corrected
	if isCounted(r.Group()) || (!left && !right) {
		return
	}
	rows, _ := rowsOf(r.Group())
	// The join has more or fewer rows by the same factors as its sides.
	for _, g := range []*memo.ExprGroup{j.Left, j.Right} {
		if n, guess := rowsOf(g); guess > 0 {
			rows *= n / guess
		}
	}
	// A lookup by a whole unique key finds at most one row for each row on its left.
	for n := r.Group().First; n != nil; n = n.Next() {
		if l, ok := n.(*memo.LookupJoin); ok && l.Injective {
			c.countGroup(ctx, l.Left)
			most, _ := rowsOf(l.Left)
			rows = min(rows, most)
		}
	}
	putRows(r.Group(), rows)
}

// countGroup corrects go-mysql-server's row count of a single table, and reports whether it
// could.
func (c coster) countGroup(ctx *gms.Context, g *memo.ExprGroup) bool {
	if isCounted(g) {
		return true
	}
	for r := g.First; r != nil; r = r.Next() {
		switch r := r.(type) {
		case *memo.IndexScan:
			if n, ok := c.countScan(ctx, r); ok {
				putRows(g, n)
				return true
			}
		case *memo.Filter:
			if c.countChild(ctx, g, r.Child) {
				return true
			}
		case *memo.Project:
			if c.countChild(ctx, g, r.Child) {
				return true
			}
		case *memo.Distinct:
			if c.countChild(ctx, g, r.Child) {
				return true
			}
		}
	}
	return false
}

// countChild multiplies a group's row count by the factor by which its child's row count was
// corrected; false if that could not be corrected.
func (c coster) countChild(ctx *gms.Context, g, child *memo.ExprGroup) bool {
	if !c.countGroup(ctx, child) {
		return false
	}
	rows, guess := rowsOf(g)
	if n, before := rowsOf(child); before > 0 {
		rows = guess * n / before
	}
	putRows(g, rows)
	return true
}

// countScan counts the keys that a scan with given ranges reads. It reads committed data in a
// transaction of its own, because the statement's result does not depend on the count. It returns false if the
// ranges are not given.
func (c coster) countScan(ctx *gms.Context, r *memo.IndexScan) (float64, bool) {
	if r.Table == nil || !r.Table.IsStatic() {
		return 0, false
	}
	l, ok, err := r.Table.GetLookup(ctx, nil)
	if err != nil || !ok {
		return 0, false
	}
	return c.e.CountKeys(ctx, l)
}
