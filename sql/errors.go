package sql

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/dolthub/vitess/go/mysql"
	goerrors "gopkg.in/src-d/go-errors.v1"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/index/btree"
	"github.com/farmsql/farmsql/index/hash"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// Errors of this package, next to go-mysql-server's own.
var (
	// errChanged says that a table is no longer what the statement was
	// prepared for.
	errChanged = mysql.NewSQLError(erTableDefChanged, "HY000", "Table definition has changed, please retry transaction")
	// errLongKey says that an index entry is longer than keyBytesMax.
	//lint:ignore ST1005 the text is MySQL's
	errLongKey = fmt.Errorf("Specified key was too long; max key length is %d bytes", keyBytesMax)
	// errReadOnly refuses a change in a READ ONLY transaction. These two have their numbers
	// themselves, for go-mysql-server gives others to what a DDL statement returns without one.
	errReadOnly = mysql.NewSQLError(erReadOnlyTx, "25006", "Cannot execute statement in a READ ONLY transaction.")
)

// DeadlockText is what a client is told of a conflict, MySQL's text for a deadlock: what the
// conflict was about has an address, and no name.
const DeadlockText = "Deadlock found when trying to get lock; try restarting transaction"

// MySQL's numbers for errors that vitess does not name.
const (
	erLockWaitTimeout = 1205
	erLockDeadlock    = 1213
	erTableDefChanged = 1412

	erWarnDataOutOfRange = 1264
	erTooBigRowset       = 1105
	erTransTooBig        = 1197
	erInCommit           = 1180
	erAutoIncRead        = 1467
	erRecordFull         = 1114
	erQueryKilled        = 1317
	erReadOnlyTx         = 1792
	erServerShutdown     = 1053
	erQueryTimeout       = 3024
	// erUnavailable is ER_UNKNOWN_COM_ERROR, which Galera's servers answer to everything
	// while they are in a minority: proxies and drivers know it, and take 08S01 for a
	// reason to try another server. The connection stays as it is.
	erUnavailable = 1047
	// erNotSupported is for what MySQL knows and this does not.
	erNotSupported = 1235
	erInternal     = 1815
)

// codes is where each error that storage can meet becomes one of MySQL's. The
// first match counts.
var codes = []struct {
	err   error
	code  int
	state string
	text  string // empty: the error's own
}{
	{txn.ErrConflict, erLockDeadlock, "40001", DeadlockText},
	{txn.ErrInDoubt, erInCommit, "HY000", ""},
	{txn.ErrUnavailable, erUnavailable, "08S01", ""},
	{txn.ErrTooLarge, erTransTooBig, "HY000", ""},
	{txn.ErrLogFull, erLockWaitTimeout, "HY000", ""},
	{txn.ErrClosed, erServerShutdown, "08S01", "Server shutdown in progress"},
	{txn.ErrEvicted, erServerShutdown, "08S01", "Server shutdown in progress: this machine has no part in the cluster any more, connect to another one"},
	{txn.ErrNoRegion, erRecordFull, "HY000", ""},
	{region.ErrFull, erRecordFull, "HY000", ""},
	{nvram.ErrNoSpace, erRecordFull, "HY000", ""},
	{catalog.ErrAltering, erLockWaitTimeout, "HY000", "Lock wait timeout exceeded; try restarting transaction"},
	{catalog.ErrExhausted, erAutoIncRead, "HY000", "Failed to read auto-increment value from storage engine"},
	{catalog.ErrTooLarge, erTooBigRowset, "HY000", ""},
	{errLongKey, mysql.ERTooLongKey, "42000", ""},
	{btree.ErrKeyTooLong, mysql.ERTooLongKey, "42000", errLongKey.Error()},
	{errCorruptRow, erInternal, "HY000", ""},
	{catalog.ErrCorrupt, erInternal, "HY000", ""},
	{btree.ErrCorrupt, erInternal, "HY000", ""},
	{hash.ErrCorrupt, erInternal, "HY000", ""},
	{context.DeadlineExceeded, erQueryTimeout, "HY000", "Query execution was interrupted, maximum statement execution time exceeded"},
	{context.Canceled, erQueryKilled, "70100", "Query execution was interrupted"},
}

// SQLError returns what a client is told of an error: MySQL's number, state and
// text.
func SQLError(err error) *mysql.SQLError {
	if err == nil {
		return nil
	}
	if cause := unwrapInsert(err); cause != nil {
		err = cause
	}
	var known *mysql.SQLError
	if errors.As(err, &known) {
		return known
	}
	for _, c := range codes {
		// go-mysql-server keeps no more than the text of an error here and there.
		if errors.Is(err, c.err) || strings.HasSuffix(err.Error(), c.err.Error()) {
			text := c.text
			if text == "" {
				text = PlainText(err.Error())
			}
			return mysql.NewSQLError(c.code, c.state, "%s", text)
		}
	}
	e := castError(err)
	e.Message = WithoutPackage(e.Message)
	return e
}

// kinds is the same for errors of go-mysql-server that it has no number for, or
// not MySQL's text.
var kinds = []struct {
	kind  *goerrors.Kind
	code  int
	state string
	text  string
}{
	{gms.ErrLockDeadlock, erLockDeadlock, "40001", DeadlockText},
	{gms.ErrSyntaxError, mysql.ERParseError, "42000", ""},
	{gms.ErrSavepointDoesNotExist, 1305, "42000", ""},
	{gms.ErrDuplicateKey, mysql.ERDupKeyName, "42000", ""},
	{gms.ErrTableAlreadyExists, mysql.ERTableExists, "42S01", ""},
	{gms.ErrReadOnlyTransaction, erReadOnlyTx, "25006", "Cannot execute statement in a READ ONLY transaction."},
	{gms.ErrForeignKeyDropTable, 3730, "HY000", ""},
	{gms.ErrForeignKeyDropColumn, 1828, "HY000", ""},
	{gms.ErrIndexNotFound, mysql.ERCantDropFieldOrKey, "42000", ""},
	{gms.ErrInvalidAutoIncCols, mysql.ERWrongAutoKey, "42000", "Incorrect table definition; there can be only one auto column and it must be defined as a key"},
	{gms.ErrInsertIntoNonNullableDefaultNullColumn, 1364, "HY000", ""},
	{gms.ErrInsertIntoNonNullableProvidedNull, mysql.ERBadNullError, "23000", ""},
	{gms.ErrInsertIntoMismatchValueCount, 1136, "21S01", ""},
	{gms.ErrUnknownConstraint, 3940, "HY000", ""},
	{gms.ErrCursorNotFound, 1324, "42000", ""},
	{gms.ErrCursorAlreadyOpen, 1325, "24000", "Cursor is already open"},
	{gms.ErrCursorNotOpen, 1326, "24000", "Cursor is not open"},
	{gms.ErrViewDoesNotExist, mysql.ERNoSuchTable, "42S02", ""},
	{gms.ErrTriggerDoesNotExist, 1360, "HY000", "Trigger does not exist"},
	{gms.ErrInvalidArgument, 1210, "HY000", ""},
	{types.ErrConvertingToTime, mysql.ERTruncatedWrongValue, "22007", ""},
	{gms.ErrTriggerTableInUse, 1442, "HY000", ""},
	{gms.ErrForeignKeyNotFound, mysql.ERCantDropFieldOrKey, "42000", ""},
	{gms.ErrForeignKeyDuplicateName, 1826, "HY000", ""},
	{types.ErrLengthBeyondLimit, mysql.ERDataTooLong, "22001", ""},
	{types.ErrConvertToDecimalLimit, erWarnDataOutOfRange, "22003", "Out of range value for a DECIMAL column"},
	{gms.ErrValueOutOfRange, erWarnDataOutOfRange, "22003", ""},
	{gms.ErrTableColumnNotFound, mysql.ERBadFieldError, "42S22", ""},
	{gms.ErrColumnNotFound, mysql.ERBadFieldError, "42S22", ""},
	{gms.ErrColumnExists, mysql.ERDupFieldName, "42S21", ""},
	{gms.ErrExpectedSingleRow, mysql.ERSubqueryNo1Row, "21000", "Subquery returns more than 1 row"},
	{gms.ErrNoDatabaseSelected, mysql.ERNoDb, "3D000", "No database selected"},
	{gms.ErrInvalidIndexPrefix, mysql.ERWrongSubKey, "42000", "Incorrect prefix key; the used key part isn't a string, the used length is longer than the key part, or the storage engine doesn't support unique prefix keys"},
}

// castError takes go-mysql-server's choice of a number, and adds what it leaves
// out: MySQL's text for a duplicate key, and the state.
func castError(err error) *mysql.SQLError {
	if gms.ErrCheckConstraintViolated.Is(err) {
		return errCheckViolated(err)
	}
	if e := Restored(err.Error()); e != nil {
		return e
	}
	for _, k := range kinds {
		if !k.kind.Is(err) {
			continue
		}
		text := k.text
		if text == "" {
			text = err.Error()
		}
		return mysql.NewSQLError(k.code, k.state, "%s", text)
	}
	e := gms.CastSQLError(err)
	var kind *goerrors.Error
	if errors.As(err, &kind) {
		if u, ok := kind.Cause().(gms.UniqueKeyError); ok {
			e.Message = u.Error()
		}
	}
	if state, ok := states[e.Num]; ok {
		e.State = state
	}
	return e
}

// withNumber is the text of an error of MySQL's within another's.
var withNumber = regexp.MustCompile(`^(?s:(.*)) \(errno (\d+)\) \(sqlstate (\w{5})\)$`)

// Restored returns the error of MySQL's that go-mysql-server has kept the text of only, as
// it does with those of the parser, or nil.
func Restored(text string) *mysql.SQLError {
	parts := withNumber.FindStringSubmatch(text)
	if parts == nil {
		return nil
	}
	number, err := strconv.Atoi(parts[2])
	if err != nil {
		return nil
	}
	return mysql.NewSQLError(number, parts[3], "%s", parts[1])
}

// states are the SQLSTATEs of the errors for which MySQL has a better one than
// HY000.
var states = map[int]string{
	mysql.ERDupEntry: "23000", mysql.ERBadNullError: "23000", mysql.ErNoReferencedRow2: "23000",
	mysql.ERRowIsReferenced2: "23000", mysql.ERNoSuchTable: "42S02", mysql.ERBadDb: "42000",
	mysql.ERBadFieldError: "42S22", mysql.ERTableExists: "42S01", mysql.ERParseError: "42000",
	mysql.EROperandColumns: "21000", mysql.ERSubqueryNo1Row: "21000", mysql.ERDataTooLong: "22001",
	mysql.ERDataOutOfRange: "22003", mysql.ERDbCreateExists: "HY000", mysql.ERDupFieldName: "42S21",
	mysql.ERMultiplePriKey: "42000", mysql.ERKeyColumnDoesNotExist: "42000", mysql.ERCantDropFieldOrKey: "42000",
	mysql.ERTooLongKey: "42000", mysql.ERBlobKeyWithoutLength: "42000", 1391: "42000", mysql.ERWrongAutoKey: "42000", mysql.ERTruncatedWrongValueForField: "HY000",
	mysql.ERMixOfGroupFuncAndFields: "42000", mysql.ERFieldSpecifiedTwice: "42000", 3819: "HY000", 3140: "22032", 3141: "22032",
}

// unwrapInsert returns what go-mysql-server has wrapped together with the row
// or the value that met it, nil if it has not.
func unwrapInsert(err error) (cause error) {
	var row gms.WrappedInsertError
	if errors.As(err, &row) {
		cause, err = row.Cause, row.Cause
	}
	var value gms.WrappedTypeConversionError
	if errors.As(err, &value) {
		cause = value.Err
	}
	return cause
}

// IsConflict reports whether an error is a conflict with another transaction,
// 1213 to a client: the transaction is over, and running it again may succeed.
func IsConflict(err error) bool {
	if err == nil {
		return false
	}
	if cause := unwrapInsert(err); cause != nil {
		err = cause
	}
	var known *mysql.SQLError
	return errors.Is(err, txn.ErrConflict) || gms.ErrLockDeadlock.Is(err) ||
		errors.As(err, &known) && known.Num == erLockDeadlock
}

// told are errors of storage whose numbers clients go by: they connect again, or
// say that there is no room.
var told = []error{
	txn.ErrInDoubt, txn.ErrUnavailable, txn.ErrEvicted, txn.ErrClosed, txn.ErrTooLarge, txn.ErrLogFull, txn.ErrNoRegion, region.ErrFull, nvram.ErrNoSpace,
}

// conflict is err as go-mysql-server knows it. Of others than its own and MySQL's
// it keeps the text only.
func conflict(err error) error {
	if errors.Is(err, txn.ErrConflict) {
		return gms.ErrLockDeadlock.New(err.Error())
	}
	if slices.ContainsFunc(told, func(t error) bool { return errors.Is(err, t) }) {
		return SQLError(err)
	}
	return err
}

// Errors that name what they are about and that go-mysql-server does not have.
func errTriggerExists(string) error {
	return mysql.NewSQLError(1359, "HY000", "Trigger already exists")
}

func errCheckExists(name string) error {
	return mysql.NewSQLError(3822, "HY000", "Duplicate check constraint name '%s'.", name)
}

func errNoTable(db, name string) error {
	return mysql.NewSQLError(mysql.ERNoSuchTable, "42S02", "Table '%s.%s' doesn't exist", db, name)
}

// errCheckViolated is MySQL's text for a CHECK that does not hold; its name is
// the quoted part of go-mysql-server's.
func errCheckViolated(err error) *mysql.SQLError {
	name := err.Error()
	if parts := strings.Split(name, `"`); len(parts) == 3 {
		name = parts[1]
	}
	return mysql.NewSQLError(3819, "HY000", "Check constraint '%s' is violated.", name)
}
