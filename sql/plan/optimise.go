package plan

import (
	"slices"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/expression/function/aggregation"
)

// optimise applies the rewrites of nodes. Each keeps the rows, and also their order if the statement states one.
func optimise(ctx *gms.Context, n Node) (Node, error) {
	wantFirst(n, nil)
	if err := findAccess(ctx, n, nil); err != nil {
		return nil, err
	}
	findWhole(n, true)
	return n, nil
}

// wantFirst tells sorts and scans how many of their rows the LIMIT above them wants. l is the LIMIT
// on the rows of n. A node passes it on only if it returns one row for each row of its child.
func wantFirst(n Node, l *Limit) {
	below := (*Limit)(nil)
	switch n := n.(type) {
	case *Limit:
		if n.Count != nil {
			below = n
		}
	case *Project, *Derived, *Union: // all rows of a Union may come from one side
		below = l
	case *Exists:
		defer wantOne(n.Child)
	case *When:
		defer wantOne(n.Query)
	case *Sort:
		n.Wants = l
	case *Scan:
		n.Wants = l
	case *Join:
		n.Wants = l
	}
	for _, child := range childrenOf(n) {
		wantFirst(child, below)
	}
}

// findAccess finds the ways to read the tables. above is the sort directly above n; nil if there is none.
func findAccess(ctx *gms.Context, n Node, above *Sort) error {
	switch n := n.(type) {
	case *Group:
		defer takeEnd(n) // it replaces the accesses that are found below
	case *Scan:
		n.Access = accesses(n.Table, n.Where)
		if above != nil {
			n.Order = above.By
			n.Wants = above.Wants
			n.Access = order(n.Table, n.Access, n.Where, above.By)
		}
	case *Join:
		if above != nil {
			n.Order = above.By
			n.Wants = above.Wants
		}
		if err := findOrders(ctx, n); err != nil {
			return err
		}
	}
	sort, _ := n.(*Sort)
	for _, child := range childrenOf(n) {
		if err := findAccess(ctx, child, sort); err != nil {
			return err
		}
	}
	return nil
}

// takeEnd makes a MIN or MAX read only the first or last entry of an index, if it is over a whole
// table or over rows that equalities select. The scan then returns only the row with the least or
// greatest value, or no row.
func takeEnd(g *Group) {
	scan, ok := g.Child.(*Scan)
	if !ok || len(g.By) > 0 || len(g.Exprs) != 1 {
		return
	}
	column, isMax, ok := endOf(g.Exprs[0])
	if !ok {
		return
	}
	by := []Order{{Expr: g.Exprs[0].Children()[0], Desc: isMax, Column: column}}
	where := scan.Where
	if !isMax { // NULL comes first, but MIN ignores NULL
		where = append(And{IsNull{column, true}}, conjuncts(scan.Where)...)
	}
	for _, a := range order(scan.Table, nil, where, by) {
		if a.Ordered && boundsAll(&a.Branches[0], conjuncts(scan.Where)) {
			scan.Where, scan.Access, scan.End = where, []Access{a}, true
			return
		}
	}
}

// endOf returns the column of a MIN or MAX; false for other expressions.
func endOf(e gms.Expression) (column int, isMax, ok bool) {
	switch e.(type) {
	case *aggregation.Max:
		isMax = true
	case *aggregation.Min:
	default:
		return 0, false, false
	}
	f, ok := e.Children()[0].(*expression.GetField)
	if !ok {
		return 0, false, false
	}
	return f.Index(), isMax, true
}

// boundsAll reports whether each condition of a conjunction is a comparison or an IS NULL of a column that a part of the
// branch bounds. Then the scan most likely reads few entries before it finds one that meets the conjunction. This
// affects only the speed.
func boundsAll(b *Branch, all []Condition) bool {
	for _, c := range all {
		var column int
		switch c := c.(type) {
		case Compare:
			column = c.Column
		case IsNull:
			column = c.Column
		default:
			return false
		}
		if !slices.ContainsFunc(b.Parts, func(p Part) bool { return p.Column == column }) {
			return false
		}
	}
	return true
}
