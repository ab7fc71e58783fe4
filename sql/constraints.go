package sql

import (
	"fmt"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"
)

// go-mysql-server enforces CHECK constraints, but forgets those of a table with
// virtual columns, which it wraps. So the editor of such a table enforces them.

// A constraint is an enforced CHECK.
type constraint struct {
	name string
	at   int // where the computer puts what it says of a row
}

// A constrainer enforces the CHECKs of a table.
type constrainer struct {
	compute     *computer
	columns     int
	constraints []constraint
}

// newConstrainer takes each CHECK for one more virtual column.
func newConstrainer(ctx *gms.Context, info *tableInfo) (*constrainer, error) {
	c := &constrainer{columns: len(info.schema.Schema)}
	schema := info.schema.Schema.Copy()
	for _, check := range info.Checks {
		if !check.Enforced {
			continue
		}
		c.constraints = append(c.constraints, constraint{check.Name, len(schema)})
		schema = append(schema, &gms.Column{
			Name: fmt.Sprintf("!check!%d", len(schema)), Source: info.Name, DatabaseSource: info.DB, Type: types.Boolean,
			Nullable: true, Virtual: true, Generated: unresolved("(" + check.Expr + ")"),
		})
	}
	extended := *info
	extended.schema.Schema = schema
	var err error
	c.compute, err = newComputer(ctx, &extended)
	return c, err
}

// constrain returns an error if a row violates a CHECK that go-mysql-server has
// not looked at. NULL violates nothing.
func (e *editor) constrain(ctx *gms.Context, row gms.Row) (err error) {
	if !e.info.virtual || len(e.info.Checks) == 0 {
		return nil
	}
	if e.constraints == nil {
		if e.constraints, err = newConstrainer(ctx, e.info); err != nil {
			return err
		}
	}
	c := e.constraints
	all, err := c.compute.row(ctx, append(row.Copy(), make(gms.Row, len(c.constraints))...))
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
