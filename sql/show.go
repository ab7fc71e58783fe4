package sql

import (
	"fmt"
	"slices"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/analyzer"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/rowexec"
	"github.com/dolthub/go-mysql-server/sql/transform"
	"github.com/dolthub/go-mysql-server/sql/types"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/sql/compat"
	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/sql/row"
	"github.com/farmsql/farmsql/sql/store"
)

// go-mysql-server writes SHOW CREATE TABLE, but leaves out some properties of our tables. This
// file adds them, so that a dump creates the same table again.

// showCreate executes SHOW CREATE TABLE; for anything other than one of our tables it returns no
// rows.
func (b *builder) showCreate(ctx *gms.Context, n *plan.ShowCreateTable, row gms.Row) (gms.RowIter, error) {
	rt, ok := n.Child.(*plan.ResolvedTable)
	if !ok {
		return nil, nil
	}
	t, ok := gms.GetUnderlyingTable(rt.Table).(*store.Table)
	if !ok {
		return nil, nil
	}
	if t.Info.HasVirtual {
		checks, err := shownChecks(ctx, t)
		if err != nil {
			return nil, err
		}
		n = n.WithChecks(checks).(*plan.ShowCreateTable)
	}
	o := gms.EngineOverrides{SchemaFormatter: tableFormatter{gms.DefaultMySQLSchemaFormatter, t.Info}}
	rows, err := rowexec.NewBuilder(nil, o).Build(ctx, n, row)
	if err != nil || !t.Info.HasVirtual || t.Comment() == "" {
		return rows, err
	}
	// go-mysql-server wraps a table with virtual columns, and then drops its comment.
	all, err := gms.RowIterToRows(ctx, rows)
	for _, r := range all {
		r[1] = fmt.Sprintf("%s COMMENT='%s'", r[1], gms.EscapeSpecialCharactersInComment(t.Comment()))
	}
	return gms.RowsToRowIter(all...), err
}

// showTables executes SHOW TABLES and SHOW TABLE STATUS with only the tables and views that the user may see;
// go-mysql-server shows others too.
func (b *builder) showTables(ctx *gms.Context, n gms.Databaser, row gms.Row) (gms.RowIter, error) {
	seen, err := n.WithDatabase(b.e.privileges.SeenDatabase(ctx, n.Database()))
	if err != nil {
		return nil, err
	}
	return rowexec.NewBuilder(nil, gms.EngineOverrides{}).Build(ctx, seen, row)
}

// theirRows reads all rows that go-mysql-server returns for a node.
func theirRows(ctx *gms.Context, n gms.Node, row gms.Row) ([]gms.Row, error) {
	rows, err := rowexec.NewBuilder(nil, gms.EngineOverrides{}).Build(ctx, n, row)
	if err != nil {
		return nil, err
	}
	return gms.RowIterToRows(ctx, rows)
}

// showColumns executes SHOW COLUMNS, and corrects what go-mysql-server shows: a collation as a
// part of the type, the server's collation for each column, and defaults in their SQL form.
func showColumns(ctx *gms.Context, n *plan.ShowColumns, row gms.Row) (gms.RowIter, error) {
	all, err := theirRows(ctx, n, row)
	if err != nil {
		return nil, err
	}
	at := 4 // the position of the default
	if n.Full {
		at = 5
	}
	for i, c := range shownColumns(n) {
		switch text, ok := all[i][at].(string); {
		case ok && strings.EqualFold(text, "NULL"): // a string has quotes here
			all[i][at] = nil
		case ok:
			all[i][at] = defaultText(text)
		}
		collated, ok := c.Type.(gms.TypeWithCollation)
		if !ok {
			continue
		}
		all[i][1] = compat.TypeText(collated, collated.Collation())
		if n.Full && (types.IsTextOnly(c.Type) || types.IsEnum(c.Type) || types.IsSet(c.Type)) {
			all[i][2] = collated.Collation().Name()
		}
	}
	return gms.RowsToRowIter(all...), nil
}

// defaultText returns a default in the form in which MySQL shows it.
func defaultText(s string) string {
	switch {
	case len(s) > 1 && s[0] == '\'' && s[len(s)-1] == '\'':
		return strings.ReplaceAll(s[1:len(s)-1], "''", "'")
	case strings.HasPrefix(s, "((") && strings.HasSuffix(s, "))"):
		return s[1 : len(s)-1]
	}
	return s
}

// showDefinition executes SHOW CREATE of a trigger, a procedure or an event. It shows the
// collation of the database, where go-mysql-server shows the server's.
func showDefinition(ctx *gms.Context, n gms.Databaser, row gms.Row) (gms.RowIter, error) {
	node := n.(gms.Node) // every Databaser that is executed is a node
	rows, err := rowexec.NewBuilder(nil, gms.EngineOverrides{}).Build(ctx, node, row)
	if err != nil {
		return nil, err
	}
	all, err := gms.RowIterToRows(ctx, rows)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(node.Schema(ctx), func(c *gms.Column) bool { return c.Name == "Database Collation" })
	if db, ok := n.Database().(gms.CollatedDatabase); ok && at >= 0 {
		for _, r := range all {
			r[at] = db.GetCollation(ctx).Name()
		}
	}
	return gms.RowsToRowIter(all...), nil
}

// shownColumns returns the columns that SHOW COLUMNS has a row for.
func shownColumns(n *plan.ShowColumns) gms.Schema {
	var columns gms.Schema
	for _, c := range n.TargetSchema() {
		if !c.HiddenSystem || n.Extended {
			columns = append(columns, c)
		}
	}
	return columns
}

// shownChecks returns the CHECKs of a table with virtual columns. go-mysql-server does not
// find them, because it wraps such a table.
func shownChecks(ctx *gms.Context, t *store.Table) (gms.CheckConstraints, error) {
	c, err := store.NewConstrainer(ctx, t.Info, t.Info.Checks)
	if err != nil {
		return nil, err
	}
	shown := make(gms.CheckConstraints, len(t.Info.Checks))
	for i, check := range t.Info.Checks {
		e, _, err := transform.Expr(ctx, c.Expr(i), func(_ *gms.Context, e gms.Expression) (gms.Expression, transform.TreeIdentity, error) {
			f, ok := e.(*expression.GetField)
			if !ok {
				return e, transform.SameTree, nil
			}
			return expression.NewUnresolvedColumn(gms.DefaultMySQLSchemaFormatter.QuoteIdentifier(f.Name())), transform.NewTree, nil
		})
		if err != nil {
			return nil, err
		}
		shown[i] = &gms.CheckConstraint{Name: check.Name, Expr: e, Enforced: check.Enforced}
	}
	return shown, nil
}

// A tableFormatter writes the definition of one table.
type tableFormatter struct {
	gms.SchemaFormatter
	info *store.TableInfo
}

// GenerateCreateTableColumnDefinition implements gms.SchemaFormatter.
func (f tableFormatter) GenerateCreateTableColumnDefinition(c *gms.Column, value, onUpdate string, table gms.CollationID) string {
	if text, ok := compat.MemberText(c.Type, value); ok {
		value = text
	}
	if at := f.info.Column(c.Name); at >= 0 && row.IsTimespan(c.Type) && strings.HasPrefix(value, "'") {
		value = f.info.Columns[at].Default // go-mysql-server shows six digits of a fraction
	}
	shown := *c
	shown.Type = compat.Shown(c.Type, table)
	if c.Generated == nil || c.Nullable {
		return f.SchemaFormatter.GenerateCreateTableColumnDefinition(&shown, value, onUpdate, table)
	}
	// MySQL accepts NOT NULL only after the expression.
	shown.Nullable, shown.Comment = true, ""
	text := f.SchemaFormatter.GenerateCreateTableColumnDefinition(&shown, value, onUpdate, table) + " NOT NULL"
	if c.Comment != "" {
		text += fmt.Sprintf(" COMMENT '%s'", gms.EscapeSpecialCharactersInComment(c.Comment))
	}
	return text
}

// GenerateCreateTablePrimaryKeyDefinition implements gms.SchemaFormatter.
func (f tableFormatter) GenerateCreateTablePrimaryKeyDefinition(columns []string) string {
	parts := make([]string, len(columns))
	for i, p := range f.info.Primary.Parts {
		parts[i] = f.QuoteIdentifier(columns[i])
		if p.Length > 0 {
			parts[i] += fmt.Sprintf("(%d)", p.Length)
		}
	}
	return fmt.Sprintf("  PRIMARY KEY (%s)", strings.Join(parts, ",")) + using(&f.info.Primary)
}

// GenerateCreateTableIndexDefinition implements gms.SchemaFormatter.
func (f tableFormatter) GenerateCreateTableIndexDefinition(unique, spatial, fullText, vector bool, name string, columns []string, comment string) (string, bool) {
	text, ok := f.SchemaFormatter.GenerateCreateTableIndexDefinition(unique, spatial, fullText, vector, name, columns, "")
	if k := f.info.Key(name); k != nil {
		text += using(k.Index)
	}
	if comment != "" {
		text += fmt.Sprintf(" COMMENT '%s'", gms.EscapeSpecialCharactersInComment(comment))
	}
	return text, ok
}

// using returns the clause that follows the columns of an index.
func using(x *catalog.Index) string {
	if x.Access == catalog.AccessHash {
		return " USING HASH"
	}
	return ""
}

// findChecksRule is the number of the rule findChecks. It is above all of go-mysql-server's own.
const findChecksRule analyzer.RuleId = 1000

// findChecks is a rule for dropping a CHECK: it takes go-mysql-server's wrapper off a table
// with virtual columns, because CHECKs are not found beneath it.
func findChecks(ctx *gms.Context, _ *analyzer.Analyzer, n gms.Node, _ *plan.Scope, _ analyzer.RuleSelector, _ *gms.QueryFlags) (gms.Node, transform.TreeIdentity, error) {
	switch n.(type) {
	case *plan.DropCheck, *plan.DropConstraint, *plan.Block:
	default:
		return n, transform.SameTree, nil
	}
	return transform.Node(ctx, n, func(ctx *gms.Context, n gms.Node) (gms.Node, transform.TreeIdentity, error) {
		switch n.(type) {
		case *plan.DropCheck, *plan.DropConstraint:
		default:
			return n, transform.SameTree, nil
		}
		rt, ok := n.Children()[0].(*plan.ResolvedTable)
		if !ok {
			return n, transform.SameTree, nil
		}
		v, ok := rt.Table.(*plan.VirtualColumnTable)
		if !ok {
			return n, transform.SameTree, nil
		}
		bare := *rt
		bare.Table = v.Table
		n, err := n.WithChildren(ctx, &bare)
		return n, transform.NewTree, err
	})
}

// truncatable refuses to truncate anything other than a table: for a view, go-mysql-server would
// empty the table below the view.
func truncatable(ctx *gms.Context, n *plan.Truncate) error {
	name := n.Child.String()
	switch c := n.Child.(type) {
	case *plan.ResolvedTable, *plan.IndexedTableAccess, gms.TableWrapper:
		return nil
	case gms.Nameable:
		name = c.Name()
	}
	db := n.DatabaseName()
	if db == "" {
		db = ctx.GetCurrentDatabase()
	}
	return myerr.NoSuchTable.New(db, name)
}

// showDatabases executes SHOW DATABASES without the system database: tools that dump or copy
// every database would expect MySQL's tables in it, and could not restore them.
func showDatabases(ctx *gms.Context, n *plan.ShowDatabases) gms.RowIter {
	var rows []gms.Row
	for _, db := range n.Catalog.AllDatabases(ctx) {
		if !store.SameName(db.Name(), store.SystemDatabase) {
			rows = append(rows, gms.Row{db.Name()})
		}
	}
	slices.SortFunc(rows, func(a, b gms.Row) int { return strings.Compare(a[0].(string), b[0].(string)) })
	return gms.RowsToRowIter(rows...)
}
