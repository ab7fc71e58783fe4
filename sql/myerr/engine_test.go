package myerr

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/dolthub/vitess/go/mysql"
	goerrors "gopkg.in/src-d/go-errors.v1"
)

// Every kind must be recognised by its own message, whatever its arguments are,
// and by no entry above it.
func TestKindsAreRecognised(t *testing.T) {
	for _, k := range engineKinds {
		args := make([]any, len(verb.FindAllString(k.kind.Message, -1)))
		for i := range args {
			args[i] = "x\n'y' %d"
		}
		if k.kind == gms.ErrSyntaxError {
			continue // its message is in every text
		}
		if got := numberOf(k.kind.New(args...).Error()); got != k.number {
			t.Errorf("%q: %d, want %d", k.kind.Message, got, k.number)
		}
	}
}

// The listener gets errors with the numbers that go-mysql-server's handler has given them, the
// handlers of a procedure get them without. Both are told the same.
func TestCastOrNot(t *testing.T) {
	for _, k := range engineKinds {
		if k.kind == gms.ErrSyntaxError {
			continue // its message is in every text; the texts themselves are known
		}
		args := make([]any, len(verb.FindAllString(k.kind.Message, -1)))
		for i := range args {
			args[i] = fmt.Sprint("x", i)
		}
		err := k.kind.New(args...)
		whole, cast := Of(err), Of(gms.CastSQLError(err))
		if whole.Num != cast.Num || whole.State != cast.State || whole.Message != cast.Message {
			t.Errorf("%q: %d (%s) %s, and cast %d (%s) %s", k.kind.Message, whole.Num, whole.State, whole.Message, cast.Num, cast.State, cast.Message)
		}
	}
}

func TestAsMySQL(t *testing.T) {
	for _, tc := range []struct {
		number  int
		state   string
		message string
		want    int
		wantS   string
	}{
		{1105, "HY000", "syntax error at position 6 near 'selec'", 1064, "42000"},
		{1105, "HY000", "something else", 1105, "HY000"},
		{1105, "HY000", "column ordinal out of range: 2", 1054, "42S22"},
		{1105, "HY000", "failed to resolve aggregate column argument: count(1)", 1111, "HY000"},
		{1105, "HY000", "Too big precision 70 specified. Maximum is 65.", 1426, "42000"},
		{1062, "", "duplicate", 1062, "23000"},
		{1213, "40001", Deadlock.format, 1213, "40001"},
		{1644, "45000", "signalled", 1644, "45000"},
		{1105, "HY000", "Column count doesn't match value count at row 3", 1136, "21S01"},
		{1105, "HY000", "Duplicate key name 'x'", 1061, "42000"},
		{1105, "HY000", "expected insert destination to be resolved or unresolved table", 1471, "HY000"},
		{1105, "HY000", "table doesn't support UPDATE", 1288, "HY000"},
		{1105, "HY000", "expected resolved table: v", 1347, "HY000"},
		{1644, "HY000", "signalled", 1644, "HY000"},
		{1105, "HY000", "column type mismatch on `a` and `b`", 3780, "HY000"},
	} {
		got := refine(&mysql.SQLError{Num: tc.number, State: tc.state, Message: tc.message})
		if got.Num != tc.want || got.State != tc.wantS || got.Message != tc.message {
			t.Errorf("%d (%s) %q: got %d (%s) %q", tc.number, tc.state, tc.message, got.Num, got.State, got.Message)
		}
	}
}

// A client sees neither the address of the object in conflict nor the names of the packages that an
// error has passed through.
func TestTextsWithoutOurNames(t *testing.T) {
	lost := &mysql.SQLError{Num: 1213, State: "40001", Message: "serialization failure: txn: conflict over (3, 0x1f40), try restarting transaction."}
	if got := refine(lost); got.Message != Deadlock.format {
		t.Errorf("%q", got.Message)
	}
	if got := refine(&mysql.SQLError{Num: 1105, State: "HY000", Message: "sql: txn: key exists"}); got.Message != "key exists" {
		t.Errorf("%q", got.Message)
	}
}

// A client sees MySQL's text where programs look for parts of it.
func TestTexts(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want string
	}{
		{gms.NewUniqueKeyErr("Duplicate entry 'a\nb' for key 't.k'", false, nil), "Duplicate entry 'a\nb' for key 't.k'"},
		{gms.NewUniqueKeyErr("Duplicate entry '1' for key 't.PRIMARY'", true, nil), "Duplicate entry '1' for key 't.PRIMARY'"},
		{gms.ErrInsertIntoNonNullableProvidedNull.New("a"), "Column 'a' cannot be null"},
		{types.ErrLengthBeyondLimit.New("it's too large for column 'x'", "c"), "Data too long for column 'c'"},
		{gms.ErrCheckConstraintViolated.New("t_chk_1"), "Check constraint 't_chk_1' is violated."},
		{gms.ErrTableAlreadyExists.New("t"), "Table 't' already exists"},
		{gms.ErrDatabaseNotFound.New("d"), "Unknown database 'd'"},
		{gms.ErrDatabaseExists.New("d"), "Can't create database 'd'; database exists"},
		{gms.ErrColumnExists.New("c"), "Duplicate column name 'c'"},
		{gms.ErrInsertIntoMismatchValueCount.New(), "Column count doesn't match value count at row 1"},
		{gms.ErrTableNotFound.New("t"), "table not found: t"},
	} {
		for _, err := range []error{tc.err, errors.New(tc.err.Error())} {
			if got := Of(err).Error(); !strings.HasPrefix(got, tc.want+" (errno ") || Of(err).Num == mysql.ERUnknownError {
				t.Errorf("%T %q: got %q, want %q", err, err, got, tc.want)
			}
		}
	}
}

// TestTold lists the errors that a client sees for each kind of error of go-mysql-server and of storage,
// and for its text alone.
func TestTold(t *testing.T) {
	datadriven.RunTest(t, "testdata/told", func(t *testing.T, d *datadriven.TestData) string {
		var b strings.Builder
		each := func(err error, ofText bool) {
			e := Of(err)
			fmt.Fprintf(&b, "%d %s %s\n", e.Num, e.State, e.Message)
			if again := Of(gms.CastSQLError(err)); ofText && (again.Num != e.Num || again.State != e.State) {
				fmt.Fprintf(&b, "  its text: %d %s %s\n", again.Num, again.State, again.Message)
			}
		}
		switch d.Cmd {
		case "engine":
			for _, k := range engineKinds {
				each(k.kind.New(examples(k.kind.Message)...), k.kind != gms.ErrSyntaxError)
			}
		case "numbered-by-the-engine":
			for _, k := range []*goerrors.Kind{
				gms.ErrKeyZero, gms.ErrKeyTooLong, gms.ErrInvalidBlobTextKey, gms.ErrColumnFunctionalIndexDependency, gms.ErrWrongDBName,
				gms.ErrNonAggregatedColumnWithoutGroupBy, gms.ErrPartitionNotFound, gms.ErrForeignKeyChildViolation, gms.ErrForeignKeyParentViolation,
				gms.ErrDuplicateEntry, gms.ErrInvalidJSONText, gms.ErrWrongAutoKey, gms.ErrCantDropIndex, gms.ErrInvalidValue, gms.ErrLockDeadlock,
			} {
				each(k.New(examples(k.Message)...), true)
			}
		case "storage":
			for _, s := range stored {
				each(fmt.Errorf("reading: %w", s.err), true)
			}
		}
		return b.String()
	})
}

// examples are arguments for the verbs of a message.
func examples(message string) []any {
	verbs := verb.FindAllString(message, -1)
	args := make([]any, len(verbs))
	for i, v := range verbs {
		if args[i] = string(rune('a' + i)); strings.HasSuffix(v, "d") {
			args[i] = 7 + i
		}
	}
	return args
}
