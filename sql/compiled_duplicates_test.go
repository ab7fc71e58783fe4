package sql

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dolthub/go-mysql-server/sql/types"
)

// duplicateTables are tables whose rows may be in each other's way.
var duplicateTables = []string{
	"CREATE TABLE c (name VARCHAR(10) PRIMARY KEY, n BIGINT NOT NULL, m TINYINT UNSIGNED, s CHAR(5))",
	"CREATE TABLE a (id INT PRIMARY KEY AUTO_INCREMENT, u INT UNIQUE, v INT, w VARCHAR(5) COLLATE utf8mb4_0900_ai_ci UNIQUE, KEY (v))",
	"CREATE TABLE l (u INT UNIQUE, v INT)",
	"CREATE TABLE parent (id INT PRIMARY KEY, k INT, KEY (k))",
	"CREATE TABLE child (id INT PRIMARY KEY, p INT, v INT, FOREIGN KEY (p) REFERENCES parent (id))",
	"CREATE TABLE at (id INT PRIMARY KEY, v INT, t DATETIME DEFAULT '2024-01-01' ON UPDATE CURRENT_TIMESTAMP)",
	"CREATE TABLE fired (id INT PRIMARY KEY, v INT)", "CREATE TABLE noted (v INT)",
	"CREATE TRIGGER fires AFTER DELETE ON fired FOR EACH ROW INSERT INTO noted VALUES (OLD.v)",
	"INSERT INTO parent VALUES (1, 1), (2, 2)", "CREATE TABLE big (id BIGINT UNSIGNED PRIMARY KEY AUTO_INCREMENT, v INT) AUTO_INCREMENT = 9223372036854775813",
}

func duplicatePair(t *testing.T) *pair {
	p := newPair(t)
	for _, q := range duplicateTables {
		p.run(q)
	}
	return p
}

func (p *pair) duplicates() {
	p.t.Helper()
	p.same("c", "a", "l", "child")
	p.run("SELECT * FROM parent ORDER BY 1, 2")
	p.run("SELECT id, v, t > '2024-01-02' FROM at ORDER BY id")
}

// INSERTs with IGNORE or ON DUPLICATE KEY UPDATE, and REPLACEs, run compiled, and do and tell the same as when they do not.
func TestCompiledDuplicates(t *testing.T) {
	p := duplicatePair(t)
	p.must(
		"INSERT INTO c VALUES ('a', 1, 1, 'x') ON DUPLICATE KEY UPDATE n = n + 1", "INSERT INTO c VALUES ('A', 5, 2, 'y ') ON DUPLICATE KEY UPDATE n = VALUES(n), m = VALUES(m), s = VALUES(s)",
		"INSERT INTO c VALUES ('a', 5, 2, 'y') ON DUPLICATE KEY UPDATE n = n", "INSERT INTO c VALUES ('a', 5, 2, 'y') ON DUPLICATE KEY UPDATE n = n - 3, m = m + 1, s = 'z'", "INSERT INTO c VALUES ('a', 5, 2, 'y') ON DUPLICATE KEY UPDATE n = n + VALUES(m), m = NULL",
		"INSERT INTO c (n, name) VALUES (5, 'a'), (6, 'b'), (7, 'A') ON DUPLICATE KEY UPDATE n = n + VALUES(n), name = VALUES(name)",
		"INSERT IGNORE INTO c VALUES ('a', 1, 1, 'x')", "INSERT IGNORE INTO c VALUES ('c', 1, 1, 'x'), ('A', 2, 2, 'y'), ('d', 3, 3, 'z'), ('C', 4, 4, 'z')",
		"REPLACE INTO c VALUES ('a', 7, 7, 'q')", "REPLACE INTO c VALUES ('A', 7, 7, 'q'), ('e', 1, NULL, NULL), ('E', 2, NULL, NULL)", "REPLACE INTO c (name, n) VALUES ('a', '8')",
		"INSERT INTO a (u, v) VALUES (1, 1), (2, 2) ON DUPLICATE KEY UPDATE v = VALUES(v)", "INSERT INTO a (u, v) VALUES (1, 7), (3, 3) ON DUPLICATE KEY UPDATE v = VALUES(v)", "INSERT INTO a (u, v) VALUES (1, 7) ON DUPLICATE KEY UPDATE id = id",
		"INSERT IGNORE INTO a (u, v) VALUES (1, 8), (9, 8)", "REPLACE INTO a (u, v) VALUES (1, 8), (10, 8)", "REPLACE INTO a (u, v, w) VALUES (1, 8, 'w'), (2, 9, 'W'), (3, 10, 'é')", "REPLACE INTO a VALUES (50, 1, 1, 'e')", "REPLACE INTO a VALUES (50, 1, 1, 'e'), (1, 2, 1, 'f')",
		"INSERT INTO a VALUES (60, 61, 1, 'g') ON DUPLICATE KEY UPDATE u = u + 1", "INSERT INTO a VALUES (60, 61, 1, 'g') ON DUPLICATE KEY UPDATE id = VALUES(id), u = VALUES(u)", "INSERT IGNORE INTO a VALUES (60, 61, 1, 'g'), (62, 62, NULL, NULL)",
		"INSERT INTO l VALUES (1, 1), (NULL, 2), (1, 3), (NULL, 4) ON DUPLICATE KEY UPDATE v = v + 10", "REPLACE INTO l VALUES (1, 5), (NULL, 6)", "INSERT IGNORE INTO l VALUES (1, 5)", "REPLACE INTO l VALUES (1, 5)",
		"INSERT INTO child VALUES (1, 1, 1) ON DUPLICATE KEY UPDATE v = v + 1", "REPLACE INTO child VALUES (1, 2, 1), (2, NULL, 3)", "INSERT IGNORE INTO child VALUES (1, 1, 1), (3, 2, 2)", "INSERT IGNORE INTO parent VALUES (1, 5), (3, 3)", "INSERT INTO parent VALUES (1, 5) ON DUPLICATE KEY UPDATE k = VALUES(k)",
		"REPLACE INTO big (v) VALUES (1)", "REPLACE INTO at VALUES (1, 1, '2024-01-01 00:00:00')", "INSERT IGNORE INTO at VALUES (1, 2, NULL), (2, 2, NULL)",
	)
	p.duplicates()
	for _, q := range []string{"BEGIN", "INSERT INTO c VALUES ('own', 1, 1, '') ON DUPLICATE KEY UPDATE n = n + 1", "INSERT INTO c VALUES ('own', 1, 1, '') ON DUPLICATE KEY UPDATE n = n + 1", "SAVEPOINT s", "REPLACE INTO c VALUES ('own', 9, 9, '')", "REPLACE INTO c VALUES ('OWN', 10, 9, '')",
		"INSERT IGNORE INTO c VALUES ('Own', 1, 1, '')", "ROLLBACK TO s", "SELECT * FROM c WHERE name = 'own'", "DELETE FROM c WHERE name = 'own'", "INSERT IGNORE INTO c VALUES ('own', 3, 1, '')", "COMMIT"} {
		p.run(q)
	}
	p.duplicates()
}

// What more than a row depends on, or has to be converted, is left to plans, and nothing of it has been done before.
func TestPlannedDuplicates(t *testing.T) {
	p := duplicatePair(t)
	for _, q := range []string{
		"INSERT INTO c VALUES ('a', 1, 255, 'x'), ('a', 1, 255, 'x') ON DUPLICATE KEY UPDATE m = m + 1", "INSERT INTO c VALUES ('a', 1, 0, 'x') ON DUPLICATE KEY UPDATE m = m - 300", "INSERT INTO c VALUES ('a', 1, NULL, 'x') ON DUPLICATE KEY UPDATE m = m + VALUES(m)",
		"INSERT INTO c VALUES ('a', 1, 1, 'x') ON DUPLICATE KEY UPDATE n = NULL", "INSERT INTO c VALUES ('a', 1, 1, 'x') ON DUPLICATE KEY UPDATE s = 'too long'", "INSERT INTO c VALUES ('a', 1, 1, 'x') ON DUPLICATE KEY UPDATE n = n + '1'", "INSERT INTO c VALUES ('a', 1, 1, 'x') ON DUPLICATE KEY UPDATE n = 1.6",
		"INSERT INTO c VALUES ('a', 1, 1, 'x') ON DUPLICATE KEY UPDATE n = n + 1, m = n", "INSERT INTO c VALUES ('a', 1, 1, 'x') ON DUPLICATE KEY UPDATE n = n + 1, n = n + 1", "INSERT INTO c VALUES ('a', 1, 1, 'x') ON DUPLICATE KEY UPDATE n = n + 1, m = n + 1", "INSERT INTO c VALUES ('a', 1, 1, 'x') ON DUPLICATE KEY UPDATE nothing = 1",
		"INSERT INTO c VALUES ('a', 1, 1, 'x') ON DUPLICATE KEY UPDATE n = VALUES(nothing)", "INSERT INTO c VALUES ('a', 1, 1, 'x') ON DUPLICATE KEY UPDATE n = VALUES(m)", "INSERT INTO c VALUES ('a', 1, 1, 'x') ON DUPLICATE KEY UPDATE n = nothing + 1", "INSERT INTO c VALUES ('a', 1, 1, 'x') ON DUPLICATE KEY UPDATE n = n * 2", "INSERT INTO c VALUES ('a', 1, 1, 'x') ON DUPLICATE KEY UPDATE n = n * VALUES(n)", "INSERT INTO c VALUES ('a', 1, 1, 'x') ON DUPLICATE KEY UPDATE c.n = c.n + 1", "INSERT INTO c VALUES ('a', 1, 1, 'x') ON DUPLICATE KEY UPDATE n = nothing + VALUES(n)", "INSERT INTO c VALUES ('a', 1, 1, 'x') ON DUPLICATE KEY UPDATE n = n + VALUES(nothing)",
		"INSERT INTO c VALUES ('a', 1, 1, 'x') ON DUPLICATE KEY UPDATE s = s + 1", "INSERT INTO c VALUES ('b', 1, 1, 'x'), ('a', 1, 1, 'x') ON DUPLICATE KEY UPDATE name = 'b'",
		"INSERT IGNORE INTO c VALUES ('a', 1, 300, 'x'), ('b', NULL, 1, 'too long')", "INSERT IGNORE INTO c VALUES ('a', 1, 1, 'x') ON DUPLICATE KEY UPDATE n = 5",
		"INSERT INTO a (u, v) VALUES (1, 1), (2, 2)", "INSERT INTO a (u, v) VALUES (1, 1), (3, 2) ON DUPLICATE KEY UPDATE v = v + 1", "INSERT INTO a (u, v) VALUES (1, 1), (4, 2) ON DUPLICATE KEY UPDATE u = 2", "INSERT INTO a (u, v) VALUES (1, 1), (5, 2) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id)", "INSERT INTO a (u, v) VALUES (1, 1) ON DUPLICATE KEY UPDATE id = VALUES(id)",
		"INSERT INTO a VALUES (NULL, 1, 1, 'x'), (70, 6, 2, 'y') ON DUPLICATE KEY UPDATE v = 1", "REPLACE INTO a VALUES (NULL, 1, 1, 'x'), (71, 7, 2, 'y')", "REPLACE INTO a VALUES (-5, 80, 1, 'neg')", "INSERT IGNORE INTO a VALUES (0, 81, 1, 'zero')",
		"INSERT INTO child VALUES (1, 1, 1) ON DUPLICATE KEY UPDATE p = 2", "INSERT INTO child VALUES (1, 9, 1) ON DUPLICATE KEY UPDATE v = 2", "REPLACE INTO child VALUES (1, 9, 1)", "INSERT IGNORE INTO child VALUES (1, 9, 1), (7, 9, 1), (8, 1, 1)",
		"REPLACE INTO parent VALUES (1, 1), (5, 5)", "INSERT INTO parent VALUES (1, 5) ON DUPLICATE KEY UPDATE id = 7", "INSERT INTO at (id, v) VALUES (1, 1) ON DUPLICATE KEY UPDATE v = v + 1", "REPLACE INTO fired VALUES (1, 1)", "REPLACE INTO fired VALUES (1, 2)",
	} {
		for range 3 {
			p.run(q)
		}
		p.duplicates()
	}
	p.run("SELECT * FROM noted")
}

// A duplicate that is ignored has MySQL's warning, and warnings are shown in their order, by any way.
func TestDuplicateWarnings(t *testing.T) {
	p := duplicatePair(t)
	p.run("INSERT INTO c VALUES ('a', 1, 1, 'x'), ('b', 1, 1, 'x')")
	want := "Warning 1062 Duplicate entry 'A' for key 'c.PRIMARY'; Warning 1062 Duplicate entry 'b' for key 'c.PRIMARY'; "
	for range 3 {
		p.run("INSERT IGNORE INTO c VALUES ('A', 1, 1, 'x'), ('b', 1, 1, 'x')")
		for _, c := range []*client{p.compiled, p.gms} {
			got := ""
			for _, row := range c.exec("SHOW WARNINGS") {
				got += fmt.Sprintf("%v %v %v; ", row...)
			}
			if got != want {
				t.Errorf("warnings: %s", got)
			}
		}
	}
}

// A REPLACE by a row that is the same counts as one row, by any way, where MySQL updates it in place.
func TestSameReplaced(t *testing.T) {
	p := duplicatePair(t)
	p.run("CREATE TABLE up (id INT PRIMARY KEY, v INT, FOREIGN KEY (v) REFERENCES up (id))")
	p.run("CREATE TABLE two (id INT PRIMARY KEY, v INT UNIQUE)")
	for query, want := range map[string]uint64{"REPLACE INTO c VALUES ('a', 1, 1, 'x')": 1, "REPLACE INTO c VALUES ('x', 1, 1, 'x'), ('y', 1, 1, 'x')": 2, "REPLACE INTO fired VALUES (1, 1)": 2, "REPLACE INTO up VALUES (1, NULL)": 2, "REPLACE INTO two VALUES (1, 1)": 2, "REPLACE INTO l VALUES (1, NULL)": 1, "REPLACE INTO l VALUES (2, 5), (2, 5), (NULL, 1)": 3} {
		p.run(query)
		for range 3 {
			for _, c := range []*client{p.compiled, p.gms} {
				_, rows, done, err := c.compiled(query)
				if !done {
					c.correct(query, rows)
				}
				if err != nil || rows[0][0].(types.OkResult).RowsAffected != want {
					t.Errorf("%s: %v %v", query, rows, err)
				}
			}
		}
	}
}

// Random INSERTs into tables with few keys.
func TestCompiledDuplicatesRandom(t *testing.T) {
	p := duplicatePair(t)
	r := rand.New(rand.NewPCG(7, 9))
	pick := func(all ...string) string { return all[r.IntN(len(all))] }
	small := func() string { return fmt.Sprint(r.IntN(6)) }
	row := map[string]func() string{
		"c": func() string {
			return fmt.Sprintf("('%s', %s, %s, %s)", pick("a", "A", "b", "c"), small(), pick("NULL", small(), "254"), pick("NULL", "'x'", "'x '"))
		},
		"a": func() string {
			return fmt.Sprintf("(%s, %s, %s, %s)", pick("NULL", small(), small()+"0"), pick("NULL", small()), small(), pick("NULL", "'e'", "'É'", "'f'"))
		},
		"a (u)": func() string { return "(" + small() + ")" },
		"l":     func() string { return fmt.Sprintf("(%s, %s)", pick("NULL", small()), small()) },
		"child": func() string { return fmt.Sprintf("(%s, %s, %s)", small(), pick("1", "2", "NULL"), small()) },
	}
	set := map[string][]string{
		"c": {"n = n + 1", "n = VALUES(n)", "m = m + VALUES(n)", "s = 'y'", "name = VALUES(name)", "n = n", "m = NULL", "n = n - VALUES(m)"}, "a": {"v = VALUES(v)", "v = v + 1", "id = id", "u = VALUES(u)", "w = NULL", "id = VALUES(id)", "u = u + 1"},
		"a (u)": {"v = 7", "u = VALUES(u)", "v = v + 1", "id = id"}, "l": {"v = v + VALUES(v)", "u = u + 1", "u = NULL"}, "child": {"v = VALUES(v)", "v = 3", "v = v - 1"},
	}
	for i := range 3000 {
		into := pick("c", "a", "a (u)", "l", "child")
		rows := make([]string, 1+r.IntN(3))
		for i := range rows {
			rows[i] = row[into]()
		}
		q := " INTO " + into + " VALUES " + strings.Join(rows, ", ")
		switch r.IntN(4) {
		case 0:
			q = "INSERT IGNORE" + q
		case 1:
			q = "REPLACE" + q
		default:
			q = "INSERT" + q + " ON DUPLICATE KEY UPDATE " + pick(set[into]...)
			if r.IntN(2) == 0 {
				q += ", " + pick(set[into]...)
			}
		}
		p.run(q)
		if i%20 == 0 {
			p.duplicates()
			p.run("DELETE FROM a WHERE id % 3 = 0")
		}
	}
	p.duplicates()
	if p.done*3 < p.all {
		t.Errorf("of %d statements, %d ran compiled", p.all, p.done)
	}
}
