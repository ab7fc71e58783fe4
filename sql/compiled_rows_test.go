package sql

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// rowTables are tables for INSERTs of several rows.
var rowTables = []string{
	"CREATE TABLE plain (id INT PRIMARY KEY, n TINYINT NOT NULL DEFAULT 3, s VARCHAR(5), KEY (s))",
	"CREATE TABLE auto (id INT PRIMARY KEY AUTO_INCREMENT, n INT, s VARCHAR(5), KEY (n))",
	"CREATE TABLE small (id TINYINT PRIMARY KEY AUTO_INCREMENT, n INT)",
	"CREATE TABLE uniq (id INT PRIMARY KEY AUTO_INCREMENT, n INT, UNIQUE KEY (n))",
	"CREATE TABLE hashed (id INT, n INT, PRIMARY KEY (id) USING HASH)",
	"CREATE TABLE keyless (id INT, n INT, KEY (n))",
	"CREATE TABLE parent (id INT PRIMARY KEY)",
	"CREATE TABLE child (id INT PRIMARY KEY, n INT, FOREIGN KEY (n) REFERENCES parent (id))",
	"INSERT INTO parent VALUES (1), (2), (3), (4), (5)",
}

// rowPair returns a pair with rowTables.
func rowPair(t *testing.T) *pair {
	p := newPair(t)
	for _, q := range rowTables {
		p.run(q)
	}
	return p
}

// An INSERT of several rows of literals is compiled, and tells the number that a client expects.
func TestCompiledInsertRows(t *testing.T) {
	p := rowPair(t)
	insert := func(compiled bool, format string) {
		t.Helper()
		for i := range 3 {
			q := strings.ReplaceAll(format, "#", fmt.Sprint(i+1))
			if done := p.run(q); i > 0 && done != compiled {
				t.Errorf("%s: compiled %v", q, done)
			}
			p.run("SELECT LAST_INSERT_ID()")
		}
	}
	insert(true, "INSERT INTO plain VALUES (#, 1, 'a'), (1#, -#, NULL), (2#, '7', '')")
	insert(true, "INSERT INTO plain (s, id) VALUES ('x', 3#), ('y', 4#)")
	insert(true, "INSERT INTO auto (n, s) VALUES (#, 'a'), (#, 'b'), (NULL, NULL)")
	insert(true, "INSERT INTO auto (n, id) VALUES (#, 0), (2, NULL)")
	insert(true, "INSERT INTO auto (n, id) VALUES (#, NULL)")
	insert(true, "INSERT INTO auto (id, n) VALUES (10#, 1), (5#, 2)")
	insert(true, "INSERT INTO auto (id, n) VALUES (-1#, 1), (-5#, 2)")
	insert(true, "INSERT INTO hashed VALUES (#, 1), (1#, 2)")
	insert(true, "INSERT INTO keyless VALUES (#, 1), (#, 1)")
	insert(true, "INSERT INTO child VALUES (#, 1), (1#, NULL), (2#, 5)")
	insert(true, "INSERT INTO uniq VALUES (1#, #), (2#, 2#)")
	for _, q := range []string{
		"INSERT INTO uniq (n) VALUES (10#), (20#)", "INSERT INTO auto (id, n) VALUES (20#, 1), (0, 2)", "INSERT INTO auto (id, n) VALUES (NULL, 1), (20#, 2)", "INSERT INTO child VALUES (3#, 1), (4#, 9)",
		"INSERT INTO plain VALUES (5#, 1, 'a'), (1, 1, 'there')", "INSERT INTO plain VALUES (5#, 1, 'a'), (5#, 1, 'twice')", "INSERT INTO plain VALUES (5#, 1, 'a'), (6#, 300, 'a')", "INSERT INTO plain VALUES (5#, 1, 'a'), (6#, 3)",
		"INSERT INTO plain VALUES (7#, 1, 'much too long'), (8#, 1, NULL)", "INSERT INTO plain VALUES (7#, NULL, 'a'), (8#, 1, NULL)", "INSERT INTO plain VALUES (), ()",
	} {
		insert(false, q)
	}
	p.run("SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO'")
	insert(false, "INSERT INTO auto (n, id) VALUES (1, 0)")
	insert(true, "INSERT INTO auto (n, id) VALUES (1, NULL), (#, NULL)")
	p.run("SET sql_mode = DEFAULT")
	p.run("INSERT INTO small VALUES (124, 1)")
	insert(false, "INSERT INTO small (n) VALUES (1), (2), (3), (4)") // its numbers end at the third
	p.run("CREATE TRIGGER fired AFTER INSERT ON hashed FOR EACH ROW INSERT INTO auto (n) VALUES (NEW.id)")
	insert(false, "INSERT INTO hashed VALUES (5#, 1), (6#, 2)")
	p.same("plain", "auto", "small", "uniq", "hashed", "keyless", "child")
}

// INSERTs of random rows, some of which fail, leave the same as go-mysql-server's.
func TestCompiledInsertRowsRandom(t *testing.T) {
	p := rowPair(t)
	r := rand.New(rand.NewPCG(1, 2))
	one := func(options ...string) string { return options[r.IntN(len(options))] }
	number := func(n int) string { return fmt.Sprint(r.IntN(n)) }
	key := func() string { return fmt.Sprint(r.IntN(60000)) }
	// Most values may be stored, so that most statements succeed.
	text := func() string { return one("'a'", "'bc'", "''", "NULL", "'Ä'", "'"+number(99)+"'") }
	tables := []struct {
		name string
		row  func() string
	}{
		{"plain (id, n, s)", func() string { return key() + ", " + one(number(100), number(100), "-"+number(130)) + ", " + text() }},
		{"auto (n, s)", func() string { return one(key(), "NULL", "'5'") + ", " + text() }},
		{"auto (id, n)", func() string { return one("NULL", "0") + ", " + key() }},
		{"auto (id, n)", func() string { return one(key(), key(), key(), "NULL") + ", " + key() }},
		{"uniq (id, n)", func() string { return key() + ", " + one(key(), "NULL") }},
		{"uniq (n)", key},
		{"hashed", func() string { return key() + ", " + text() }},
		{"keyless (n, id)", func() string { return number(9) + ", " + one(number(9), "NULL") }},
		{"child", func() string { return key() + ", " + one("NULL", "1", "2", "3", "4", "5", number(7)) }},
	}
	open := false
	for range 700 {
		switch {
		case r.IntN(9) == 0 && !open:
			p.run("BEGIN")
			open = true
		case open && r.IntN(4) == 0:
			p.run(one("COMMIT", "ROLLBACK"))
			open = false
		}
		table := tables[r.IntN(len(tables))]
		rows := make([]string, 1+r.IntN(6))
		for i := range rows {
			rows[i] = "(" + table.row() + ")"
		}
		p.run("INSERT INTO " + table.name + " VALUES " + strings.Join(rows, ", "))
		if r.IntN(20) == 0 {
			p.run(one("DELETE FROM plain", "DELETE FROM uniq", "DELETE FROM child", "DELETE FROM hashed"))
		}
	}
	p.run("COMMIT")
	p.same("plain", "auto", "uniq", "hashed", "keyless", "child")
	if p.done*3 < p.all {
		t.Errorf("of %d statements, %d ran compiled", p.all, p.done)
	}
}

// A compiled INSERT of 100 rows into a table of another machine waits for that machine some ten times, and not for
// each row.
func TestCompiledInsertRowsOfAnotherMachine(t *testing.T) {
	onA, onB, m := twoClients(t)
	onA.exec("CREATE TABLE t (id INT PRIMARY KEY, k INT, KEY (k))")
	onA.exec("INSERT INTO t VALUES " + tuples(0, 500, 100, "(%, %)"))
	const most = 50 // one for each row and index would be 200
	for round := range 6 {
		q := "INSERT INTO t VALUES " + tuples(round+1, 100, 500, "(%, %)")
		before := m.Stats()
		_, _, done, err := onB.compiled(q)
		if err != nil || round > 0 && !done {
			t.Fatalf("compiled %v: %v", done, err)
		}
		if n := m.Stats().Sub(before).RoundTrips; round > 2 && n > most {
			t.Errorf("%d round trips", n)
		}
	}
}

// DEFAULT and the time of the statement are compiled, as values and where an INSERT leaves out a column.
func TestCompiledInsertDefaults(t *testing.T) {
	p := newPair(t)
	p.run("CREATE TABLE s (id INT PRIMARY KEY AUTO_INCREMENT, n TINYINT NOT NULL DEFAULT 3, s VARCHAR(5) DEFAULT 'x', d DECIMAL(5,2) NOT NULL DEFAULT 1.5, z INT DEFAULT NULL, o VARCHAR(9), req INT NOT NULL)")
	p.run("CREATE TABLE moment (id INT PRIMARY KEY, a DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP, b TIMESTAMP NULL DEFAULT CURRENT_TIMESTAMP, c DATETIME(3), d DATE)")
	p.run("CREATE TABLE fine (id INT PRIMARY KEY, c DATETIME(3) DEFAULT CURRENT_TIMESTAMP(3))")
	p.run("CREATE TABLE kinds (id INT PRIMARY KEY, e ENUM('a', 'b') NOT NULL, x INT DEFAULT (1 + 1), v VARCHAR(30) DEFAULT (NOW()))")
	p.run("CREATE TABLE touched (id INT PRIMARY KEY, n INT, made DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP, changed DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, seen DATETIME ON UPDATE CURRENT_TIMESTAMP)")
	next := 0
	insert := func(compiled bool, queries ...string) {
		t.Helper()
		for _, format := range queries {
			for i := range 3 {
				next++
				q := strings.ReplaceAll(format, "#", fmt.Sprint(next))
				if done := p.run(q); i > 0 && done != compiled {
					t.Errorf("%s: compiled %v", q, done)
				}
			}
		}
	}
	insert(true, "INSERT INTO s (n, req) VALUES (DEFAULT, #)", "INSERT INTO s VALUES (DEFAULT, DEFAULT, DEFAULT, DEFAULT, DEFAULT, DEFAULT, 1), (NULL, 1, 'a', '2.50', 2, 'b', #)", "INSERT INTO s (id, s, req) VALUES (#000, DEFAULT, 1), (#001, 'y', 2)", "INSERT INTO s SET n = DEFAULT, req = #")
	insert(false, "INSERT INTO s (n) VALUES (DEFAULT)", "INSERT INTO s (n, req) VALUES (1, DEFAULT)", "INSERT INTO s (n, req) VALUES (1, 1), (2, DEFAULT)", "INSERT INTO s (n, req) VALUES (DEFAULT(n), #)", "INSERT INTO s (n, req) VALUES (NOW(), #)", "INSERT INTO s (id, req) VALUES (#000, 1), (DEFAULT, 1)")
	for _, setting := range []string{"time_zone = '+00:00', timestamp = 1700000000.75", "time_zone = '-07:30'", "timestamp = 1720000000.25", "time_zone = 'Europe/Berlin'", "timestamp = 1729990800"} { // the last is told twice in Berlin
		p.run("SET " + setting)
		insert(true, "INSERT INTO moment (id) VALUES (#)", "INSERT INTO moment (id, a) VALUES (#, NOW()), (1#0000, DEFAULT), (2#0000, '2024-01-02 03:04:05')", "INSERT INTO moment VALUES (#, CURRENT_TIMESTAMP, now(), LOCALTIME, NULL)",
			"INSERT INTO touched (id) VALUES (#)", "INSERT INTO touched (id, n) VALUES (#, 1), (1#0000, 2)", "INSERT INTO touched VALUES (#, 1, NOW(), DEFAULT, NULL)", "INSERT INTO touched (id, changed, seen) VALUES (#, '2024-01-02 03:04:05', NOW())",
			"INSERT INTO moment (id, b, c) VALUES (#, CURRENT_TIMESTAMP(), LOCALTIMESTAMP())", "INSERT INTO moment (id, b) VALUES (#, NULL)", "INSERT INTO fine VALUES (#, NOW())")
		insert(false, "INSERT INTO moment (id, c) VALUES (#, NOW(3))", "INSERT INTO moment (id, a) VALUES (#, SYSDATE())", "INSERT INTO moment (id, d) VALUES (#, NOW())", "INSERT INTO moment (id, a) VALUES (#, NULL)", "INSERT INTO fine (id) VALUES (#)", "INSERT INTO kinds (id, x) VALUES (#, NOW())",
			"INSERT INTO kinds (id, e) VALUES (#, 'a')", "INSERT INTO kinds (id, e, x, v) VALUES (#, 'a', 1, DEFAULT)", "INSERT INTO kinds (id, e, x, v) VALUES (#, DEFAULT, 1, 'v')", "INSERT INTO kinds (id, e, x, v) VALUES (#, 'b', 1, UTC_TIMESTAMP())")
		p.same("moment", "touched", "fine", "kinds")
	}
	p.same("s")
	p.run("SET time_zone = DEFAULT, timestamp = DEFAULT")
}
