package compat

import (
	"cmp"
	"slices"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/analyzer"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/dolthub/vitess/go/mysql"
)

// resolveCreateSelect is the name of the rule for CREATE TABLE ... SELECT.
const resolveCreateSelect = "resolveCreateSelect"

// onlyNew applies the rule for CREATE TABLE ... SELECT only if the table is to be created. With IF
// NOT EXISTS, MySQL leaves an existing table as it is. go-mysql-server inserts the rows into it,
// and panics if they have other columns.
func onlyNew(apply analyzer.RuleFunc) analyzer.RuleFunc {
	return func(ctx *gms.Context, a *analyzer.Analyzer, n gms.Node, scope *plan.Scope, sel analyzer.RuleSelector, q *gms.QueryFlags) (gms.Node, transform.TreeIdentity, error) {
		ct, ok := n.(*plan.CreateTable)
		if !ok || ct.Select() == nil {
			return apply(ctx, a, n, scope, sel, q)
		}
		isThere, err := existsAlready(ctx, ct)
		if err != nil {
			return nil, transform.SameTree, err
		}
		if !isThere {
			takeNames(ctx, ct)
			return apply(ctx, a, n, scope, sel, q)
		}
		return plan.NewCreateTable(ct.Database(), ct.Name(), true, ct.Temporary(), &plan.TableSpec{Collation: ct.Collation}), transform.NewTree, nil
	}
}

// NoteExisting adds MySQL's note if a CREATE TABLE IF NOT EXISTS finds the table. go-mysql-server adds none.
func NoteExisting(ctx *gms.Context, ct *plan.CreateTable) error {
	isThere, err := existsAlready(ctx, ct)
	if isThere {
		ctx.Session.Warn(&gms.Warning{Level: "Note", Code: mysql.ERTableExists, Message: "Table '" + ct.Name() + "' already exists"})
	}
	return err
}

// existsAlready reports whether a CREATE TABLE IF NOT EXISTS finds the table.
func existsAlready(ctx *gms.Context, ct *plan.CreateTable) (bool, error) {
	if !ct.IfNotExists() || ct.Temporary() {
		return false, nil
	}
	_, isThere, err := ct.Database().GetTableInsensitive(ctx, ct.Name())
	return isThere, err
}

// takeNames gives the columns of a CREATE TABLE ... SELECT, and of its keys, the spelling of the
// SELECT's columns: go-mysql-server treats names that differ in case as different.
func takeNames(ctx *gms.Context, ct *plan.CreateTable) {
	given := make(map[string]string)
	for _, c := range ct.Select().Schema(ctx) {
		given[strings.ToLower(c.Name)] = c.Name
	}
	for _, c := range ct.PkSchema().Schema {
		c.Name = cmp.Or(given[strings.ToLower(c.Name)], c.Name)
	}
	for _, k := range ct.Indexes() {
		for i, c := range k.Columns {
			k.Columns[i].Name = cmp.Or(given[strings.ToLower(c.Name)], c.Name)
		}
	}
}

// Filling returns the INSERT that fills the table that a CREATE TABLE ... SELECT has created.
// go-mysql-server's own INSERT assigns the SELECT's columns by their order and not by their names.
// It knows no defaults, AUTO_INCREMENT numbers and generated columns, and checks no constraints.
func Filling(ctx *gms.Context, n *plan.TableCopier, t gms.Table) (gms.Node, error) {
	create := n.Destination.(*plan.CreateTable)
	f := filling{table: t, columns: t.Schema(ctx), given: n.Source.Schema(ctx), defined: create.PkSchema().Schema}
	values := make([]gms.Expression, len(f.columns))
	for i := range f.columns {
		value, err := f.value(ctx, i)
		if err != nil {
			return nil, err
		}
		values[i] = value
	}
	checks, err := f.checks(ctx, create.Checks())
	if err != nil {
		return nil, err
	}
	insert := plan.NewInsertInto(n.Database(), plan.NewResolvedTable(t, n.Database(), nil), plan.NewProject(values, n.Source), false, nil, nil, false)
	return insert.WithDeferredDefaults(f.without).WithAutoIncrementIdx(f.firstNumbered()).WithChecks(checks), nil
}

// A filling is the INSERT that fills a new table.
type filling struct {
	table   gms.Table
	columns gms.Schema     // the table's columns
	given   gms.Schema     // the SELECT's columns
	defined gms.Schema     // the columns as the statement defines them, whose defaults can be evaluated
	without gms.FastIntSet // the columns that get no value although they must have one
}

// value returns the value of a column of the table.
func (f *filling) value(ctx *gms.Context, column int) (value gms.Expression, err error) {
	c := f.columns[column]
	d := f.defined[indexOfColumn(f.defined, c.Name)]
	value = expression.NewLiteral(nil, types.Null)
	switch source := indexOfColumn(f.given, c.Name); {
	case source >= 0 && d.Generated == nil:
		value = expression.NewGetField(source, f.given[source].Type, c.Name, f.given[source].Nullable)
	case d.Default != nil || d.Generated != nil:
		if value, err = f.placed(ctx, cmp.Or(d.Default, d.Generated)); err != nil {
			return nil, err
		}
	case !c.Nullable && !c.AutoIncrement:
		f.without.Add(column)
	}
	if c.AutoIncrement {
		return expression.NewAutoIncrement(ctx, f.table, value)
	}
	return value, nil
}

// firstNumbered returns the index of the first row that gets a generated AUTO_INCREMENT number: 0, or -1
// if the table has no such column, or the SELECT gives its values.
func (f *filling) firstNumbered() int {
	i := slices.IndexFunc(f.columns, func(c *gms.Column) bool { return c.AutoIncrement })
	if i < 0 || indexOfColumn(f.given, f.columns[i].Name) >= 0 {
		return -1
	}
	return 0
}

// checks returns the table's checks, with the names that the table has stored for them.
func (f *filling) checks(ctx *gms.Context, defined gms.CheckConstraints) (checks gms.CheckConstraints, err error) {
	var stored []gms.CheckDefinition
	if t, ok := f.table.(gms.CheckTable); ok {
		if stored, err = t.GetChecks(ctx); err != nil {
			return nil, err
		}
	}
	for i, c := range defined {
		e, err := f.placed(ctx, c.Expr)
		if err != nil {
			return nil, err
		}
		placed := &gms.CheckConstraint{Name: c.Name, Expr: e, Enforced: c.Enforced}
		if i < len(stored) {
			placed.Name = stored[i].Name
		}
		checks = append(checks, placed)
	}
	return checks, nil
}

// placed returns an expression whose columns refer to the table's rows.
func (f *filling) placed(ctx *gms.Context, e gms.Expression) (gms.Expression, error) {
	e, _, err := transform.Expr(ctx, e, func(_ *gms.Context, e gms.Expression) (gms.Expression, transform.TreeIdentity, error) {
		if c, ok := e.(*expression.GetField); ok {
			return c.WithIndex(indexOfColumn(f.columns, c.Name())), transform.NewTree, nil
		}
		return e, transform.SameTree, nil
	})
	return e, err
}

// indexOfColumn returns the position of a column; -1 if there is none of that name.
func indexOfColumn(columns gms.Schema, name string) int {
	return slices.IndexFunc(columns, func(c *gms.Column) bool { return strings.EqualFold(c.Name, name) })
}
