package store

import (
	"fmt"
	"slices"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"

	"github.com/farmsql/farmsql/catalog"
)

// go-mysql-server enforces CHECK constraints, except on a table with virtual
// columns, which it wraps. So the editor of such a table enforces them.

// A constraint is a CHECK.
type constraint struct {
	name string
	at   int // the position of the constraint's value in a computed row
}

// A constrainer enforces the CHECKs of a table.
type constrainer struct {
	compute     *Computer
	constraints []constraint
}

// NewConstrainer returns a constrainer that computes each CHECK as if it were a further virtual
// column.
func NewConstrainer(ctx *gms.Context, info *TableInfo, checks []catalog.Check) (*constrainer, error) {
	c := &constrainer{}
	schema := info.Schema.Schema.Copy()
	for _, check := range checks {
		c.constraints = append(c.constraints, constraint{check.Name, len(schema)})
		schema = append(schema, &gms.Column{
			Name: fmt.Sprintf("!check!%d", len(schema)), Source: info.Name, DatabaseSource: info.DB, Type: types.Boolean,
			Nullable: true, Virtual: true, Generated: unresolved("(" + check.Expr + ")"),
		})
	}
	extended := *info
	extended.Schema.Schema = schema
	var err error
	c.compute, err = NewComputer(ctx, &extended, IsVirtual)
	return c, err
}

// Expr returns the expression of constraint i. The constraints' expressions are the last ones in
// compute.
func (c *constrainer) Expr(i int) gms.Expression {
	e := c.compute.exprs[len(c.compute.exprs)-len(c.constraints)+i]
	if d, ok := e.(*gms.ColumnDefaultValue); ok {
		return d.Expr
	}
	return e
}

// enforced returns the CHECKs without those that are NOT ENFORCED.
func (info *TableInfo) enforced() []catalog.Check {
	return slices.DeleteFunc(slices.Clone(info.Checks), func(c catalog.Check) bool { return !c.Enforced })
}

// constrain returns an error if a row violates a CHECK that go-mysql-server has not
// checked.
func (e *Editor) constrain(ctx *gms.Context, row gms.Row) (err error) {
	if !e.Info.HasVirtual || len(e.Info.Checks) == 0 {
		return nil
	}
	if e.constraints == nil {
		if e.constraints, err = NewConstrainer(ctx, e.Info, e.Info.enforced()); err != nil {
			return err
		}
	}
	return e.constraints.check(ctx, row)
}

// check returns an error if a row violates a CHECK. NULL is not a violation.
func (c *constrainer) check(ctx *gms.Context, row gms.Row) error {
	all, err := c.compute.Row(ctx, append(row.Copy(), make(gms.Row, len(c.constraints))...))
	if err != nil {
		return err
	}
	for _, k := range c.constraints {
		if v := all[k.at]; v != nil {
			if holds, err := gms.ConvertToBool(ctx, v); err != nil || !holds {
				if err == nil {
					err = gms.ErrCheckConstraintViolated.New(k.name)
				}
				return err
			}
		}
	}
	return nil
}

// Checks are the CHECKs of a table that are enforced. Nil has none.
type Checks struct{ c *constrainer }

// NewChecks returns the CHECKs that go-mysql-server enforces, and not the Editor; nil if there are none.
func NewChecks(ctx *gms.Context, info *TableInfo) (*Checks, error) {
	enforced := info.enforced()
	if info.HasVirtual || len(enforced) == 0 {
		return nil, nil
	}
	c, err := NewConstrainer(ctx, info, enforced)
	if err != nil {
		return nil, err
	}
	return &Checks{c}, nil
}

// Check returns an error if a row violates a CHECK.
func (c *Checks) Check(ctx *gms.Context, row gms.Row) error {
	if c == nil {
		return nil
	}
	return c.c.check(ctx, row)
}
