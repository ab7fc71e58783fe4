package wire

import (
	"testing"

	"github.com/dolthub/vitess/go/mysql"
)

// Every kind must be recognised by its own message, whatever its arguments are,
// and by no entry above it.
func TestKindsAreRecognised(t *testing.T) {
	for _, k := range numberedKinds {
		args := make([]any, len(verb.FindAllString(k.kind.Message, -1)))
		for i := range args {
			args[i] = "x\n'y' %d"
		}
		if got := numberOf(k.kind.New(args...).Error()); got != k.number {
			t.Errorf("%q: %d, want %d", k.kind.Message, got, k.number)
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
		{1213, "40001", "serialization failure", 1213, "40001"},
		{1644, "45000", "signalled", 1644, "45000"},
		{1105, "HY000", "Column count doesn't match value count at row 3", 1136, "21S01"},
	} {
		got := asMySQL(&mysql.SQLError{Num: tc.number, State: tc.state, Message: tc.message})
		if got.Num != tc.want || got.State != tc.wantS || got.Message != tc.message {
			t.Errorf("%d (%s) %q: got %d (%s) %q", tc.number, tc.state, tc.message, got.Num, got.State, got.Message)
		}
	}
}
