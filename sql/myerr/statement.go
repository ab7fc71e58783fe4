package myerr

import (
	"regexp"
	"strconv"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/vitess/go/mysql"
	"github.com/dolthub/vitess/go/sqltypes"
	"github.com/dolthub/vitess/go/vt/sqlparser"
)

// In is like Of, for errors whose number or text in MySQL depends on the statement: a missing
// object has another number when it is to be dropped, and the text for a missing table has the name
// of its database, by default the current one. stmt is nil if the statement could not be parsed.
func In(stmt sqlparser.Statement, database string, err error) *mysql.SQLError {
	e := Of(err)
	if e == nil {
		return nil
	}
	number, text := e.Num, e.Message
	if number == mysql.ERNoSuchTable {
		text = missingTableText(stmt, database, text)
	}
	switch n := stmt.(type) {
	case *sqlparser.Set:
		number, text = setError(n, number, text)
	case *sqlparser.Deallocate:
		text = strings.Replace(text, "given to EXECUTE", "given to DEALLOCATE PREPARE", 1)
	case *sqlparser.DDL:
		if n.Action == sqlparser.DropStr && number == mysql.ERNoSuchTable {
			number = mysql.ERBadTable
		}
	case *sqlparser.DBDDL:
		if n.Action == sqlparser.DropStr && number == mysql.ERBadDb {
			number = mysql.ERDbDropExists
		}
	case *sqlparser.AlterTable:
		if number == mysql.ERBadFieldError && dropsColumn(n) {
			number = mysql.ERCantDropFieldOrKey
		}
	}
	if number == e.Num && text == e.Message {
		return e
	}
	return refine(&mysql.SQLError{Num: number, Message: text})
}

// unknownColumn matches the engine's error for an unknown name.
var unknownColumn = regexp.MustCompile(`^column "(.*)" could not be found in any table in scope$`)

// unknownSet returns the unknown variable of a SET, which the engine calls a column; empty if the
// message is another one.
func unknownSet(n *sqlparser.Set, message string) string {
	parts := unknownColumn.FindStringSubmatch(message)
	if parts == nil {
		return ""
	}
	for _, x := range n.Exprs {
		if strings.EqualFold(x.Name.Name.String(), parts[1]) {
			return parts[1]
		}
	}
	return ""
}

// refusedValue matches the engine's error for a value that a variable cannot have.
var refusedValue = regexp.MustCompile(`(?s)^Variable '(\w+)' can't be set to the value of '(.*)'$`)

// errTruncated is the engine's error number for a bad value of a variable that is a set of words.
const errTruncated = 1265

// isOfOtherType reports whether a variable is a number and the refused value is not.
func isOfOtherType(name, value string) bool {
	v, _, ok := gms.SystemVariables.GetGlobal(name)
	if !ok {
		return false
	}
	switch v.GetType().Type() {
	case sqltypes.Int64, sqltypes.Uint64, sqltypes.Float64:
		_, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		return err != nil
	}
	return false
}

func numberAndText(e *mysql.SQLError) (number int, text string) { return e.Num, e.Message }

// setError returns the number and text of a SET's error.
func setError(n *sqlparser.Set, number int, text string) (int, string) {
	switch number {
	case mysql.ERBadFieldError:
		if name := unknownSet(n, text); name != "" {
			return numberAndText(UnknownVariable.New(name))
		}
	case errTruncated:
		if len(n.Exprs) == 1 {
			x := n.Exprs[0]
			return WrongValue.Number, "Variable '" + x.Name.Name.String() + "' can't be set to the value of " + sqlparser.String(x.Expr)
		}
	case WrongValue.Number:
		if parts := refusedValue.FindStringSubmatch(text); parts != nil && isOfOtherType(parts[1], parts[2]) {
			return numberAndText(WrongType.New(parts[1]))
		}
	}
	return number, text
}

// missingTable matches the engine's error for a missing table, with its suggestion of similar
// names.
var missingTable = regexp.MustCompile(`(?s)^table not found: (.*?)(, maybe you mean .*)?$`)

// missingTableText returns MySQL's text for a missing table, with the engine's suggestion of
// another name.
func missingTableText(ast sqlparser.Statement, current, message string) string {
	parts := missingTable.FindStringSubmatch(message)
	if parts == nil {
		return message
	}
	name := parts[1]
	if db := databaseOf(ast, name, current); db != "" {
		name = db + "." + name
	}
	if ddl, ok := ast.(*sqlparser.DDL); ok && ddl.Action == sqlparser.DropStr {
		return "Unknown table '" + name + "'"
	}
	return "Table '" + name + "' doesn't exist" + parts[2]
}

// databaseOf returns the database of a table that a statement names. It returns "" if the
// statement does not name the table (it may use it through a view), or names tables of that
// name in several databases.
func databaseOf(ast sqlparser.Statement, table, current string) (db string) {
	ambiguous := false
	_ = sqlparser.Walk(func(n sqlparser.SQLNode) (bool, error) { // the function returns no error
		switch n := n.(type) {
		case *sqlparser.ColName, *sqlparser.StarExpr, sqlparser.TableNames:
			return false, nil // here a table's name only qualifies a column, or is repeated
		case sqlparser.TableName:
			if !strings.EqualFold(n.Name.String(), table) {
				break
			}
			named := n.DbQualifier.String()
			if named == "" {
				named = current
			}
			ambiguous = ambiguous || (db != "" && !strings.EqualFold(db, named))
			db = named
		}
		return true, nil
	}, ast)
	if ambiguous {
		return ""
	}
	return db
}

func dropsColumn(a *sqlparser.AlterTable) bool {
	for _, s := range a.Statements {
		if s.ColumnAction == sqlparser.DropStr {
			return true
		}
	}
	return false
}
