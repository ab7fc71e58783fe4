package wire

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/dolthub/vitess/go/mysql"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql"
)

// available returns nil if clients can be served, and otherwise what they are told.
func (c Config) available() *mysql.SQLError {
	if c.Available == nil {
		return nil
	}
	return sql.SQLError(c.Available(context.Background()))
}

// comPing is the only packet of the request COM_PING.
var comPing = []byte{1, 0, 0, 0, mysql.ComPing}

// answersPing answers a request, p, that is a COM_PING although clients cannot be served. The
// protocol library would say that all is well. What comes through TLS is not seen
// here: those clients hear it when they connect, and from their statements.
func (c *conn) answersPing(p []byte, isRequest bool) bool {
	if !isRequest || c.source == nil || !bytes.Equal(p, comPing) {
		return false
	}
	err := c.mux.cfg.available()
	if err == nil {
		return false
	}
	_ = c.Conn.SetWriteDeadline(c.mux.cfg.Clock.Now().Add(time.Second))
	_, _ = c.Conn.Write(errorPacket(1, uint16(err.Num), err.State, err.Message))
	_ = c.Conn.SetWriteDeadline(time.Time{})
	return true
}

// bounded returns the context of a statement: that of a SELECT ends after the
// session's max_execution_time.
func (s *connState) bounded(ctx context.Context, st statement) (context.Context, context.CancelFunc) {
	if s.farm == nil || !isSelect(st.ast) {
		return ctx, func() {}
	}
	limit := s.farm.MaxExecutionTime()
	if limit <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, limit)
}

func isSelect(ast sqlparser.Statement) bool {
	switch ast.(type) {
	case *sqlparser.Select, *sqlparser.SetOp, *sqlparser.ParenSelect:
		return true
	}
	return false
}

// timedOut returns MySQL's error for a statement that has failed with err if the time
// that it may take is over, and otherwise nil.
func timedOut(ctx context.Context, err error) error {
	if err == nil || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil
	}
	return mysql.NewSQLError(errQueryTimeout, stateGeneral, "Query execution was interrupted, maximum statement execution time exceeded")
}
