package trigger

import (
	"slices"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"
)

// This file finds out which tables a statement changes and uses. go-mysql-server goes by names: it
// mistakes the table of a subquery, or of another database, for a table of the same name that is changed.

// A tableName is the name of a table, with its database, in small letters.
type tableName struct{ db, table string }

func nameOf(t *plan.ResolvedTable) tableName {
	name := tableName{table: strings.ToLower(t.Name())}
	if t.SqlDatabase != nil {
		name.db = strings.ToLower(t.SqlDatabase.Name())
	}
	return name
}

// changed returns the tables that a node changes: none, unless it is an INSERT, UPDATE or DELETE.
func changed(ctx *gms.Context, n gms.Node) (tables []*plan.ResolvedTable) {
	add := func(t *plan.ResolvedTable) {
		if t != nil {
			tables = append(tables, t)
		}
	}
	switch n := n.(type) {
	case *plan.InsertInto:
		add(resolvedIn(n.Destination))
	case *plan.DeleteFrom:
		for _, target := range n.GetDeleteTargets() {
			add(resolvedIn(target))
		}
	case *plan.Update:
		source := sourceOf(n.Child)
		if source == nil {
			break
		}
		for _, name := range assignedTables(source) {
			add(tableOf(ctx, source.Child, name))
		}
	}
	return tables
}

// sourceOf returns the source of an UPDATE's rows, which is in the UPDATE's child; nil if the UPDATE
// is known to change nothing.
func sourceOf(n gms.Node) *plan.UpdateSource {
	switch n := n.(type) {
	case *plan.UpdateSource:
		return n
	case *plan.UpdateJoin:
		return sourceOf(n.Child)
	case *plan.ForeignKeyHandler:
		return sourceOf(n.OriginalNode)
	case *updates:
		return sourceOf(n.Child)
	}
	return nil
}

// assignedTables returns the names of the tables to whose columns an UPDATE assigns values.
func assignedTables(source *plan.UpdateSource) (names []string) {
	for _, e := range source.UpdateExprs.AllExpressions() {
		if set, ok := e.(*expression.SetField); ok {
			if column, ok := set.LeftChild.(*expression.GetField); ok {
				names = append(names, strings.ToLower(column.Table()))
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// tableOf returns the table that has a name in a FROM clause, nil if there is none. The columns of
// the FROM clause say which database it is of.
func tableOf(ctx *gms.Context, from gms.Node, name string) (table *plan.ResolvedTable) {
	db := ""
	for _, c := range from.Schema(ctx) {
		if strings.EqualFold(c.Source, name) {
			db = c.DatabaseSource
			break
		}
	}
	transform.Inspect(from, func(n gms.Node) bool {
		named, ok := n.(gms.NameableNode)
		if !ok || table != nil {
			return table == nil // go on, unless the table has been found
		}
		if t := resolvedIn(n); t != nil && strings.EqualFold(named.Name(), name) && (db == "" || strings.EqualFold(nameOf(t).db, db)) {
			table = t
		}
		return false
	})
	return table
}

// resolvedIn returns the first table within a node, nil if there is none.
func resolvedIn(n gms.Node) (table *plan.ResolvedTable) {
	transform.Inspect(n, func(n gms.Node) bool {
		if x, ok := n.(*plan.IndexedTableAccess); ok {
			n = x.TableNode
		}
		if t, ok := n.(*plan.ResolvedTable); ok && table == nil {
			table = t
		}
		return table == nil
	})
	return table
}

// noteTables notes the tables that a statement uses, in its subqueries too, but not in triggers.
func noteTables(ctx *gms.Context, n gms.Node, used map[tableName]bool) {
	transform.InspectWithOpaque(ctx, n, func(ctx *gms.Context, n gms.Node) bool {
		for _, t := range changed(ctx, n) {
			used[nameOf(t)] = true
		}
		switch n := n.(type) {
		case *plan.TriggerExecutor:
			noteTables(ctx, n.Left(), used)
			return false
		case *plan.InsertInto: // the source is not among the children
			noteTables(ctx, n.Source, used)
		case *plan.ResolvedTable:
			used[nameOf(n)] = true
		case *plan.IndexedTableAccess:
			if t := resolvedIn(n); t != nil {
				used[nameOf(t)] = true
			}
		case gms.Expressioner:
			for _, e := range n.Expressions() {
				noteSubqueries(ctx, e, used)
			}
		}
		return true
	})
}

// noteSubqueries notes the tables that the subqueries in an expression use.
func noteSubqueries(ctx *gms.Context, e gms.Expression, used map[tableName]bool) {
	gms.Inspect(ctx, e, func(ctx *gms.Context, e gms.Expression) bool {
		if q, ok := e.(*plan.Subquery); ok {
			noteTables(ctx, q.Query, used)
		}
		return true
	})
}
