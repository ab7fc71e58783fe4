package sql

import "testing"

// Triggers of other tables leave a statement as it is; those of its own table run, and those of the
// tables that these change.
func TestTriggersOfOtherTables(t *testing.T) {
	in := newInstance(t)
	c := in.client("")
	for _, q := range []string{
		"CREATE DATABASE d", "USE d", "CREATE TABLE t (id INT PRIMARY KEY, n INT)", "CREATE TABLE s (id INT PRIMARY KEY, n INT)",
		"CREATE TABLE gone (id INT PRIMARY KEY)", "CREATE TABLE log (what VARCHAR(20))", "INSERT INTO t VALUES (1, 0)", "INSERT INTO gone VALUES (1), (2)",
		"CREATE TRIGGER of_s AFTER INSERT ON s FOR EACH ROW UPDATE t SET n = n + 100 WHERE id = NEW.id",
	} {
		c.exec(q)
	}
	runs := func(query string, compiled, byPlan bool) {
		t.Helper()
		var isCompiled bool
		for range 3 { // the first times teach how
			_, _, done, err := c.compiled(query)
			if err != nil {
				t.Fatalf("%s: %v", query, err)
			}
			isCompiled = done
		}
		if isCompiled != compiled || c.byPlan != byPlan {
			t.Errorf("%s: compiled %v, by a plan of our own %v", query, isCompiled, c.byPlan)
		}
	}
	runs("UPDATE t SET n = n + 1 WHERE id = 1", true, false)
	runs("UPDATE t SET n = n + 1 WHERE n < 5", false, true)
	// A DELETE without a condition asks for triggers twice: once to find out whether it may truncate.
	c.exec("CREATE TRIGGER of_t AFTER UPDATE ON t FOR EACH ROW BEGIN INSERT INTO log VALUES ('t'); DELETE FROM gone; END")
	c.exec("CREATE TRIGGER of_gone AFTER DELETE ON gone FOR EACH ROW INSERT INTO log VALUES ('gone')")
	runs("UPDATE t SET n = n + 1 WHERE id = 1", false, false)
	runs("UPDATE t SET n = n + 1 WHERE n < 100", false, false)
	c.exec("INSERT INTO gone VALUES (3)")
	c.exec("INSERT INTO s VALUES (1, 1)")
	c.exec("UPDATE s JOIN t ON s.id = t.id SET t.n = 0, s.n = 2")
	schema, rows, err := c.run("SELECT what, COUNT(*) FROM log GROUP BY what ORDER BY what")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := c.show(schema, rows), "gone | 3\nt | 8\n"; got != want {
		t.Errorf("triggers have run:\n%swant\n%s", got, want)
	}
}
