package trigger

import (
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/plan"

	"github.com/farmsql/farmsql/sql/store"
)

// go-mysql-server computes generated columns before BEFORE triggers run, which may change the
// row. This file computes the generated columns again, after the triggers.

// regenerated computes the generated columns of its child's rows again.
type regenerated struct {
	plan.UnaryNode
	all []regenerator
}

var (
	_ gms.Node            = (*regenerated)(nil)
	_ gms.ExecBuilderNode = (*regenerated)(nil)
)

// A regenerator computes the generated columns of one table, within wider rows: at are the
// positions of the table's columns, counted from the end of the row.
type regenerator struct {
	info    *store.TableInfo
	at      []int
	compute *store.Computer
}

// regenerators returns a list with the regenerator of a table; it is empty if the table has no
// generated columns. Rows end with the given columns, which are the table's.
func regenerators(columns gms.Schema, table gms.Node) []regenerator {
	info := infoOf(table)
	if info == nil || !info.Generates() {
		return nil
	}
	r := regenerator{info: info}
	for i := range columns {
		r.at = append(r.at, len(columns)-i)
	}
	if len(r.at) != len(r.info.Schema.Schema) {
		return nil
	}
	return []regenerator{r}
}

// infoOf returns what is known of the first table within a node, nil if it is not one of ours.
func infoOf(n gms.Node) *store.TableInfo {
	resolved := resolvedIn(n)
	if resolved == nil {
		return nil
	}
	ours, ok := gms.GetUnderlyingTable(resolved.Table).(*store.Table)
	if !ok {
		return nil
	}
	return ours.Info
}

// regenerateInserted computes the generated columns of an INSERT's rows again after its
// BEFORE triggers.
func regenerateInserted(ctx *gms.Context, n *plan.InsertInto) *plan.InsertInto {
	if _, ok := n.Source.(*plan.TriggerExecutor); !ok {
		return n
	}
	all := regenerators(n.Destination.Schema(ctx), n.Destination)
	if len(all) == 0 {
		return n
	}
	return n.WithSource(&regenerated{plan.UnaryNode{Child: n.Source}, all})
}

// String implements gms.Node.
func (r *regenerated) String() string { return r.Child.String() }

// Schema implements gms.Node.
func (r *regenerated) Schema(ctx *gms.Context) gms.Schema { return r.Child.Schema(ctx) }

// IsReadOnly implements gms.Node.
func (r *regenerated) IsReadOnly() bool { return r.Child.IsReadOnly() }

// WithChildren implements gms.Node.
func (r *regenerated) WithChildren(_ *gms.Context, children ...gms.Node) (gms.Node, error) {
	if len(children) != 1 {
		return nil, gms.ErrInvalidChildrenNumber.New(r, len(children), 1)
	}
	return &regenerated{plan.UnaryNode{Child: children[0]}, r.all}, nil
}

// BuildRowIter implements gms.ExecBuilderNode.
func (r *regenerated) BuildRowIter(ctx *gms.Context, b gms.NodeExecBuilder, row gms.Row) (gms.RowIter, error) {
	all, err := ready(ctx, r.all)
	if err != nil {
		return nil, err
	}
	rows, err := b.Build(ctx, r.Child, row)
	if err != nil {
		return nil, err
	}
	return &regeneratedIter{rows, all}, nil
}

// ready makes the computers of regenerators, before the first row.
func ready(ctx *gms.Context, all []regenerator) (out []regenerator, err error) {
	for _, r := range all {
		if r.compute, err = store.NewComputer(ctx, r.info, store.IsGenerated); err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

type regeneratedIter struct {
	gms.RowIter
	all []regenerator
}

// Next implements gms.RowIter.
func (i *regeneratedIter) Next(ctx *gms.Context) (gms.Row, error) {
	row, err := i.RowIter.Next(ctx)
	if err != nil {
		return row, err
	}
	return regenerate(ctx, i.all, row)
}

// regenerate returns the row with its generated columns computed anew from the other columns.
func regenerate(ctx *gms.Context, all []regenerator, row gms.Row) (gms.Row, error) {
	if len(all) == 0 {
		return row, nil
	}
	row = row.Copy()
	for _, r := range all {
		own := make(gms.Row, len(r.at))
		for i, at := range r.at {
			own[i] = row[len(row)-at]
		}
		own, err := r.compute.Row(ctx, own)
		if err != nil {
			return nil, err
		}
		for i, at := range r.at {
			row[len(row)-at] = own[i]
		}
	}
	return row, nil
}
