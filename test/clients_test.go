package test

import (
	"context"
	stdsql "database/sql"
	"fmt"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// TestNoFalseConflicts: 32 clients insert into one table, in interactive transactions with pauses.
// Meanwhile other columns of the parent rows change. No transaction disturbs another, so none may
// get error 1213.
func TestNoFalseConflicts(t *testing.T) {
	const clients = 32
	rounds := 3
	if nightly {
		rounds = 30
	}
	for _, l := range layouts {
		t.Run(l.String(), func(t *testing.T) {
			s := start(t, t.TempDir(), l.flags()...)
			db := s.open(t, "clients")
			exec1(t, db,
				"create table parents (id int primary key, name varchar(20) not null, hits int not null default 0, key (name))",
				"insert into parents (id, name) values (1, 'one'), (2, 'two'), (3, 'three')",
				`create table children (id bigint primary key auto_increment, parent int not null, client int not null,
					tag varchar(30) not null, n double, unique key by_tag (tag), key by_client (client), key by_n (n),
					foreign key (parent) references parents (id))`)
			stop := make(chan struct{})
			var updates int
			var updaters sync.WaitGroup
			updaters.Go(func() { // one of them, so that updates do not conflict among themselves
				for ; ; updates++ {
					select {
					case <-stop:
						return
					default:
					}
					if _, err := db.Exec("update parents set hits = hits + 1 where id = ?", 1+updates%3); err != nil {
						t.Errorf("updating a parent: %v", err)
						return
					}
				}
			})
			group, ctx := errgroup.WithContext(t.Context())
			for client := range clients {
				group.Go(func() error { return interactive(ctx, db, client, rounds) })
			}
			err := group.Wait()
			close(stop)
			updaters.Wait()
			if err != nil {
				t.Fatal(err)
			}
			var rows, ids int
			if err := db.QueryRow("select count(*), count(distinct id) from children").Scan(&rows, &ids); err != nil {
				t.Fatal(err)
			}
			if want := clients * rounds * 3; rows != want || ids != want {
				t.Errorf("%d rows with %d ids, want %d", rows, ids, want)
			}
			t.Logf("%d transactions, %d updates of parents meanwhile", clients*rounds, updates)
		})
	}
}

// interactive runs transactions of several statements as a person would.
func interactive(ctx context.Context, db *stdsql.DB, client, rounds int) error {
	c, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	for round := range rounds {
		if err := interactiveRound(ctx, c, client, round); err != nil {
			return fmt.Errorf("client %d, round %d: %w", client, round, err)
		}
	}
	return nil
}

func interactiveRound(ctx context.Context, c *stdsql.Conn, client, round int) error {
	tx, err := c.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // no-op after Commit
	for i := range 3 {
		_, err := tx.ExecContext(ctx, "insert into children (parent, client, tag, n) values (?, ?, ?, ?)",
			1+(client+i)%3, client, fmt.Sprintf("c%d-r%d-%d", client, round, i), float64(client*round))
		if err != nil {
			return err
		}
		time.Sleep(time.Duration(10+client) * time.Millisecond)
	}
	var n int
	if err := tx.QueryRowContext(ctx, "select count(*) from children where client = ?", client).Scan(&n); err != nil {
		return err
	}
	if n != 3*(round+1) {
		return fmt.Errorf("%d of its rows are there", n)
	}
	return tx.Commit()
}

// TestOneOfTwoInserts: of transactions that insert the same unique key, exactly
// one commits.
func TestOneOfTwoInserts(t *testing.T) {
	for _, l := range layouts {
		t.Run(l.String(), func(t *testing.T) {
			s := start(t, t.TempDir(), l.flags()...)
			db := s.open(t, "twice")
			exec1(t, db, "create table t (id bigint primary key auto_increment, k int unique)", "create table p (k int primary key)")
			for key := range 20 {
				for _, query := range []string{"insert into t (k) values (?)", "insert into p values (?)"} {
					committed := race(t, db, query, key)
					if committed != 1 {
						t.Errorf("%s, key %d: %d transactions committed", query, key, committed)
					}
				}
			}
			for _, table := range []string{"t", "p"} {
				var n, keys int
				if err := db.QueryRow("select count(*), count(distinct k) from "+table).Scan(&n, &keys); err != nil || n != 20 || keys != 20 {
					t.Errorf("%s: %d rows, %d keys, %v", table, n, keys, err)
				}
			}
		})
	}
}

// race runs the insert in two transactions that are open at the same time and
// returns how many committed.
func race(t *testing.T, db *stdsql.DB, query string, key int) (committed int) {
	t.Helper()
	var txs [2]*stdsql.Tx
	var failed [2]error
	for i := range txs {
		tx, err := db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		txs[i] = tx
	}
	for i, tx := range txs {
		_, failed[i] = tx.Exec(query, key)
	}
	results := make(chan error, len(txs))
	for i, tx := range txs {
		go func() {
			if failed[i] != nil {
				results <- failed[i]
				return
			}
			results <- tx.Commit()
		}()
	}
	for range txs {
		switch err := <-results; {
		case err == nil:
			committed++
		case !isConflict(err) && !isDuplicate(err):
			t.Errorf("key %d: %v", key, err)
		}
	}
	return committed
}
