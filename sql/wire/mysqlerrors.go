package wire

import (
	"regexp"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/planbuilder"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/dolthub/vitess/go/mysql"
	"github.com/dolthub/vitess/go/vt/sqlparser"
	"gopkg.in/src-d/go-errors.v1"

	"github.com/farmsql/farmsql/sql"
)

// go-mysql-server sends most errors as 1105, and most of the others without
// their SQLSTATE. Programs decide by both, so the two tables below put back
// what MySQL 8 says. By the time an error arrives here only its text is left;
// kinds are recognised by the constant parts of their messages.

// A numbered says which MySQL error a kind of engine error is.
type numbered struct {
	kind   *errors.Kind
	number int
}

var numberedKinds = []numbered{
	{gms.ErrTableAlreadyExists, 1050},
	{gms.ErrExistingView, 1050},
	{gms.ErrUnknownTable, 1051},
	{gms.ErrViewDoesNotExist, 1051},
	{gms.ErrTableNotFound, 1146},
	{gms.ErrInvalidRefInView, 1356},
	{gms.ErrDatabaseNotFound, 1049},
	{gms.ErrDatabaseExists, 1007},
	{gms.ErrNoDatabaseSelected, 1046},
	{gms.ErrTableColumnNotFound, 1054},
	{gms.ErrColumnNotFound, 1054},
	{gms.ErrUnknownColumn, 1054},
	{gms.ErrMisusedAlias, 1054},
	{gms.ErrAmbiguousColumnName, 1052},
	{gms.ErrAmbiguousColumnOrAliasName, 1052},
	{gms.ErrAmbiguousColumnInOrderBy, 1052},
	{gms.ErrDuplicateKey, 1061},
	{gms.ErrColumnExists, 1060},
	{gms.ErrDuplicateColumn, 1060},
	{gms.ErrDuplicateAliasOrTable, 1066},
	{gms.ErrInvalidColumnDefaultValue, 1067},
	{gms.ErrIncompatibleDefaultType, 1067},
	{gms.ErrMultiplePrimaryKeysDefined, 1068},
	{gms.ErrKeyColumnDoesNotExist, 1072},
	{gms.ErrUnknownIndexColumn, 1072},
	{gms.ErrInvalidAutoIncCols, 1075},
	{plan.ErrIndexNotFound, 1091},
	{gms.ErrCantDropFieldOrKey, 1091},
	{gms.ErrColValCountMismatch, 1136},
	{gms.ErrColumnCountMismatch, 1353},
	{gms.ErrInsertIntoMismatchValueCount, 1136},
	{gms.ErrColumnSpecifiedTwice, 1110},
	{gms.ErrUnknownSystemVariable, 1193},
	{gms.ErrSystemVariableReadOnly, 1238},
	{gms.ErrInvalidSystemVariableValue, 1231},
	{gms.ErrUnknownPreparedStatement, 1243},
	{gms.ErrColumnNumberDoesNotMatch, 1222},
	{planbuilder.ErrUnionSchemasDifferentLength, 1222},
	{gms.ErrInvalidOperandColumns, 1241},
	{gms.ErrExpectedSingleRow, 1242},
	{gms.ErrMoreThanOneRow, 1172},
	{gms.ErrFunctionNotFound, 1305},
	{gms.ErrStoredProcedureDoesNotExist, 1305},
	{gms.ErrStoredProcedureAlreadyExists, 1304},
	{gms.ErrSavepointDoesNotExist, 1305},
	{gms.ErrTriggerDoesNotExist, 1360},
	{gms.ErrInvalidArgumentNumber, 1582},
	{gms.ErrInsertIntoNonNullableDefaultNullColumn, 1364},
	{gms.ErrInsertIntoNonNullableProvidedNull, 1048},
	{types.ErrLengthBeyondLimit, 1406},
	{types.ErrDataTruncatedForColumn, 1265},
	{types.ErrDataTruncatedForColumnAtRow, 1265},
	{types.ErrConvertingToEnum, 1265},
	{gms.ErrInvalidSetValue, 1265},
	{types.ErrConvertingToTime, 1292},
	{types.ErrConvertingToTimeOutOfRange, 1292},
	{types.ErrConvertingToTimeType, 1292},
	{types.ErrConvertingToYear, 1264},
	{types.ErrLengthTooLarge, 1074},
	{gms.ErrTruncatedIncorrect, 1292},
	{types.ErrBadCharsetString, 1366},
	{types.ErrConvertToDecimalLimit, 1264},
	{gms.ErrValueOutOfRange, 1264},
	{expression.ErrIntDivDataOutOfRange, 1690},
	{plan.ErrUpdateNotSupported, errNotUpdatable},
	{plan.ErrDeleteFromNotSupported, errNotUpdatable},
	{gms.ErrForeignKeyColumnTypeMismatch, 3780},
	{gms.ErrForeignKeyDropTable, 3730},
	{gms.ErrTruncateReferencedFromForeignKey, 1701},
	{gms.ErrForeignKeyDuplicateName, 1826},
	{gms.ErrForeignKeyMissingReferenceIndex, 1822},
	{gms.ErrForeignKeyDropIndex, 1553},
	{gms.ErrCheckConstraintViolated, 3819},
	{gms.ErrUnknownConstraint, 3940},
	{gms.ErrPrivilegeCheckFailed, 1142},
	{gms.ErrTableAccessDeniedForUser, 1142},
	{gms.ErrDatabaseAccessDeniedForUser, 1044},
	{gms.ErrUserCreationFailure, 1396},
	{gms.ErrUserAlterFailure, 1396},
	{gms.ErrUserDeletionFailure, 1396},
	{gms.ErrGrantUserDoesNotExist, 1410},
	{gms.ErrShowGrantsUserDoesNotExist, 1141},
	{gms.ErrCollationUnknown, 1273},
	{gms.ErrCharSetUnknown, 1115},
	{gms.ErrInvalidJson, 3140},
	{gms.ErrGeneratedColumnValue, 3105},
	{gms.ErrUnsupportedFeature, 1235},
	{gms.ErrUnsupportedSyntax, 1235},
}

// texts are MySQL's for kinds of errors that say as much, with the parts that go
// in their places.
var texts = []struct {
	pattern *regexp.Regexp
	text    string
}{
	{regexp.MustCompile(`(?s)^duplicate (?:primary|unique) key given: (Duplicate entry .*)$`), "$1"},
	{partsPattern(gms.ErrInsertIntoNonNullableProvidedNull), "Column '$1' cannot be null"},
	{partsPattern(types.ErrLengthBeyondLimit), "Data too long for column '$2'"},
	{regexp.MustCompile(`^Check constraint "(.*)" violated$`), "Check constraint '$1' is violated."},
	{partsPattern(gms.ErrTableAlreadyExists), "Table '$1' already exists"},
	{partsPattern(gms.ErrDatabaseNotFound), "Unknown database '$1'"},
	{partsPattern(gms.ErrDatabaseExists), "Can't create database '$1'; database exists"},
	{regexp.MustCompile(`^Column "(.*)" already exists$`), "Duplicate column name '$1'"},
	{partsPattern(gms.ErrInsertIntoMismatchValueCount), "Column count doesn't match value count at row 1"},
}

// textOf returns MySQL's text for an engine's.
func textOf(message string) string {
	for _, t := range texts {
		if parts := t.pattern.FindStringSubmatchIndex(message); parts != nil {
			return string(t.pattern.ExpandString(nil, t.text, message, parts))
		}
	}
	return message
}

const (
	// errNotInGroupBy is the number of an error that the middle of its text tells.
	errNotInGroupBy = 1055
	// errNotUpdatable is that of a view, which cannot be changed.
	errNotUpdatable = 1288
	// errUnknownVariable is that of a SET of a variable that there is not.
	errUnknownVariable = 1193
	// errWrongValue and errWrongType are those of values that a variable cannot have, and
	// errTruncated is the engine's.
	errWrongValue = 1231
	errWrongType  = 1232
	errTruncated  = 1265
)

// Numbers of errors that are not kinds of the engine, by how their text begins.
var numberedTexts = []struct {
	prefix string
	number int
}{
	{"syntax error at position", 1064},
	{"expected insert destination to be resolved", 1471}, // a view, as below
	{"expected resolved table: ", 1347},
	{"column ordinal out of range", 1054},
	{"failed to resolve aggregate column argument", 1111},
	{"Too big precision", 1426},
	{"Unknown or incorrect time zone", 1298},
}

// states holds the SQLSTATE of every number that is not HY000 in MySQL 8.
var states = map[int]string{
	1022: "23000", 1040: "08004", 1044: "42000", 1045: "28000", 1046: "3D000", 1048: "23000",
	1049: "42000", 1050: "42S01", 1051: "42S02", 1052: "23000", 1054: "42S22", 1055: "42000",
	1060: "42S21", 1061: "42000", 1062: "23000", 1063: "42000", 1064: "42000", 1065: "42000",
	1066: "42000", 1067: "42000", 1068: "42000", 1069: "42000", 1071: "42000", 1072: "42000",
	1073: "42000", 1074: "42000", 1075: "42000", 1089: "HY000", 1091: "42000", 1101: "42000",
	1102: "42000", 1103: "42000", 1110: "42000", 1115: "42000", 1136: "21S01", 1140: "42000",
	1141: "42000", 1142: "42000", 1146: "42S02", 1153: "08S01", 1166: "42000", 1170: "42000",
	1172: "42000", 1176: "42000", 1213: "40001", 1217: "23000", 1222: "21000", 1227: "42000",
	1231: "42000", 1232: "42000", 1235: "42000", 1239: "42000", 1241: "21000", 1242: "21000", 1264: "22003",
	1265: "01000", 1280: "42000", 1292: "22007", 1304: "42000", 1305: "42000", 1317: "70100",
	1365: "22012", 1370: "42000", 1391: "HY000", 1403: "42000", 1406: "22001", 1410: "42000", 1426: "42000",
	1451: "23000", 1452: "23000", 1461: "42000", 1582: "42000", 1586: "23000", 1690: "22003",
	1701: "42000", 1792: "25006", 1822: "HY000", 3140: "22032", 3141: "22032",
}

// matchers recognise the kinds above by text, in the order of the table.
var matchers = func() []*regexp.Regexp {
	ms := make([]*regexp.Regexp, len(numberedKinds))
	for i, k := range numberedKinds {
		ms[i] = messagePattern(k.kind)
	}
	return ms
}()

// badTime matches the engine's complaint about a date or time. MySQL has a
// number for these that is not the one for other bad values.
var badTime = regexp.MustCompile(`is not a valid value for '(date|time|year)`)

var verb = regexp.MustCompile(`%[-+# 0]*[0-9.]*[a-zA-Z]`)

func messagePattern(k *errors.Kind) *regexp.Regexp { return pattern(k, `.*`) }

// partsPattern captures what stands in the places of the verbs.
func partsPattern(k *errors.Kind) *regexp.Regexp { return pattern(k, `(.*)`) }

func pattern(k *errors.Kind, place string) *regexp.Regexp {
	parts := verb.Split(k.Message, -1)
	for i, p := range parts {
		parts[i] = regexp.QuoteMeta(p)
	}
	return regexp.MustCompile(`(?s)^` + strings.Join(parts, place) + `$`)
}

// asMySQL gives an error the number and SQLSTATE that MySQL has for it.
func asMySQL(e *mysql.SQLError) *mysql.SQLError {
	if said := sql.Restored(e.Message); said != nil {
		e = said
	}
	number := e.Num
	switch {
	case number == mysql.ERUnknownError:
		number = numberOf(e.Message)
	case number == mysql.ERTruncatedWrongValueForField && badTime.MatchString(e.Message):
		number = mysql.ERTruncatedWrongValue
	}
	text := sql.WithoutPackage(textOf(e.Message))
	if number == mysql.ERLockDeadlock {
		text = sql.DeadlockText // the engine adds what it was about: objects, by their addresses
	}
	state, known := states[number]
	if !known {
		state = e.State
		if state == "" {
			state = stateGeneral
		}
	}
	if number == e.Num && state == e.State && text == e.Message {
		return e
	}
	return &mysql.SQLError{Num: number, State: state, Message: text, Query: e.Query}
}

// clientErrorOf is clientError for errors whose number or text in MySQL depends on the
// statement: not to find something is another thing when it is to be dropped, and a
// table that is not there has the name of its database, which is the current one where
// the statement names none.
func clientErrorOf(st statement, current string, err error) error {
	sqlErr, ok := clientError(err).(*mysql.SQLError)
	if !ok {
		return err
	}
	ast := st.ast
	if ast == nil { // it has been prepared or compiled
		ast, _ = sqlparser.Parse(st.text) // what cannot be parsed says so itself
	}
	number, text := sqlErr.Num, sqlErr.Message
	if number == mysql.ERNoSuchTable {
		text = missingTableText(ast, current, text)
	}
	switch n := ast.(type) {
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
	if number == sqlErr.Num && text == sqlErr.Message {
		return sqlErr
	}
	return asMySQL(&mysql.SQLError{Num: number, State: "", Message: text})
}

// unknownColumn is the engine's text for a name that it knows nothing of.
var unknownColumn = regexp.MustCompile(`^column "(.*)" could not be found in any table in scope$`)

// unknownSet is what a SET sets that there is not, for the engine a column; nothing if it says
// something else.
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

// refusedValue is the engine's text for a value that a variable cannot have.
var refusedValue = regexp.MustCompile(`(?s)^Variable '(\w+)' can't be set to the value of '(.*)'$`)

// setError is the number and text of a SET's error.
func setError(n *sqlparser.Set, number int, text string) (int, string) {
	switch number {
	case mysql.ERBadFieldError:
		if name := unknownSet(n, text); name != "" {
			return errUnknownVariable, "Unknown system variable '" + name + "'"
		}
	case errTruncated: // of a set of words
		if len(n.Exprs) == 1 {
			x := n.Exprs[0]
			return errWrongValue, "Variable '" + x.Name.Name.String() + "' can't be set to the value of " + sqlparser.String(x.Expr)
		}
	case errWrongValue:
		if parts := refusedValue.FindStringSubmatch(text); parts != nil && sql.OfOtherType(parts[1], parts[2]) {
			return errWrongType, "Incorrect argument type to variable '" + parts[1] + "'"
		}
	}
	return number, text
}

// missingTable is the engine's text, with names that are like it where it knows some.
var missingTable = regexp.MustCompile(`(?s)^table not found: (.*?)(, maybe you mean .*)?$`)

// missingTableText is MySQL's text for a table that is not there, with the engine's guess
// at what was meant.
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

// databaseOf returns the database of a table that a statement reads or changes, or
// nothing if the statement does not say that it does, as through a view, or names tables
// of that name in several databases.
func databaseOf(ast sqlparser.Statement, table, current string) (db string) {
	ambiguous := false
	_ = sqlparser.Walk(func(n sqlparser.SQLNode) (bool, error) { // the function returns no error
		switch n := n.(type) {
		case *sqlparser.ColName, *sqlparser.StarExpr, sqlparser.TableNames:
			return false, nil // of what a table is called, which is said elsewhere
		case sqlparser.TableName:
			if !strings.EqualFold(n.Name.String(), table) {
				break
			}
			of := n.DbQualifier.String()
			if of == "" {
				of = current
			}
			ambiguous = ambiguous || db != "" && !strings.EqualFold(db, of)
			db = of
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

func numberOf(message string) int {
	if strings.Contains(message, "sql_mode=only_full_group_by") {
		return errNotInGroupBy
	}
	for _, t := range numberedTexts {
		if strings.HasPrefix(message, t.prefix) {
			return t.number
		}
	}
	for i, m := range matchers {
		if m.MatchString(message) {
			return numberedKinds[i].number
		}
	}
	return mysql.ERUnknownError
}
