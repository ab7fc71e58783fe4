package sql

import (
	"strings"
	"testing"
)

// The parts of an ALTER TABLE may use the new names of columns that others rename. The definitions are
// MariaDB's.
func TestAlterWithNewNames(t *testing.T) {
	const table = "create table t (id int primary key, x int, q int); insert into t values (1, 2, 3); alter table t "
	const shown = "select group_concat(column_name order by ordinal_position), (select group_concat(concat(index_name, '=', column_name) order by index_name, seq_in_index) " +
		"from information_schema.statistics where table_schema = 'd' and table_name = 't') from information_schema.columns where table_schema = 'd' and table_name = 't'"
	for alter, want := range map[string]string{
		"change x y int, add index (y)":                                     "id,y,q | PRIMARY=id,y=y\n",
		"rename column x to y, add unique key u (q, y)":                     "id,y,q | PRIMARY=id,u=q,u=y\n",
		"change x Y bigint not null, drop primary key, add primary key (y)": "id,Y,q | PRIMARY=Y\n",
		"change x y int, add column w int after y, add index (y, w)":        "id,y,w,q | PRIMARY=id,y=y,y=w\n",
		"change x y int, change q r int, add index (r), add index (y)":      "id,y,r | PRIMARY=id,r=r,y=y\n",
		"change x x bigint, add index (x)":                                  "id,x,q | PRIMARY=id,x=x\n",
		"change x y int, drop column q":                                     "id,y | PRIMARY=id\n",
	} {
		shows{table + alter, shown, want}.test(t)
	}
	shows{table + "add index (q)", "alter table t change x y int, add index (nosuch)", "error 1072"}.test(t)
}

// A column gets no name that another keeps, and the order of the parts of an ALTER TABLE does not
// matter. The rows are MariaDB's, which also swaps names.
func TestAlterTakesNamesOfOthers(t *testing.T) {
	const table = "create table t (a int, b int, c int); insert into t values (1, 2, 3)"
	const shown = "select (select group_concat(column_name order by ordinal_position) from information_schema.columns where table_schema = 'd' and table_name = 't'), t.* from t"
	for alter, want := range map[string]string{
		"change b a int, change a x int":                                           "x,a,c | 1 | 2 | 3\n",
		"rename column b to a, rename column a to x":                               "x,a,c | 1 | 2 | 3\n",
		"change c b int, change b a bigint, change a x int":                        "x,a,b | 1 | 2 | 3\n",
		"change a x bigint, change b y bigint, add column g int as (c + 1) stored": "x,y,c,g | 1 | 2 | 3 | 4\n",
		"add column a2 int default 9, change b y int after x, change a x int":      "x,y,c,a2 | 1 | 2 | 3 | 9\n",
		"change a x int, add column a int default 5":                               "x,b,c,a | 1 | 2 | 3 | 5\n",
		"change a b int, drop column b":                                            "b,c | 1 | 3\n",
		"change a x int, change b y bigint":                                        "x,y,c | 1 | 2 | 3\n",
		"change a x int, modify c varchar(9) not null":                             "x,b,c | 1 | 2 | 3\n",
		"change a x int, add d int not null default 4 first":                       "d,x,b,c | 4 | 1 | 2 | 3\n",
		"change b B int, change a x int":                                           "x,B,c | 1 | 2 | 3\n",
		"change a b int":                                                           "error 1060",
		"change a B int, add index (b)":                                            "error 1060",
		"change a x int, change b x int":                                           "error 1060",
		"change a b int, change b a int":                                           "error 1060",
		"change a b int, change b c bigint, change c a int":                        "error 1060",
		"rename column a to b, rename column b to a":                               "error 1060",
	} {
		if strings.HasPrefix(want, "error") {
			shows{table, "alter table t " + alter, want}.test(t)
			continue
		}
		shows{table + "; alter table t " + alter, shown, want}.test(t)
	}
	const generated = "create table t (a int, b int, g int as (a + 1) stored); insert into t (a, b) values (1, 2); "
	shows{generated + "alter table t change a x bigint, change b y bigint", shown, "x,y,g | 1 | 2 | 2\n"}.test(t)
	shows{generated + "alter table t rename column a to x, modify b bigint; insert into t (x, b) values (7, 8)", "select * from t order by x", "1 | 2 | 2\n7 | 8 | 8\n"}.test(t)
	shows{generated + "alter table t change a x bigint; insert into t (x, b) values (7, 8)", "select * from t order by x", "1 | 2 | 2\n7 | 8 | 8\n"}.test(t)
	const checked = "create table t (a int, b int, check (a > 0)); insert into t values (1, 2)"
	shows{checked, "alter table t change a x int", "error 3959"}.test(t)
	shows{checked, "alter table t change a x int, change b y int", "error 3959"}.test(t)
	shows{checked + "; alter table t change b y bigint; insert into t values (3, 4)", "select * from t order by a", "1 | 2\n3 | 4\n"}.test(t)
}
