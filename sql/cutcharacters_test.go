package sql

import "testing"

// TestCutCharacters: CAST to CHAR(n) cut bytes, and nothing for n = 0. The results are MariaDB's.
func TestCutCharacters(t *testing.T) {
	const setup = "create table t (s varchar(20)); insert into t values ('äöüß'), ('日本語'), (null), ('abc')"
	for _, s := range []shows{
		{setup, "select cast(s as char(2)), concat(cast(s as char(1)), '!'), length(convert(s, char(2))) from t", "äö | ä! | 4\n日本 | 日! | 6\nNULL | NULL | NULL\nab | a! | 2\n"},
		{setup, "select cast('abc' as char(0)), cast(12345 as char(3)), cast('äöü' as nchar(2)), cast('abc' as char(10)), cast('2024-01-02' as char(4)), cast(1.50 as char(3))", " | 123 | äö | abc | 2024 | 1.5\n"},
		{setup, "select cast(s as char(2)) x, count(*) from t group by cast(s as char(2)) order by x", "NULL | 1\nab | 1\näö | 1\n日本 | 1\n"},
		{setup, "select s from t where cast(s as char(2)) = 'ÄÖ'", "äöüß\n"},
	} {
		s.testTwice(t)
	}
}
