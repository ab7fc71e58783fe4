package sql

import (
	"fmt"
	"strings"
	"testing"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/types"
)

// SHOW VARIABLES shows of each variable what it shows without a filter.
func TestShowVariables(t *testing.T) {
	c := newInstance(t).client("")
	c.exec("SET sql_mode = 'ANSI_QUOTES', autocommit = 0, wait_timeout = 17")
	shown := make(map[string]string)
	all := c.exec("SHOW VARIABLES")
	for _, row := range all {
		shown[row[0].(string)] = fmt.Sprint(row)
	}
	if len(shown) < 300 {
		t.Fatalf("%d variables", len(shown))
	}
	for name, want := range shown {
		for _, where := range []string{"LIKE '%s'", "WHERE Variable_name = '%s'", "WHERE variable_name IN ('%s')", "WHERE Variable_name = 'nosuch' OR Variable_name LIKE '%s'"} {
			found := false
			for _, row := range c.exec("SHOW VARIABLES " + fmt.Sprintf(where, strings.ToUpper(name))) {
				found = found || name == "timestamp" || fmt.Sprint(row) == want
			}
			if !found {
				t.Errorf("%s: not as %s", fmt.Sprintf(where, name), want)
			}
		}
	}
	for _, q := range []string{
		"LIKE 'character\\_set\\_%'", "LIKE '%version%'", "LIKE ''", "LIKE '_ersion'", "WHERE Variable_name IN ('sql_mode', 'autocommit', 'nosuch')",
		"LIKE 'é%'", "WHERE Variable_name = 5", "WHERE Variable_name NOT LIKE 'a%'",
	} {
		want := c.exec("SHOW VARIABLES " + q)
		got := c.exec("SHOW SESSION VARIABLES " + q)
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", q, got, want)
		}
		for i := 1; i < len(got); i++ {
			if got[i-1][0].(string) >= got[i][0].(string) {
				t.Errorf("%s: %v before %v", q, got[i-1], got[i])
			}
		}
	}
	if rows := c.exec("SHOW VARIABLES LIKE 'character\\_set\\_%'"); len(rows) < 6 {
		t.Errorf("%v", rows)
	}
}

// Filters whose names have no common beginning look at all variables.
func TestBeginnings(t *testing.T) {
	name := expression.NewGetField(0, types.LongText, "Variable_name", false)
	text := func(s string) *expression.Literal { return expression.NewLiteral(s, types.LongText) }
	for _, c := range []struct {
		filter gms.Expression
		want   string
	}{
		{expression.NewLike(name, text("Max_a%"), nil), "[max]"},
		{expression.NewLike(name, text("%x"), nil), ""},
		{expression.NewLike(name, text("a"), text("|")), ""},
		{expression.NewEquals(name, text("sql_mode")), "[sql]"},
		{expression.NewEquals(text("a"), name), ""},
		{expression.NewOr(expression.NewEquals(name, text("ab")), expression.NewLike(name, text("c%"), nil)), "[ab c]"},
		{expression.NewOr(expression.NewEquals(name, text("ab")), expression.NewLike(name, text("%"), nil)), ""},
		{expression.NewInTuple(name, expression.NewTuple(text("ab"), text("cd"))), "[ab cd]"},
		{expression.NewInTuple(name, expression.NewTuple(text("ab"), text("é"))), ""},
		{expression.NewInTuple(text("a"), expression.NewTuple(text("ab"))), ""},
	} {
		all, ok := beginningsOf(c.filter)
		if got := fmt.Sprint(all); ok != (c.want != "") || (ok && got != c.want) {
			t.Errorf("%v: %s %v, want %s", c.filter, got, ok, c.want)
		}
	}
}
