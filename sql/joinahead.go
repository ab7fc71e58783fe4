package sql

import (
	"slices"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"

	"github.com/farmsql/farmsql/sql/compat"
	"github.com/farmsql/farmsql/sql/store"
)

// A lookup join reads a row of its left side, looks up the row of the right side, and reads the next.
// If the right table is at other machines, it would wait for each row. So the left rows are read a few
// at a time (aheadIter), and the lookups for them are made together. Then go-mysql-server joins them as
// ever, one by one, and its own lookups find the rows at hand.

// noteJoin notes the left side of a lookup join whose lookups can be made together.
func (s *Session) noteJoin(ctx *gms.Context, n *plan.JoinNode) {
	if n.Op.IsFullOuter() || n.Op.IsCross() || n.Op.IsMerge() || n.Op.IsLateral() || n.Op.IsRange() {
		return
	}
	right, table := uniqueLookup(n.Right())
	if right == nil || !canReadAhead(ctx, n.Left()) {
		return
	}
	if slices.ContainsFunc(right.Expressions(), func(e gms.Expression) bool { return !isSteady(e) }) {
		return
	}
	s.noteAhead(n.Left(), &joinAhead{right: right, table: table, leftLen: len(n.Left().Schema(ctx))})
}

// uniqueLookup returns the lookup by a whole unique key, and its table, if n reads nothing else;
// otherwise nil. It also returns nil for an index at this machine: making the lookups twice would cost
// more than the cache misses that it saves.
func uniqueLookup(n gms.Node) (*plan.IndexedTableAccess, *store.IndexedTable) {
	for {
		switch node := n.(type) {
		case *plan.Filter:
			n = node.Child
		case *plan.TableAlias:
			n = node.Child
		case *plan.IndexedTableAccess:
			if node.IsStatic() {
				return nil, nil
			}
			x, ok := node.Index().(*store.Index)
			table, isOurs := underlying(node.Table).(*store.IndexedTable)
			if !ok || !isOurs || !table.IsUnique(x) || !table.IsElsewhere(x.Key) || len(node.Expressions()) != len(x.Expressions()) {
				return nil, nil
			}
			return node, table
		default:
			return nil, nil
		}
	}
}

// underlying returns the table inside go-mysql-server's wrappers.
func underlying(t gms.Table) gms.Table {
	for {
		w, ok := t.(gms.TableWrapper)
		if !ok {
			return t
		}
		t = w.Underlying()
	}
}

// canReadAhead reports whether reading a few rows of n before they are asked for makes no difference:
// n only reads tables, and compares what it reads.
func canReadAhead(ctx *gms.Context, n gms.Node) bool {
	ok := true
	transform.InspectWithOpaque(ctx, n, func(_ *gms.Context, n gms.Node) bool {
		switch n := n.(type) {
		case *plan.Filter:
			ok = ok && isSteady(n.Expression)
		case *plan.JoinNode:
			ok = ok && (n.Filter == nil || isSteady(n.Filter))
		case *plan.IndexedTableAccess:
			ok = ok && !slices.ContainsFunc(n.Expressions(), func(e gms.Expression) bool { return !isSteady(e) })
		case *plan.TableAlias, *plan.ResolvedTable, *plan.HashLookup, *plan.CachedResults:
		default:
			ok = false
		}
		return ok
	})
	return ok
}

// isSteady reports whether an expression has the same value now as later, when the rows before
// have been returned: it has no variables, functions or subqueries.
func isSteady(e gms.Expression) bool {
	return compat.OnlyCompares(e) && !slices.ContainsFunc(e.Children(), func(e gms.Expression) bool { return !isSteady(e) })
}

// A joinAhead makes the lookups of the right side of a join for rows of its left side, which have
// leftLen columns.
type joinAhead struct {
	right   *plan.IndexedTableAccess
	table   *store.IndexedTable
	leftLen int
}

// first implements lookAhead: beginning with one row, a LIMIT reads at most about twice the rows that it
// needs.
func (a *joinAhead) first() int { return 1 }

// lookUp implements lookAhead.
func (a *joinAhead) lookUp(ctx *gms.Context, rows []gms.Row, parent gms.Row) error {
	x := a.right.Index().(*store.Index)
	left := append(slices.Clone(parent), make(gms.Row, a.leftLen)...)
	var ranges []store.KeyRange
	for _, row := range rows {
		copy(left[len(parent):], row[len(row)-a.leftLen:])
		if none, err := findsNone(ctx, a.right, x, left); none || err != nil {
			continue // the join finds out, too
		}
		l, ok, err := a.right.GetLookup(ctx, left)
		if err != nil || !ok || l.IsEmptyRange {
			continue
		}
		if found, ok := l.Ranges.(gms.MySQLRangeCollection); ok {
			if k, next := x.Key.Lookup(ctx, found); k == x.Key { // not k extended by the primary key
				ranges = append(ranges, next...)
			}
		}
	}
	return a.table.LookUpAhead(ctx, x, ranges)
}
