package wire

import (
	"sync/atomic"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/vitess/go/vt/sqlparser"
)

// A counted is an event that is counted for each connection, for SHOW STATUS.
type counted int

const (
	bytesReceived counted = iota
	bytesSent
	questions
	queries
	slowQueries
	comBegin
	comCallProcedure
	comChangeDB
	comCommit
	comDelete
	comDeleteMulti
	comInsert
	comInsertSelect
	comLoad
	comReplace
	comReplaceSelect
	comRollback
	comSelect
	comSetOption
	comStmtExecute
	comStmtPrepare
	comUpdate
	comUpdateMulti
	countedKinds
)

// countedNames are MySQL's names of the counters.
var countedNames = [countedKinds]string{
	"Bytes_received", "Bytes_sent", "Questions", "Queries", "Slow_queries", "Com_begin", "Com_call_procedure", "Com_change_db",
	"Com_commit", "Com_delete", "Com_delete_multi", "Com_insert", "Com_insert_select", "Com_load", "Com_replace",
	"Com_replace_select", "Com_rollback", "Com_select", "Com_set_option", "Com_stmt_execute", "Com_stmt_prepare", "Com_update", "Com_update_multi",
}

// counts are the counters of one connection. Only that connection adds to them; sums over all
// connections are computed when they are needed.
type counts [countedKinds]atomic.Uint64

func (c *counts) add(what counted, n uint64) { c[what].Add(n) }

// comOf returns the counter for this kind of statement; false if there is none.
func comOf(ast sqlparser.Statement) (counted, bool) {
	switch n := ast.(type) {
	case *sqlparser.Select, *sqlparser.SetOp, *sqlparser.ParenSelect:
		return comSelect, true
	case *sqlparser.Insert:
		return comOfInsert(n), true
	case *sqlparser.Update:
		return ofSeveral(n.TableExprs, comUpdate, comUpdateMulti), true
	case *sqlparser.Delete:
		if len(n.Targets) > 0 {
			return comDeleteMulti, true
		}
		return comDelete, true
	case *sqlparser.Load:
		return comLoad, true
	case *sqlparser.Begin:
		return comBegin, true
	case *sqlparser.Commit:
		return comCommit, true
	case *sqlparser.Rollback:
		return comRollback, true
	case *sqlparser.Set:
		return comSetOption, true
	case *sqlparser.Use:
		return comChangeDB, true
	case *sqlparser.Call:
		return comCallProcedure, true
	}
	return 0, false
}

// comOfInsert returns the counter for an INSERT or REPLACE, with VALUES or with SELECT.
func comOfInsert(n *sqlparser.Insert) counted {
	_, isValues := n.Rows.(*sqlparser.AliasedValues)
	if !isValues {
		_, isValues = n.Rows.(sqlparser.Values)
	}
	switch {
	case n.Action == sqlparser.ReplaceStr && isValues:
		return comReplace
	case n.Action == sqlparser.ReplaceStr:
		return comReplaceSelect
	case isValues:
		return comInsert
	}
	return comInsertSelect
}

// ofSeveral returns the counter single for a statement on one table, and multi for others.
func ofSeveral(tables sqlparser.TableExprs, single, multi counted) counted {
	if len(tables) == 1 {
		if _, ok := tables[0].(*sqlparser.AliasedTableExpr); ok {
			return single
		}
	}
	return multi
}

// status is the sql.StatusSource of the server.
func (s *Server) status(id uint32, isGlobal bool) map[string]uint64 {
	sums := s.mux.counts(func(c *conn) bool { return isGlobal || c.id == id }, isGlobal)
	shown := s.mux.status()
	for i, n := range sums {
		shown[countedNames[i]] = n
	}
	shown["Threads_running"] = 0
	for _, p := range s.gms.ProcessList.Processes() {
		if p.Command == gms.ProcessCommandQuery {
			shown["Threads_running"]++
		}
	}
	stats := s.Stats()
	shown["Statements_compiled"], shown["Statements_planned"] = stats.Compiled, stats.Planned
	shown["Statements_go_mysql_server"] = stats.Statements - min(stats.Statements, stats.Compiled+stats.Planned)
	shown["Aborted_connects"] = s.stats.aborted.Load()
	shown["Uptime"] = uint64(s.cfg.Clock.Now().Sub(s.started).Seconds())
	return shown
}

// counts adds up the counters of the chosen connections and, with withEnded, of those
// that have ended.
func (m *mux) counts(which func(*conn) bool, withEnded bool) (sums [countedKinds]uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if withEnded {
		sums = m.mu.ended
	}
	for c := range m.mu.open {
		if which(c) {
			c.counts.addTo(&sums)
		}
	}
	return sums
}

func (c *counts) addTo(sums *[countedKinds]uint64) {
	for i := range c {
		sums[i] += c[i].Load()
	}
}

// status returns the status variables about connections.
func (m *mux) status() map[string]uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return map[string]uint64{
		"Connections": uint64(m.lastID.Load()), "Threads_connected": uint64(len(m.mu.open)), "Max_used_connections": uint64(m.mu.most),
	}
}
