package wire

import (
	"bytes"
	"context"
	"errors"
	"regexp"
	"strconv"
	"time"

	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/myerr"
)

// bounded returns the context of a statement. A SELECT's context ends after the time of its hint
// MAX_EXECUTION_TIME or, without one, after the session's max_execution_time.
func (s *connState) bounded(ctx context.Context, st statement) (context.Context, context.CancelFunc) {
	if s.farm == nil || !isSelect(st.ast) {
		return ctx, func() {}
	}
	limit := s.farm.MaxExecutionTime()
	if hinted := hintedTime(st.ast); hinted > 0 {
		limit = hinted
	}
	if limit <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, limit)
}

// executionHint matches the hint that bounds a SELECT's time, in milliseconds.
var executionHint = regexp.MustCompile(`(?i)\bMAX_EXECUTION_TIME\s*\(\s*(\d+)\s*\)`)

// hintedTime returns the time of a SELECT's hint MAX_EXECUTION_TIME; 0 if it has none.
func hintedTime(ast sqlparser.Statement) time.Duration {
	s, ok := ast.(*sqlparser.Select)
	if !ok {
		return 0
	}
	for _, c := range s.Comments {
		if m := executionHint.FindSubmatch(c); m != nil && bytes.HasPrefix(c, []byte("/*+")) {
			ms, _ := strconv.ParseUint(string(m[1]), 10, 32) // MySQL's greatest value, too
			return time.Duration(ms) * time.Millisecond
		}
	}
	return 0
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
