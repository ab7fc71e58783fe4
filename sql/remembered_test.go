package sql

import (
	"fmt"
	"strings"
	"testing"
)

// TestRememberedLists: IN of an expression and a list of constants, whose results are remembered by the text, is what
// go-mysql-server says for each row: by the collation, with NULLs, with other types, and for other lists.
func TestRememberedLists(t *testing.T) {
	c := newInstance(t).client("")
	for _, q := range []string{"CREATE DATABASE d", "USE d", "CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(20), b VARCHAR(20) COLLATE utf8mb4_bin, n INT)"} {
		c.exec(q)
	}
	var rows []string
	for i, s := range []string{"'13-a'", "'13-B'", "'Ab'", "'aB'", "NULL", "''", "'0x'", "'1'", "'01'", "'ab '"} {
		for k := range 3 {
			rows = append(rows, fmt.Sprintf("(%d, %s, %s, %d)", 10*k+i, s, s, i))
		}
	}
	c.exec("INSERT INTO t VALUES " + strings.Join(rows, ", "))
	for _, query := range []string{
		"SELECT id FROM t WHERE SUBSTRING(s, 1, 2) IN ('13', 'ab') ORDER BY id",
		"SELECT id FROM t WHERE SUBSTRING(s, 1, 2) IN ('1', '01') ORDER BY id", // the same plan
		"SELECT id FROM t WHERE SUBSTRING(b, 1, 2) IN ('13', 'ab', '') ORDER BY id",
		"SELECT id FROM t WHERE CONCAT(s, '') NOT IN ('ab', '1') ORDER BY id",
		"SELECT id FROM t WHERE LOWER(s) NOT IN ('ab', NULL) ORDER BY id",
		"SELECT id FROM t WHERE LOWER(s) IN ('ab', NULL) OR n + 1 IN (3, 5) ORDER BY id",
		"SELECT id FROM t WHERE n * 2 IN (4, 6) AND TRIM(s) IN ('AB') ORDER BY id",
	} {
		_, rows, err := c.run(query)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.byOurPlan(t, query); got != fmt.Sprint(rows) {
			t.Errorf("%s: %s, want %v", query, got, rows)
		}
	}
}
