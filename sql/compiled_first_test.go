package sql

import (
	"strings"
	"testing"

	"github.com/farmsql/farmsql/sql/myerr"
)

// The first rows below a key come from its index in order. A statement with another order than that
// of the index, or in whose order rows can be equal, does not run compiled.
func TestCompiledFirstRows(t *testing.T) {
	p := newPair(t)
	p.run("CREATE TABLE o (w INT, d INT, o INT, c INT, n VARCHAR(10), at DATETIME, PRIMARY KEY (w, d, o), KEY customer (w, d, c, o), KEY name (w, d, n))")
	for i := range 60 {
		p.run(strings.NewReplacer("$d", string('0'+rune(i%3)), "$o", string('a'+rune(i%7)), "$i", string('0'+rune(i/10))+string('0'+rune(i%10))).
			Replace("INSERT INTO o VALUES (1, $d, 1$i, ASCII('$o'), '$o', '2024-01-02')"))
	}
	p.must(
		"SELECT o FROM o WHERE w = 1 AND d = 2 ORDER BY o LIMIT 1", "SELECT o FROM o WHERE w = 1 AND d = 2 ORDER BY o LIMIT 1 FOR UPDATE",
		"SELECT at, o AS x FROM o WHERE d = 2 AND w = 1 ORDER BY o DESC LIMIT 3", "SELECT * FROM o WHERE d = 2 AND w = 1 ORDER BY o ASC LIMIT 300",
		"SELECT o, at FROM o WHERE w = 1 AND d = 1 AND c = 99 ORDER BY o DESC LIMIT 1", "SELECT o FROM o WHERE w = 1 AND d = 7 ORDER BY o LIMIT 1",
		"SELECT o FROM o WHERE w = 1 AND d = 2 ORDER BY o LIMIT 0",
	)
	for _, q := range []string{
		"SELECT o FROM o WHERE w = 1 AND d = 2 ORDER BY c LIMIT 1", "SELECT o FROM o WHERE w = 1 ORDER BY o LIMIT 1", "SELECT o FROM o WHERE w = 1 ORDER BY d, o LIMIT 2",
		"SELECT o FROM o WHERE w = 1 AND d = 2 ORDER BY o LIMIT 1, 2", "SELECT DISTINCT o FROM o WHERE w = 1 AND d = 2 ORDER BY o LIMIT 2",
		"SELECT SUM(c) FROM o WHERE w = 1 AND d = 2 ORDER BY o LIMIT 2", "SELECT o FROM o WHERE w = 1 AND d BETWEEN 1 AND 2 ORDER BY o LIMIT 2", "SELECT o FROM o WHERE w = 1 AND d = 2 ORDER BY o LIMIT 2000",
		"SELECT o FROM o WHERE w = 1 AND d = 2 LIMIT 0", "SELECT o + 1 FROM o WHERE w = 1 AND d = 2 ORDER BY o LIMIT 2", "SELECT SQL_CALC_FOUND_ROWS o FROM o WHERE w = 1 AND d = 2 ORDER BY o LIMIT 2",
		"SELECT c AS o FROM o WHERE w = 1 AND d = 2 ORDER BY o LIMIT 1", "SELECT o FROM o WHERE w = 1 AND d = 2 ORDER BY -1 LIMIT 1",
	} {
		p.run(q)
		if p.run(q) {
			t.Errorf("compiled: %s", q)
		}
	}
}

// Rows behind those that were asked for do not concern the transaction.
func TestCompiledFirstRowsConflict(t *testing.T) {
	_, c, other := newReaders(t, "CREATE TABLE q (w INT, o INT, x INT, PRIMARY KEY (w, o))")
	const first = "SELECT o FROM q WHERE w = 1 ORDER BY o LIMIT 1 FOR UPDATE"
	for change, want := range map[string]bool{
		"INSERT INTO q VALUES (1, 9, 0)": false, "UPDATE q SET x = 1 WHERE w = 1 AND o = 5": false, "DELETE FROM q WHERE w = 1 AND o = 5": false,
		"INSERT INTO q VALUES (1, 1, 0)": true, "UPDATE q SET x = 1 WHERE w = 1 AND o = 4": true, "DELETE FROM q WHERE w = 1 AND o = 4": true,
	} {
		other.exec("DELETE FROM q")
		other.exec("INSERT INTO q VALUES (1, 4, 0), (1, 5, 0), (1, 6, 0)")
		c.twice(first)
		c.exec("BEGIN")
		c.s.SetForUpdate(true)
		c.twice(first)
		c.s.SetForUpdate(false)
		c.exec("UPDATE u SET n = n + 1 WHERE id = 1")
		other.exec(change)
		if _, _, err := c.run("COMMIT"); myerr.IsConflict(err) != want || !want && err != nil {
			t.Errorf("%s: %v", change, err)
		}
	}
}
