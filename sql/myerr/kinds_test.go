package myerr

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/vitess/go/mysql"
)

// kinds are all errors that this project makes, as a client sees them.
var kinds = []struct {
	name   string
	err    error
	number int
	state  string
	text   string
}{
	{"Deadlock", Deadlock.New(), 1213, "40001", "Deadlock found when trying to get lock; try restarting transaction"},
	{"LockWaitTimeout", LockWaitTimeout.New(), 1205, "HY000", "Lock wait timeout exceeded; try restarting transaction"},
	{"ReadOnly", ReadOnly.New(), 1792, "25006", "Cannot execute statement in a READ ONLY transaction."},
	{"TableChanged", TableChanged.New(), 1412, "HY000", "Table definition has changed, please retry transaction"},
	{"AutoIncrement", AutoIncrement.New(), 1467, "HY000", "Failed to read auto-increment value from storage engine"},
	{"KeyTooLong", KeyTooLong.New(), 1071, "42000", "Specified key was too long; max key length is 3072 bytes"},
	{"QueryInterrupted", QueryInterrupted.New(), 1317, "70100", "Query execution was interrupted"},
	{"QueryTimeout", QueryTimeout.New(), 3024, "HY000", "Query execution was interrupted, maximum statement execution time exceeded"},
	{"InCommit", InCommit.New("a"), 1180, "HY000", "a"},
	{"TooLarge", TooLarge.New("a"), 1197, "HY000", "a"},
	{"RecordFull", RecordFull.New("a"), 1114, "HY000", "a"},
	{"LogFull", LogFull.New("a"), 1205, "HY000", "a"},
	{"RowTooBig", RowTooBig.New("a"), 1105, "HY000", "a"},
	{"Corrupt", Corrupt.New("a"), 1815, "HY000", "a"},
	{"Unavailable", Unavailable.New("a"), 1047, "08S01", "a"},
	{"Shutdown", Shutdown.New(), 1053, "08S01", "Server shutdown in progress"},
	{"Evicted", Evicted.New(), 1053, "08S01", "Server shutdown in progress: this machine has no part in the cluster any more, connect to another one"},
	{"Internal", Internal.New("a"), 1105, "HY000", "internal error: a"},
	{"StatementMemory", StatementMemory.New(7), 3170, "HY000", "Memory capacity of 7 bytes for 'statement' exceeded: its rows, those that its transaction has read and the session's variables need more; read fewer rows, or raise --statement-memory (Config.StatementMemory)"},
	{"ServerMemory", ServerMemory.New(7), 3170, "HY000", "Memory capacity of 7 bytes for 'all statements' exceeded: others need it at present; try again, read fewer rows, or give the server more memory (GOMEMLIMIT)"},
	{"ResultMemory", ResultMemory.New(7), 3170, "HY000", "Memory capacity of 7 bytes for 'result_buffer' exceeded: a statement's rows are held until its transaction is validated; return fewer rows (LIMIT) or raise --result-buffer (Config.ResultBuffer)"},
	{"TooManyConnections", TooManyConnections.New(), 1040, "08004", "Too many connections"},
	{"BadHandshake", BadHandshake.New(), 1043, "08S01", "Bad handshake: compression is not offered; connect without it"},
	{"InsecureTransport", InsecureTransport.New(), 3159, "HY000", "Connections using insecure transport are prohibited: this server requires TLS (--require-tls)"},
	{"PacketTooLarge", PacketTooLarge.New(), 1153, "08S01", "Got a packet bigger than 'max_allowed_packet' bytes"},
	{"WrongArguments", WrongArguments.New("a"), 1210, "HY000", "Incorrect arguments to a"},
	{"ResultTruncated", ResultTruncated.New("a", 8), 1301, "HY000", "Result of a() was larger than max_allowed_packet (8) - truncated"},
	{"EmptyQuery", EmptyQuery.New(), 1065, "42000", "Query was empty"},
	{"TooManyParameters", TooManyParameters.New(7, 8), 1390, "HY000", "Prepared statement contains too many placeholders: 7, and 8 are possible"},
	{"NotPreparable", NotPreparable.New(), 1295, "HY000", "This command is not supported in the prepared statement protocol yet"},
	{"SeveralPrepared", SeveralPrepared.New(7), 1064, "42000", "syntax error at position 7: more than one statement cannot be prepared"},
	{"NoSuchThread", NoSuchThread.New(7), 1094, "HY000", "Unknown thread id: 7"},
	{"NotOwner", NotOwner.New(7), 1095, "HY000", "You are not owner of thread 7"},
	{"NoShutdown", NoShutdown.New(), 1235, "42000", "This server is part of a program that has not said how it ends (Shutdown): end the program"},
	{"AccessDenied", AccessDenied.New("a"), 1227, "42000", "Access denied; you need (at least one of) the a privilege(s) for this operation"},
	{"NoSuchDefiner", NoSuchDefiner.New("a", "b"), 1449, "HY000", "The user specified as a definer ('a'@'b') does not exist"},
	{"RenameUserFailed", RenameUserFailed.New("a"), 1396, "HY000", "Operation RENAME USER failed for a"},
	{"OwnAccount", OwnAccount.New("a", "b"), 1396, "HY000", "Operation failed for 'a'@'b': this server has the account for itself"},
	{"OptionPrevents", OptionPrevents.New("a"), 1290, "HY000", "The MySQL server is running with the a option so it cannot execute this statement"},
	{"SessionVariable", SessionVariable.New("a"), 1228, "HY000", "Variable 'a' is a SESSION variable and can't be used with SET GLOBAL"},
	{"GlobalVariable", GlobalVariable.New("a"), 1229, "HY000", "Variable 'a' is a GLOBAL variable and should be set with SET GLOBAL"},
	{"UnknownVariable", UnknownVariable.New("a"), 1193, "HY000", "Unknown system variable 'a'"},
	{"WrongValue", WrongValue.New("a", "b"), 1231, "42000", "Variable 'a' can't be set to the value of 'b'"},
	{"WrongType", WrongType.New("a"), 1232, "42000", "Incorrect argument type to variable 'a'"},
	{"WrongEscapes", WrongEscapes.New("a"), 1231, "42000", "Variable 'sql_mode' can't be set to the value of 'a': farmsql reads a backslash in a string as an escape, whatever sql_mode is"},
	{"FixedVariable", FixedVariable.New("a", "b", "c", "d"), 1231, "42000", "Variable 'a' can't be set to the value of 'b'; it is 'c': d"},
	{"NoSuchTable", NoSuchTable.New("a", "b"), 1146, "42S02", "Table 'a.b' doesn't exist"},
	{"UnknownTarget", UnknownTarget.New("a"), 1109, "42S02", "Unknown table 'a' in MULTI DELETE"},
	{"TooManyTables", TooManyTables.New(61), 1116, "HY000", "Too many tables; a join can have 61 at most"},
	{"BigPrecision", BigPrecision.New("7", "a", 6), 1426, "42000", "Too big precision 7 specified for 'a'. Maximum is 6."},
	{"UnknownCharset", UnknownCharset.New("a"), 1115, "42000", "Unknown character set: a"},
	{"MixedCollations", MixedCollations.New("a", "b", "c", "d", "="), 1267, "HY000", "Illegal mix of collations (a,b) and (c,d) for operation '='"},
	{"CollationOfOther", CollationOfOther.New("a", "b"), 1253, "42000", "COLLATION 'a' is not valid for CHARACTER SET 'b'"},
	{"SeveralPrimaryKeys", SeveralPrimaryKeys.New(), 1068, "42000", "Multiple primary key defined"},
	{"UnknownColumn", UnknownColumn.New("a"), 1054, "42S22", "Unknown column 'a' in 'field list'"},
	{"AmbiguousColumn", AmbiguousColumn.New("a"), 1052, "23000", "Column 'a' in field list is ambiguous"},
	{"ValueCount", ValueCount.New(), 1136, "21S01", "Column count doesn't match value count at row 1"},
	{"AggregateOrdersUnion", AggregateOrdersUnion.New(1), 3028, "HY000", "Expression #1 of ORDER BY contains aggregate function and applies to the result of a UNION, EXCEPT or INTERSECT"},
	{"ColumnCount", ColumnCount.New(), 1222, "21000", "The used SELECT statements have a different number of columns"},
	{"TooManyRows", TooManyRows.New(), 1172, "42000", "Result consisted of more than one row"},
	{"InvalidGroupFunction", InvalidGroupFunction.New(), 1111, "HY000", "Invalid use of group function"},
	{"MisplacedDefault", MisplacedDefault.New(), 1064, "42000", "DEFAULT is possible as the value of a column in VALUES and SET only"},
	{"TriggerExists", TriggerExists.New(), 1359, "HY000", "Trigger already exists"},
	{"TriggerMoves", TriggerMoves.New(), 1435, "HY000", "Trigger in wrong schema"},
	{"ViewMoves", ViewMoves.New("a", "b"), 1450, "HY000", "Changing schema from 'a' to 'b' is not allowed"},
	{"CheckExists", CheckExists.New("a"), 3822, "HY000", "Duplicate check constraint name 'a'."},
	{"NotPartitioned", NotPartitioned.New(), 1505, "HY000", "Partition management on a not partitioned table is not possible"},
	{"PartitionClause", PartitionClause.New(), 1747, "HY000", "PARTITION () clause on non partitioned table"},
	{"UnknownFormat", UnknownFormat.New("a"), 1791, "HY000", "Unknown EXPLAIN format name: 'a'; there are TRADITIONAL, JSON and TREE"},
	{"StackOverrun", StackOverrun.New("a", 8), 1436, "HY000", "The statement has a: at most 8 are possible. Make it several statements, or use a list or a table"},
	{"ViewRecursion", ViewRecursion.New(), 1462, "HY000", "A view reads itself, or the statement reads too many views"},
	{"WindowNamedTwice", WindowNamedTwice.New("a"), 3591, "HY000", "Window 'a' is defined twice."},
	{"WindowMisplaced", WindowMisplaced.New("a"), 3593, "HY000", "You cannot use the window function 'a' in this context."},
	{"NoSuchWindow", NoSuchWindow.New("a"), 3579, "HY000", "Window name 'a' is not defined."},
	{"CircularWindows", CircularWindows.New(), 3580, "HY000", "There is a circularity in the window dependency graph."},
	{"WindowPartitioned", WindowPartitioned.New(), 3581, "HY000", "A window which depends on another cannot define partitioning."},
	{"WindowFramed", WindowFramed.New("a"), 3582, "HY000", "Window 'a' has a frame definition, so cannot be referenced by another window."},
	{"WindowOrderedTwice", WindowOrderedTwice.New("a", "b"), 3583, "HY000", "Window 'a' cannot inherit 'b' since both contain an ORDER BY clause."},
	{"WindowRangeUnusable", WindowRangeUnusable.New("a"), 3587, "HY000", "Window 'a' with RANGE N PRECEDING/FOLLOWING frame requires exactly one ORDER BY expression, of numeric or temporal type"},
	{"GeneratedValue", GeneratedValue.New("a", "b"), 3105, "HY000", "The value specified for generated column 'a' in table 'b' is not allowed."},
	{"OutOfRange", OutOfRange.New("a", "b"), 1690, "22003", "a value is out of range in 'b'"},
	{"ColumnOutOfRange", ColumnOutOfRange.New("a", 8), 1264, "22003", "Out of range value for column 'a' at row 8"},
	{"IncorrectNumber", IncorrectNumber.New("a", "b", "c", 10), 1366, "HY000", "Incorrect a value: 'b' for column 'c' at row 10"},
	{"IncorrectTimeOf", IncorrectTimeOf.New("a", "b", "c", 10), 1292, "22007", "Incorrect a value: 'b' for column 'c' at row 10"},
	{"NoDefault", NoDefault.New("a"), 1364, "HY000", "Field 'a' doesn't have a default value"},
	{"NotNull", NotNull.New("a"), 1048, "23000", "Column 'a' cannot be null"},
	{"DataTruncated", DataTruncated.New("a", 8), 1265, "01000", "Data truncated for column 'a' at row 8"},
	{"IncorrectDatetime", IncorrectDatetime.New("a"), 1292, "22007", "Incorrect datetime value: 'a'"},
	{"NoDateInText", NoDateInText.New("a"), 1411, "HY000", "Incorrect datetime value: 'a' for function str_to_date"},
	{"TimeOverflow", TimeOverflow.New(), 1441, "22008", "Datetime function: time field overflow"},
	{"TruncatedTimeValue", TruncatedTimeValue.New("a"), 1292, "22007", "Truncated incorrect time value: 'a'"},
	{"DivisionByZero", DivisionByZero.New(), 1365, "22012", "Division by 0"},
	{"ProcedureRecursion", ProcedureRecursion.New(7, "b"), 1456, "HY000", "Recursive limit 7 was exceeded for routine b"},
	{"OutNoVariable", OutNoVariable.New(7, "b"), 1414, "42000", "OUT or INOUT argument 7 for routine b is not a variable or NEW pseudo-variable in BEFORE trigger"},
	{"LabelTwice", LabelTwice.New("a"), 1309, "42000", "Redefining label a"},
	{"NoSuchLabel", NoSuchLabel.New("a", "b"), 1308, "42000", "a with no matching label: b"},
	{"UndeclaredVariable", UndeclaredVariable.New("a"), 1327, "42000", "Undeclared variable: a"},
	{"FetchVariables", FetchVariables.New(), 1328, "HY000", "Incorrect number of FETCH variables"},
	{"CaseNotFound", CaseNotFound.New(), 1339, "20000", "Case not found for CASE statement"},
	{"NoData", NoData.New(), 1329, "02000", "No data - zero rows fetched, selected, or processed"},
	{"BadState", BadState.New("a"), 1407, "42000", "Bad SQLSTATE: 'a'"},
	{"SignalNoState", SignalNoState.New(), 1646, "HY000", "SIGNAL/RESIGNAL can only use a CONDITION defined with SQLSTATE"},
	{"ResignalInactive", ResignalInactive.New(), 1645, "0K000", "RESIGNAL when handler not active"},
	{"LongMessageText", LongMessageText.New(), 1648, "HY000", "Data too long for condition item 'MESSAGE_TEXT'"},
	{"UserWarning", UserWarning.New(), 1642, "01000", "Unhandled user-defined warning condition"},
	{"UserNotFound", UserNotFound.New(), 1643, "02000", "Unhandled user-defined not found condition"},
	{"UserException", UserException.New(), 1644, "HY000", "Unhandled user-defined exception condition"},
	{"Unsupported", Unsupported.New("a"), 1235, "42000", "This version of farmsql doesn't yet support a"},
}

func TestKinds(t *testing.T) {
	source, err := os.ReadFile("kinds.go")
	if err != nil {
		t.Fatal(err)
	}
	declared := regexp.MustCompile(`(\w+) += kind\(`).FindAllStringSubmatch(string(source), -1)
	if len(declared) != len(kinds) {
		t.Errorf("%d kinds are declared, and %d are here", len(declared), len(kinds))
	}
	for i, k := range kinds {
		if i < len(declared) && declared[i][1] != k.name {
			t.Errorf("%s stands where %s is declared", k.name, declared[i][1])
		}
		for what, got := range map[string]*mysql.SQLError{
			"made":              k.err.(*mysql.SQLError),
			"told":              Of(k.err),
			"told of its text":  Of(errors.New(k.err.Error())),
			"told of an INSERT": Of(gms.NewWrappedInsertError(nil, k.err)),
		} {
			if got.Num != k.number || got.State != k.state || got.Message != k.text {
				t.Errorf("%s, %s: %d (%s) %q, want %d (%s) %q", k.name, what, got.Num, got.State, got.Message, k.number, k.state, k.text)
			}
		}
	}
}

// Nothing else in sql and the packages below it decides about numbers.
func TestNumbersAreHere(t *testing.T) {
	var files []string
	for _, pattern := range []string{"../*.go", "../row/*.go", "../compat/*.go", "../wire/*.go"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	elsewhere := regexp.MustCompile(`NewSQLError\(|SQLError\{\w|Num *= *[0-9]|CastSQLError`)
	for _, name := range files {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if found := elsewhere.Find(source); found != nil && !strings.HasSuffix(name, "_test.go") {
			t.Errorf("%s has %s", name, found)
		}
	}
	if len(files) < 100 {
		t.Errorf("only %d files found", len(files))
	}
}

// An error of SIGNAL keeps its SQLSTATE and text, even if its number has others in MySQL.
func TestSignalled(t *testing.T) {
	for _, said := range []*mysql.SQLError{
		Remade(1062, "45000", "mine"),
		Remade(1644, "HY000", "mine"),
		Remade(1644, "45000", "row: 17 is missing"),
		Remade(1644, "45000", "index: sql: too long"),
	} {
		if got := Of(said); got.Num != said.Num || got.State != said.State || got.Message != said.Message {
			t.Errorf("%v: %v", said, got)
		}
	}
}

// A nil error stays nil.
func TestNothing(t *testing.T) {
	if e := Of(nil); e != nil {
		t.Errorf("%v", e)
	}
	if e := In(nil, "", nil); e != nil {
		t.Errorf("%v", e)
	}
	if err := Storage(nil); err != nil {
		t.Errorf("%v", err)
	}
}
