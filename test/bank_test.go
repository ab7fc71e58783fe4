package test

import (
	"context"
	stdsql "database/sql"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	bankAccounts = 20
	bankBalance  = 1000
)

func createBank(t *testing.T, db *stdsql.DB) {
	t.Helper()
	exec1(t, db, "create table bank (id int primary key, balance bigint not null, version int not null default 0, key (balance))")
	for i := range bankAccounts {
		exec1(t, db, fmt.Sprintf("insert into bank (id, balance) values (%d, %d)", i, bankBalance))
	}
}

// transfer moves money between two accounts in a transaction of its own and
// returns the error that ended it.
func transfer(ctx context.Context, db *stdsql.DB, rnd *rand.Rand) error {
	from, to := rnd.IntN(bankAccounts), rnd.IntN(bankAccounts-1)
	if to >= from {
		to++
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // no-op after Commit
	var balance int
	if err := tx.QueryRowContext(ctx, "select balance from bank where id = ?", from).Scan(&balance); err != nil {
		return err
	}
	amount := rnd.IntN(balance/2 + 1)
	if _, err := tx.ExecContext(ctx, "update bank set balance = ?, version = version + 1 where id = ?", balance-amount, from); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "update bank set balance = balance + ?, version = version + 1 where id = ?", amount, to); err != nil {
		return err
	}
	return tx.Commit()
}

// TestBank: while transfers run, no reader ever sees another total, in any way of reading.
func TestBank(t *testing.T) {
	duration := 3 * time.Second
	if nightly {
		duration = time.Minute
	}
	for _, l := range layouts {
		t.Run(l.String(), func(t *testing.T) {
			s := start(t, t.TempDir(), l.flags()...)
			db := s.open(t, "bank")
			createBank(t, db)
			var transfers, conflicts, reads atomic.Int64
			deadline := time.Now().Add(duration)
			group, ctx := errgroup.WithContext(t.Context())
			for i := range 8 {
				group.Go(func() error {
					rnd := rand.New(rand.NewPCG(1, uint64(i)))
					for time.Now().Before(deadline) || transfers.Load() == 0 {
						switch err := transfer(ctx, db, rnd); {
						case err == nil:
							transfers.Add(1)
						case isConflict(err):
							conflicts.Add(1)
						default:
							return err
						}
					}
					return nil
				})
			}
			for i := range 4 {
				group.Go(func() error {
					for time.Now().Before(deadline) || reads.Load() == 0 {
						switch err := readBank(ctx, db, i); {
						case err == nil:
							reads.Add(1)
							time.Sleep(5 * time.Millisecond) // leave the writers something
						case isConflict(err):
							conflicts.Add(1)
						default:
							return err
						}
					}
					return nil
				})
			}
			if err := group.Wait(); err != nil {
				t.Fatal(err)
			}
			t.Logf("%d transfers, %d reads of the total, %d conflicts", transfers.Load(), reads.Load(), conflicts.Load())
			if err := readBank(t.Context(), db, 0); err != nil {
				t.Error(err)
			}
		})
	}
}

// readBank adds up the accounts in one of several ways and fails on a wrong sum.
func readBank(ctx context.Context, db *stdsql.DB, way int) error {
	sum, err := sumBank(ctx, db, way)
	if err == nil && sum != bankAccounts*bankBalance {
		return fmt.Errorf("the total is %d, read in way %d", sum, way)
	}
	return err
}

func sumBank(ctx context.Context, db *stdsql.DB, way int) (sum int64, err error) {
	switch way % 4 {
	case 0:
		err = db.QueryRowContext(ctx, "select sum(balance) from bank").Scan(&sum)
	case 1:
		sum, err = sumRows(ctx, db, "select balance from bank order by balance desc")
	case 2: // row by row, in a transaction
		sum, err = sumInTransaction(ctx, db)
	case 3:
		sum, err = sumRows(ctx, db, "select balance from bank where id >= ? for update", 0)
	}
	return sum, err
}

func sumRows(ctx context.Context, db *stdsql.DB, query string, args ...any) (sum int64, err error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		var balance int64
		if err := rows.Scan(&balance); err != nil {
			return 0, err
		}
		sum += balance
	}
	return sum, rows.Err()
}

// sumInTransaction checks the sum before it commits: reads must be consistent even if the
// transaction aborts later.
func sumInTransaction(ctx context.Context, db *stdsql.DB) (sum int64, err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback()
	for i := range bankAccounts {
		var balance int64
		if err := tx.QueryRowContext(ctx, "select balance from bank where id = ?", i).Scan(&balance); err != nil {
			return 0, err
		}
		sum += balance
	}
	if sum != bankAccounts*bankBalance {
		return sum, nil // shown to the client: wrong, whatever Commit says
	}
	return sum, tx.Commit()
}
