package wire

import (
	"time"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/vitess/go/mysql"
	"github.com/dolthub/vitess/go/sqltypes"
	"github.com/dolthub/vitess/go/vt/sqlparser"
)

// slowTextBytesMax bounds how much of a slow statement is logged.
const slowTextBytesMax = 1000

// noteSlow counts a statement that has taken longer than long_query_time, and logs it if
// slow_query_log is on.
func (h *handler) noteSlow(c *mysql.Conn, st statement, took time.Duration, res *sqltypes.Result, err error) {
	state := stateOf(c)
	if state.farm == nil || took <= state.farm.LongQueryTime() {
		return
	}
	if accepted := connOf(c); accepted != nil {
		accepted.counts.add(slowQueries, 1)
	}
	_, v, _ := gms.SystemVariables.GetGlobal("slow_query_log")
	if on, _ := gms.ConvertToBool(nil, v); !on {
		return
	}
	sent, affected := uint64(0), uint64(0)
	if res != nil && len(res.Fields) > 0 {
		sent = res.RowsAffected
	} else if res != nil {
		affected = res.RowsAffected
	}
	client := state.engine.Client()
	h.log.Warn("slow statement", "seconds", took.Seconds(), "user", client.User, "host", client.Address, "connection", c.ConnectionID,
		"database", state.engine.GetCurrentDatabase(), "rows_sent", sent, "rows_affected", affected, "failed", err != nil, "statement", slowText(st))
}

// slowText returns the text to log for a statement; it hides statements that may contain a
// password.
func slowText(st statement) string {
	switch n := st.ast.(type) {
	case *sqlparser.DDL:
		if n.Authentication != nil { // ALTER USER
			return "(not shown)"
		}
	case nil, *sqlparser.CreateUser, *sqlparser.Prepare, *sqlparser.ChangeReplicationSource:
		return "(not shown)"
	}
	if len(st.text) > slowTextBytesMax {
		return st.text[:slowTextBytesMax] + "..."
	}
	return st.text
}
