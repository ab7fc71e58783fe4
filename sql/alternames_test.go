package sql

import "testing"

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
