package sql

import (
	"fmt"
	"slices"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/planbuilder"
	"github.com/dolthub/go-mysql-server/sql/transform"

	"github.com/farmsql/farmsql/catalog"
)

// The values of virtual columns are not stored. go-mysql-server computes them
// for the rows that it reads and inserts, but not for those that it reads for a
// foreign key or a new form of a table; an index over such a column has to have
// them every time. So where a table has one, every change computes them itself.

// hasComputedKeys reports whether any index has a column that is not stored.
func (info *tableInfo) hasComputedKeys() bool {
	for _, x := range info.Indexes {
		if computed(info.Table, x) {
			return true
		}
	}
	return false
}

// generates reports whether a table has generated columns.
func (info *tableInfo) generates() bool {
	for _, c := range info.Columns {
		if c.Generated != "" {
			return true
		}
	}
	return false
}

// computed reports whether an index has a column whose values are not stored.
func computed(tbl *catalog.Table, x catalog.Index) bool {
	for _, p := range x.Parts {
		if tbl.Columns[p.Column].Virtual {
			return true
		}
	}
	return false
}

// A computer fills in a row's generated columns, or those of them that are virtual. The nil
// computer has nothing to do.
type computer struct {
	at    []int
	exprs []gms.Expression
}

// isVirtual and isGenerated say of which columns a computer is.
func isVirtual(c *gms.Column) bool   { return c.Virtual }
func isGenerated(c *gms.Column) bool { return c.Generated != nil }

// newComputer parses the expressions of some of a table's generated columns.
func newComputer(ctx *gms.Context, info *tableInfo, is func(*gms.Column) bool) (c *computer, err error) {
	// The builder panics with what it does not understand.
	defer func() {
		if r := recover(); r != nil {
			c, err = nil, fmt.Errorf("sql: generated columns of %s: %v", info.Name, r)
		}
	}()
	b := planbuilder.NewBuilderForColumnDefaultResolution(ctx, gms.EngineOverrides{})
	schema := b.ResolveSchemaDefaults(info.DB, info.Name, info.schema.Schema.Copy())
	c = &computer{}
	for i, col := range schema {
		if !is(col) {
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
		c.at, c.exprs = append(c.at, i), append(c.exprs, e)
	}
	return c, nil
}

// row returns a row with all its values.
func (c *computer) row(ctx *gms.Context, row gms.Row) (gms.Row, error) {
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

// full returns a row with the values that the table's indexes need.
func (e *editor) full(ctx *gms.Context, row gms.Row) (gms.Row, error) {
	if !e.info.hasComputedKeys() {
		return row, nil
	}
	return e.complete(ctx, row)
}

// complete returns a row with the values of all of its columns.
func (e *editor) complete(ctx *gms.Context, row gms.Row) (gms.Row, error) {
	if e.compute == nil && slices.ContainsFunc(e.info.Columns, func(c catalog.Column) bool { return c.Virtual }) {
		var err error
		if e.compute, err = newComputer(ctx, e.info, isVirtual); err != nil {
			return nil, err
		}
	}
	return e.compute.row(ctx, row)
}
