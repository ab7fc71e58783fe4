package sql

import "testing"

// TestInvisible: INVISIBLE did nothing; it is refused, and may be a name.
func TestInvisible(t *testing.T) {
	const table = "create table t (a int, b int, key k (b));"
	for _, s := range []shows{
		{"", "create table i (a int primary key, b int invisible)", "error 1235"},
		{"", "create table i (a int invisible default 5, b int)", "error 1235"},
		{"", "create table i (a int, b varchar(10) not null invisible comment 'x')", "error 1235"},
		{"", "create table i (a int, key (a) invisible)", "error 1235"},
		{"", "create table i (a int, b int /*!80023 INVISIBLE */)", "error 1235"},
		{table, "create index i on t (a) invisible", "error 1235"},
		{table, "alter table t add column d int invisible", "error 1235"},
		{table, "alter table t add column d int invisible after a", "error 1235"},
		{table, "alter table t add index i (a) invisible", "error 1235"},
		{table, "alter table t alter index k invisible", "error 1235"},
		{"create table t (invisible int, b int as (invisible + 1), c int comment 'invisible', key invisible (invisible))", "select invisible from t", ""},
		{table + "alter table t alter index k visible; alter table t add column invisible int after a; alter table t add c int after invisible", "select invisible from t", ""},
		{table + "alter table t change a invisible int; alter table t drop column invisible", "select * from t", ""},
	} {
		s.test(t)
	}
}
