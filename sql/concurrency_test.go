package sql

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/farmsql/farmsql/sql/myerr"
)

// each runs a client in each of n goroutines.
func (in *instance) each(n int, db string, run func(i int, c *client) error) {
	in.t.Helper()
	var wg sync.WaitGroup
	errs := make(chan error, n)
	for i := range n {
		c := in.client(db)
		wg.Go(func() {
			if err := run(i, c); err != nil {
				errs <- fmt.Errorf("client %d: %w", i, err)
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		in.t.Error(err)
	}
}

// must runs statements in a transaction of the client's, each of which has to
// succeed the first time.
func (c *client) must(pause time.Duration, queries ...string) error {
	for _, q := range queries {
		if _, _, err := c.run(q); err != nil {
			return fmt.Errorf("%s: %w", q, err)
		}
		if c.s.Explicit() {
			if err := c.s.Validate(); err != nil {
				return fmt.Errorf("after %s: %w", q, err)
			}
		}
		time.Sleep(pause)
	}
	return nil
}

// Inserts by many clients into one AUTO_INCREMENT table with secondary indexes
// and a foreign key, while other columns of the parents change, disturb nobody:
// no transaction may meet a conflict.
func TestNoFalseConflicts(t *testing.T) {
	in := newInstance(t)
	setup := in.client("")
	for _, q := range []string{
		"CREATE DATABASE d", "USE d",
		"CREATE TABLE parent (id INT PRIMARY KEY, name VARCHAR(4000), visits INT)",
		`CREATE TABLE child (id BIGINT PRIMARY KEY AUTO_INCREMENT, pid INT NOT NULL, k INT, s VARCHAR(30),
			KEY (k), UNIQUE KEY (s), CONSTRAINT fk FOREIGN KEY (pid) REFERENCES parent (id))`,
		"INSERT INTO parent VALUES (0, 'a', 0), (1, 'b', 0), (2, 'c', 0), (3, 'd', 0)",
	} {
		setup.exec(q)
	}
	const clients, rounds = 32, 4
	in.each(clients, "d", func(i int, c *client) error {
		random := rand.New(rand.NewPCG(1, uint64(i)))
		for r := range rounds {
			pause := time.Duration(random.IntN(5)) * time.Millisecond
			queries := []string{"BEGIN"}
			for n := range 3 {
				queries = append(queries, fmt.Sprintf("INSERT INTO child (pid, k, s) VALUES (%d, %d, 's-%d-%d-%d')",
					random.IntN(4), random.IntN(5), i, r, n))
			}
			if err := c.must(pause, append(queries, "COMMIT")...); err != nil {
				return err
			}
			// The parents change all the time, and grow, so that their rows move;
			// each client has one that is its own to write in turn with the
			// others, so that writers may conflict.
			c.exec(fmt.Sprintf("UPDATE parent SET visits = visits + 1, name = REPEAT('x', visits * 60) WHERE id = %d", i%4))
		}
		return nil
	})
	rows := setup.exec("SELECT COUNT(*), COUNT(DISTINCT id), MAX(id) FROM child")
	if n := rows[0][0].(int64); n != clients*rounds*3 || rows[0][1] != n {
		t.Errorf("%v rows", rows)
	}
	if err := in.check(); err != nil {
		t.Error(err)
	}
}

// Of several transactions that insert one unique key, exactly one commits.
func TestOneUniqueKey(t *testing.T) {
	in := newInstance(t)
	setup := in.client("")
	setup.exec("CREATE DATABASE d")
	setup.exec("USE d")
	setup.exec("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, u INT, UNIQUE KEY (u))")
	for key := range 10 {
		var mu sync.Mutex
		committed := 0
		var begun sync.WaitGroup
		begun.Add(2)
		in.each(2, "d", func(i int, c *client) error {
			_, _, err := c.run("BEGIN")
			if err == nil {
				_, _, err = c.run(fmt.Sprintf("INSERT INTO t (u) VALUES (%d)", key))
			}
			begun.Done()
			begun.Wait()
			if err == nil {
				_, _, err = c.run("COMMIT")
			}
			switch {
			case err == nil:
				mu.Lock()
				committed++
				mu.Unlock()
			case !myerr.IsConflict(err) && myerr.Of(err).Num != 1062:
				return err
			}
			return nil
		})
		if committed != 1 {
			t.Errorf("key %d: %d transactions committed", key, committed)
		}
	}
}

// Money moves between accounts; no reader ever sees another total.
func TestBank(t *testing.T) {
	in := newInstance(t)
	setup := in.client("")
	for _, q := range []string{
		"CREATE DATABASE bank", "USE bank",
		"CREATE TABLE account (id INT PRIMARY KEY, owner VARCHAR(20), balance INT NOT NULL, KEY (balance))",
		"CREATE TABLE transfer (id INT PRIMARY KEY AUTO_INCREMENT, source INT, target INT, amount INT)",
	} {
		setup.exec(q)
	}
	const accounts, start = 10, 100
	for i := range accounts {
		setup.exec(fmt.Sprintf("INSERT INTO account VALUES (%d, 'o', %d)", i, start))
	}
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		c := in.client("bank")
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if total := c.exec("SELECT SUM(balance) FROM account")[0][0]; fmt.Sprint(total) != fmt.Sprint(accounts*start) {
					t.Errorf("a reader saw %v", total)
					return
				}
			}
		})
	}
	var commits sync.Map
	in.each(4, "bank", func(i int, c *client) error {
		random := rand.New(rand.NewPCG(2, uint64(i)))
		done := 0
		for range 60 {
			from, to, amount := random.IntN(accounts), random.IntN(accounts), 1+random.IntN(20)
			if from == to {
				continue
			}
			ok, err := transfer(c, from, to, amount)
			if err != nil {
				return err
			}
			if ok {
				done++
			}
		}
		commits.Store(i, done)
		return nil
	})
	close(stop)
	readers.Wait()
	total := 0
	commits.Range(func(_, n any) bool { total += n.(int); return true })
	if rows := setup.exec("SELECT COUNT(*) FROM transfer"); rows[0][0] != int64(total) || total == 0 {
		t.Errorf("%v transfers in the table, %d committed", rows[0][0], total)
	}
	if rows := setup.exec("SELECT COUNT(*) FROM account WHERE balance < 0"); rows[0][0] != int64(0) {
		t.Errorf("%v accounts below zero", rows[0][0])
	}
	if err := in.check(); err != nil {
		t.Error(err)
	}
}

// transfer moves money in a transaction of several statements, and reports
// whether it committed.
func transfer(c *client, from, to, amount int) (bool, error) {
	_, _, err := c.run("BEGIN")
	if err != nil {
		return false, err
	}
	_, rows, err := c.run(fmt.Sprintf("SELECT balance FROM account WHERE id = %d", from))
	if err == nil && rows[0][0].(int32) < int32(amount) {
		_, _, err = c.run("ROLLBACK")
		return false, err
	}
	for _, q := range []string{
		fmt.Sprintf("UPDATE account SET balance = balance - %d WHERE id = %d", amount, from),
		fmt.Sprintf("UPDATE account SET balance = balance + %d WHERE id = %d", amount, to),
		fmt.Sprintf("INSERT INTO transfer (source, target, amount) VALUES (%d, %d, %d)", from, to, amount),
		"COMMIT",
	} {
		if err == nil {
			_, _, err = c.run(q)
		}
	}
	if myerr.IsConflict(err) {
		c.s.Abort()
		return false, nil
	}
	return err == nil, err
}
