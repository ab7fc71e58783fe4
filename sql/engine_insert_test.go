package sql

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/sql/fast"
)

// insertTables are tables with what INSERTs have to check.
var insertTables = []string{
	"CREATE TABLE parent (id INT PRIMARY KEY, u INT UNIQUE)",
	`CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, u INT UNIQUE, n TINYINT NOT NULL DEFAULT 7, s VARCHAR(5), d DECIMAL(6,2), f DOUBLE, day DATE,
		at DATETIME DEFAULT '2024-05-06 07:08:09' ON UPDATE CURRENT_TIMESTAMP, e ENUM('x','y') NOT NULL, g INT AS (n + 1) STORED, CHECK (n < 100))`,
	"CREATE TABLE child (id INT PRIMARY KEY, p INT, q INT, FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE, FOREIGN KEY (q) REFERENCES parent (u), KEY (q))",
	"CREATE TABLE noted (id INT PRIMARY KEY, at DATETIME DEFAULT CURRENT_TIMESTAMP, v VARCHAR(40) DEFAULT (CONCAT('a', 'b')), w INT DEFAULT (1 + 1))",
	"CREATE TABLE loose (a INT, b VARCHAR(3))",
	"INSERT INTO parent VALUES (1, 1), (2, 2)",
}

// insertPair returns a pair with insertTables.
func insertPair(t *testing.T) *pair {
	p := newPair(t)
	for _, q := range insertTables {
		p.run(q)
	}
	return p
}

// tables compares what is in the tables of INSERTs.
func (p *pair) tables() {
	p.t.Helper()
	for _, q := range []string{"SELECT id, u, n, s, d, f, day, e, g FROM t ORDER BY id", "SELECT * FROM child ORDER BY id", "SELECT id, v, w, at IS NULL FROM noted ORDER BY id", "SELECT * FROM parent ORDER BY id", "SELECT * FROM loose"} {
		p.both(q, true)
	}
}

// insertStatements are INSERTs in which # stands for the number of the execution.
var insertStatements = []string{
	"INSERT INTO t (u, n, s) VALUES (#, 1, 'a')",
	"INSERT INTO t (u, n, s) VALUES (1#, DEFAULT, 'abc'), (2#, 2, 'x')",
	"INSERT INTO t VALUES (DEFAULT, 10#, 1, 'a', '1.5', 1, '2024-01-0#', '2024-01-01 10:00:00', 'x', DEFAULT)",
	"INSERT INTO t SET u = 9#, n = #",
	"REPLACE INTO t (id, u, n) VALUES (0.0, 14#, #)",
	"REPLACE INTO t (id, u, n) VALUES (0.4, 15#, #), (9#, 16#, 1)",
	"INSERT INTO t () VALUES ()",
	"INSERT INTO t (u, s) VALUES (12#, CONCAT('a', 'b')), (13#, UPPER('c'))",
	"INSERT INTO t (u, n, s) VALUES (3#, 2, 'abc'), (2#, 2, 'xyz'), (#, 1, 'q')",
	"INSERT INTO t (u, n, s) VALUES (35#, 2, 'abc'), (36#, 2, 'too long'), (37#, 1, 'q')",
	"INSERT INTO t (u, n) VALUES (71#, 300)",
	"INSERT INTO t (u, n) VALUES (72#, 1), (73#, -300)",
	"INSERT INTO t (u, n) VALUES (74#, 100)",
	"INSERT INTO t (u, n) VALUES (75#, -5)",
	"INSERT INTO t (u, n, d) VALUES (-200, 1, -1.5), (-70#, - 2, -2)",
	"INSERT INTO t (u, n) VALUES (-201, -(#)), (-202, -'#'), (-203, - -#)",
	"INSERT INTO t (u, n) VALUES (76#, 'x')",
	"INSERT INTO t (u, n) VALUES (77#, '')",
	"INSERT INTO t (u, n) VALUES (78#, NULL)",
	"INSERT INTO t (u, day) VALUES (79#, '2023-02-29')",
	"INSERT INTO t (u, e) VALUES (80#, 'z')",
	"INSERT INTO t (u, g) VALUES (81#, 3)",
	"INSERT INTO t (id, u) VALUES (0, 82#), (NULL, 83#), (100#, 84#), (DEFAULT, 85#)",
	"INSERT INTO t (id, u) VALUES (100#, 86#)",
	"INSERT INTO t (u) VALUES (#, 87)",
	"INSERT INTO t (u, nothing) VALUES (#, 87)",
	"INSERT IGNORE INTO t (u, n, s) VALUES (4#, 300, 'too long'), (2#, NULL, 'xyz'), (5#, 1, 'q'), (5#, 1, 'q')",
	"INSERT IGNORE INTO t (u, n) VALUES (#, 1)",
	"INSERT INTO t (u, n) VALUES (#, 3) ON DUPLICATE KEY UPDATE n = n + 1",
	"INSERT INTO t (u, n) VALUES (#, 3) ON DUPLICATE KEY UPDATE n = n",
	"INSERT INTO t (u, n) VALUES (6#, 3) ON DUPLICATE KEY UPDATE n = VALUES(n), s = 'dup#'",
	"INSERT INTO t (u, n) VALUES (6#, 4), (6#, 5), (61#, 6) ON DUPLICATE KEY UPDATE n = VALUES(n) + t.n, s = DEFAULT",
	"INSERT INTO t (u, n) VALUES (6#, 4) ON DUPLICATE KEY UPDATE n = 200",
	"INSERT INTO t (u, n) VALUES (6#, 4) ON DUPLICATE KEY UPDATE u = 1",
	"REPLACE INTO t (id, u, n) VALUES (#, #, 5)",
	"REPLACE INTO t (id, u, n) VALUES (0, 88#, 5), (NULL, 89#, 6)",
	"REPLACE INTO t (u, n) VALUES (#, 5), (90#, 6)",
	"INSERT INTO child VALUES (#, 1, 2), (1#, NULL, 1)",
	"INSERT INTO child VALUES (2#, 1, 1), (3#, 9, 1)",
	"INSERT INTO child (id, q) VALUES (4#, 7)",
	"INSERT IGNORE INTO child VALUES (5#, 9, 1), (6#, 1, 1)",
	"INSERT INTO child VALUES (#, 1, 1) ON DUPLICATE KEY UPDATE p = 2",
	"INSERT INTO child VALUES (#, 1, 1) ON DUPLICATE KEY UPDATE p = 8",
	"REPLACE INTO child VALUES (#, 2, 1)",
	"REPLACE INTO parent VALUES (#, 1#)",
	"INSERT INTO noted (id) VALUES (#), (1#)",
	"INSERT INTO noted (id, at, w) VALUES (2#, NOW(), # + 2)",
	"INSERT INTO loose VALUES (#, 'abc'), (1, 'x')",
	"INSERT INTO loose (b) VALUES ('much too long')",
}

// INSERTs by plans return, warn, fail and insert as by go-mysql-server's, and most of them are run by
// plans.
func TestEngineInsert(t *testing.T) {
	p := insertPair(t)
	for _, q := range insertStatements {
		for i := range 4 {
			p.both(strings.ReplaceAll(q, "#", fmt.Sprint(i+1)), true)
		}
		p.tables()
		if t.Failed() {
			t.Fatalf("after %s", q)
		}
	}
	if p.done*4 < p.all*3 {
		t.Errorf("of %d statements, %d ran by plans", p.all, p.done)
	}
}

// byPlan runs a statement both ways, and says whether it has run by a plan.
func (p *pair) byPlan(query string) bool {
	p.t.Helper()
	p.both(query, true)
	return p.compiled.byPlan
}

// The plan of an INSERT knows its table's parents and triggers, which may change after it was made.
func TestEngineInsertChanged(t *testing.T) {
	p := insertPair(t)
	insert := func(id, parent int, planned bool) {
		t.Helper()
		if p.byPlan(fmt.Sprintf("INSERT INTO child VALUES (%d, %d, NULL), (%d, %d, NULL) ON DUPLICATE KEY UPDATE q = 1", id, parent, id+1, parent)) != planned {
			t.Errorf("%d: by a plan: %v", id, !planned)
		}
	}
	insert(10, 1, false) // the first is never compiled
	insert(20, 1, true)
	p.run("ALTER TABLE parent ADD COLUMN more INT")
	insert(30, 1, false) // the plan has been for the table before
	insert(40, 1, true)
	insert(50, 7, true)
	p.run("CREATE TRIGGER fired BEFORE INSERT ON child FOR EACH ROW SET NEW.q = 2")
	insert(60, 2, false)
	insert(70, 2, false)
	p.run("DROP TRIGGER fired")
	insert(80, 2, true)
	p.run("SET foreign_key_checks = 0")
	insert(90, 8, false)
	insert(100, 8, true)
	p.run("DROP TABLE parent")
	insert(110, 8, true)
	p.run("SET foreign_key_checks = 1")
	insert(120, 8, false)
	insert(130, 8, false)
	p.both("SELECT * FROM child ORDER BY id", true)
}

// INSERTs whose values are parameters of prepared statements insert as those with literals.
func TestEngineInsertPrepared(t *testing.T) {
	p := insertPair(t)
	number := func(n int64) fast.Value { return fast.Value{Number: n, IsNumber: true} }
	for i, values := range [][]fast.Value{
		{number(1), number(2), {Text: "a"}}, {number(2), number(2), {Text: "a"}}, {number(3), number(-128), {IsNull: true}}, {number(4), number(128), {Text: "b"}},
		{number(5), {IsNull: true}, {Text: "c"}}, {{IsNull: true}, {Text: "9"}, number(12345)}, {number(-32769), {Text: "x"}, number(1)}, {number(1 << 40), number(1), number(1)},
		{number(-3e9), number(1), number(300)}, {number(70000), number(99), number(-200)}, {number(1), number(1), {Text: "dup"}},
	} {
		query := "INSERT INTO t (u, n, s) VALUES (?, ?, ?), (NULL, 1, 'z') ON DUPLICATE KEY UPDATE s = 'seen'"
		var written []string
		for _, v := range values {
			switch {
			case v.IsNull:
				written = append(written, "NULL")
			case v.IsNumber:
				written = append(written, fmt.Sprint(v.Number))
			default:
				written = append(written, "'"+v.Text+"'")
			}
		}
		schema, rows, _, err := p.compiled.compiledWith(query, true, values)
		if i == 0 { // which has not been compiled
			schema, rows, err = p.compiled.run(fmt.Sprintf(strings.ReplaceAll(query, "?", "%s"), written[0], written[1], written[2]))
		}
		got := p.compiled.outcome(schema, rows, err)
		schema, rows, err = p.gms.run(fmt.Sprintf(strings.ReplaceAll(query, "?", "%s"), written[0], written[1], written[2]))
		if want := p.gms.outcome(schema, rows, err); got != want {
			t.Errorf("%v: got\n%swant\n%s", written, got, want)
		}
		if i > 0 && !p.compiled.byPlan {
			t.Errorf("%v: not by a plan", written)
		}
	}
	p.tables()
}

// An INSERT of many values is run by a plan that the garbage collector may drop.
func TestEngineInsertLarge(t *testing.T) {
	p := insertPair(t)
	for run := range 6 {
		var rows []string
		for i := range idleRows {
			rows = append(rows, fmt.Sprintf("(%d, %d, 'r')", 1000*(run+1)+i, i))
		}
		p.both("INSERT INTO t (u, n, s) VALUES "+strings.Join(rows, ", "), true)
		if run > 0 && !p.compiled.byPlan {
			t.Error("not by a plan")
		}
		if run%2 == 1 {
			runtime.GC()
			runtime.GC()
		}
	}
	p.tables()
}

// idleRows are more than a plan that is kept has.
const idleRows = 100
