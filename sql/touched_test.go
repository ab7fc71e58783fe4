package sql

import (
	"fmt"
	"testing"
)

// UPDATEs and upserts of a table with ON UPDATE CURRENT_TIMESTAMP are not left to go-mysql-server: a row that changes gets
// the time of the statement, another keeps its own.
func TestTouched(t *testing.T) {
	p := newPair(t)
	for _, q := range []string{
		"CREATE TABLE a (id INT PRIMARY KEY, v INT, s VARCHAR(10), at DATETIME DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, st TIMESTAMP NULL ON UPDATE CURRENT_TIMESTAMP, KEY (v), KEY (at))",
		"CREATE TABLE fine (id INT PRIMARY KEY, v INT, at DATETIME(6) DEFAULT '2001-01-01' ON UPDATE CURRENT_TIMESTAMP(6))",
		"CREATE TABLE b (id INT PRIMARY KEY, v INT)",
	} {
		p.run(q)
	}
	refill := func() {
		for _, q := range []string{
			"DELETE FROM a", "DELETE FROM fine", "DELETE FROM b", "INSERT INTO a (id, v, s) VALUES (1, 1, 'a'), (2, 2, 'b'), (3, 3, NULL), (4, NULL, 'd')",
			"INSERT INTO fine (id, v) VALUES (1, 1), (2, 2), (3, NULL)", "INSERT INTO b VALUES (1, 5), (2, 6)",
		} {
			p.run(q)
		}
	}
	second := 1700000000
	change := func(query string, compiled, byPlan bool) {
		t.Helper()
		refill()
		for i, then := range []string{"", "", "SET time_zone = '+05:30'", "BEGIN", "SET time_zone = '+00:00'"} {
			second++
			p.run(fmt.Sprintf("SET timestamp = %d.123456", second))
			if then != "" {
				p.run(then)
			}
			p.compiled.byPlan = false
			done := p.run(query)
			if isBy := p.compiled.byPlan; i%2 == 1 && (done != compiled || isBy != byPlan) { // the others are the first of their settings
				t.Errorf("%s: compiled %v, by a plan %v", query, done, isBy)
			}
			p.same("a", "fine", "b")
			p.run("SELECT id FROM a WHERE at > '2001-01-01' ORDER BY at, id") // by the index
			if then == "BEGIN" {
				p.run("ROLLBACK")
				p.same("a", "fine", "b")
				refill()
			}
		}
		p.run("SET time_zone = '+00:00'")
	}
	for _, q := range []string{
		"UPDATE a SET v = v + 1 WHERE id = 1", "UPDATE a SET v = 1 WHERE id = 1", "UPDATE a SET s = 'x' WHERE id = 9", "UPDATE a SET at = '2002-02-02 00:00:00', v = 9 WHERE id = 2", "UPDATE a SET st = NULL, v = 8 WHERE id = 2",
		"INSERT INTO a (id, v) VALUES (1, 7) ON DUPLICATE KEY UPDATE v = VALUES(v)", "INSERT INTO a (id, v) VALUES (1, 1), (2, 8), (7, 7) ON DUPLICATE KEY UPDATE v = VALUES(v)", "INSERT INTO a (id, v) VALUES (1, 8) ON DUPLICATE KEY UPDATE v = v + 1, at = at",
		"DELETE FROM a WHERE id = 2", "DELETE FROM fine WHERE id = 2",
	} {
		change(q, true, false)
	}
	for _, q := range []string{
		"UPDATE a SET v = v * 2 WHERE id < 3", "UPDATE a SET v = 2 WHERE v >= 1", "UPDATE a SET s = LOWER(s) WHERE id > 0", "UPDATE a SET v = 5, s = 'y' WHERE id IN (1, 4) LIMIT 1", "UPDATE a SET v = 5 WHERE s = 'b' ORDER BY id DESC LIMIT 1", "UPDATE a SET at = at, v = 9 WHERE id > 1", "UPDATE a SET at = NOW() WHERE id > 1",
		"UPDATE fine SET v = v + 1 WHERE id = 1", "UPDATE fine SET v = 2 WHERE id > 0", "DELETE FROM a WHERE id > 2", "UPDATE a x SET x.v = 5 WHERE x.id > 1",
	} {
		change(q, false, true)
	}
	for _, q := range []string{"UPDATE a JOIN b ON b.id = a.id SET a.v = b.v", "INSERT INTO fine (id, v) VALUES (1, 7) ON DUPLICATE KEY UPDATE v = VALUES(v)"} {
		refill()
		for range 3 {
			p.run(q)
			p.same("b")
		}
	}
}
