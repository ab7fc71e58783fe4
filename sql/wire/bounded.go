package wire

import (
	"context"
	"errors"

	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/myerr"
)

// bounded returns the context of a statement. A SELECT's context ends after the
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

// timedOut returns MySQL's error if a statement has failed with err after its time
// had run out, and otherwise nil.
func timedOut(ctx context.Context, err error) error {
	if err == nil || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil
	}
	return myerr.QueryTimeout.New()
}
