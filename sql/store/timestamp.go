package store

import (
	"math"
	"time"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"
)

// timestampName is the variable that sets the time for the session's statements. Dumps and
// binary logs use it to repeat statements with their original time.
const timestampName = "timestamp"

// TimestampVariable returns the variable timestamp. Its value 0 means the present time.
func TimestampVariable() gms.SystemVariable {
	return &gms.MysqlSystemVariable{
		Name: timestampName, Scope: gms.GetMysqlScope(gms.SystemVariableScope_Session), Dynamic: true, SetVarHintApplies: true,
		Type: types.NewSystemDoubleType(timestampName, 0, math.MaxInt32), Default: float64(0),
	}
}

// Begun notes that a statement begins, and sets its time if the session has one.
func (s *Session) Begun(ctx *gms.Context) *gms.Context {
	if at := s.timestamp.Load(); at != 0 {
		ctx.SetQueryTime(time.UnixMicro(at))
	}
	return ctx
}

// setTimestamp sets the session's time to the value of the variable timestamp.
func (s *Session) setTimestamp(ctx *gms.Context) {
	v, err := s.baseSession.GetSessionVariable(ctx, timestampName)
	seconds, ok := v.(float64)
	if err != nil || !ok {
		seconds = 0
	}
	s.timestamp.Store(int64(math.Round(seconds * 1e6)))
}

// readTimestamp returns the value of @@timestamp.
func (s *Session) readTimestamp(ctx *gms.Context) float64 {
	if at := s.timestamp.Load(); at != 0 {
		return float64(at) / 1e6
	}
	return float64(ctx.QueryTime().UnixMicro()) / 1e6
}
