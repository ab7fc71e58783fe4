package plan

import (
	gms "github.com/dolthub/go-mysql-server/sql"
)

var _ gms.ExecBuilderNode = (*Given)(nil)

// Given is a node of go-mysql-server that returns given rows. The rows are set
// before each execution.
type Given struct {
	schema gms.Schema
	Rows   []gms.Row
}

// BuildRowIter implements gms.ExecBuilderNode.
func (g *Given) BuildRowIter(*gms.Context, gms.NodeExecBuilder, gms.Row) (gms.RowIter, error) {
	return gms.RowsToRowIter(g.Rows...), nil
}

// Schema implements gms.Node.
func (g *Given) Schema(*gms.Context) gms.Schema { return g.schema }

// Resolved implements gms.Node.
func (*Given) Resolved() bool { return true }

// IsReadOnly implements gms.Node.
func (*Given) IsReadOnly() bool { return true }

// String implements gms.Node.
func (*Given) String() string { return "rows" }

// Children implements gms.Node.
func (*Given) Children() []gms.Node { return nil }

// WithChildren implements gms.Node.
func (g *Given) WithChildren(_ *gms.Context, children ...gms.Node) (gms.Node, error) {
	if len(children) != 0 {
		return nil, gms.ErrInvalidChildrenNumber.New(g, len(children), 0)
	}
	return g, nil
}
