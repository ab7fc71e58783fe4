package sql

import "testing"

// TestPartitions: statements about partitions succeeded and did nothing, or read and deleted rows
// of all of them.
func TestPartitions(t *testing.T) {
	const setup = "create table t (a int primary key) partition by range (a) (partition p0 values less than (3), partition p1 values less than (maxvalue)); insert into t values (1), (5); create table u (a int primary key)"
	for _, s := range []shows{
		{setup, "select * from t order by a", "1\n5\n"},
		{setup, "select sum(a) over (partition by a) from t order by a", "1\n5\n"},
		{setup + "; alter table u partition by hash (a) partitions 4", "select count(*) from u", "0\n"},
		{setup, "alter table t drop partition p0", "error 1505"},
		{setup, "alter table t add partition (partition p2 values less than (9))", "error 1505"},
		{setup, "alter table t coalesce partition 2", "error 1505"},
		{setup, "alter table t exchange partition p0 with table u", "error 1505"},
		{setup, "alter table t remove partitioning", "error 1505"},
		{setup, "alter table t rebuild partition p0", "error 1505"},
		{setup, "select * from t partition (p0)", "error 1747"},
		{setup, "select * from u where a in (select a from t partition (p0))", "error 1747"},
		{setup, "insert into t partition (p0) values (2)", "error 1747"},
		{setup, "delete from t partition (p0)", "error 1747"},
		{setup, "update t partition (p0) set a = 9", "error 1747"},
		{setup, "create view v as select * from t partition (p0)", "error 1747"},
		{setup, "create procedure p() delete from t partition (p0)", "error 1747"},
	} {
		s.test(t)
	}
}
