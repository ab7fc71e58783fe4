package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/farmsql/farmsql/txn"
	"github.com/go-sql-driver/mysql"
)

// Attempts at one transaction: after so many something is wrong.
const attemptsMax = 1000

// MySQL's numbers for a transaction that is to be run again.
const (
	mysqlLockTimeout = 1205
	mysqlDeadlock    = 1213
)

// Conflict says why err asks for the transaction to be run again, or that it does
// not.
func Conflict(err error) (reason string, again bool) {
	if err == nil {
		return "", false // before errors.As, for which variables are allocated
	}
	var m *mysql.MySQLError
	var a *txn.AbortError
	switch {
	case errors.As(err, &m) && m.Number == mysqlDeadlock:
		return "deadlock (1213)", true
	case errors.As(err, &m) && m.Number == mysqlLockTimeout:
		return "lock wait (1205)", true
	case errors.As(err, &a):
		return a.Reason.String(), true
	case errors.Is(err, txn.ErrConflict):
		return "conflict", true
	}
	return "", false
}

// Retry runs attempt, which is a whole transaction, until it does not meet a
// conflict, and counts those that it met. Clients of SQL use it; native ones have
// txn.Machine.Run, whose aborts the machines count.
func (th *Thread) Retry(ctx context.Context, attempt func() error) error {
	for n := range attemptsMax {
		err := attempt()
		reason, again := Conflict(err)
		if !again {
			return err
		}
		if th.aborts == nil {
			th.aborts = make(map[string]uint64)
		}
		th.aborts[reason]++
		if err := pause(ctx, n); err != nil {
			return err
		}
	}
	return fmt.Errorf("bench: a transaction was aborted %d times", attemptsMax)
}

// pause waits for a random time, longer after more conflicts.
func pause(ctx context.Context, conflicts int) error {
	most := 50 * time.Microsecond << min(conflicts, 8)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(rand.N(most)):
		return nil
	}
}
