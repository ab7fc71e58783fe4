package sql

import (
	"testing"
)

// changePair returns a pair with tables that UPDATE and DELETE of joins change.
func changePair(t *testing.T) *pair {
	p := newPair(t)
	for _, q := range []string{
		"CREATE TABLE p (id INT PRIMARY KEY, k INT, s VARCHAR(10) NOT NULL DEFAULT 'x', n INT, d DECIMAL(6,2), KEY (k), KEY (s))",
		"CREATE TABLE q (a INT, b INT, n SMALLINT NOT NULL, s VARCHAR(10), PRIMARY KEY (a, b), KEY (n), KEY (s))",
		"CREATE TABLE keyless (k INT, v INT, KEY (k))",
		"CREATE TABLE fires (id INT PRIMARY KEY, v INT)",
		"CREATE TRIGGER changed BEFORE UPDATE ON fires FOR EACH ROW SET NEW.v = NEW.v + 100",
		"CREATE TABLE made (id INT PRIMARY KEY, v INT, w INT AS (v + 1) STORED)",
		"CREATE TABLE timed (id INT PRIMARY KEY, v INT, t DATETIME ON UPDATE CURRENT_TIMESTAMP)",
		"CREATE TABLE parent (id INT PRIMARY KEY, v INT)",
		"CREATE TABLE child (id INT PRIMARY KEY, p INT, v INT, FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE)",
	} {
		p.run(q)
	}
	p.refill()
	return p
}

// refill puts the rows of changePair back.
func (p *pair) refill() {
	for _, q := range []string{
		"DELETE FROM p", "DELETE FROM q", "DELETE FROM keyless", "DELETE FROM fires", "DELETE FROM made", "DELETE FROM child", "DELETE FROM parent",
		"INSERT INTO p VALUES (1, 10, 'a', 1, 1.5), (2, 10, 'A', NULL, 2), (3, NULL, 'b', 3, NULL), (4, 40, 'ä', 4, 4), (5, 50, 'c', 5, 5)",
		"INSERT INTO q VALUES (1, 1, 1, 'a'), (1, 2, 2, 'b'), (2, 1, 3, NULL), (3, 3, 32767, 'A'), (9, 9, 9, 'z')",
		"INSERT INTO keyless VALUES (1, 1), (1, 1), (2, NULL)", "INSERT INTO fires VALUES (1, 1), (2, 2)", "INSERT INTO made (id, v) VALUES (1, 1)",
		"INSERT INTO parent VALUES (1, 1), (2, 2)", "INSERT INTO child VALUES (1, 1, 1), (2, 1, 2), (3, NULL, 3)",
	} {
		p.run(q)
	}
}

// UPDATE and DELETE of joins run by plans, and change and count the rows that go-mysql-server changes and counts: each
// row of each table once.
func TestPlannedChanges(t *testing.T) {
	p := changePair(t)
	change := func(query string, byPlan bool) {
		t.Helper()
		p.both(query, true) // the first is never planned
		for _, again := range []string{"", "BEGIN", "refill"} {
			switch again {
			case "refill":
				p.refill()
			case "BEGIN": // with rows that are not committed
				p.run("BEGIN")
				p.run("INSERT INTO p VALUES (6, 10, 'a', 6, 6)")
				p.run("INSERT INTO q VALUES (6, 1, 6, 'a')")
				p.run("UPDATE q SET n = n - 1 WHERE a = 1 AND b = 1")
			}
			if p.byPlan(query) != byPlan {
				t.Errorf("%s: by a plan: %v", query, !byPlan)
			}
			p.same("p", "q", "keyless", "fires", "made", "child", "parent")
			if again == "BEGIN" {
				p.run("ROLLBACK")
				p.same("p", "q")
			}
		}
		p.refill()
	}
	for _, query := range []string{
		"UPDATE p JOIN q ON q.a = p.id SET p.n = p.n + 1 WHERE p.id = 1", // two rows of the join
		"UPDATE p x JOIN q y ON y.a = x.id SET x.n = COALESCE(x.n, 0) + 1, y.n = 7 WHERE x.id < 3",
		"UPDATE q JOIN p ON p.id = q.a SET q.s = p.s, q.n = p.k WHERE q.b < 3",
		"UPDATE p LEFT JOIN q ON q.a = p.id SET p.n = 0, q.n = 5 WHERE p.id > 1",
		"UPDATE p LEFT JOIN q ON q.a = p.id SET p.n = -1 WHERE p.id > 1 AND q.a IS NULL",
		"UPDATE p, q SET p.s = 'new', q.s = NULL WHERE q.a = p.id AND p.k = 10",
		"UPDATE p JOIN q ON q.a = p.id SET q.b = q.b + 10 WHERE p.id = 1", // the primary key
		"UPDATE p JOIN q ON q.a = p.id SET p.n = p.n WHERE p.id = 1",      // nothing changes
		"UPDATE p JOIN q ON q.a = p.id SET p.d = 2.25, p.s = 'y' WHERE p.id IN (1, 2) AND q.n >= 1",
		"UPDATE p JOIN q ON q.a = p.id SET p.n = 1",
		"UPDATE p JOIN fires f ON f.id = p.id SET p.n = f.v WHERE p.id = 1", // the table with a trigger stays as it is
		"UPDATE p JOIN keyless e ON e.k = p.id SET p.n = e.v WHERE p.id > 0",
		"UPDATE p SET n = 3 WHERE id > 0 AND EXISTS (SELECT 1 FROM q WHERE q.a = p.id AND q.n < 3)",
		"UPDATE p SET n = 3 WHERE id > 0 AND NOT EXISTS (SELECT 1 FROM q WHERE q.a = p.id)",
		"DELETE p FROM p JOIN q ON q.a = p.id WHERE p.id = 1",
		"DELETE p, y FROM p JOIN q y ON y.a = p.id WHERE p.k = 10",
		"DELETE FROM y USING p JOIN q y ON y.a = p.id WHERE p.k = 10",
		"DELETE p FROM p LEFT JOIN q ON q.a = p.id WHERE p.id > 0 AND q.a IS NULL",
		"DELETE p, q FROM p LEFT JOIN q ON q.a = p.id WHERE p.id > 2",
		"DELETE p FROM p WHERE p.id = 3 OR p.id = 4",
		"DELETE FROM p WHERE id > 0 AND EXISTS (SELECT 1 FROM q WHERE q.a = p.id)",
		"DELETE child FROM child JOIN parent ON parent.id = child.p WHERE parent.id = 1",
		"UPDATE child JOIN parent ON parent.id = child.p SET child.v = parent.v WHERE parent.id = 1",
		"UPDATE child JOIN parent ON parent.id = child.p SET parent.v = child.id WHERE child.id = 1",
	} {
		change(query, true)
	}
	for _, query := range []string{
		"UPDATE p JOIN q ON q.a = p.id SET p.n = p.n + 1, q.n = p.n WHERE p.id = 1", // a column that has been set is read
		"UPDATE p x JOIN p y ON y.id = x.n SET x.s = 'l', y.n = 9 WHERE x.id = 4",   // by several names
		"UPDATE p JOIN q ON q.a = p.id SET p.n = p.n + 1 WHERE p.id = 1 AND q.n + 1 = (SELECT MAX(v) + 1 FROM keyless)",
		"UPDATE p JOIN fires f ON f.id = p.id SET f.v = p.n WHERE p.id = 1",
		"UPDATE p JOIN made ON made.id = p.id SET p.n = made.w, made.v = 7 WHERE p.id = 1",
		"DELETE parent FROM parent JOIN child ON child.p = parent.id WHERE parent.id = 1",
		"UPDATE child JOIN p ON p.id = child.p SET child.p = p.id WHERE p.id = 1",
		"DELETE FROM p WHERE id IN (SELECT n FROM q)",
	} {
		change(query, false)
	}
}

// Errors of an UPDATE of a join are go-mysql-server's, and leave all tables as they were.
func TestPlannedChangesFail(t *testing.T) {
	p := changePair(t)
	for _, query := range []string{
		"UPDATE q JOIN p ON p.id = q.a SET p.n = 8, q.n = p.k * 1000 WHERE p.id = 4 OR q.n > 0", // out of range
		"UPDATE p JOIN q ON q.a = p.id SET q.n = NULL, p.n = 8 WHERE p.id > 0",
		"UPDATE p JOIN q ON q.a = p.id SET p.n = 8, p.s = 'longer than ten' WHERE p.id > 0",
		"UPDATE p JOIN q ON q.a = p.id SET p.n = 8, q.b = 3 WHERE p.id > 0", // duplicates
	} {
		for range 3 {
			p.both(query, true)
			p.same("p", "q")
		}
	}
}

// A trigger or a foreign key that is made later takes an UPDATE of a join its plan.
func TestPlannedChangesOfChangedTables(t *testing.T) {
	p := changePair(t)
	const query = "UPDATE p JOIN q ON q.a = p.id SET p.n = p.n + 1, p.k = 3 WHERE p.id = 1"
	want := func(byPlan bool) {
		t.Helper()
		if p.byPlan(query) != byPlan {
			t.Errorf("by a plan: %v", !byPlan)
		}
		p.same("p")
	}
	p.both(query, true)
	want(true)
	p.run("CREATE TRIGGER later BEFORE UPDATE ON p FOR EACH ROW SET NEW.n = NEW.n * 2")
	want(false)
	p.run("DROP TRIGGER later")
	want(true)
	p.run("ALTER TABLE q ADD FOREIGN KEY (n) REFERENCES p (k)") // fails: rows without parents
	p.run("CREATE TABLE refers (k INT, FOREIGN KEY (k) REFERENCES p (id))")
	want(true) // it refers to another column
	p.run("CREATE TABLE refers2 (k INT, FOREIGN KEY (k) REFERENCES p (k))")
	want(false)
	p.run("DROP TABLE refers2")
	want(true)
}

// Rows that a plan changes by their addresses keep their entries in indexes, whether their keys change, whether they
// move to a larger or smaller object, and after an earlier change of the same transaction.
func TestChangesByAddress(t *testing.T) {
	p := newPair(t)
	p.run("CREATE TABLE r (id INT PRIMARY KEY, s VARCHAR(3000), n INT, d DECIMAL(6,2), t DATETIME, f DOUBLE, UNIQUE KEY u (s(10), id), KEY (n), KEY (d), KEY (t), KEY (f))")
	for _, query := range []string{
		"UPDATE r SET n = n + 1 WHERE n BETWEEN 1 AND 9",
		"UPDATE r SET id = id + 100 WHERE n BETWEEN 1 AND 3",
		"UPDATE r SET s = REPEAT('y', 2500) WHERE n BETWEEN 1 AND 3", // moves
		"UPDATE r SET s = REPEAT('y', 2500), n = 5 WHERE id BETWEEN 1 AND 3",
		"UPDATE r SET s = 'y' WHERE n BETWEEN 1 AND 9", // moves back
		"UPDATE r SET s = 'A' WHERE n BETWEEN 1 AND 9", // another text, the same key
		"UPDATE r SET d = 1.50, f = -0.0 WHERE n BETWEEN 1 AND 9",
		"UPDATE r SET d = NULL, n = NULL WHERE t < '2022-01-04'",
		"UPDATE r SET t = '2022-01-03 00:00:00' WHERE id IN (1, 2, 3) AND n < 9",
		"UPDATE r SET n = 4 WHERE n > 1 ORDER BY n LIMIT 2",
		"UPDATE r SET n = 4 WHERE n > 1 ORDER BY s, id LIMIT 2", // sorted rows have no addresses
		"UPDATE r SET n = 7 WHERE n = 2 OR d = 3",               // two indexes
		"UPDATE r SET id = 5 WHERE id BETWEEN 1 AND 2",          // 1062
		"DELETE FROM r WHERE n BETWEEN 2 AND 3",
		"DELETE FROM r WHERE t < '2022-01-04' LIMIT 2",
		"DELETE FROM r WHERE n = 2 OR d = 3",
	} {
		for _, isOpen := range []bool{false, false, true} {
			p.run("DELETE FROM r")
			p.run("INSERT INTO r VALUES (1, 'a', 1, 1, '2022-01-01', 0), (2, 'A', 2, 1.5, '2022-01-02', 1), (3, 'b', 3, NULL, '2022-01-03', 2), (4, NULL, 4, 3, NULL, 3), (5, 'c', 5, 5, '2022-01-05', NULL)")
			if isOpen {
				p.run("BEGIN")
				p.run("UPDATE r SET s = REPEAT('z', 900) WHERE id = 2") // moves the row
				p.run("DELETE FROM r WHERE id = 3")
			}
			p.both(query, true)
			p.same("r")
			for _, where := range []string{"n BETWEEN 0 AND 9", "d BETWEEN 0 AND 9", "t > '2021-01-01 00:00:00'", "f BETWEEN -1 AND 9", "n IS NULL", "s = 'a'", "s = REPEAT('y', 2500)"} {
				p.run("SELECT id, n FROM r WHERE " + where + " ORDER BY id")
			}
			if isOpen {
				p.run("COMMIT")
				p.same("r")
			}
		}
	}
}

// A column of dates and times is compared with texts that are dates alone, or have a fraction, by plans.
func TestMomentTexts(t *testing.T) {
	p := newPair(t)
	p.run("CREATE TABLE m (id INT PRIMARY KEY, t DATETIME, u DATETIME(3), v INT, KEY (t), KEY (u))")
	p.run("INSERT INTO m VALUES (1, '2022-01-01 00:00:00', '2022-01-01 00:00:00.500', 1), (2, '2022-01-01 00:00:01', '2022-01-02 00:00:00', 1), (3, NULL, NULL, 1), (4, '2022-03-01 10:00:00', '2022-03-01 10:00:00.123', 1)")
	for _, where := range []string{
		"t < '2022-01-02'", "t = '2022-01-01'", "t >= '2022-01-01 00:00:00.5'", "t = '2022-01-01 00:00:00.000000'", "t BETWEEN '2022-01-01' AND '2022-02-01'",
		"t IN ('2022-01-01', '2022-03-01 10:00:00')", "u = '2022-01-02'", "u = '2022-01-01 00:00:00.5'", "u > '2022-03-01 10:00:00.123000'", "u <= '2022-03-01 10:00:00.1234'", "u < '2022-01-01 00:00:00.500001'", "v = 1 AND t <> '2022-01-01'",
	} {
		query := "SELECT id FROM m WHERE " + where + " ORDER BY v, id"
		p.both(query, true) // the first is never planned
		if !p.byPlan(query) {
			t.Errorf("%s: not by a plan", query)
		}
	}
	for _, text := range []string{"2022-1-1", "2022-01-01T00:00:00", "20220101", "0000-00-00", "2022-02-30", "2022-01-01 00:00", "2022-01-01 00:00:00,5", "x", ""} {
		query := "SELECT id FROM m WHERE t < '" + text + "' ORDER BY v, id"
		p.both(query, true)
		if p.byPlan(query) {
			t.Errorf("%s: by a plan", query)
		}
	}
}
