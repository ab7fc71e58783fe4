package myerr

import (
	"errors"
	"fmt"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/vitess/go/mysql"

	"github.com/farmsql/farmsql/index/btree"
)

// A Kind is a kind of error that this project makes, or that it converts an error to.
type Kind struct {
	Number int    // MySQL's error number
	State  string // SQLSTATE of the error

	format string // MySQL's text
}

// ownText is the format of kinds that keep the text of the converted error.
const ownText = "%s"

func kind(number int, format string) Kind { return Kind{number, stateOf(number), format} }

// New returns an error of the kind. The arguments are for the verbs of the text in the kind's
// declaration.
func (k Kind) New(args ...any) *mysql.SQLError {
	return &mysql.SQLError{Num: k.Number, State: k.State, Message: fmt.Sprintf(k.format, args...)}
}

// Warn adds a warning of the kind to the session; the arguments are those of New.
func (k Kind) Warn(ctx *gms.Context, args ...any) { ctx.Warn(k.Number, k.format, args...) }

// from converts a storage error to an error of the kind.
func (k Kind) from(err error) *mysql.SQLError {
	if k.format == ownText {
		return k.New(PlainText(err.Error()))
	}
	return k.New()
}

// Is reports whether err is a MySQL error with the kind's number. For other errors it is
// false: convert them with Of first.
func (k Kind) Is(err error) bool {
	var known *mysql.SQLError
	return errors.As(err, &known) && known.Num == k.Number
}

// Transactions, storage and the end of a statement.
var (
	// Deadlock is the kind of conflicts. Its text names no table or key: a conflict is known only
	// by the addresses of objects.
	Deadlock         = kind(1213, "Deadlock found when trying to get lock; try restarting transaction")
	LockWaitTimeout  = kind(1205, "Lock wait timeout exceeded; try restarting transaction")
	ReadOnly         = kind(1792, "Cannot execute statement in a READ ONLY transaction.")
	TableChanged     = kind(1412, "Table definition has changed, please retry transaction")
	AutoIncrement    = kind(1467, "Failed to read auto-increment value from storage engine")
	KeyTooLong       = kind(1071, fmt.Sprintf("Specified key was too long; max key length is %d bytes", btree.MaxKeyBytes))
	QueryInterrupted = kind(1317, "Query execution was interrupted")
	QueryTimeout     = kind(3024, "Query execution was interrupted, maximum statement execution time exceeded")

	InCommit   = kind(1180, ownText)
	TooLarge   = kind(1197, ownText) // a transaction is too large
	RecordFull = kind(1114, ownText) // there is no memory for another object
	LogFull    = kind(1205, ownText)
	RowTooBig  = kind(1105, ownText)
	Corrupt    = kind(1815, ownText)
	// Unavailable is ER_UNKNOWN_COM_ERROR, which Galera's servers answer to all statements
	// while they are in a minority: proxies and drivers know it, and treat 08S01 as a reason
	// to try another server. The connection stays open.
	Unavailable = kind(1047, ownText)
	Shutdown    = kind(1053, "Server shutdown in progress")
	Evicted     = kind(1053, "Server shutdown in progress: this machine has no part in the cluster any more, connect to another one")
	Internal    = kind(1105, "internal error: %s")

	StatementMemory = kind(3170, "Memory capacity of %d bytes for 'statement' exceeded: "+
		"its rows, those that its transaction has read and the session's variables need more; read fewer rows, or raise --statement-memory (Config.StatementMemory)")
	ServerMemory = kind(3170, "Memory capacity of %d bytes for 'all statements' exceeded: "+
		"others need it at present; try again, read fewer rows, or give the server more memory (GOMEMLIMIT)")
	ResultMemory = kind(3170, "Memory capacity of %d bytes for 'result_buffer' exceeded: a statement's rows are held until its transaction is validated; "+
		"return fewer rows (LIMIT) or raise --result-buffer (Config.ResultBuffer)")
)

// Connections and commands.
var (
	TooManyConnections = kind(1040, "Too many connections")
	BadHandshake       = kind(1043, "Bad handshake: compression is not offered; connect without it")
	InsecureTransport  = kind(3159, "Connections using insecure transport are prohibited: this server requires TLS (--require-tls)")
	PacketTooLarge     = kind(1153, "Got a packet bigger than 'max_allowed_packet' bytes")
	WrongArguments     = kind(1210, "Incorrect arguments to %s")
	ResultTruncated    = kind(1301, "Result of %s() was larger than max_allowed_packet (%d) - truncated") // a warning
	EmptyQuery         = kind(1065, "Query was empty")
	TooManyParameters  = kind(1390, "Prepared statement contains too many placeholders: %d, and %d are possible")
	NotPreparable      = kind(1295, "This command is not supported in the prepared statement protocol yet")
	SeveralPrepared    = kind(1064, "syntax error at position %d: more than one statement cannot be prepared")
	NoSuchThread       = kind(1094, "Unknown thread id: %d")
	NotOwner           = kind(1095, "You are not owner of thread %d")
	NoShutdown         = kind(1235, "This server is part of a program that has not said how it ends (Shutdown): end the program")
)

// Accounts and options.
var (
	AccessDenied     = kind(1227, "Access denied; you need (at least one of) the %s privilege(s) for this operation")
	NoSuchDefiner    = kind(1449, "The user specified as a definer ('%s'@'%s') does not exist")
	RenameUserFailed = kind(1396, "Operation RENAME USER failed for %s")
	OwnAccount       = kind(1396, "Operation failed for '%s'@'%s': this server has the account for itself")
	OptionPrevents   = kind(1290, "The MySQL server is running with the %s option so it cannot execute this statement")

	SessionVariable = kind(1228, "Variable '%s' is a SESSION variable and can't be used with SET GLOBAL")
	GlobalVariable  = kind(1229, "Variable '%s' is a GLOBAL variable and should be set with SET GLOBAL")
	UnknownVariable = kind(1193, "Unknown system variable '%s'")
	WrongValue      = kind(1231, "Variable '%s' can't be set to the value of '%v'")
	WrongType       = kind(1232, "Incorrect argument type to variable '%s'")
	WrongEscapes    = kind(1231, "Variable 'sql_mode' can't be set to the value of '%v': farmsql reads a backslash in a string as an escape, whatever sql_mode is")
	FixedVariable   = kind(1231, "Variable '%s' can't be set to the value of '%v'; it is '%v': %s")
)

// Statements and definitions.
var (
	NoSuchTable          = kind(1146, "Table '%s.%s' doesn't exist")
	UnknownTarget        = kind(1109, "Unknown table '%s' in MULTI DELETE")
	TooManyTables        = kind(1116, "Too many tables; a join can have %d at most")
	BigPrecision         = kind(1426, "Too big precision %s specified for '%s'. Maximum is %d.")
	UnknownCharset       = kind(1115, "Unknown character set: %s")
	MixedCollations      = kind(1267, "Illegal mix of collations (%s,%s) and (%s,%s) for operation '%s'")
	CollationOfOther     = kind(1253, "COLLATION '%s' is not valid for CHARACTER SET '%s'")
	SeveralPrimaryKeys   = kind(1068, "Multiple primary key defined")
	UnknownColumn        = kind(1054, "Unknown column '%s' in 'field list'")
	AmbiguousColumn      = kind(1052, "Column '%s' in field list is ambiguous")
	ValueCount           = kind(1136, "Column count doesn't match value count at row 1")
	AggregateOrdersUnion = kind(3028, "Expression #%d of ORDER BY contains aggregate function and applies to the result of a UNION, EXCEPT or INTERSECT")
	ColumnCount          = kind(1222, "The used SELECT statements have a different number of columns")
	TooManyRows          = kind(1172, "Result consisted of more than one row")
	InvalidGroupFunction = kind(1111, "Invalid use of group function")
	MisplacedDefault     = kind(1064, "DEFAULT is possible as the value of a column in VALUES and SET only")
	TriggerExists        = kind(1359, "Trigger already exists")
	TriggerMoves         = kind(1435, "Trigger in wrong schema")
	ViewMoves            = kind(1450, "Changing schema from '%s' to '%s' is not allowed")
	CheckExists          = kind(3822, "Duplicate check constraint name '%s'.")
	NotPartitioned       = kind(1505, "Partition management on a not partitioned table is not possible")
	PartitionClause      = kind(1747, "PARTITION () clause on non partitioned table")
	UnknownFormat        = kind(1791, "Unknown EXPLAIN format name: '%s'; there are TRADITIONAL, JSON and TREE")
	StackOverrun         = kind(1436, "The statement has %s: at most %d are possible. Make it several statements, or use a list or a table")
	ViewRecursion        = kind(1462, "A view reads itself, or the statement reads too many views")

	WindowNamedTwice    = kind(3591, "Window '%s' is defined twice.")
	WindowMisplaced     = kind(3593, "You cannot use the window function '%s' in this context.")
	NoSuchWindow        = kind(3579, "Window name '%s' is not defined.")
	CircularWindows     = kind(3580, "There is a circularity in the window dependency graph.")
	WindowPartitioned   = kind(3581, "A window which depends on another cannot define partitioning.")
	WindowFramed        = kind(3582, "Window '%s' has a frame definition, so cannot be referenced by another window.")
	WindowOrderedTwice  = kind(3583, "Window '%s' cannot inherit '%s' since both contain an ORDER BY clause.")
	WindowRangeUnusable = kind(3587, "Window '%s' with RANGE N PRECEDING/FOLLOWING frame requires exactly one ORDER BY expression, of numeric or temporal type")
)

// Values.
var (
	GeneratedValue     = kind(3105, "The value specified for generated column '%s' in table '%s' is not allowed.")
	OutOfRange         = kind(1690, "%s value is out of range in '%s'")
	ColumnOutOfRange   = kind(1264, "Out of range value for column '%s' at row %d")
	IncorrectNumber    = kind(1366, "Incorrect %s value: '%s' for column '%s' at row %d")
	IncorrectTimeOf    = kind(1292, "Incorrect %s value: '%v' for column '%s' at row %d")
	NoDefault          = kind(1364, "Field '%s' doesn't have a default value")  // a warning
	NotNull            = kind(1048, "Column '%s' cannot be null")               // a warning
	DataTruncated      = kind(1265, "Data truncated for column '%s' at row %d") // a warning
	IncorrectDatetime  = kind(1292, "Incorrect datetime value: '%v'")
	NoDateInText       = kind(1411, "Incorrect datetime value: '%v' for function str_to_date") // a warning
	TimeOverflow       = kind(1441, "Datetime function: time field overflow")                  // a warning
	TruncatedTimeValue = kind(1292, "Truncated incorrect time value: '%v'")                    // a warning
	DivisionByZero     = kind(1365, "Division by 0")
)

// Stored procedures and triggers.
var (
	ProcedureRecursion = kind(1456, "Recursive limit %d was exceeded for routine %s")
	OutNoVariable      = kind(1414, "OUT or INOUT argument %d for routine %s is not a variable or NEW pseudo-variable in BEFORE trigger")
	LabelTwice         = kind(1309, "Redefining label %s")
	NoSuchLabel        = kind(1308, "%s with no matching label: %s")
	UndeclaredVariable = kind(1327, "Undeclared variable: %s")
	FetchVariables     = kind(1328, "Incorrect number of FETCH variables")
	CaseNotFound       = kind(1339, "Case not found for CASE statement")
	NoData             = kind(1329, "No data - zero rows fetched, selected, or processed")
	BadState           = kind(1407, "Bad SQLSTATE: '%s'")
	SignalNoState      = kind(1646, "SIGNAL/RESIGNAL can only use a CONDITION defined with SQLSTATE")
	ResignalInactive   = kind(1645, "RESIGNAL when handler not active")
	LongMessageText    = kind(1648, "Data too long for condition item 'MESSAGE_TEXT'")
	UserWarning        = kind(1642, "Unhandled user-defined warning condition")
	UserNotFound       = kind(1643, "Unhandled user-defined not found condition")
	UserException      = kind(1644, "Unhandled user-defined exception condition")
)

// Unsupported is the kind of NotSupported, whose text says what to do instead.
var Unsupported = kind(1235, "This version of farmsql doesn't yet support %s")

// NotSupported returns the error for a MySQL feature that is missing here. The text names the
// feature in quotes, and then says what to do instead.
func NotSupported(format string, args ...any) *mysql.SQLError {
	return Unsupported.New(fmt.Sprintf(format, args...))
}

// Remade returns an error from its stored number, SQLSTATE and text.
func Remade(number int, state, text string) *mysql.SQLError {
	return &mysql.SQLError{Num: number, State: state, Message: text}
}

// Warned returns the error that a warning becomes in a strict statement.
func Warned(w *gms.Warning) *mysql.SQLError {
	return &mysql.SQLError{Num: w.Code, State: stateOf(w.Code), Message: w.Message}
}
