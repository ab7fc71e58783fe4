package sql

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/compat"
	"github.com/farmsql/farmsql/sql/routine"
)

// go-mysql-server knows an index of an expression, KEY f ((LOWER(a))), in CREATE INDEX only. For
// CREATE TABLE and ALTER TABLE, as dumps have them, the parser is given an invented column name
// in place of the expression. The parsed statement is then split: these indexes are taken out of
// it, and are created after it.

// withKeys returns a statement that creates or alters the table first, and then creates the indexes
// of expressions. It returns other statements unchanged.
func withKeys(query string, stmt sqlparser.Statement, o sqlparser.ParserOptions) (sqlparser.Statement, error) {
	keys := compat.KeyExpressions(compat.NewTokens(query, o))
	if len(keys) == 0 {
		return stmt, nil
	}
	expression := func(columns []*sqlparser.IndexColumn) string {
		if len(columns) != 1 {
			return ""
		}
		i := slices.IndexFunc(keys, func(k compat.KeyExpression) bool { return k.Column.Text == "`"+columns[0].Column.String()+"`" })
		if i < 0 {
			return ""
		}
		return keys[i].Text
	}
	switch n := stmt.(type) {
	case *sqlparser.AlterTable:
		return alteredWithKeys(n, expression)
	case *sqlparser.DDL:
		return createdWithKeys(n, expression)
	}
	return stmt, nil
}

// defaultKeyName is the name of an index of an expression that was given none, as in MySQL;
// further ones have a number appended.
const defaultKeyName = "functional_index"

// createdWithKeys returns a statement that creates a table without the indexes of expressions,
// and then creates those.
func createdWithKeys(d *sqlparser.DDL, expression func([]*sqlparser.IndexColumn) string) (sqlparser.Statement, error) {
	if d.TableSpec == nil {
		return d, nil
	}
	made := withIndexes{first: d, table: d.Table, isNew: true}
	var rest []*sqlparser.IndexDefinition
	for _, x := range d.TableSpec.Indexes {
		text := expression(x.Columns)
		if text == "" {
			rest = append(rest, x)
		} else if err := made.add(x.Info.Unique, x.Info.Name.String(), text); err != nil {
			return nil, err
		}
	}
	d.TableSpec.Indexes = rest
	return made.injected(), nil
}

// alteredWithKeys returns a statement that makes all changes of n but indexes of expressions, and then
// creates these indexes.
func alteredWithKeys(n *sqlparser.AlterTable, expression func([]*sqlparser.IndexColumn) string) (sqlparser.Statement, error) {
	made := withIndexes{table: n.Table}
	var rest []*sqlparser.DDL
	for _, d := range n.Statements {
		text := ""
		if d.IndexSpec != nil {
			text = expression(d.IndexSpec.Columns)
		}
		if text == "" {
			rest = append(rest, d)
		} else if err := made.add(d.IndexSpec.Type == "unique", d.IndexSpec.ToName.String(), text); err != nil {
			return nil, err
		}
	}
	n.Statements = rest
	if len(rest) > 0 {
		made.first = n
	}
	return made.injected(), nil
}

// A withIndexes is a CREATE TABLE or ALTER TABLE followed by CREATE INDEX. In one statement,
// go-mysql-server would look for the columns of an expression in the table as it was before, and
// would create only one of several such indexes.
type withIndexes struct {
	first   sqlparser.Statement // nil if there are only indexes to create
	table   sqlparser.TableName
	isNew   bool
	indexes []sqlparser.Statement
	unnamed int
}

var (
	_ sqlparser.Injectable = withIndexes{}
	_ gms.ExecSourceRel    = withIndexes{}
)

// add adds an index.
func (w *withIndexes) add(isUnique bool, name, expression string) error {
	if name == "" {
		name = defaultKeyName
		if w.unnamed++; w.unnamed > 1 {
			name = fmt.Sprintf("%s_%d", name, w.unnamed)
		}
	}
	unique := ""
	if isUnique {
		unique = "UNIQUE "
	}
	text := fmt.Sprintf("CREATE %sINDEX `%s` ON %s (%s)", unique, strings.ReplaceAll(name, "`", "``"), sqlparser.String(w.table), expression)
	index, err := sqlparser.Parse(text)
	w.indexes = append(w.indexes, index)
	return err
}

func (w withIndexes) injected() sqlparser.Statement {
	if w.first != nil {
		useOurs("", w.first)
	}
	return sqlparser.InjectedStatement{Statement: w, Auth: sqlparser.AuthInformation{AuthType: sqlparser.AuthType_IGNORE}}
}

// RowIter implements gms.ExecSourceRel.
func (w withIndexes) RowIter(ctx *gms.Context, _ gms.Row) (gms.RowIter, error) {
	e := FromContext(ctx).e
	defer routine.Enter(ctx)()
	if w.first != nil {
		isThere := w.isNew && w.isThere(ctx, e)
		if _, _, err := e.routines.Run(ctx, w.first); err != nil || isThere { // with IF NOT EXISTS the table may exist
			return gms.RowsToRowIter(gms.NewRow(types.NewOkResult(0))), err
		}
	}
	for _, index := range w.indexes {
		if _, _, err := e.routines.Run(ctx, index); err != nil {
			return nil, w.takeBack(ctx, e, err)
		}
	}
	return gms.RowsToRowIter(gms.NewRow(types.NewOkResult(0))), nil
}

// isThere reports whether the table exists before the statement.
func (w withIndexes) isThere(ctx *gms.Context, e *Engine) bool {
	database := cmp.Or(w.table.DbQualifier.String(), ctx.GetCurrentDatabase())
	_, _, err := e.gms.Analyzer.Catalog.Table(ctx, database, w.table.Name.String())
	return err == nil
}

// takeBack drops a new table if its indexes cannot be created; failed is the error.
func (w withIndexes) takeBack(ctx *gms.Context, e *Engine, failed error) error {
	if !w.isNew {
		return failed
	}
	drop, err := sqlparser.Parse("DROP TABLE " + sqlparser.String(w.table))
	if err == nil {
		_, _, err = e.routines.Run(ctx, drop)
	}
	if err != nil {
		return fmt.Errorf("%w; the table is left without its indexes: %w", failed, err)
	}
	return failed
}

// WithResolvedChildren implements sqlparser.Injectable.
func (w withIndexes) WithResolvedChildren(context.Context, []any) (any, error) { return w, nil }

// Resolved implements gms.Node.
func (withIndexes) Resolved() bool { return true }

// IsReadOnly implements gms.Node.
func (withIndexes) IsReadOnly() bool { return false }

// Schema implements gms.Node.
func (withIndexes) Schema(*gms.Context) gms.Schema { return types.OkResultSchema }

// Children implements gms.Node.
func (withIndexes) Children() []gms.Node { return nil }

// WithChildren implements gms.Node.
func (w withIndexes) WithChildren(_ *gms.Context, c ...gms.Node) (gms.Node, error) {
	if len(c) != 0 {
		return nil, gms.ErrInvalidChildrenNumber.New(w, len(c), 0)
	}
	return w, nil
}

func (w withIndexes) String() string { return "CREATE INDEX ON " + w.table.Name.String() }
