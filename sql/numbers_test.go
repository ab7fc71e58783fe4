package sql

import "testing"

// TestNumbers: ABS of the least integer was negative, SIGN of 0.25 was 0, ROUND of doubles rounded
// halves up, and TRUNCATE of decimals lost digits. Operators of bits lost the
// last ones of large numbers. There was no operator ~, and no BENCHMARK.
func TestNumbers(t *testing.T) {
	const setup = "create table t (i int, b bigint, s smallint, d decimal(20,0), n decimal(10,3), f double, u bigint unsigned); insert into t values (-2147483648, -9223372036854775808, -32768, 99999999999999999999, -1.567, -2.5, 18446744073709551615)"
	for _, s := range []shows{
		{setup, "select round(u, -1) from t", "error 1690"},
		{setup, "select truncate(u, -1), round(u, 1), truncate(u, 2), truncate(b, -3), round(i, -2), round(s, -30) from t", "18446744073709551610 | 18446744073709551615 | 18446744073709551615 | -9223372036854775000 | -2147483600 | 0\n"},
		{setup, "select truncate(-5000111000111000155, -1), round(-5000111000111000155, -1), round(15000111000111000155, -1), round(15, -1), round(-15, -1), round(14, -1), truncate(-19, -1), round(7, 2), round(null, 1), round(7, null)", "-5000111000111000150 | -5000111000111000160 | 15000111000111000160 | 20 | -20 | 10 | -10 | 7 | NULL | NULL\n"},
		{setup, "select abs(i), abs(s), abs(d), abs(n), abs(f), abs(u), abs(null), abs('-3') from t", "2147483648 | 32768 | 99999999999999999999 | 1.567 | 2.5 | 18446744073709551615 | NULL | 3\n"},
		{setup, "select abs(b) from t", "error 1690"},
		{setup, "select sign(0.25), sign(-0.25), sign(n), sign(f), sign(u), sign(0), sign('-0.5'), sign(null) from t", "1 | -1 | -1 | -1 | 1 | 0 | -1 | NULL\n"},
		{setup, "select round(2.5e0), round(3.5e0), round(-2.5e0), round(f), round(2.5), round(1.25e0, 1), round(15e0, -1), round(25e0, -1), round(1e300, 20), round(1e0, -400), round(0e0, 400), round(f, null) from t", "2 | 4 | -2 | -2 | 3 | 1.2 | 20 | 20 | 1e+300 | 0 | 0 | NULL\n"},
		{setup, "select truncate(d, 0), truncate(d, -3), truncate(n, 1), truncate(n, 9), truncate(n, -2), truncate(n, s), truncate(-1.999, 1), truncate(n, null) from t", "99999999999999999999 | 99999999999999999000 | -1.5 | -1.567 | 0 | 0.000 | -1.9 | NULL\n"},
		{setup, "select ~0, ~1, ~-1, ~i, ~u, ~null, ~1.5, ~'7', 5 & ~1 from t", "18446744073709551615 | 18446744073709551614 | 0 | 2147483647 | 0 | NULL | 18446744073709551613 | 18446744073709551608 | 4\n"},
		{setup, "select 5 & 18446744073709551614, u | 0, u ^ 1, u >> 1, u << 1, u & 1, 1.5 | 0, '7' & 3, -1 >> 63, 1 << -1, 1 >> 64, -1 & -1, i & 255, null | 1 from t", "4 | 18446744073709551615 | 18446744073709551614 | 9223372036854775807 | 18446744073709551614 | 1 | 2 | 3 | 1 | 0 | 0 | 18446744073709551615 | 0 | NULL\n"},
		{setup, "select count(*) from t where u & 1", "1\n"},
		{setup, "select count(*) from t where ~i = 2147483647", "1\n"},
		{setup, "select benchmark(3, 1 + 1), benchmark(null, 1), benchmark(-1, 1), benchmark(0, 1)", "0 | NULL | NULL | 0\n"},
		{setup + "; create view w as select ~i c from t", "select c from w", "2147483647\n"},
		{setup, "create table c (a int, b bigint unsigned as (~a))", "error 1235"},
		{setup, "select benchmark(2, (select 1 from (select 1 union select 2) q))", "error 1242"},
	} {
		s.testTwice(t)
	}
}
