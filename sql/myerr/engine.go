package myerr

import (
	"errors"
	"regexp"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/planbuilder"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/dolthub/vitess/go/mysql"
	goerrors "gopkg.in/src-d/go-errors.v1"

	"github.com/farmsql/farmsql/sql/row"
)

// go-mysql-server sends most errors as 1105, and most others without their SQLSTATE. Programs
// decide by both, so the tables below restore MySQL 8's. Most errors arrive here as text only;
// their kinds are recognised by the constant parts of their messages.

// An engineKind maps a kind of go-mysql-server's to a MySQL error.
type engineKind struct {
	kind   *goerrors.Kind
	number int
	text   string // MySQL's text, with $1 for the value of the first format verb; empty: keep the error's own text
}

var engineKinds = []engineKind{
	{gms.ErrTableAlreadyExists, 1050, "Table '$1' already exists"},
	{gms.ErrExistingView, 1050, "Table '$2' already exists"},
	{gms.ErrUnknownTable, 1051, ""},
	{gms.ErrViewDoesNotExist, 1051, "Unknown table '$1.$2'"}, // of DROP VIEW; reading a missing view is ErrTableNotFound
	{gms.ErrTableNotFound, 1146, ""},
	{gms.ErrInvalidRefInView, 1356, ""},
	{gms.ErrDatabaseNotFound, 1049, "Unknown database '$1'"},
	{gms.ErrDatabaseExists, 1007, "Can't create database '$1'; database exists"},
	{gms.ErrNoDatabaseSelected, 1046, "No database selected"},
	{gms.ErrTableColumnNotFound, 1054, ""},
	{gms.ErrColumnNotFound, 1054, ""},
	{gms.ErrUnknownColumn, 1054, ""},
	{gms.ErrMisusedAlias, 1054, ""},
	{gms.ErrAmbiguousColumnName, 1052, ""},
	{gms.ErrAmbiguousColumnOrAliasName, 1052, ""},
	{gms.ErrAmbiguousColumnInOrderBy, 1052, ""},
	{gms.ErrDuplicateKey, 1061, ""},
	{gms.ErrColumnExists, 1060, "Duplicate column name '$1'"},
	{gms.ErrDuplicateColumn, 1060, ""},
	{gms.ErrDuplicateAliasOrTable, 1066, ""},
	{gms.ErrInvalidColumnDefaultValue, 1067, ""},
	{gms.ErrIncompatibleDefaultType, 1067, ""},
	{gms.ErrMultiplePrimaryKeysDefined, 1068, ""},
	{gms.ErrKeyColumnDoesNotExist, 1072, ""},
	{gms.ErrUnknownIndexColumn, 1072, ""},
	{gms.ErrKeyZero, 1391, "Key part '$1' length cannot be 0"},
	{gms.ErrInvalidAutoIncCols, 1075, "Incorrect table definition; there can be only one auto column and it must be defined as a key"},
	{plan.ErrIndexNotFound, 1091, ""},
	{gms.ErrCantDropFieldOrKey, 1091, ""},
	{gms.ErrColValCountMismatch, 1136, ""},
	{gms.ErrColumnCountMismatch, 1353, ""},
	{gms.ErrInsertIntoMismatchValueCount, 1136, "Column count doesn't match value count at row 1"},
	{gms.ErrColumnSpecifiedTwice, 1110, ""},
	{gms.ErrUnknownSystemVariable, 1193, ""},
	{gms.ErrSystemVariableReadOnly, 1238, ""},
	{gms.ErrInvalidSystemVariableValue, 1231, ""},
	{gms.ErrUnknownPreparedStatement, 1243, ""},
	{gms.ErrColumnNumberDoesNotMatch, 1222, ""},
	{planbuilder.ErrUnionSchemasDifferentLength, 1222, ""},
	{planbuilder.ErrQualifiedOrderBy, 1250, ""},
	{gms.ErrCheckConstraintInvalidatedByColumnAlter, 3959, ""},
	{gms.ErrInvalidOperandColumns, 1241, ""},
	{gms.ErrExpectedSingleRow, 1242, "Subquery returns more than 1 row"},
	{gms.ErrMoreThanOneRow, 1172, ""},
	{gms.ErrFunctionNotFound, 1305, ""},
	{gms.ErrStoredProcedureDoesNotExist, 1305, "PROCEDURE $1 does not exist"},
	{gms.ErrStoredProcedureAlreadyExists, 1304, ""},
	{gms.ErrSavepointDoesNotExist, 1305, ""},
	{gms.ErrTriggerDoesNotExist, 1360, "Trigger does not exist"},
	{gms.ErrInvalidArgumentNumber, 1582, ""},
	{gms.ErrInsertIntoNonNullableDefaultNullColumn, 1364, ""},
	{gms.ErrInsertIntoNonNullableProvidedNull, 1048, "Column '$1' cannot be null"},
	{types.ErrLengthBeyondLimit, 1406, "Data too long for column '$2'"},
	{types.ErrDataTruncatedForColumn, 1265, ""},
	{types.ErrDataTruncatedForColumnAtRow, 1265, ""},
	{types.ErrConvertingToEnum, 1265, ""},
	{gms.ErrInvalidSetValue, 1265, ""},
	{types.ErrConvertingToTime, 1292, ""},
	{types.ErrConvertingToTimeOutOfRange, 1292, ""},
	{types.ErrConvertingToTimeType, 1292, ""},
	{row.ErrNoInstant, 1292, ""},
	{types.ErrConvertingToYear, 1264, ""},
	{types.ErrLengthTooLarge, 1074, ""},
	{gms.ErrTruncatedIncorrect, 1292, ""},
	{types.ErrBadCharsetString, 1366, ""},
	{types.ErrConvertToDecimalLimit, 1264, "Out of range value for a DECIMAL column"},
	{gms.ErrValueOutOfRange, 1264, ""},
	{expression.ErrIntDivDataOutOfRange, 1690, ""},
	{plan.ErrUpdateNotSupported, 1288, ""},
	{plan.ErrDeleteFromNotSupported, 1288, ""},
	{gms.ErrForeignKeyColumnTypeMismatch, 3780, ""},
	{gms.ErrForeignKeyDropTable, 3730, ""},
	{gms.ErrTruncateReferencedFromForeignKey, 1701, ""},
	{gms.ErrForeignKeyDuplicateName, 1826, ""},
	{gms.ErrForeignKeyMissingReferenceIndex, 1822, ""},
	{gms.ErrForeignKeyDropIndex, 1553, ""},
	{gms.ErrCheckConstraintViolated, 3819, "Check constraint '$1' is violated."},
	{gms.ErrUnknownConstraint, 3940, ""},
	{gms.ErrPrivilegeCheckFailed, 1142, ""},
	{gms.ErrTableAccessDeniedForUser, 1142, ""},
	{gms.ErrDatabaseAccessDeniedForUser, 1044, ""},
	{gms.ErrUserCreationFailure, 1396, ""},
	{gms.ErrUserAlterFailure, 1396, ""},
	{gms.ErrUserDeletionFailure, 1396, ""},
	{gms.ErrGrantUserDoesNotExist, 1410, ""},
	{gms.ErrShowGrantsUserDoesNotExist, 1141, ""},
	{gms.ErrCollationUnknown, 1273, ""},
	{gms.ErrCharSetUnknown, 1115, ""},
	{gms.ErrCharSetNotYetImplementedTemp, 1115, "Unknown character set: $1"},
	{gms.ErrInvalidJson, 3140, ""},
	{gms.ErrGeneratedColumnValue, 3105, "The value specified for generated column '$1' in table '$2' is not allowed."},
	{gms.ErrUnsupportedFeature, 1235, ""},
	{gms.ErrUnsupportedSyntax, 1235, ""},
	{gms.ErrSyntaxError, 1064, ""},
	{gms.ErrReadOnlyTransaction, 1792, ReadOnly.format},
	{gms.ErrForeignKeyDropColumn, 1828, ""},
	{gms.ErrIndexNotFound, 1091, ""},
	{gms.ErrForeignKeyNotFound, 1091, ""},
	{gms.ErrCursorNotFound, 1324, ""},
	{gms.ErrCursorAlreadyOpen, 1325, "Cursor is already open"},
	{gms.ErrCursorNotOpen, 1326, "Cursor is not open"},
	{gms.ErrInvalidArgument, 1210, ""},
	{gms.ErrTriggerTableInUse, 1442, ""},
	{gms.ErrInvalidIndexPrefix, 1089, "Incorrect prefix key; the used key part isn't a string, the used length is longer than the key part, or the storage engine doesn't support unique prefix keys"},
}

// duplicates matches go-mysql-server's text for a duplicate key, which contains MySQL's.
var duplicates = regexp.MustCompile(`(?s)^duplicate (?:primary|unique) key given: (Duplicate entry .*)$`)

// Numbers of errors without a kind, by the beginning of their text.
var numberedTexts = []struct {
	prefix string
	number int
}{
	{"syntax error at position", 1064},
	{"expected insert destination to be resolved", 1471}, // the destination is a view, as below
	{"expected resolved table: ", 1347},
	{"column ordinal out of range", 1054},
	{"failed to resolve aggregate column argument", 1111},
	{"Too big precision", 1426},
	{"Too-big precision", 1426},
	{"TIME only supports a length", 1426},
	{"DATETIME supports precision from 0 to 6", 1426},
	{"TIMESTAMP supports precision from 0 to 6", 1426},
	{"Unknown or incorrect time zone", 1298},
	{"duplicate primary key given: ", 1062},
	{"duplicate unique key given: ", 1062},
}

// errNotInGroupBy is the number of an error recognised by the middle of its text.
const errNotInGroupBy = 1055

// matchers recognise the kinds above by text, in the order of the table. A kind whose message is
// only a format verb would match every text: its matcher is nil.
var matchers = func() []*regexp.Regexp {
	ms := make([]*regexp.Regexp, len(engineKinds))
	for i, k := range engineKinds {
		if k.kind.Message != "%s" {
			ms[i] = messagePattern(k.kind)
		}
	}
	return ms
}()

// badTime matches the engine's error for a date or time, for which MySQL has another number than
// for other bad values.
var badTime = regexp.MustCompile(`is not a valid value for '(date|time|year)`)

var verb = regexp.MustCompile(`%[-+# 0]*[0-9.]*[a-zA-Z]`)

// messagePattern returns a pattern for a kind's texts, which captures the values of the verbs.
func messagePattern(k *goerrors.Kind) *regexp.Regexp {
	var b strings.Builder
	at := 0
	for _, v := range verb.FindAllStringIndex(k.Message, -1) {
		b.WriteString(regexp.QuoteMeta(k.Message[at:v[0]]))
		if strings.HasSuffix(k.Message[:v[1]], "q") {
			b.WriteString(`"(.*)"`)
		} else {
			b.WriteString(`(.*)`)
		}
		at = v[1]
	}
	return regexp.MustCompile(`(?s)^` + b.String() + regexp.QuoteMeta(k.Message[at:]) + `$`)
}

// ofEngine converts an error of go-mysql-server that is still an error value.
func ofEngine(err error) *mysql.SQLError {
	if e := restored(err.Error()); e != nil {
		return e
	}
	for _, k := range engineKinds {
		if k.kind.Is(err) {
			text := WithoutPackage(err.Error())
			if k.text != "" && !strings.Contains(k.text, "$") {
				text = k.text
			}
			return &mysql.SQLError{Num: k.number, Message: text}
		}
	}
	e := gms.CastSQLError(err)
	var kind *goerrors.Error
	if errors.As(err, &kind) {
		if u, ok := kind.Cause().(gms.UniqueKeyError); ok {
			e.Message = u.Error()
		}
	}
	e.Message = WithoutPackage(e.Message)
	return e
}

// numberOf returns the number of an error of which only the text is left.
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
		if m != nil && m.MatchString(message) {
			return engineKinds[i].number
		}
	}
	return mysql.ERUnknownError
}

// textOf returns MySQL's text for an engine's error with that number.
func textOf(number int, message string) string {
	if number == mysql.ERDupEntry {
		return duplicates.ReplaceAllString(message, "$1")
	}
	for i, k := range engineKinds {
		if k.number != number || k.text == "" || matchers[i] == nil {
			continue
		}
		if parts := matchers[i].FindStringSubmatchIndex(message); parts != nil {
			return string(matchers[i].ExpandString(nil, k.text, message, parts))
		}
	}
	return message
}
