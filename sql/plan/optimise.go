package plan

import (
	"slices"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/expression/function/aggregation"
)

// optimise applies the rewrites of nodes, each of which keeps the rows, and their order where the
// statement gives one.
func optimise(ctx *gms.Context, n Node) (Node, error) {
	wantFirst(n, nil)
	if err := findAccess(ctx, n, nil); err != nil {
		return nil, err
	}
	findWhole(n, true)
	return n, nil
}

// wantFirst tells sorts and scans how many of their rows are wanted, by the LIMIT above them. l is
// the LIMIT that applies to the rows of n; only nodes whose children's rows are theirs, one for one, pass it on.
func wantFirst(n Node, l *Limit) {
	below := (*Limit)(nil)
	switch n := n.(type) {
	case *Limit:
		if n.Count != nil {
			below = n
		}
	case *Project, *Derived, *Union:
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

// findAccess finds the ways to read the tables. above is the sort whose rows the scan or the join gives, if there
// is one.
func findAccess(ctx *gms.Context, n Node, above *Sort) error {
	switch n := n.(type) {
	case *Group:
		defer takeEnd(n)
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

// takeEnd lets a MIN or MAX of a whole table, or of the rows that equalities give, read the first or
// last entry of an index. The scan then returns the row with the least or greatest value, or none,
// which have the same MIN or MAX as all rows.
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
	if !isMax { // NULL comes first, and is no MIN
		where = append(And{IsNull{column, true}}, conjuncts(scan.Where)...)
	}
	for _, a := range order(scan.Table, nil, where, by) {
		if a.Ordered && boundsAll(&a.Branches[0], conjuncts(scan.Where)) {
			scan.Where, scan.Access, scan.End = where, []Access{a}, true
			return
		}
	}
}

// endOf returns the column whose MIN or MAX an expression is; false if it is something else.
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

// boundsAll reports whether a branch's parts are all conditions of a conjunction, each of them an
// equality with one value or the only condition on its column: then few entries are read before one
// meets the conjunction. It is a matter of speed only.
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
