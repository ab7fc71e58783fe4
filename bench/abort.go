package bench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/outcome"
)

// attemptsMax bounds the attempts at one transaction: more mean that something is
// wrong.
const attemptsMax = 1000

// MySQL's numbers and PostgreSQL's codes for a transaction that should be retried.
const (
	mysqlLockTimeout  = 1205
	mysqlDeadlock     = 1213
	postgresNotSerial = "40001"
	postgresDeadlock  = "40P01"
	postgresNoLockYet = "55P03"
)

// MySQL's numbers and PostgreSQL's codes for a row that cannot be inserted: its key exists, or
// its parent does not.
const (
	mysqlDuplicate    = 1062
	mysqlNoParent     = 1452
	postgresDuplicate = "23505"
	postgresNoParent  = "23503"
)

// Conflict reports whether err means that the transaction should be retried, and
// the reason.
func Conflict(err error) (reason string, again bool) {
	if err == nil {
		return "", false // the common case: avoid errors.As, which allocates
	}
	var a *txn.AbortError
	switch code := serverCode(err); {
	case code != nil:
		reason = conflictCodes[code]
	case errors.As(err, &a):
		reason = a.Reason.String()
	case errors.Is(err, outcome.ErrConflict):
		reason = "conflict"
	}
	return reason, reason != ""
}

// conflictCodes maps servers' codes to reasons.
var conflictCodes = map[any]string{
	uint16(mysqlDeadlock):    "deadlock (1213)",
	uint16(mysqlLockTimeout): "lock wait (1205)",
	postgresNotSerial:        "not serializable (40001)",
	postgresDeadlock:         "deadlock (40P01)",
	postgresNoLockYet:        "lock wait (55P03)",
}

// ViolatesKey reports whether err is a server's refusal of a row whose key exists,
// or whose foreign key has no parent.
func ViolatesKey(err error) bool {
	switch serverCode(err) {
	case uint16(mysqlDuplicate), uint16(mysqlNoParent), postgresDuplicate, postgresNoParent:
		return true
	}
	return false
}

// serverCode returns the number of a MySQL server's error, a uint16, or the code of
// PostgreSQL's, a string; nil for other errors.
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

// Retry runs attempt, a whole transaction, until it meets no conflict, and counts
// the conflicts. Clients of SQL use it; native clients use txn.Machine.Run, and the
// machines count its aborts.
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

// Aborts returns how often Retry has repeated transactions, by reason.
func (th *Thread) Aborts() map[string]uint64 { return maps.Clone(th.aborts) }

// pause waits for a random time below a bound: 50 µs, doubled for each of up to 8 earlier conflicts.
func pause(ctx context.Context, earlier int) error {
	bound := (50 * time.Microsecond) << min(earlier, 8)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(rand.N(bound)):
		return nil
	}
}
