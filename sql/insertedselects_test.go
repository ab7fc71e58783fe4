package sql

import (
	"context"
	"fmt"
	"strings"
	"testing"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/sql/fast"
)

// selectPair returns insertPair with rows, and with tables that fire triggers and have none.
func selectPair(t *testing.T) *pair {
	p := insertPair(t)
	for _, q := range []string{
		"CREATE TABLE from1 (id INT PRIMARY KEY, n INT, s VARCHAR(10), KEY (n))",
		"CREATE TABLE from2 (id INT PRIMARY KEY, m INT, KEY (m))",
		"CREATE TABLE fires (id INT PRIMARY KEY, v INT)",
		"CREATE TRIGGER filled BEFORE INSERT ON fires FOR EACH ROW SET NEW.v = NEW.v + 100",
		"INSERT INTO from1 VALUES (1, 1, 'a'), (2, 1, 'b'), (3, NULL, 'c'), (4, 2, NULL), (5, 120, 'd'), (6, 3, 'too long')",
		"INSERT INTO from2 VALUES (1, 1), (2, 3), (3, NULL)",
	} {
		p.run(q)
	}
	return p
}

// insertedSelects are INSERTs of SELECTs in which # stands for the number of the execution.
var insertedSelects = []string{
	"INSERT INTO t (u, n, s) SELECT id + 10#, n, s FROM from1 WHERE id < 3",
	"INSERT INTO t (u, n, s) SELECT id, 5, 'x' FROM from1 WHERE id = #",
	"INSERT INTO t (u) SELECT 20# WHERE NOT EXISTS (SELECT 1 FROM t x WHERE x.u = 20#)",
	"INSERT INTO t (u, s) SELECT 21#, 'dual' FROM DUAL WHERE NOT EXISTS (SELECT * FROM t x WHERE x.u = 211)",
	"INSERT INTO t (u, s) SELECT 22#, 'd' WHERE EXISTS (SELECT 1 FROM from1 WHERE id = #) AND NOT EXISTS (SELECT 1 FROM from2 WHERE id = 1#)",
	"INSERT INTO t (u, s) SELECT * FROM (SELECT 23# AS a, 'y' AS b) AS tmp WHERE NOT EXISTS (SELECT id FROM t WHERE u = 231) LIMIT 1",
	"INSERT INTO t (u, s) SELECT 24#, 'z'",
	"INSERT INTO t (u, n) SELECT id, n FROM from1 WHERE n = 120 AND id > #", // a CHECK
	"INSERT INTO t (u, n) SELECT 25# + id, n FROM from1 WHERE id > 0",       // NULL, then a CHECK
	"INSERT IGNORE INTO t (u, n, s) SELECT 26# + id, n, s FROM from1 WHERE id > 0",
	"INSERT INTO t (u, s) SELECT 27# + id, s FROM from1 WHERE id IN (1, 6)", // too long
	"INSERT IGNORE INTO t (u, s) SELECT 27# + id, s FROM from1 WHERE id IN (1, 6)",
	"REPLACE INTO t (u, n, s) SELECT 10# + id, 7, CONCAT(s, 'r') FROM from1 WHERE id < 3",
	"REPLACE INTO t (id, u) SELECT id, u FROM t WHERE u < 1000 ORDER BY id LIMIT #",
	"INSERT INTO t (u, n, s) SELECT u + 5000#, n, s FROM t WHERE id < 6", // reads what it inserts into
	"INSERT INTO t (id, u) SELECT 0, 3#0 + id FROM from1 WHERE id < 3",
	"INSERT INTO t (id, u) SELECT id + 5#00, 4#0 + id FROM from1 WHERE id < 3",
	"INSERT INTO t (u) SELECT MAX(u) + 1 FROM t",
	"INSERT INTO t (u, n) SELECT n, COUNT(*) FROM from1 WHERE n > # AND n < 100 GROUP BY n",
	"INSERT INTO t (u, n) SELECT DISTINCT 71#0 + n, 1 FROM from1 WHERE n < 3",
	"INSERT INTO t (u, s) SELECT 72#0 + a.id, a.s FROM from1 a JOIN from2 b ON b.m = a.id WHERE a.id < 4",
	"INSERT INTO t (u, n) SELECT 73#0 + a.id, COALESCE(b.id, 1) FROM from1 a LEFT JOIN from2 b ON b.m = a.id WHERE a.id < 4 ORDER BY a.id",
	"INSERT INTO t (u, f, d, day, e) SELECT 74#0, 1.5, '2.25', '2024-02-0#', 'y' FROM from1 WHERE id = 1",
	"INSERT INTO t (u, day) SELECT 75#0, '2024-02-31' FROM from1 WHERE id = 1",
	"INSERT INTO child SELECT id + 10#, 1, NULL FROM from1 WHERE id < 3",
	"INSERT INTO child SELECT id + 20#, id, NULL FROM from1 WHERE id < 4", // no parent
	"INSERT IGNORE INTO child SELECT id + 30#, id, NULL FROM from1 WHERE id < 4",
	"INSERT INTO noted (id) SELECT id + 1# FROM from2 WHERE id > 0 LIMIT 2",
	"INSERT INTO loose SELECT id, 'abc' FROM from1 WHERE id > #",
	"INSERT INTO loose (b, a) SELECT s, n FROM from1 WHERE id < #",
	"INSERT INTO loose SELECT * FROM loose WHERE a = #",
	"INSERT INTO loose (a) SELECT n / 0 FROM from1 WHERE id = #", // an error in strict mode
	"INSERT INTO loose SELECT id, n FROM from1 WHERE id = 10#",   // no row
}

// INSERT and REPLACE of SELECTs run by plans, and do what they do without: rows, numbers, warnings and errors.
func TestEngineInsertSelects(t *testing.T) {
	for _, mode := range []string{"", "SET sql_mode = ''", "BEGIN"} {
		p := selectPair(t)
		if mode != "" {
			p.run(mode)
		}
		for _, q := range insertedSelects {
			planned := 0
			for i := 1; i <= 3; i++ {
				if p.byPlan(strings.ReplaceAll(q, "#", fmt.Sprint(i))) {
					planned++
				}
				p.tables()
			}
			if isWarned := strings.Contains(q, "/ 0"); planned != 2 && !isWarned {
				t.Errorf("%s: %s: by a plan %d times", mode, q, planned)
			}
			if t.Failed() {
				t.Fatalf("%s: after %s", mode, q)
			}
		}
	}
}

// What is not planned, and what is planned anew.
func TestEngineInsertSelectsLeft(t *testing.T) {
	p := selectPair(t)
	for _, q := range []string{
		"INSERT INTO fires SELECT id, n FROM from1 WHERE id = #",
		"INSERT INTO t (u, n) SELECT id, 1 FROM from1 WHERE id = # ON DUPLICATE KEY UPDATE n = n + 1",
		"INSERT INTO t (u) SELECT id FROM from1 WHERE id = # FOR UPDATE",
		"INSERT INTO t (u) WITH w AS (SELECT 1 AS x) SELECT x + 90# FROM w",
		"INSERT INTO t (u) SELECT id FROM from1 WHERE id = # AND RAND() < 2",
		"INSERT INTO t (u, n) SELECT id FROM from1 WHERE id = #", // too few columns
	} {
		for i := 1; i <= 3; i++ {
			if p.byPlan(strings.ReplaceAll(q, "#", fmt.Sprint(i))) && !strings.Contains(q, "WITH") {
				t.Errorf("%s: by a plan", q)
			}
			p.tables()
		}
	}
	insert := func(id int, planned bool) {
		t.Helper()
		if p.byPlan(fmt.Sprintf("INSERT INTO child SELECT id + %d, 2, NULL FROM from1 WHERE id < 3", id)) != planned {
			t.Errorf("%d: by a plan: %v", id, !planned)
		}
		p.tables()
	}
	insert(40, false)
	insert(50, true)
	p.run("ALTER TABLE from1 ADD COLUMN more INT")
	insert(60, true) // it is made anew
	p.run("ALTER TABLE parent ADD COLUMN more INT")
	insert(70, false)
	insert(80, true)
	p.run("CREATE TRIGGER fired BEFORE INSERT ON child FOR EACH ROW SET NEW.q = 2")
	insert(90, false)
}

// An INSERT of a SELECT of more rows than a plan holds is go-mysql-server's.
func TestEngineInsertManySelected(t *testing.T) {
	p := selectPair(t)
	p.run("CREATE TABLE many (a INT PRIMARY KEY)")
	p.run("CREATE TABLE into1 (a INT)")
	for i := range 11 {
		var rows []string
		for n := range 1000 {
			rows = append(rows, fmt.Sprintf("(%d)", i*1000+n))
		}
		p.run("INSERT INTO many VALUES " + strings.Join(rows, ","))
	}
	for i, planned := range []bool{false, true, false} {
		most := []int{9000, 9999, 11000}[i]
		if p.byPlan(fmt.Sprintf("INSERT INTO into1 SELECT a FROM many WHERE a < %d", most)) != planned {
			t.Errorf("%d rows by a plan: %v", most, !planned)
		}
	}
	p.both("SELECT COUNT(*), SUM(a) FROM into1", true)
}

// A statement that ends while it reads the SELECT inserts nothing.
func TestEngineInsertSelectCancelled(t *testing.T) {
	p := selectPair(t)
	const query = "INSERT INTO loose SELECT id, s FROM from1 WHERE id < 3"
	for range 2 {
		p.both(query, true)
	}
	c := p.compiled
	x := c.s.Compiled(query, false, nil)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if res, err := c.s.Run(c.in.e.NewContext(ctx, c.s, gms.WithQuery(query)), x); err == nil || err == fast.ErrPlan {
		t.Fatalf("%v, %v", res, err)
	}
	p.tables()
}
