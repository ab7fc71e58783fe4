package wire

import (
	"context"
	"errors"
	"net"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/vitess/go/mysql"
)

// ErrClosed is returned once a server is closed.
var ErrClosed = net.ErrClosed

// Error numbers that the protocol library does not name, as in MySQL 8.
const (
	errManyParameters          = 1390
	errCapacityExceeded        = 3170
	errConCount                = 1040
	errPacketTooLarge          = 1153
	errHandshake               = 1043
	errUnsupportedPrepare      = 1295
	errNoSuchThread            = 1094
	errQueryInterrupted        = 1317
	errQueryTimeout            = 3024
	errReadOnly                = 1792
	errSecureTransportRequired = 3159
	errAccessDenied            = 1227
	errNotSupported            = 1235
	errUnknownCom              = 1047 // what Galera answers, too, whom it cannot serve at present

	stateGeneral          = "HY000"
	stateCommunication    = "08S01"
	stateTooMany          = "08004"
	stateQueryInterrupted = "70100"
)

// isConflict reports whether err says that the transaction lost to another one
// and is gone. Storage and engine both say so with MySQL's error 1213.
func isConflict(err error) bool {
	if err == nil {
		return false
	}
	var sqlErr *mysql.SQLError
	if errors.As(err, &sqlErr) {
		return sqlErr.Num == mysql.ERLockDeadlock
	}
	return gms.ErrLockDeadlock.Is(err)
}

// clientError turns err into what the protocol sends.
func clientError(err error) error {
	var sqlErr *mysql.SQLError
	if !errors.As(err, &sqlErr) {
		if err == nil {
			return nil
		}
		sqlErr = gms.CastSQLError(err)
	}
	if errors.Is(err, context.Canceled) || strings.HasSuffix(sqlErr.Message, context.Canceled.Error()) {
		return mysql.NewSQLError(errQueryInterrupted, stateQueryInterrupted, "Query execution was interrupted")
	}
	return asMySQL(sqlErr)
}
