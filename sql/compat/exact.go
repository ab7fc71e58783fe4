package compat

import (
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"
)

// go-mysql-server compares the old and the new row of an UPDATE, or ON DUPLICATE KEY UPDATE, by the
// collations of the columns. It writes nothing if they are equal, so a letter could never become a
// capital. The collations come from the table's schema. So such a statement gets a schema whose
// strings compare by their bytes.

// CompareExactly makes the tables of a plan, and the nodes between them and the UPDATE, return
// ExactSchema from here on: these nodes may have copied another schema. The SELECT of a derived
// table is not changed, and DISTINCT in it uses collations.
func CompareExactly(ctx *gms.Context, n gms.Node) {
	transform.InspectWithOpaque(ctx, n, func(_ *gms.Context, n gms.Node) bool {
		switch n := n.(type) {
		case *plan.SubqueryAlias:
			return false
		case *plan.IndexedTableAccess:
			if rt, ok := n.TableNode.(*plan.ResolvedTable); ok {
				exactTable(rt.Table)
			}
			exactTable(n.Table)
		case *plan.ResolvedTable:
			exactTable(n.Table)
		case *plan.InsertDestination:
			copy(n.Sch, ExactSchema(n.Sch))
		case *plan.ForeignKeyHandler:
			copy(n.Sch, ExactSchema(n.Sch))
			exactCascades(n.Editor, make(map[*plan.ForeignKeyEditor]bool))
		case *plan.Project, *plan.TableAlias:
			columns := n.Schema(ctx)
			copy(columns, ExactSchema(columns))
		case *plan.UpdateJoin:
			for _, target := range n.UpdateTargets {
				CompareExactly(ctx, target)
			}
		}
		return true
	})
}

// exactCascades makes ON UPDATE also pass on changes between values that are equal by the
// collation, from each table to the tables that refer to it. References may form a cycle.
func exactCascades(e *plan.ForeignKeyEditor, seen map[*plan.ForeignKeyEditor]bool) {
	if seen[e] {
		return
	}
	seen[e] = true
	e.Schema = ExactSchema(e.Schema)
	for _, child := range e.RefActions {
		exactCascades(child.Editor, seen)
	}
}

// An ExactTable can switch its schema to ExactSchema.
type ExactTable interface{ ShowExact() }

func exactTable(t gms.Table) {
	if t, ok := gms.GetUnderlyingTable(t).(ExactTable); ok {
		t.ShowExact()
	}
}

// ExactSchema returns a schema whose strings are compared byte by byte.
func ExactSchema(schema gms.Schema) gms.Schema {
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
