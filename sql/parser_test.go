package sql

import (
	"context"
	"testing"

	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/compat"
)

func TestRespell(t *testing.T) {
	for _, tt := range []struct{ query, want string }{
		{"SELECT 1", ""},
		{"select a from t for share", "select a from t LOCK IN SHARE MODE"},
		{"select a from t /* for */ FOR  /* x */ SHARE ;select 2", "select a from t LOCK IN SHARE MODE ;select 2"},
		{"select a from t for share of t, u nowait", "select a from t LOCK IN SHARE MODE"},
		{"select a from t for share of `t` skip locked;", "select a from t LOCK IN SHARE MODE;"},
		{"select * from (select a from t for share) x for share", "select * from (select a from t LOCK IN SHARE MODE) x LOCK IN SHARE MODE"},
		{"select 'for share', `for share`, \"for share\" -- for share", ""},
		{"select 1; select 2 for share", ""},
		{"select a from t for update", ""},
		{"select 'unfinished for share", ""},
		{"create table t (`y` year(4) default 2020, z YEAR ( 4 ), primary key (`y`))", "create table t (`y` year default 2020, z YEAR, primary key (`y`))"},
		{"alter table t add y year(4)", "alter table t add y year"},
		{"select year(4), a, year(4) from t where b = year(4)", ""},
		{"create table t (y year(2))", ""},
	} {
		got, found := compat.Respell(tt.query, sqlparser.ParserOptions{})
		if found != (tt.want != "") || found && got != tt.want {
			t.Errorf("%q: got %q, %v", tt.query, got, found)
		}
	}
	if _, found := compat.Respell(`select "a" from t for share`, sqlparser.ParserOptions{AnsiQuotes: true}); !found {
		t.Error("ANSI_QUOTES: not found")
	}
}

// FOR SHARE is accepted where MySQL accepts it and nowhere else, and errors quote the text that the
// client has written.
func TestParseShareLocks(t *testing.T) {
	for _, query := range []string{
		"select a from t for share",
		"select a from t where b = 'for share' order by a limit 1 for share of t nowait",
		"(select a from t for share) union (select 1)",
		"create view v as select a from t for share",
		"insert into u select a from t for share skip locked",
	} {
		if _, err := (parser{}).ParseSimple(query); err != nil {
			t.Errorf("%q: %v", query, err)
		}
	}
	for _, query := range []string{
		"select a from t for share where a = 1",
		"update t set a = 1 for share",
		"select a from t for share of",
		"select a from t for share for share",
	} {
		_, err := (parser{}).ParseSimple(query)
		_, theirs := sqlparser.Parse(query)
		if err == nil || err.Error() != theirs.Error() {
			t.Errorf("%q: %v", query, err)
		}
	}
	_, text, rest, err := (parser{}).ParseWithOptions(context.Background(), "select a from t for share of t ; select 2;", ';', true, sqlparser.ParserOptions{})
	if err != nil || text != "select a from t for share of t" || rest != " select 2" {
		t.Errorf("several statements: %q, %q, %v", text, rest, err)
	}
}
