package sql

import (
	"fmt"
	"strings"
	"testing"
	"time"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/sql/myerr"
)

// within runs a statement, and fails the test if it takes longer than anything here should.
func (c *client) within(query string) (gms.Schema, []gms.Row, error) {
	c.in.t.Helper()
	type result struct {
		schema gms.Schema
		rows   []gms.Row
		err    error
	}
	done := make(chan result, 1)
	go func() {
		schema, rows, err := c.run(query)
		done <- result{schema, rows, err}
	}()
	select {
	case r := <-done:
		return r.schema, r.rows, r.err
	case <-time.After(5 * time.Second):
		c.in.t.Fatalf("%s: hangs", query)
	}
	return nil, nil, nil
}

// shown is what a statement returns: its rows, "ok", or an error's number.
func (c *client) shown(query string) string {
	c.in.t.Helper()
	schema, rows, err := c.within(query)
	switch {
	case err != nil:
		return fmt.Sprintf("error %d", myerr.Of(err).Num)
	case len(rows) == 0:
		return ""
	case strings.HasPrefix(c.show(schema, rows), "{"):
		return "ok"
	}
	return c.show(schema, rows)
}

// shows is a test: the statements of setup must succeed, and then query must have the result want.
type shows struct{ setup, query, want string }

func (s shows) test(t *testing.T) {
	t.Run(s.query, func(t *testing.T) {
		if got := s.client(t).shown(s.query); got != s.want {
			t.Errorf("got %q, want %q", got, s.want)
		}
	})
}

// testTwice tests the query as a text, and prepared.
func (s shows) testTwice(t *testing.T) {
	s.test(t)
	t.Run("prepared "+s.query, func(t *testing.T) {
		c := s.client(t)
		_, _, err := c.run("prepare q from '" + strings.NewReplacer(`\`, `\\`, "'", "''").Replace(s.query) + "'")
		var got string
		if err != nil {
			got = fmt.Sprintf("error %d", myerr.Of(err).Num)
		} else {
			got = c.shown("execute q")
		}
		if got != s.want {
			t.Errorf("got %q, want %q", got, s.want)
		}
	})
}

// client returns a client for which the statements of the setup have been executed.
func (s shows) client(t *testing.T) *client {
	c := newInstance(t).client("")
	c.exec("create database d")
	c.exec("use d")
	for _, q := range strings.Split(s.setup, ";") {
		if strings.TrimSpace(q) != "" {
			c.exec(q)
		}
	}
	return c
}

// TestDropColumnOfPrimaryKey: what remains of the key is the key, and must be unique.
func TestDropColumnOfPrimaryKey(t *testing.T) {
	const two = "create table t (a int, b int, c int, primary key (a, b), key (c)); insert into t values (1,1,1),(2,2,2),(3,2,3);"
	for _, s := range []shows{
		{two + "alter table t drop column b", "select * from t order by a", "1 | 1\n2 | 2\n3 | 3\n"},
		{two + "alter table t drop column b", "insert into t values (1, 9)", "error 1062"},
		{two, "alter table t drop column a", "error 1062"},
		{two + "delete from t where a = 3; alter table t drop column a; insert into t values (7, 7)", "select * from t where b = 7", "7 | 7\n"},
		{two + "alter table t drop column b, drop column a", "select c from t where c = 3", "3\n"},
		{two + "alter table t drop column b; alter table t drop column a; insert into t values (3)", "select count(*) from t where c = 3", "2\n"},
		{"create table t (a int primary key auto_increment, b int, key (b)); insert into t (b) values (5),(6); alter table t drop column a; insert into t values (5)", "select count(*) from t where b = 5", "2\n"},
		{"create table t (s varchar(100), a int, primary key (s(2), a)); insert into t values ('abc',1),('xyz',2); alter table t drop column a", "insert into t values ('abd')", "error 1062"},
		{"create table t (a int primary key, b int); insert into t values (1,2); alter table t drop column a, add column n int, add primary key (b)", "select * from t where b = 2", "2 | NULL\n"},
		{"create table t (a int primary key); create table u (a int, foreign key (a) references t (a))", "alter table t drop column a", "error 1828"},
	} {
		s.test(t)
	}
}

// TestDefaultOfColumn: DEFAULT(column) is refused where it panicked.
func TestDefaultOfColumn(t *testing.T) {
	const table = "create table t (a int default 7, b int default 8, c varchar(10) default 'default')"
	for _, s := range []shows{
		{table, "select default(a)", "error 1054"},
		{table, "select default(a) from dual", "error 1054"},
		{table, "select default(a) from t", "error 1235"},
		{table, "select * from t where a = default(a)", "error 1064"},
		{table, "select * from t order by default(a)", "error 1235"},
		{table, "create view v as select default(a) from t", "error 1235"},
		{table, "explain select default(a) from t", "error 1235"},
		{table, "create table u select default(a) from t", "error 1235"},
		{table, "select (select default(a))", "error 1054"},
		{table, "select default(a) union select 1", "error 1235"},
		{table, "insert into t (a) values (default(b))", "error 1235"},
		{table, "insert into t (a) values (default(a) + 1)", "error 1064"},
		{table, "insert into t (a) values (default + 1)", "error 1064"},
		{table, "update t set a = default(b)", "error 1235"},
		{table, "delete from t where a = default(a)", "error 1064"},
		{table + "; insert into t values (default, 1, default); insert into t (a, b) values (default(a), 1); update t set b = default, a = default(a)", "select * from t", "7 | 8 | default\n7 | 8 | default\n"},
		{table + "; insert into t values (default(a), default(b), 'x'); insert into t (b) select 3", "select * from t", "7 | 8 | x\n7 | 3 | default\n"},
	} {
		s.test(t)
	}
}

// TestJoinsOfBytes: statistics of an index of bytes panicked, in ANALYZE and in the joins that
// are planned by them.
func TestJoinsOfBytes(t *testing.T) {
	const setup = "create table a (id int primary key, v varbinary(20) not null, w binary(3), x blob, key (v), key (w), key (x(4)));" +
		"create table b (id int primary key, v varbinary(20), w binary(3), x blob, unique key (v));" +
		"insert into a values (1,x'ff00',x'ff0000',x'ff'),(2,x'ab',x'ab0000',x'fe'),(3,'',null,null),(4,x'80','abc','x');" +
		"insert into b select * from a; analyze table a; analyze table b"
	for _, column := range []string{"v", "w", "x"} {
		found, missing := "1\n2\n4\n", "3\n"
		if column == "v" {
			found, missing = "1\n2\n3\n4\n", ""
		}
		on := " on a." + column + " = b." + column
		for _, hint := range []string{"", "/*+ MERGE_JOIN(a,b) */ ", "/*+ HASH_JOIN(a,b) */ ", "/*+ LOOKUP_JOIN(a,b) */ "} {
			shows{setup, "select " + hint + "a.id from a join b" + on + " order by a.id", found}.test(t)
		}
		shows{setup, "select a.id from a left join b" + on + " where b.id is null", missing}.test(t)
		shows{setup, "select a.id from a where " + column + " in (select " + column + " from b) order by a.id", found}.test(t)
		shows{setup, "select a.id from a join b" + on + " where a." + column + " = x'ff00'", map[string]string{"v": "1\n"}[column]}.test(t)
	}
}

// TestErrorOfGroup: an aggregate that fails, over more rows than go-mysql-server has room for
// between two goroutines, hung for ever.
func TestErrorOfGroup(t *testing.T) {
	const setup = "create table t (id int primary key, t time, v varbinary(4), s varchar(9), n decimal(65,0)); insert into t values (1,'10:00:00',x'ff','a',1),(2,'10:00:00',x'fe','A',2),(3,null,null,null,null);" +
		"create table u (id int primary key); insert into u with recursive c as (select 1 as i union all select i + 1 from c where i < 900) select i from c"
	for _, s := range []shows{
		{setup, "select count(distinct t.t), count(distinct v), count(distinct s), count(distinct t.id, v), count(distinct t.id, t.t) from t", "1 | 2 | 1 | 2 | 2\n"},
		{setup, "select t.id, count(distinct t.t), count(distinct v) from t cross join u group by t.id order by t.id", "1 | 1 | 1\n2 | 1 | 1\n3 | 0 | 0\n"},
		{setup, "select t.id, sum(-u.id - 9223372036854775807 - 9) from t cross join u group by t.id", "error 1690"},
		{setup, "select -u.id - 9223372036854775807 - 9, count(*) from t cross join u group by -u.id - 9223372036854775807 - 9", "error 1690"},
		{setup, "select t.id, max((select w.id from u w where w.id < 3)) from t cross join u group by t.id", "error 1242"},
	} {
		s.test(t)
	}
}
