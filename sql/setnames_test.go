package sql

import "testing"

// TestSetNames: the collation of SET NAMES was ignored.
func TestSetNames(t *testing.T) {
	const setup = "create table t (s varchar(9)); insert into t values ('A')"
	for _, s := range []shows{
		{setup + "; set names utf8mb4 collate utf8mb4_bin", "select 'a' = 'A', @@collation_connection, @@character_set_client, s = 'a' from t", "0 | utf8mb4_bin | utf8mb4 | 1\n"},
		{setup + "; set names 'utf8mb4' collate 'utf8mb4_unicode_ci', autocommit = 1", "select 'a' = 'A', @@collation_connection, @@autocommit", "1 | utf8mb4_unicode_ci | 1\n"},
		{setup + "; SET autocommit = 1, NAMES utf8mb4 COLLATE utf8mb4_bin", "select 'a' = 'A'", "0\n"},
		{setup + "; set names utf8mb4 collate utf8mb4_bin; set names utf8mb4", "select 'a' = 'A', @@collation_connection", "1 | utf8mb4_0900_ai_ci\n"},
		{setup + "; set names utf8mb4 collate utf8mb4_bin; set names latin1", "select @@character_set_client, @@collation_connection", "latin1 | latin1_swedish_ci\n"},
		{setup, "set names utf8mb4 collate utf8mb4_none", "error 1273"},
		{setup, "set names utf8mb4 collate latin1_swedish_ci", "error 1253"},
	} {
		s.testTwice(t)
	}
}
