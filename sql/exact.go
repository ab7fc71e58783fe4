package sql

import (
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"
)

// go-mysql-server compares a row with what an UPDATE, or ON DUPLICATE KEY
// UPDATE, makes of it by the collations of its columns, and writes nothing if
// they are equal: a letter would never become a capital. It takes the types from
// the schema of the table, so such a statement is given one whose strings are
// equal only if they are the same.

// compareExactly has the tables of a plan show that schema from here on.
func compareExactly(ctx *gms.Context, n gms.Node) {
	transform.InspectWithOpaque(ctx, n, func(_ *gms.Context, n gms.Node) bool {
		switch n := n.(type) {
		case *plan.IndexedTableAccess:
			if rt, ok := n.TableNode.(*plan.ResolvedTable); ok {
				exactTable(rt.Table)
			}
			exactTable(n.Table)
		case *plan.ResolvedTable:
			exactTable(n.Table)
		case *plan.InsertDestination:
			copy(n.Sch, exactSchema(n.Sch))
		case *plan.ForeignKeyHandler:
			copy(n.Sch, exactSchema(n.Sch))
		}
		return true
	})
}

func exactTable(t gms.Table) {
	switch t := gms.GetUnderlyingTable(t).(type) {
	case *Table:
		t.exact = true
	case *indexedTable:
		t.exact = true
	}
}

// exactSchema returns a schema whose strings are compared byte by byte.
func exactSchema(schema gms.Schema) gms.Schema {
	out := schema.Copy()
	for _, c := range out {
		t, ok := c.Type.(gms.TypeWithCollation)
		if !ok || t.Collation() == gms.Collation_binary {
			continue
		}
		if exact, err := t.WithNewCollation(t.Collation().CharacterSet().BinaryCollation()); err == nil {
			c.Type = exact
		}
	}
	return out
}
