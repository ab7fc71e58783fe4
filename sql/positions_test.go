package sql

import "testing"

// TestPositions: LOCATE ignored case whatever the collation, INSTR never did, and INSERT cut
// characters.
func TestPositions(t *testing.T) {
	const setup = "create table t (s varchar(10), b varchar(10) collate utf8mb4_bin, x varbinary(20)); insert into t values ('abC', 'abC', 'é日')"
	for _, s := range []shows{
		{setup, "select locate('B', 'abc'), locate(binary 'B', 'abc'), instr('abc', 'B'), position('B' in 'abc'), locate('b', 'abcb', 3)", "2 | 0 | 2 | 2 | 4\n"},
		{setup, "select locate('B' collate utf8mb4_bin, 'abc'), locate('', 'abc'), locate('', 'abc', 4), locate('', 'abc', 5)", "0 | 1 | 0 | 0\n"},
		{setup, "select locate('a', 'abc', 9223372036854775807), locate('a', 'abc', 4611686018427387905), locate(binary 'a', 'abc', 9223372036854775807)", "0 | 0 | 0\n"},
		{setup, "select locate('日', 'é本日'), instr('é本日', '日'), locate('É', 'xé'), locate('x', 'abc', 0), locate('x', 'abc', -1)", "3 | 3 | 2 | 0 | 0\n"},
		{setup, "select locate('c', s), locate('c', b), locate('C', b), instr(s, 'c'), instr(b, 'c'), locate('日', x), instr(x, '日') from t", "3 | 0 | 3 | 3 | 0 | 3 | 3\n"},
		{setup, "select locate(2, 123), instr(123.5, '.5'), locate(null, 'a'), instr('a', null), locate('a', 'a', null)", "2 | 4 | NULL | NULL | NULL\n"},
		{setup, "select locate('a')", "error 1582"},
		{setup, "select insert('日本語', 2, 1, 'xy'), insert('é日', 1, 1, 'z'), insert('abc', 0, 1, 'z'), insert('abc', 5, 1, 'z'), insert('abc', 2, -1, 'z'), insert('abc', 3, 9, 'z')", "日xy語 | z日 | abc | abc | az | abz\n"},
		{setup, "select insert(s, 2, 1, 'é'), insert(12345, 2, 2, 'x'), hex(insert(x, 2, 1, 'z')), insert(s, null, 1, 'x') from t", "aéC | 1x45 | C37AE697A5 | NULL\n"},
	} {
		s.testTwice(t)
	}
}
