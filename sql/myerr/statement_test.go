package myerr

import (
	"testing"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/vitess/go/vt/sqlparser"
)

// SET and DEALLOCATE have MySQL's errors for missing names and invalid values.
func TestErrorsOfSet(t *testing.T) {
	for _, tc := range []struct {
		text   string
		err    error
		number int
		want   string
	}{
		{"set nosuch = 1", gms.ErrColumnNotFound.New("nosuch"), 1193, "Unknown system variable 'nosuch'"},
		{"set @a = nosuch", gms.ErrColumnNotFound.New("nosuch"), 1054, `column "nosuch" could not be found in any table in scope`},
		{"set sql_mode = 'x'", gms.ErrInvalidSetValue.New("x"), 1231, "Variable 'sql_mode' can't be set to the value of 'x'"},
		{"set wait_timeout = 'x'", gms.ErrInvalidSystemVariableValue.New("wait_timeout", "x"), 1232, "Incorrect argument type to variable 'wait_timeout'"},
		{"set autocommit = 'x'", gms.ErrInvalidSystemVariableValue.New("autocommit", "x"), 1231, "Variable 'autocommit' can't be set to the value of 'x'"},
		{"set autocommit = 5", gms.ErrInvalidSystemVariableValue.New("autocommit", 5), 1231, "Variable 'autocommit' can't be set to the value of '5'"},
		{"deallocate prepare s", gms.ErrUnknownPreparedStatement.New("s"), 1243, "Unknown prepared statement handler (s) given to DEALLOCATE PREPARE"},
		{"execute s", gms.ErrUnknownPreparedStatement.New("s"), 1243, "Unknown prepared statement handler (s) given to EXECUTE"},
	} {
		stmt, err := sqlparser.Parse(tc.text)
		if err != nil {
			t.Fatal(err)
		}
		got := In(stmt, "", tc.err)
		if got.Num != tc.number || got.Message != tc.want {
			t.Errorf("%s: got %v, want %d %s", tc.text, got, tc.number, tc.want)
		}
	}
}

// The error for a missing table names the table's database, if the statement shows which that is,
// and has the engine's suggestion.
func TestMissingTableText(t *testing.T) {
	if got, want := missingTableText(nil, "test", "table not found: order, maybe you mean orders?"), "Table 'order' doesn't exist, maybe you mean orders?"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
