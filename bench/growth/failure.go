package growth

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/go-sql-driver/mysql"
)

// connectionLost is the reason of a failure for which the machine sent no error.
const connectionLost = "connection lost"

// excused maps the errors that a client may meet when machines stop, or when data or a majority are
// away for a while, to reasons.
var excused = map[uint16]string{
	1047: "unavailable (1047)",
	1053: "shutdown (1053)",
	1180: "outcome of the commit unknown (1180)",
}

// reasonOf returns the reason why a client has to connect anew. It returns false if the error has
// nothing to do with a machine that stops or is away; then the error is a fault.
func reasonOf(err error) (reason string, ok bool) {
	var m *mysql.MySQLError
	var n net.Error
	switch {
	case errors.As(err, &m):
		reason, ok = excused[m.Number]
		return reason, ok
	case errors.Is(err, driver.ErrBadConn), errors.Is(err, mysql.ErrInvalidConn), errors.Is(err, sql.ErrConnDone),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &n):
		return connectionLost, true
	}
	return "", false
}

// unexpected wraps an error that ends the run.
func unexpected(machine int, err error) error {
	return fmt.Errorf("growth: a client of machine %d: %w", machine, err)
}
