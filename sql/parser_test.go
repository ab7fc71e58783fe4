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
		{"select a from t join u using (account, a, `format`)", "select a from t join u using ( `account`, a, `format`)"},
		{"create table t (a int references d.u (comment), foreign key (a) references u(password,b))", "create table t (a int references d.u ( `comment`), foreign key (a) references u( `password`,b))"},
		{"select a from t join u using (", ""},
		{"create table t (a int, b int, primary key using btree (a, b), unique key `k` using hash (b), key using btree (a) comment 'x')", "create table t (a int, b int, primary key (a, b) using btree, unique key `k` (b) using hash, key (a) using btree comment 'x')"},
		{"alter table t add unique using btree (a), add index k using hash (b), add key key_block_size using btree (a)", "alter table t add unique (a) using btree, add index k (b) using hash, add key key_block_size (a) using btree"},
		{"create unique index i using hash on d.t (a(5), b)", "create unique index i on d.t (a(5), b) using hash"},
		{"create table t (a int primary key, key (a) using btree, key k using btree", ""},
		{"alter table t add key using btree", ""},
		{"select a from t join u using (a) where 'key using btree (a)' = b", ""},
		{"savepoint first", "savepoint `first`"},
		{"rollback work to savepoint first", "rollback work to savepoint `first`"},
		{"rollback to First;", "rollback to `First`;"},
		{"release savepoint first", "release savepoint `first`"},
		{"savepoint `first`", ""},
		{"rollback", ""},
		{"rollback to a", ""},
		{"alter table t drop column a cascade, drop b restrict, drop index i, drop c", "alter table t drop column a , drop b , drop index i, drop c"},
		{"alter table t add foreign key (a) references u (a) on delete cascade, drop primary key", ""},
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
