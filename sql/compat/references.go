package compat

import (
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"
)

// go-mysql-server looks for the row that a new row refers to before it stores the new row. So it
// reports a missing reference (1452) where MySQL finds a duplicate key. INSERT ... ON DUPLICATE KEY
// UPDATE then fails instead of updating the existing row.

// A ReferringEditor can check a row's references after it has stored the row. If the check fails,
// it removes the row. For a new row, old is nil.
type ReferringEditor interface {
	gms.ForeignKeyEditor
	Refer(check func(ctx *gms.Context, old, row gms.Row) error)
}

// ReferLate makes the target tables of a plan check the references of a row once the row is stored.
func ReferLate(ctx *gms.Context, n gms.Node) {
	transform.InspectWithOpaque(ctx, n, func(_ *gms.Context, n gms.Node) bool {
		switch n := n.(type) {
		case *plan.SubqueryAlias:
			return false
		case *plan.ForeignKeyHandler:
			referLate(n.Editor)
		case *plan.UpdateJoin:
			for _, target := range n.UpdateTargets {
				ReferLate(ctx, target)
			}
		}
		return true
	})
}

// referLate moves the references of an editor to the table's own editor. On the plan's next
// execution none are left to move.
func referLate(e *plan.ForeignKeyEditor) {
	table, ok := e.Editor.(ReferringEditor)
	if !ok || len(e.References) == 0 {
		return
	}
	references, columns := e.References, e.Schema
	e.References = nil
	table.Refer(func(ctx *gms.Context, old, row gms.Row) error {
		for _, r := range references {
			changed, err := changesReference(ctx, r, columns, old, row)
			if err != nil {
				return err
			}
			if !changed {
				continue
			}
			if err := r.CheckReference(ctx, row); err != nil {
				return err
			}
		}
		return nil
	})
}

// changesReference reports whether a row refers to another row than before.
func changesReference(ctx *gms.Context, r *plan.ForeignKeyReferenceHandler, columns gms.Schema, old, row gms.Row) (bool, error) {
	if old == nil {
		return true, nil
	}
	for _, at := range r.RowMapper.IndexPositions {
		c, err := columns[at].Type.Compare(ctx, old[at], row[at])
		if err != nil || c != 0 {
			return true, err
		}
	}
	return false, nil
}
