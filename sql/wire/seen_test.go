package wire

import (
	"strings"
	"testing"
)

// TestPrepareDropsTheEarlier: a PREPARE that fails drops the statement whose name it takes, in upper case, too.
func TestPrepareDropsTheEarlier(t *testing.T) {
	c := newFarmServer(t).connect("root", 0)
	for _, q := range []string{"CREATE DATABASE d", "USE d", "CREATE TABLE t (id INT PRIMARY KEY)",
		"CREATE PROCEDURE p() BEGIN DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END; PREPARE s FROM 'SELECT nosuch FROM t'; END"} {
		seen(c, q)
	}
	for _, wrong := range []string{"PREPARE s FROM 'SELEC 2'", "PREPARE S FROM 'SELECT nosuch FROM t'", "CALL p()"} {
		if got := rowsSeen(seen(c, "PREPARE s FROM 'SELECT 1'") + seen(c, "EXECUTE s")); got != "[1]" {
			t.Fatal(got)
		}
		seen(c, wrong)
		if got := seen(c, "EXECUTE s"); !strings.Contains(got, "(errno 1243)") {
			t.Errorf("after %s: %s", wrong, got)
		}
	}
}

// TestViewsOfAllDatabases: information_schema shows views whose tables the current database does not have.
func TestViewsOfAllDatabases(t *testing.T) {
	s := newFarmServer(t)
	c := s.connect("root", 0)
	for _, q := range []string{"CREATE DATABASE d", "CREATE DATABASE e", "USE d", "CREATE TABLE t (id INT PRIMARY KEY)", "CREATE VIEW v AS SELECT * FROM t",
		"USE e", "CREATE TABLE s (a INT PRIMARY KEY)", "CREATE VIEW w AS SELECT * FROM s"} {
		seen(c, q)
	}
	for _, use := range []string{"USE d", "USE e", "USE information_schema"} {
		seen(c, use)
		before := seen(c, "SELECT DATABASE()")
		if got := rowsSeen(seen(c, "SELECT table_schema, table_name FROM information_schema.views ORDER BY 1")); got != "[d v] [e w]" {
			t.Errorf("%s: %s", use, got)
		}
		if got := rowsSeen(seen(c, "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema IN ('d', 'e') ORDER BY 1")); got != "[s a] [t id] [v id] [w a]" {
			t.Errorf("%s: %s", use, got)
		}
		if got := seen(c, "SELECT DATABASE()"); got != before {
			t.Errorf("%s: %s", use, got)
		}
	}
}

// TestSeenTriggers: users see the triggers of tables on which they have the TRIGGER privilege, and ANALYZE TABLE is for users
// who may read and insert.
func TestSeenTriggers(t *testing.T) {
	s := newFarmServer(t)
	c := s.connect("root", 0)
	for _, q := range []string{"CREATE DATABASE d", "USE d", "CREATE TABLE t (id INT PRIMARY KEY)", "CREATE TABLE log (id INT)",
		"CREATE TRIGGER r BEFORE INSERT ON t FOR EACH ROW INSERT INTO log VALUES (NEW.id)",
		"CREATE USER reader@'%'", "GRANT SELECT ON d.t TO reader@'%'", "CREATE USER writer@'%'", "GRANT SELECT, INSERT, TRIGGER ON d.* TO writer@'%'"} {
		if got := seen(c, q); strings.Contains(got, "errno") {
			t.Fatal(got)
		}
	}
	for user, want := range map[string][2]string{"reader": {"", "(errno 1142)"}, "writer": {"[r]", "OK"}} {
		c := s.connect(user, 0)
		seen(c, "USE d")
		got := seen(c, "SELECT trigger_name FROM information_schema.triggers")
		if rowsSeen(got) != want[0] || strings.Contains(got, "errno") {
			t.Errorf("%s sees %s", user, got)
		}
		if got := seen(c, "ANALYZE TABLE d.t"); !strings.Contains(got, want[1]) {
			t.Errorf("%s: %s", user, got)
		}
	}
}

// TestUpdateOfAJoin: it needs UPDATE on the tables that it changes, and SELECT on the others.
func TestUpdateOfAJoin(t *testing.T) {
	s := newFarmServer(t)
	c := s.connect("root", 0)
	for _, q := range []string{"CREATE DATABASE d", "USE d", "CREATE TABLE a (id INT PRIMARY KEY, n INT)", "CREATE TABLE b (id INT PRIMARY KEY, n INT)", "INSERT INTO a VALUES (1, 1)", "INSERT INTO b VALUES (1, 2)",
		"CREATE USER u@'%'", "GRANT SELECT, UPDATE ON d.a TO u@'%'", "GRANT SELECT ON d.b TO u@'%'"} {
		if got := seen(c, q); strings.Contains(got, "errno") {
			t.Fatal(got)
		}
	}
	u := s.connect("u", 0)
	seen(u, "USE d")
	for query, isAllowed := range map[string]bool{
		"UPDATE a JOIN b ON a.id = b.id SET a.n = a.n + b.n":              true,
		"UPDATE d.a, d.b SET A.n = b.n":                                   true,
		"UPDATE a x JOIN (SELECT id FROM b) y ON x.id = y.id SET x.n = 7": true,
		"UPDATE a JOIN b ON a.id = b.id SET b.n = 1":                      false,
		"UPDATE a JOIN b ON a.id = b.id SET a.n = 1, b.n = 1":             false,
		"UPDATE b a JOIN a b ON a.id = b.id SET a.n = 1":                  false,
		"UPDATE b SET n = 1":                                              false,
	} {
		for range 3 {
			if got := seen(u, query); strings.Contains(got, "(errno 1142)") == isAllowed || (isAllowed && strings.Contains(got, "errno")) {
				t.Errorf("%s: %s", query, got)
			}
		}
	}
	if got := rowsSeen(seen(c, "SELECT n FROM b")); got != "[2]" {
		t.Error(got)
	}
}
