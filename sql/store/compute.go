package store

import (
	"fmt"
	"slices"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/planbuilder"
	"github.com/dolthub/go-mysql-server/sql/transform"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/sql/compat"
)

// The values of virtual columns are not stored. go-mysql-server computes them for rows that a
// statement reads and inserts, but not for rows that it reads for a foreign key or to rewrite a
// table. An index with such a column always needs the column's value. So the editor of a table
// with such an index computes these values for every change.

// HasComputedKeys reports whether any index has a column that is not stored.
func (info *TableInfo) HasComputedKeys() bool {
	for _, x := range info.Indexes {
		if computed(info.Table, x) {
			return true
		}
	}
	return false
}

// Generates reports whether a table has generated columns.
func (info *TableInfo) Generates() bool {
	for _, c := range info.Columns {
		if c.Generated != "" {
			return true
		}
	}
	return false
}

// computed reports whether an index x of tbl has a column whose values are not stored.
func computed(tbl *catalog.Table, x catalog.Index) bool {
	for _, p := range x.Parts {
		if tbl.Columns[p.Column].Virtual {
			return true
		}
	}
	return false
}

// A Computer fills in a row's generated columns, or those of them that are virtual. The nil
// Computer has nothing to do.
type Computer struct {
	at    []int // the positions of the columns
	exprs []gms.Expression
}

// IsVirtual reports whether a column is generated and not stored.
func IsVirtual(c *gms.Column) bool { return c.Virtual }

// IsGenerated reports whether a column is generated, stored or not.
func IsGenerated(c *gms.Column) bool { return c.Generated != nil }

// NewComputer returns a Computer for the generated columns c for which includes(c) returns true. It
// parses the expressions of those columns.
func NewComputer(ctx *gms.Context, info *TableInfo, includes func(*gms.Column) bool) (c *Computer, err error) {
	// The builder panics if it cannot parse an expression.
	defer func() {
		if r := recover(); r != nil {
			c, err = nil, fmt.Errorf("sql: generated columns of %s: %v", info.Name, r)
		}
	}()
	b := planbuilder.NewBuilderForColumnDefaultResolution(ctx, gms.EngineOverrides{})
	schema := b.ResolveSchemaDefaults(info.DB, info.Name, info.Schema.Schema.Copy())
	c = &Computer{}
	for i, col := range schema {
		if !includes(col) {
			continue
		}
		e, _, err := transform.Expr(ctx, col.Generated, func(_ *gms.Context, e gms.Expression) (gms.Expression, transform.TreeIdentity, error) {
			f, ok := e.(*expression.GetField)
			if !ok {
				return e, transform.SameTree, nil
			}
			return f.WithIndex(schema.IndexOfColName(f.Name())), transform.NewTree, nil
		})
		if err != nil {
			return nil, err
		}
		if e, _, err = transform.Expr(ctx, e, compat.BoundedTexts); err != nil {
			return nil, err
		}
		c.at, c.exprs = append(c.at, i), append(c.exprs, e)
	}
	return c, nil
}

// Row returns a copy of a row in which c's columns are filled in.
func (c *Computer) Row(ctx *gms.Context, row gms.Row) (gms.Row, error) {
	if c == nil {
		return row, nil
	}
	row = row.Copy()
	for i, at := range c.at {
		v, err := c.exprs[i].Eval(ctx, row)
		if err != nil {
			return nil, err
		}
		row[at] = v
	}
	return row, nil
}

// withKeyColumns returns a row with the values of the virtual columns that the table's indexes
// need.
func (e *Editor) withKeyColumns(ctx *gms.Context, row gms.Row) (gms.Row, error) {
	if !e.Info.HasComputedKeys() {
		return row, nil
	}
	return e.complete(ctx, row)
}

// complete returns a row with all of its virtual columns.
func (e *Editor) complete(ctx *gms.Context, row gms.Row) (gms.Row, error) {
	if e.compute == nil && slices.ContainsFunc(e.Info.Columns, func(c catalog.Column) bool { return c.Virtual }) {
		var err error
		if e.compute, err = NewComputer(ctx, e.Info, IsVirtual); err != nil {
			return nil, err
		}
	}
	return e.compute.Row(ctx, row)
}
