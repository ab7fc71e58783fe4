package wire

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	sqle "github.com/dolthub/go-mysql-server"
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/vitess/go/mysql"
	"github.com/dolthub/vitess/go/sqltypes"
	"github.com/dolthub/vitess/go/vt/sqlparser"
	"github.com/sirupsen/logrus"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/sql"
	"github.com/farmsql/farmsql/sql/exec"
	"github.com/farmsql/farmsql/sql/fast"
	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/sql/row"
)

// engineHandler is the part of go-mysql-server's handler that is used here: the
// protocol callbacks, and running a statement that is already parsed.
type engineHandler interface {
	mysql.Handler
	ComParsedQuery(ctx context.Context, c *mysql.Conn, query string, parsed sqlparser.Statement, callback mysql.ResultSpoolFn) error
}

// A handler receives the requests of all connections and runs each statement
// between its session's BeginStatement and EndStatement.
type handler struct {
	engineHandler
	gms       *sqle.Engine
	processes *processList
	// newContext makes the context of a statement that the handler runs itself.
	newContext gms.ContextFactory

	mux   *mux
	cfg   Config
	clock clock.Clock
	log   *slog.Logger
	stats *counters
	// started is the time at which the server started.
	started time.Time
}

var _ mysql.Handler = (*handler)(nil)

// connState is a connection's state between requests.
type connState struct {
	session Session
	engine  gms.Session  // the session as the engine sees it
	farm    *sql.Session // the session as the storage sees it; nil if it is not one of ours
	// context is the one from which the contexts of compiled statements are made; nil before the first.
	context *gms.Context
	buffer  resultBuffer
	bound   []fast.Value    // the buffer of boundValues
	result  sqltypes.Result // of a compiled statement
	// packets has the rows of result, unless result has them itself.
	packets *exec.Packets
	// prepared has the prepared statements by their protocol id.
	prepared map[uint32]statement
}

// settle frees the statement's memory once its answer has been sent.
func (s *connState) settle() {
	clear(s.bound) // they may be long
	s.result, s.packets = sqltypes.Result{}, nil
	if s.farm != nil {
		s.farm.Settle()
	}
}

func stateOf(c *mysql.Conn) *connState {
	s, _ := c.ClientData.(*connState)
	return s
}

// NewConnection gives the client a limited time for the handshake.
func (h *handler) NewConnection(c *mysql.Conn) {
	// Each protocol server counts from 1, but the engines share a process list, so use our id.
	c.ConnectionID = connOf(c).id
	_ = c.Conn.SetDeadline(h.clock.Now().Add(h.cfg.ConnectTimeout)) // fails only on a closed connection, which the next read reports
	h.engineHandler.NewConnection(c)
	announce(c)
}

// announce sets the status flags for the handshake, and for answers up to the first statement:
// whether autocommit is on in the new session. Drivers compare the flag with what they want,
// and send SET autocommit only if it differs.
func announce(c *mysql.Conn) {
	c.StatusFlags &^= uint16(mysql.ServerStatusAutocommit | mysql.ServerInTransaction)
	_, value, _ := gms.SystemVariables.GetGlobal("autocommit")
	if on, err := gms.ConvertToBool(nil, value); on && err == nil {
		c.StatusFlags |= uint16(mysql.ServerStatusAutocommit)
	}
}

// ConnectionAborted is called when a client could not be authenticated.
func (h *handler) ConnectionAborted(c *mysql.Conn, reason string) error {
	h.stats.aborted.Add(1)
	return h.engineHandler.ConnectionAborted(c, reason)
}

// ConnectionAuthenticated creates the connection's session, unless clients cannot be served,
// or too many are connected.
func (h *handler) ConnectionAuthenticated(c *mysql.Conn) error {
	_ = c.Conn.SetDeadline(time.Time{})
	accepted := connOf(c)
	if accepted.source != nil {
		if err := h.cfg.available(); err != nil {
			return err
		}
	}
	if err := h.engineHandler.ConnectionAuthenticated(c); err != nil {
		return err
	}
	if !h.mux.admit(accepted, func() bool { return h.hasPrivilege(c, gms.PrivilegeType_Super) }) {
		return myerr.TooManyConnections.New()
	}
	accepted.command = func(request byte) *reply { return h.command(c, request) }
	return nil
}

// ComQuery runs the only statement of a request.
func (h *handler) ComQuery(ctx context.Context, c *mysql.Conn, query string, callback mysql.ResultSpoolFn) error {
	_, err := h.query(ctx, c, query, false, callback)
	return err
}

// ComMultiQuery runs the first statement of a request and returns the rest.
func (h *handler) ComMultiQuery(ctx context.Context, c *mysql.Conn, query string, callback mysql.ResultSpoolFn) (string, error) {
	return h.query(ctx, c, query, true, callback)
}

// query runs the first statement of a request, compiled or in the engine, passes its result to
// callback, and returns the rest of the request.
func (h *handler) query(ctx context.Context, c *mysql.Conn, query string, multi bool, callback mysql.ResultSpoolFn) (string, error) {
	defer stateOf(c).settle()
	text := gms.RemoveSpaceAndDelimiter(query, ';')
	if stmt, ok := stateOf(c).findCompiled(text); ok {
		return "", h.queryCompiled(ctx, c, text, stmt, callback)
	}
	if isShutdown(text) {
		return "", h.shutDown(c, callback)
	}
	st, remainder, err := h.parse(ctx, c, query, multi)
	if err != nil {
		return "", myerr.Of(err)
	}
	exec := func(ctx context.Context, buf *resultBuffer) error {
		if st.ast == nil {
			return h.engineHandler.ComQuery(ctx, c, st.text, buf.add)
		}
		return h.killing(st, func() error { return h.engineHandler.ComParsedQuery(ctx, c, st.text, st.ast, buf.add) })
	}
	res, err := h.run(ctx, c, st, exec)
	if err != nil {
		return "", err // given a remainder, the protocol library would run the next statement
	}
	return remainder, callback(res, remainder != "")
}

// queryCompiled runs the only statement of a request in its compiled form or, if that fails
// with ErrPlan, in the engine.
func (h *handler) queryCompiled(ctx context.Context, c *mysql.Conn, text string, stmt compiled, callback mysql.ResultSpoolFn) error {
	res, err := h.run(ctx, c, stmt.statement(text), func(ctx context.Context, buf *resultBuffer) error {
		err := h.runCompiled(ctx, c, text, stmt, row.TextForm, buf)
		if !errors.Is(err, fast.ErrPlan) {
			return err
		}
		st, _, err := h.parse(ctx, c, text, false)
		if err != nil {
			return err
		}
		return h.engineHandler.ComParsedQuery(ctx, c, st.text, st.ast, buf.add)
	})
	if err != nil {
		return err
	}
	return answer(c, res, func(res *sqltypes.Result) error { return callback(res, false) })
}

// ComInitDB changes the current database, which reads the catalog.
func (h *handler) ComInitDB(c *mysql.Conn, schemaName string) error {
	_, err := h.run(context.Background(), c, statement{text: schemaName, retry: true, command: comChangeDB}, func(context.Context, *resultBuffer) error {
		return h.engineHandler.ComInitDB(c, schemaName)
	})
	return err
}

// ComResetConnection replaces the connection's session by a fresh one. The old
// one is ended by the engine's session manager.
func (h *handler) ComResetConnection(c *mysql.Conn) error {
	err := h.engineHandler.ComResetConnection(c)
	announce(c)
	if err = stateOf(c).session.EndStatement(context.Background(), ShowsResult, err); err != nil {
		return myerr.Of(err)
	}
	return nil
}

// parse splits the first statement off a request. A statement that does not parse has no
// syntax tree; the engine then reports the error.
func (h *handler) parse(ctx context.Context, c *mysql.Conn, query string, multi bool) (statement, string, error) {
	opts, err := h.ParserOptionsForConnection(c)
	if err != nil {
		return statement{}, "", err
	}
	if farm := stateOf(c).farm; farm != nil {
		if err := farm.TakeText(query, 0); err != nil {
			return statement{}, "", err
		}
	}
	ast, text, remainder, err := h.gms.Parser.ParseWithOptions(ctx, query, ';', multi, opts)
	var refused *mysql.SQLError
	if errors.As(err, &refused) {
		return statement{}, "", refused
	}
	if err != nil {
		return statement{text: query}, "", nil // parsing it again reports the error
	}
	if strings.TrimLeft(remainder, "; \t\r\n") == "" {
		remainder = ""
	}
	st := newStatement(text, ast)
	switch named := ast.(type) {
	case *sqlparser.Execute:
		if inner, found := stateOf(c).engine.GetPreparedQuery(named.Name); found {
			st.locking = strongestLocking(inner)
			st.setKind(inner)
		}
	case *sqlparser.Prepare:
		stateOf(c).engine.UnprepareQuery(named.Name) // the earlier statement is gone even if this one cannot be prepared
	}
	return st, remainder, nil
}

// killing executes a statement and, for KILL, does what the engine leaves out.
func (h *handler) killing(st statement, exec func() error) error {
	kill, ok := st.ast.(*sqlparser.Kill)
	if !ok {
		return exec()
	}
	end := h.killThread(kill) // get it before exec, which may remove the connection
	if err := exec(); err != nil {
		return err // for example, if the user lacks the privilege
	}
	return end()
}

// killThread returns a function that does those parts of KILL that the engine leaves out: it refuses a thread that does
// not exist, and ends a connection that another engine serves. Call the function after the engine has checked the
// user's rights.
func (h *handler) killThread(k *sqlparser.Kill) func() error {
	done := func() error { return nil }
	id, err := strconv.ParseUint(sqlparser.String(k.ConnID), 10, 64)
	if err != nil {
		return done // not a plain number: the engine reports it
	}
	for _, p := range h.gms.ProcessList.Processes() {
		if uint64(p.Connection) != id {
			continue
		}
		if !k.Connection {
			return done // the engine ends the statement
		}
		return func() error {
			h.mux.stop(p.Connection)
			return nil
		}
	}
	return func() error {
		return myerr.NoSuchThread.New(id)
	}
}

// run counts a statement, executes it, and logs it if it was slow.
func (h *handler) run(ctx context.Context, c *mysql.Conn, st statement, exec func(context.Context, *resultBuffer) error) (*sqltypes.Result, error) {
	begun := h.clock.Now()
	h.count(c, st)
	res, err := h.settle(ctx, c, st, exec)
	if s, accepted := stateOf(c), connOf(c); s.farm != nil && accepted != nil {
		if n := s.farm.TakeBodyStatements(); n > 0 {
			accepted.counts.add(queries, n)
		}
	}
	h.noteSlow(c, st, h.clock.Now().Sub(begun), res, err)
	return res, err
}

// count counts a statement that is to be run.
func (h *handler) count(c *mysql.Conn, st statement) {
	accepted := connOf(c)
	if accepted == nil {
		return
	}
	accepted.counts.add(queries, 1)
	if st.command != comStmtPrepare {
		accepted.counts.add(questions, 1)
	}
	if st.command != 0 {
		accepted.counts.add(st.command, 1)
	}
	if com, ok := comOf(st.ast); ok {
		accepted.counts.add(com, 1)
	}
}

// settle executes a statement, and retries it after conflicts as often as allowed. It returns the
// whole result, or the error for the client.
func (h *handler) settle(ctx context.Context, c *mysql.Conn, st statement, exec func(context.Context, *resultBuffer) error) (*sqltypes.Result, error) {
	state := stateOf(c)
	if accepted := connOf(c); accepted != nil {
		h.mux.watch.begin(accepted)
		defer h.mux.watch.end(accepted)
	}
	if tx := state.engine.GetTransaction(); st.writes && tx != nil && tx.IsReadOnly() {
		return nil, myerr.ReadOnly.New()
	}
	ctx, cancel := state.bounded(ctx, st)
	defer cancel()
	retries := 0
	if st.retry && (st.aside || !state.session.InTransaction()) {
		retries = h.cfg.RetryMax
	}
	for attempt := 0; ; attempt++ {
		res, err := h.attempt(ctx, state, st, func(buf *resultBuffer) error { return exec(ctx, buf) })
		if err == nil && !st.aside {
			return res, nil // the engine has told the client the status
		}
		state.refreshStatus(c)
		if err == nil {
			return res, nil
		}
		if late := timedOut(ctx, err); late != nil {
			h.stats.failed.Add(1)
			return nil, late
		}
		if !myerr.IsConflict(err) {
			h.stats.failed.Add(1)
			return nil, clientErrorOf(st, state.engine.GetCurrentDatabase(), err)
		}
		h.stats.conflicts.Add(1)
		if attempt >= retries {
			return nil, conflictOf(st, state, err)
		}
		h.stats.retries.Add(1)
		h.backoff(attempt)
	}
}

// attempt runs a statement once, and returns its whole result: the session has validated or committed it.
func (h *handler) attempt(ctx context.Context, state *connState, st statement, exec func(*resultBuffer) error) (*sqltypes.Result, error) {
	h.stats.statements.Add(1)
	s := state.session
	s.BeginStatement(Statement{Locking: st.locking, Aside: st.aside})
	buf := h.bufferOf(state)
	defer buf.clear()
	before := state.insertID()
	err := h.guard(st, func() error { return exec(buf) })
	state.tellInserted(st, before, buf.res)
	if err = s.EndStatement(ctx, shownOf(st, buf.res), err); err != nil {
		return nil, err
	}
	return buf.result(), nil
}

// bufferOf returns the empty buffer of a connection's results.
func (h *handler) bufferOf(state *connState) *resultBuffer {
	buf := &state.buffer
	buf.limit = h.cfg.ResultBufferBytes
	if state.farm != nil && buf.charge == nil {
		buf.charge, buf.columns = state.farm.Take, state.farm.ResultColumns
	}
	return buf
}

// guard turns a panic of the engine into an error of the statement that caused
// it, so that one query cannot take its connection down.
func (h *handler) guard(st statement, exec func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = h.panicError(st, fmt.Sprint(p), string(debug.Stack()))
		}
	}()
	return h.withoutStack(st, exec())
}

// withoutStack logs the stack of an engine goroutine's panic, and returns an error with the
// panic alone: the engine's error contains both.
func (h *handler) withoutStack(st statement, err error) error {
	if err == nil {
		return nil
	}
	text, stack, found := strings.Cut(err.Error(), "\ngoroutine ")
	if !found {
		return err
	}
	_, panicked, found := strings.Cut(text, enginePanic)
	if !found {
		return err // not a panic, but a value that contains this text
	}
	return h.panicError(st, panicked, "goroutine "+stack)
}

// enginePanic precedes the text of a panic in an error of the engine.
const enginePanic = "panic recovered: "

// unequalSides is in the stack of go-mysql-server's panic if the left side of a UNION, INTERSECT or
// EXCEPT has more columns than the right one.
const unequalSides = "planbuilder.(*Builder).mergeSetOpScopeColumns("

// panicError logs a panic of the engine, and returns the statement's error.
func (h *handler) panicError(st statement, panicked, stack string) error {
	if strings.Contains(stack, unequalSides) {
		return myerr.ColumnCount.New()
	}
	h.log.Error("statement panicked", "panic", panicked, "statement", st.text, "stack", stack)
	return myerr.Internal.New(panicked)
}

// backoff sleeps for a random time whose bound doubles with every attempt.
func (h *handler) backoff(attempt int) {
	const first, last = 50 * time.Microsecond, 10 * time.Millisecond
	bound := min(first<<min(attempt, 16), last)
	h.clock.Sleep(time.Duration(h.clock.Uint64() % uint64(bound)))
}

// refreshStatus tells the client, in its next answer, whether a transaction is
// still open: the engine does so only after statements that succeed.
func (s *connState) refreshStatus(c *mysql.Conn) {
	c.StatusFlags &^= uint16(mysql.ServerInTransaction)
	if s.session.InTransaction() && s.engine.GetTransaction() != nil {
		c.StatusFlags |= uint16(mysql.ServerInTransaction)
	}
}

// newSession is the engine's session builder.
func newSession(build SessionBuilder, log *slog.Logger) func(context.Context, *mysql.Conn, string) (gms.Session, error) {
	logger := engineLogger(log)
	return func(ctx context.Context, c *mysql.Conn, addr string) (gms.Session, error) {
		engine, session, err := build(ctx, c, addr)
		if err != nil {
			return nil, err
		}
		engine.SetLogger(logrus.NewEntry(logger))
		state := &connState{session: session, engine: engine, prepared: make(map[uint32]statement)}
		if f, ok := session.(farmSession); ok {
			state.farm = f.s
		}
		c.ClientData = state
		return engine, connOf(c).tellTLS(engine)
	}
}
