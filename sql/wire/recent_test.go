package wire

import (
	"fmt"
	"strings"
	"testing"
)

// In a transaction of many changes, a change tells of a conflict with what it has read itself; of one with what was read
// long before, a SELECT, a failed change and COMMIT tell at once.
func TestConflictsOfLongTransactions(t *testing.T) {
	const changes = 300
	s := newFarmServer(t)
	c, other := s.connect("root", 0), s.connect("root", 0)
	for _, q := range []string{"CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v INT)", "INSERT INTO d.t VALUES (1, 0), (2, 0), (3, 0)"} {
		seen(c, q)
	}
	id := 1000
	insert := func() string { id++; return fmt.Sprintf("INSERT INTO d.t VALUES (%d, 1)", id) }
	// begin has the transaction read row 1, and change many others.
	begin := func() {
		t.Helper()
		seen(c, "BEGIN")
		seen(c, "SELECT v FROM d.t WHERE id = 1")
		for range changes {
			if got := seen(c, insert()); !strings.HasPrefix(got, "affected 1") {
				t.Fatal(got)
			}
		}
	}
	isConflict := func(got string) bool { return strings.Contains(got, "1213") }
	for _, next := range []string{"SELECT v FROM d.t WHERE id = 3", "INSERT INTO d.t VALUES (3, 1)", "COMMIT"} {
		begin()
		seen(other, "UPDATE d.t SET v = v + 1 WHERE id = 1")
		if got := seen(c, insert()); !strings.HasPrefix(got, "affected 1") {
			t.Errorf("a change that reads other rows: %s", got)
		}
		if got := seen(c, next); !isConflict(got) {
			t.Errorf("%s: %s", next, got)
		}
	}
	begin()
	seen(c, "UPDATE d.t SET v = 5 WHERE id = 2")
	seen(other, "UPDATE d.t SET v = 7 WHERE id = 2")
	if got := seen(c, "COMMIT"); !isConflict(got) {
		t.Errorf("a change that was overtaken: %s", got)
	}
	if got := seen(c, "SELECT COUNT(*), SUM(v) FROM d.t"); !strings.Contains(got, `INT64(3)`) || !strings.Contains(got, "10") {
		t.Errorf("after conflicts: %s", got)
	}
}
