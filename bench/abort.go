package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/farmsql/farmsql/txn"
	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
)

// Attempts at one transaction: after so many something is wrong.
const attemptsMax = 1000

// MySQL's numbers and PostgreSQL's codes for a transaction that is to be run again.
const (
	mysqlLockTimeout  = 1205
	mysqlDeadlock     = 1213
	postgresNotSerial = "40001"
	postgresDeadlock  = "40P01"
	postgresNoLockYet = "55P03"
)

// And those for a row that must not be: its key is there, or its parent is not.
const (
	mysqlDuplicate    = 1062
	mysqlNoParent     = 1452
	postgresDuplicate = "23505"
	postgresNoParent  = "23503"
)

// Conflict says why err asks for the transaction to be run again, or that it does
// not.
func Conflict(err error) (reason string, again bool) {
	if err == nil {
		return "", false // before errors.As, for which variables are allocated
	}
	var a *txn.AbortError
	switch code := serverCode(err); {
	case code != nil:
		reason = conflictCodes[code]
	case errors.As(err, &a):
		reason = a.Reason.String()
	case errors.Is(err, txn.ErrConflict):
		reason = "conflict"
	}
	return reason, reason != ""
}

// conflictCodes has the reasons of servers' codes.
var conflictCodes = map[any]string{
	uint16(mysqlDeadlock):    "deadlock (1213)",
	uint16(mysqlLockTimeout): "lock wait (1205)",
	postgresNotSerial:        "not serializable (40001)",
	postgresDeadlock:         "deadlock (40P01)",
	postgresNoLockYet:        "lock wait (55P03)",
}

// ViolatesKey says whether err is a server's refusal of a row whose key is there
// already, or whose foreign key is that of no row.
func ViolatesKey(err error) bool {
	switch serverCode(err) {
	case uint16(mysqlDuplicate), uint16(mysqlNoParent), postgresDuplicate, postgresNoParent:
		return true
	}
	return false
}

// serverCode returns the number or the code of a server's error: of MySQL's a
// uint16, of PostgreSQL's a string, and nil if it is something else.
func serverCode(err error) any {
	var m *mysql.MySQLError
	var p *pgconn.PgError
	switch {
	case errors.As(err, &m):
		return m.Number
	case errors.As(err, &p):
		return p.Code
	}
	return nil
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
