package test

import (
	"context"
	stdsql "database/sql"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/internal/history"
	"github.com/farmsql/farmsql/internal/lists"
)

// A listOperation is what a client of lists does.
type listOperation func(ctx context.Context, db *stdsql.DB, label string, rnd *rand.Rand) error

// onMachine makes an operation of it.
func (o listOperation) onMachine(ctx context.Context, db *stdsql.DB, m *machine, rnd *rand.Rand) error {
	return o(ctx, db, fmt.Sprintf("machine %d", m.id), rnd)
}

// checkLists judges the history.
func checkLists(t *testing.T, c *lists.Clients) {
	t.Helper()
	report, err := c.Check()
	if err != nil {
		t.Error(err)
	}
	t.Log(c.Summary(report))
}

// listNow returns a list, and does not record that.
func listNow(t *testing.T, db *stdsql.DB, list history.Object) []history.Value {
	t.Helper()
	var text string
	if err := db.QueryRow("select elements from lists where id = ?", uint64(list)).Scan(&text); err != nil {
		t.Fatal(err)
	}
	elements, err := lists.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return elements
}

// TestListsFindAnomalies: the clients of lists work, on a server that does nothing wrong, and find what
// a server would do that did: the test does it to them.
func TestListsFindAnomalies(t *testing.T) {
	s := start(t, t.TempDir())
	for _, c := range []struct {
		name string
		// plant does something wrong to the lists, of which list 0 has elements that were acknowledged.
		plant func(t *testing.T, db *stdsql.DB, c *lists.Clients)
		want  history.Kind
	}{
		{"nothing", func(*testing.T, *stdsql.DB, *lists.Clients) {}, ""},
		{"an acknowledged append is rolled back", func(t *testing.T, db *stdsql.DB, c *lists.Clients) {
			r := c.Record.Begin("planted")
			tx, err := db.Begin()
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Append(t.Context(), tx, r, 0); err != nil {
				t.Fatal(err)
			}
			if err := tx.Rollback(); err != nil {
				t.Fatal(err)
			}
			r.End(history.Committed)
		}, history.LostAppend},
		{"the oldest element vanishes", func(t *testing.T, db *stdsql.DB, _ *lists.Clients) {
			exec1(t, db, "update lists set elements = substr(elements, instr(elements, ',') + 1) where id = 0")
		}, history.ForkedList},
		{"an append is done twice", func(t *testing.T, db *stdsql.DB, _ *lists.Clients) {
			exec1(t, db, "update lists set elements = concat(elements, ',', substring_index(elements, ',', -1)) where id = 0")
		}, history.DoubledAppend},
		{"what was rolled back is there", func(t *testing.T, db *stdsql.DB, c *lists.Clients) {
			r := c.Record.Begin("planted")
			if err := c.Append(t.Context(), db, r, 0); err != nil {
				t.Fatal(err)
			}
			r.End(history.Aborted)
		}, history.DirtyRead},
		{"a read is stale", func(t *testing.T, db *stdsql.DB, c *lists.Clients) {
			r := c.Record.Begin("append")
			if err := c.Append(t.Context(), db, r, 0); err != nil {
				t.Fatal(err)
			}
			r.End(history.Committed)
			r = c.Record.Begin("planted") // after the append has ended, but as if it had not happened
			if err := c.Read(t.Context(), db, r, 1); err != nil {
				t.Fatal(err)
			}
			elements := listNow(t, db, 0)
			r.ReadList(0, elements[:len(elements)-1])
			r.End(history.Committed)
		}, history.StaleRead},
		{"a skew of writes", func(t *testing.T, db *stdsql.DB, c *lists.Clients) {
			// Both read before either appends, as if they had not noticed each other.
			rs := []*history.Recording{c.Record.Begin("planted, one"), c.Record.Begin("planted, other")}
			for i, r := range rs {
				if err := c.Read(t.Context(), db, r, history.Object(i)); err != nil {
					t.Fatal(err)
				}
			}
			for i, r := range rs {
				if err := c.Append(t.Context(), db, r, history.Object(1-i)); err != nil {
					t.Fatal(err)
				}
			}
			for _, r := range rs {
				r.End(history.Committed)
			}
		}, history.WriteSkew},
	} {
		t.Run(c.name, func(t *testing.T) {
			db := s.open(t, "lists_"+strings.ReplaceAll(strings.ReplaceAll(c.name, " ", "_"), ",", ""))
			clients, err := lists.New(t.Context(), db)
			if err != nil {
				t.Fatal(err)
			}
			rnd := rand.New(rand.NewPCG(1, 2))
			for range 100 { // fewer than fill the first lists
				for _, o := range []listOperation{clients.Single, clients.Several} {
					if err := o(t.Context(), db, "the server", rnd); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := clients.ReadAll(t.Context(), db, "all"); err != nil {
				t.Fatal(err)
			}
			c.plant(t, db, clients)
			if err := clients.ReadAll(t.Context(), db, "all, at the end"); err != nil {
				t.Fatal(err)
			}
			report := clients.Record.Check(history.Options{})
			if c.want == "" {
				checkLists(t, clients)
			} else if !slices.ContainsFunc(report.Violations, func(v history.Violation) bool { return v.Kind == c.want }) {
				t.Errorf("want a %s, got %v", c.want, report.Err())
			}
		})
	}
}
