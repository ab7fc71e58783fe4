package store

import (
	"time"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"
)

// lockWaitName is the variable for how many seconds a statement waits for a table that is
// being altered. Waits for rows are always shorter than its least value, 1 s.
const lockWaitName = "innodb_lock_wait_timeout"

// LockWaitTimeout returns the variable innodb_lock_wait_timeout; go-mysql-server's own accepts no
// value but 1.
func LockWaitTimeout() gms.SystemVariable {
	return &gms.MysqlSystemVariable{
		Name: lockWaitName, Scope: gms.GetMysqlScope(gms.SystemVariableScope_Both), Dynamic: true, SetVarHintApplies: true,
		Type: types.NewSystemIntType(lockWaitName, 1, 1<<30, false), Default: int64(50),
	}
}

// lockWait returns the session's value of innodb_lock_wait_timeout.
func lockWait(ctx *gms.Context) (time.Duration, error) {
	v, err := ctx.GetSessionVariable(ctx, lockWaitName)
	if err != nil {
		return 0, err
	}
	seconds, _, err := types.Int64.Convert(ctx, v)
	if err != nil {
		return 0, err
	}
	return time.Duration(seconds.(int64)) * time.Second, nil
}
