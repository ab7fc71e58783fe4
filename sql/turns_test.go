package sql

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/sql/store"
)

// turnsInstance has rows to change, and statements that wait for as long as patience.
func turnsInstance(t *testing.T, patience time.Duration) *instance {
	in := newInstance(t)
	in.e.Store.Turns.Patience = patience
	c := in.client("d")
	c.exec("CREATE DATABASE d")
	c.exec("CREATE TABLE t (id INT PRIMARY KEY, n INT, v DOUBLE)")
	c.exec("INSERT INTO t VALUES (1, 0, 0), (2, 0, 0), (3, 0, 0)")
	return in
}

// waiting is how many statements wait for their turns.
func (in *instance) waiting() int {
	_, n := in.e.Store.Turns.Counts()
	return n
}

func (in *instance) awaitWaiting(n int) {
	for in.waiting() != n {
		runtime.Gosched()
	}
}

// noTurns checks that transactions that have ended have passed on all turns.
func (in *instance) noTurns() {
	in.t.Helper()
	if n, _ := in.e.Store.Turns.Counts(); n != 0 {
		in.t.Errorf("%d turns are taken", n)
	}
}

// lock runs a statement, compiled if it can be, as the listener does.
func (c *client) lock(query string, forUpdate bool) error {
	c.s.SetForUpdate(forUpdate)
	defer c.s.SetForUpdate(false)
	_, _, _, err := c.compiled(query)
	return err
}

// Of transactions that change or lock one row each waits for the one before, and none
// has a conflict, however they say it.
func TestTurns(t *testing.T) {
	in := turnsInstance(t, time.Hour)
	for _, query := range []string{"UPDATE t SET n = n + 1 WHERE id = 1", "UPDATE t SET v = v + 0.5 WHERE id = 1", "SELECT * FROM t WHERE id = 1 FOR UPDATE", "SELECT n + 1 FROM t WHERE id = 1 FOR UPDATE", "DELETE FROM t WHERE id = 9"} {
		forUpdate := query[0] == 'S'
		for range 2 { // planned, and compiled if it can be
			first := in.client("d")
			first.exec("BEGIN")
			if err := first.lock(query, forUpdate); err != nil {
				t.Fatal(err)
			}
			first.exec("UPDATE t SET n = n + 1 WHERE id = 1")
			done := make(chan error)
			for range 3 {
				c := in.client("d")
				go func() {
					c.exec("BEGIN")
					err := c.lock(query, forUpdate)
					if err == nil {
						_, _, err = c.run("UPDATE t SET n = n + 1 WHERE id = 1")
					}
					if err == nil {
						_, _, err = c.run("COMMIT")
					}
					done <- err
				}()
			}
			in.awaitWaiting(3)
			first.exec("COMMIT")
			for range 3 {
				if err := <-done; err != nil {
					t.Errorf("%s: %v", query, err)
				}
			}
			in.noTurns()
		}
	}
}

// A transaction that is rolled back, or lost, passes its turn on.
func TestTurnsAfterRollback(t *testing.T) {
	in := turnsInstance(t, time.Hour)
	for _, end := range []func(*client){
		func(c *client) { c.exec("ROLLBACK") },
		func(c *client) { c.s.Abort() },
		func(c *client) { // a conflict, which Validate finds
			c.exec("SELECT * FROM t WHERE id = 3")
			in.client("d").exec("UPDATE t SET n = n + 1 WHERE id = 3")
			if err := c.s.Validate(); !myerr.IsConflict(err) {
				t.Error(err)
			}
		},
	} {
		first, second := in.client("d"), in.client("d")
		first.exec("BEGIN")
		first.exec("UPDATE t SET n = n + 1 WHERE id = 1")
		done := make(chan error)
		go func() {
			second.exec("BEGIN")
			done <- second.must(0, "UPDATE t SET n = n + 1 WHERE id = 1", "COMMIT")
		}()
		in.awaitWaiting(1)
		end(first)
		if err := <-done; err != nil {
			t.Error(err)
		}
		in.noTurns()
	}
}

// Transactions that would wait for each other do not, and one of them has a conflict.
func TestTurnsInACircle(t *testing.T) {
	in := turnsInstance(t, time.Hour)
	const n = 3
	clients := make([]*client, n)
	change := func(i int) string { return fmt.Sprintf("UPDATE t SET n = n + 1 WHERE id = %d", i%n+1) }
	for i := range clients {
		clients[i] = in.client("d")
		clients[i].exec("BEGIN")
		clients[i].exec(change(i))
	}
	errs := make(chan error, n)
	for i := range n - 1 {
		go func() { errs <- clients[i].must(0, change(i+1), "COMMIT") }()
		in.awaitWaiting(i + 1)
	}
	errs <- clients[n-1].must(0, change(n), "COMMIT")
	committed := 0
	for range n {
		if err := <-errs; err == nil {
			committed++
		}
	}
	for _, c := range clients {
		c.s.Abort()
	}
	if committed == 0 {
		t.Error("no transaction has committed")
	}
	in.noTurns()
}

// A transaction that has waited long enough continues without its turn, and the first to commit wins.
func TestTurnsPatience(t *testing.T) {
	in := turnsInstance(t, time.Nanosecond)
	first, second := in.client("d"), in.client("d")
	for _, c := range []*client{first, second} {
		c.exec("BEGIN")
		c.exec("UPDATE t SET n = n + 1 WHERE id = 1")
	}
	if n := in.waiting(); n != 0 {
		t.Errorf("%d wait", n)
	}
	second.exec("COMMIT")
	if _, _, err := first.run("COMMIT"); !myerr.IsConflict(err) {
		t.Error(err)
	}
	in.noTurns()
}

// A transaction that changes very many rows takes turns for some of them.
func TestTurnsOfManyRows(t *testing.T) {
	in := turnsInstance(t, time.Hour)
	first, second := in.client("d"), in.client("d")
	first.exec("BEGIN")
	for id := range store.TurnsMax {
		first.exec(fmt.Sprintf("DELETE FROM t WHERE id = %d", -id))
	}
	first.exec("UPDATE t SET n = 1 WHERE id = 1")
	second.exec("BEGIN")
	second.exec("UPDATE t SET n = 2 WHERE id = 1")
	if n, _ := in.e.Store.Turns.Counts(); n != store.TurnsMax+1 {
		t.Errorf("%d turns", n)
	}
	first.exec("COMMIT")
	if _, _, err := second.run("COMMIT"); !myerr.IsConflict(err) {
		t.Error(err)
	}
	in.noTurns()
}

// Statements that are transactions by themselves, and reads, wait for nobody.
func TestNoTurns(t *testing.T) {
	in := turnsInstance(t, time.Hour)
	first, second := in.client("d"), in.client("d")
	first.exec("BEGIN")
	first.exec("UPDATE t SET n = n + 1 WHERE id = 1")
	second.exec("UPDATE t SET n = n + 1 WHERE id = 1")
	second.exec("BEGIN")
	second.exec("SELECT * FROM t WHERE id = 1")
	second.exec("UPDATE t SET n = n + 1 WHERE id = 2")
	second.exec("UPDATE t SET v = 1")
	second.exec("COMMIT")
	if _, _, err := first.run("COMMIT"); !myerr.IsConflict(err) {
		t.Error(err)
	}
	in.noTurns()
}

// lose has a client's transaction end with a conflict, found by a statement or by COMMIT.
func (in *instance) lose(c *client, byCommit bool) {
	in.t.Helper()
	c.exec("BEGIN")
	c.exec("SELECT * FROM t WHERE id = 3")
	c.exec("UPDATE t SET n = n + 1 WHERE id = 2")
	in.client("d").exec("UPDATE t SET n = n + 1 WHERE id = 3")
	var err error
	if byCommit {
		_, _, err = c.run("COMMIT")
	} else {
		err = c.s.Validate()
	}
	if !myerr.IsConflict(err) {
		in.t.Fatal(err)
	}
}

// Transactions that are run again after a conflict wait for each other, before they read
// anything, however they begin; others wait for nobody.
func TestTurnsAgain(t *testing.T) {
	in := turnsInstance(t, time.Hour)
	in.e.Store.Turns.Lines = []string{"one", "another"}
	plan := func(c *client, query string) error { _, _, err := c.run(query); return err }
	compile := func(c *client, query string) error { return c.lock(query, false) }
	for _, begin := range []struct {
		run     func(*client, string) error
		queries []string
	}{
		{plan, []string{"BEGIN"}},
		{plan, []string{"START TRANSACTION READ WRITE"}},
		{compile, []string{"START TRANSACTION"}},
		{compile, []string{"START TRANSACTION"}},
		{plan, []string{"SET autocommit = 0", "COMMIT", "SELECT n FROM t WHERE id = 2"}},
		{compile, []string{"SET autocommit = 0", "COMMIT", "SELECT n FROM t WHERE id = 2"}},
		{compile, []string{"SET autocommit = 0", "COMMIT", "BEGIN"}},
	} {
		var holders [2]*client
		for i := range holders {
			holders[i] = in.client("d")
			in.lose(holders[i], i == 0)
			holders[i].exec("SELECT n FROM t WHERE id = 1")
			holders[i].exec("BEGIN")
		}
		if n, _ := in.e.Store.Turns.Counts(); n != 2 {
			t.Fatalf("%d turns", n)
		}
		third := in.client("d")
		in.lose(third, false)
		third.s.InVain = third.s.InVain.Add(-time.Hour)
		done := make(chan error)
		go func() {
			for _, query := range begin.queries {
				if err := begin.run(third, query); err != nil {
					done <- err
					return
				}
			}
			done <- third.must(0, "UPDATE t SET n = n + 1 WHERE id = 3", "COMMIT")
		}()
		in.awaitWaiting(1)
		fresh := in.client("d")
		fresh.exec("BEGIN")
		fresh.exec("UPDATE t SET n = n + 1 WHERE id = 3")
		fresh.exec("COMMIT")
		if n := in.waiting(); n != 1 {
			t.Errorf("%d wait", n)
		}
		holders[0].exec("COMMIT")
		if err := <-done; err != nil {
			t.Errorf("%v: %v", begin.queries, err)
		}
		if !third.s.InVain.IsZero() {
			t.Error("a client that has committed is not done with its conflict")
		}
		holders[1].exec("ROLLBACK")
		in.noTurns()
	}
}

// Nobody waits for longer to run a transaction again than it has tried in vain, from the
// first of several conflicts on, and for longer than turns are waited for.
func TestTurnsAgainPatience(t *testing.T) {
	in := turnsInstance(t, time.Hour)
	in.e.Store.Turns.Lines = []string{"one"}
	holder, c := in.client("d"), in.client("d")
	in.lose(holder, true)
	holder.exec("BEGIN")
	began := time.Now()
	in.lose(c, true)
	since := c.s.InVain
	in.lose(c, false) // waits no longer than the first took
	if !since.Equal(c.s.InVain) || since.Before(began) {
		t.Errorf("in vain since %v, then %v", since, c.s.InVain)
	}
	in.e.Store.Turns.Patience = time.Nanosecond
	c.s.InVain = since.Add(-time.Hour)
	c.exec("BEGIN")
	c.exec("COMMIT")
	holder.exec("COMMIT")
	in.noTurns()
}
