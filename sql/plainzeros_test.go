package sql

import "testing"

// TestPlainZeros: doubles were -0. The results are MariaDB's.
func TestPlainZeros(t *testing.T) {
	const setup = "create table t (id int primary key, d double, f float); insert into t values (1, -0.4, -0.4), (2, 0, 0), (3, 2.5, -2.5)"
	for _, s := range []shows{
		{setup, "select round(d), round(f), ceil(d), d * 0, d * -1, -d, d / -5, 0 - d from t order by id", "0 | 0 | 0 | 0 | 0.4 | 0.4 | 0.08 | 0.4\n0 | 0 | 0 | 0 | 0 | 0 | 0 | 0\n2 | -2 | 3 | 0 | -2.5 | -2.5 | -0.5 | -2.5\n"},
		{setup, "select round(-0.4e0), round(-4e0, -1), ceil(-0.5e0), floor(-0e0), -1e0 * 0, concat(round(-0.4e0))", "0 | 0 | 0 | 0 | 0 | 0\n"},
	} {
		s.testTwice(t)
	}
}
