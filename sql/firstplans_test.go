package sql

import (
	"fmt"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/sql/fast"
)

// insertNumbers inserts the rows (i, i%10) into a table, for i below n.
func (c *client) insertNumbers(table string, n int) {
	rows := make([]string, n)
	for i := range rows {
		rows[i] = fmt.Sprintf("(%d, %d)", i, i%10)
	}
	c.exec("INSERT INTO " + table + " VALUES " + strings.Join(rows, ", "))
}

// The first execution of a SELECT from tables of many rows has a plan; that of other statements has none.
func TestFirstPlans(t *testing.T) {
	c := newInstance(t).client("")
	for _, q := range []string{"CREATE DATABASE d", "USE d", "CREATE TABLE large (id INT PRIMARY KEY, k INT)", "CREATE TABLE small (id INT PRIMARY KEY, k INT)"} {
		c.exec(q)
	}
	c.insertNumbers("large", 1200)
	c.insertNumbers("small", 20)
	for _, s := range []struct {
		query  string
		byPlan bool
		rows   int
	}{
		{"SELECT k, COUNT(*) FROM large GROUP BY k", true, 10},
		{"select l.id, s.id FROM large l JOIN small s ON s.id = l.k", true, 1200},
		{"SELECT * FROM small s, large l WHERE l.id = s.k AND s.k = 3", true, 2},
		{"WITH w AS (SELECT id, k FROM large WHERE k < 2) SELECT COUNT(*) FROM w JOIN small ON small.id = w.k", true, 1},
		{" SELECT id FROM small WHERE k IN (SELECT k FROM large WHERE id < 3)", true, 6},
		{"SELECT k, COUNT(*) FROM small GROUP BY k", false, 10},
		{"SELECT id FROM large WHERE id = 3", false, 1}, // is compiled
		{"SELECT STD(k) FROM large", false, 1},
		{"SELECT id FROM large WHERE nothing = 3", false, -1},
	} {
		for execution := range 2 {
			_, rows, _, err := c.compiled(s.query)
			if (err != nil) != (s.rows < 0) || err == nil && len(rows) != s.rows {
				t.Errorf("%s: %d rows, %v", s.query, len(rows), err)
			}
			if execution == 0 && c.byPlan != s.byPlan {
				t.Errorf("%s: the first execution is by a plan %v", s.query, c.byPlan)
			}
		}
	}
}

// So has the first execution of a prepared statement, in a transaction with rows of its own.
func TestFirstPlansOfPrepared(t *testing.T) {
	c := newInstance(t).client("")
	for _, q := range []string{"CREATE DATABASE d", "USE d", "CREATE TABLE large (id INT PRIMARY KEY, k INT)"} {
		c.exec(q)
	}
	c.insertNumbers("large", 1200)
	c.exec("BEGIN")
	c.exec("INSERT INTO large VALUES (5000, 3)")
	for execution := range 3 {
		_, rows, _, err := c.compiledWith("SELECT COUNT(*), MAX(id) FROM large GROUP BY k HAVING k = ?", true, []fast.Value{{Number: 3, IsNumber: true, IsBound: true}})
		if err != nil || !c.byPlan || fmt.Sprint(rows) != "[[121 5000]]" {
			t.Errorf("execution %d: %v, %v, by a plan %v", execution+1, rows, err, c.byPlan)
		}
	}
	c.exec("ROLLBACK")
}

// A join begins with the table of which the fewest rows meet their conditions, though another has fewer rows.
func TestJoinOrderByConditions(t *testing.T) {
	c := newInstance(t).client("")
	for _, q := range []string{
		"CREATE DATABASE d", "USE d", "CREATE TABLE kind (id INT PRIMARY KEY, k INT)", "CREATE TABLE part (id INT PRIMARY KEY, k INT)",
		"CREATE TABLE item (id INT PRIMARY KEY, part INT, kind INT, KEY (part), KEY (kind))",
	} {
		c.exec(q)
	}
	c.insertNumbers("kind", 20)
	c.insertNumbers("part", 200)
	rows := make([]string, 4000)
	for i := range rows {
		rows[i] = fmt.Sprintf("(%d, %d, %d)", i, i%200, i%20)
	}
	c.exec("INSERT INTO item VALUES " + strings.Join(rows, ", "))
	_, got, _, err := c.compiled("SELECT part.id FROM kind, item, part WHERE item.kind = kind.id AND item.part = part.id AND part.k = 3")
	if err != nil || !c.byPlan || len(got) != 400 {
		t.Fatal(got[:1], len(got), err, c.byPlan)
	}
	for i, row := range got { // in the order of parts: it looks up 400 items; by kind it would look up all 4,000
		if want := fmt.Sprintf("[%d]", 3+i/20*10); fmt.Sprint(row) != want {
			t.Fatalf("row %d is %v, want %s", i, row, want)
		}
	}
}
