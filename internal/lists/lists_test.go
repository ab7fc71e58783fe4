package lists

import (
	"context"
	stdsql "database/sql"
	"errors"
	"slices"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/farmsql/farmsql/internal/history"
)

func TestParse(t *testing.T) {
	for text, want := range map[string][]history.Value{"": nil, "7": {7}, "7,8,9": {7, 8, 9}} {
		if got, err := Parse(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{",", "7,", "7;8", "-1"} {
		if _, err := Parse(text); !errors.Is(err, ErrText) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestOutcome(t *testing.T) {
	for _, c := range []struct {
		err  error
		want history.Outcome
	}{
		{nil, history.Committed},
		{&mysql.MySQLError{Number: 1213}, history.Aborted},
		{&mysql.MySQLError{Number: 1053}, history.Unknown},
		{&mysql.MySQLError{Number: 1180}, history.Unknown},
		{mysql.ErrInvalidConn, history.Unknown},
	} {
		if got := outcomeOf(c.err); got != c.want {
			t.Errorf("%v: %v, want %v", c.err, got, c.want)
		}
	}
}

// TestErrors: without a server nothing can be done, and a history without transactions is worth nothing.
func TestErrors(t *testing.T) {
	db, err := stdsql.Open("mysql", "root@tcp(127.0.0.1:1)/d?timeout=1s")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	c, err := New(context.Background(), db)
	if err == nil {
		t.Error("a table was made without a server")
	}
	if err := c.ReadAll(context.Background(), db, "all"); err == nil {
		t.Error("lists were read without a server")
	}
	if _, err := c.Check(); !errors.Is(err, ErrIdle) {
		t.Errorf("an empty history: %v", err)
	}
}
