package wire

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	sqle "github.com/dolthub/go-mysql-server"
	"github.com/dolthub/go-mysql-server/server"
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/mysql_db"
	"github.com/dolthub/vitess/go/mysql"

	"github.com/farmsql/farmsql/sql"
)

// VersionComment is the value of @@version_comment.
const VersionComment = "farmsql"

// A SessionBuilder creates the session of an authenticated connection, in the forms for
// the engine and for this package.
type SessionBuilder func(ctx context.Context, c *mysql.Conn, addr string) (gms.Session, Session, error)

// Engine is the SQL of one machine, on which a server runs statements. All fields but
// ShowStatusOf and Refresh must be set.
type Engine struct {
	GMS        *sqle.Engine
	NewContext gms.ContextFactory
	NewSession SessionBuilder
	// ShowStatusOf, if not nil, receives the source for SHOW STATUS.
	ShowStatusOf func(sql.StatusSource)
	// Refresh is called on the first engine before a client is authenticated, and brings
	// the accounts up to date. If it fails, the client is refused with its error.
	Refresh func(context.Context) error
}

// A Server answers MySQL clients, from any number of listeners and from within
// the process. It is safe for concurrent use.
type Server struct {
	cfg       Config
	gms       *sqle.Engine // the first engine; all share its users, locks and process list
	processes *processList
	mux       *mux
	inner     []*server.Server
	stats     counters
	accept    sync.WaitGroup
	local     superuser
	closed    atomic.Bool

	started time.Time
	lastPid atomic.Uint64
}

// superuser is the account of in-process connections. It exists only in this process, and only
// this process knows its password: so the program that has the database open can always log in,
// even if root was dropped.
type superuser struct{ user, password string }

// localUser is the name of in-process connections. It has a dot, as MySQL's own mysql.sys
// has, which distinguishes it from users' names.
const localUser = "farmsql.local"

// New returns a server without listeners over the engines of a database, at least one.
// Clients are spread over the engines in turn. If the first engine has no users, New
// creates root@localhost without a password, as a MySQL initialised for development has
// it.
func New(cfg Config, engines ...Engine) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if len(engines) == 0 {
		return nil, errors.New("wire: no engine to serve")
	}
	cfg = cfg.WithDefaults()
	adoptLogs(cfg.Logger)
	s := &Server{cfg: cfg, gms: engines[0].GMS, mux: newMux(cfg), started: cfg.Clock.Now()}
	s.processes, _ = s.gms.ProcessList.(*processList) // of another server of these engines
	if s.processes == nil {
		s.processes = &processList{clock: cfg.Clock, log: cfg.Logger}
		s.gms.ProcessList = s.processes
	}
	s.mux.refresh, s.mux.watch.kill = engines[0].Refresh, s.gms.ProcessList.Kill
	s.createAccounts()
	if err := setVariables(cfg); err != nil {
		return nil, err
	}
	for _, e := range engines {
		if err := s.addEngine(e); err != nil {
			return nil, err
		}
	}
	for _, inner := range s.inner {
		s.accept.Go(inner.Listener.Accept)
	}
	return s, nil
}

// addEngine adds a protocol server for an engine. All engines share the process list, the locks and
// the users of the first.
func (s *Server) addEngine(e Engine) error {
	e.GMS.ProcessList = s.gms.ProcessList
	e.GMS.LS = s.gms.LS
	e.GMS.Analyzer.Catalog.MySQLDb = s.gms.Analyzer.Catalog.MySQLDb
	// Each session manager numbers its statements from 1, but in the shared process list
	// the numbers have to be unique.
	newContext := func(ctx context.Context, opts ...gms.ContextOption) *gms.Context {
		return e.NewContext(ctx, append(opts, gms.WithPid(s.lastPid.Add(1)))...)
	}
	wrap := func(h mysql.Handler) (mysql.Handler, error) {
		eh, ok := h.(engineHandler)
		if !ok {
			return nil, fmt.Errorf("wire: the engine's handler %T cannot run parsed statements", h)
		}
		return &handler{engineHandler: eh, gms: e.GMS, processes: s.processes, newContext: newContext, mux: s.mux, cfg: s.cfg,
			clock: s.cfg.Clock, log: s.cfg.Logger, stats: &s.stats, started: s.started}, nil
	}
	inner, err := server.NewServerWithHandler(s.innerConfig(), e.GMS, newContext,
		newSession(e.NewSession, s.cfg.Logger), nil, wrap)
	if err != nil {
		return fmt.Errorf("wire: %w", err)
	}
	s.inner = append(s.inner, inner)
	if e.ShowStatusOf != nil {
		e.ShowStatusOf(s.status)
	}
	return nil
}

// innerConfig returns the configuration of a protocol server.
func (s *Server) innerConfig() server.Config {
	return server.Config{
		Listener:                s.mux,
		Address:                 "localhost",
		Version:                 handshakeVersion(),
		TLSConfig:               s.cfg.TLS, // makes the greeting offer TLS
		MaxLoggedQueryLen:       -1,
		ProtocolListenerFactory: newListener,
	}
}

// handshakeVersion is the version in the greeting. Clients choose their SQL by it, so it
// is the MySQL version that the engine implements.
func handshakeVersion() string {
	version := "8.0.31"
	if _, v, ok := gms.SystemVariables.GetGlobal("version"); ok {
		version = fmt.Sprint(v)
	}
	return version + "-farmsql"
}

// setVariables shows the settings in SHOW VARIABLES. The variables belong to the process:
// of several servers, the last one's are shown.
func setVariables(cfg Config) error {
	err := gms.SystemVariables.AssignValues(map[string]any{
		"max_connections":          int64(cfg.MaxConnections),
		"max_allowed_packet":       cfg.MaxPacketBytes,
		"version_comment":          VersionComment,
		"require_secure_transport": cfg.RequireTLS,
		"tls_version":              tlsVersions(cfg.TLS),
	})
	if err != nil {
		return fmt.Errorf("wire: system variables: %w", err)
	}
	return nil
}

// tlsVersions returns the versions that clients may use, in the form of tls_version.
func tlsVersions(c *tls.Config) string {
	switch {
	case c == nil:
		return ""
	case c.MinVersion == tls.VersionTLS13:
		return "TLSv1.3"
	}
	return "TLSv1.2,TLSv1.3"
}

// createAccounts creates the account of in-process connections and, if the engine has no users,
// root.
func (s *Server) createAccounts() {
	s.local = superuser{user: localUser, password: rand.Text()}
	db := s.gms.Analyzer.Catalog.MySQLDb
	hasUsers := db.Enabled() // if root was dropped, no new one is created
	db.SetEnabled(true)
	ed := db.Editor()
	defer ed.Close()
	if !hasUsers && len(ed.GetUsersByUsername("root")) == 0 {
		db.AddSuperUser(ed, "root", "localhost", "")
	}
	ed.RemoveUser(mysql_db.UserPrimaryKey{User: s.local.user, Host: "localhost"}) // left by an earlier server on this engine
	db.AddEphemeralSuperUser(ed, s.local.user, "localhost", s.local.password)
}

// LocalAccount is the account for connections made by Dial.
func (s *Server) LocalAccount() (user, password string) { return s.local.user, s.local.password }

// Serve accepts clients from l until ctx is done, the server is closed or l
// fails. It then closes l and the connections that came through it, letting
// their running statements finish. It returns nil if ctx ended it, ErrClosed if
// Close did.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	if s.closed.Load() {
		_ = l.Close()
		return ErrClosed
	}
	setPort(l.Addr())
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	err := s.mux.accept(l)
	s.drain(func(c *conn) bool { return c.source == l })
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// goroutines returns the stacks of all goroutines, for a report of a panic.
func goroutines() string {
	b := make([]byte, 8<<20)
	return string(b[:runtime.Stack(b, true)])
}

func setPort(a net.Addr) {
	if tcp, ok := a.(*net.TCPAddr); ok {
		// AssignValues fails only for a variable that does not exist.
		_ = gms.SystemVariables.AssignValues(map[string]any{"port": int64(tcp.Port)})
	}
}

// Dial connects to the server within the process: the protocol without a
// network. Log in with LocalAccount.
func (s *Server) Dial(ctx context.Context) (net.Conn, error) {
	near, far := net.Pipe()
	theirs := &pipe{Conn: far}
	if err := s.mux.push(ctx, theirs, nil); err != nil {
		_ = near.Close()
		_ = far.Close()
		return nil, err
	}
	return &pipeEnd{Conn: near, other: theirs}, nil
}

// Close stops all listeners and ends all connections. Statements that run get
// Config.DrainTimeout to finish and are cancelled then. When Close returns nil
// no statement is running and none will.
func (s *Server) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	s.mux.close()
	s.accept.Wait()
	defer s.mux.watch.stop()
	if !s.drain(func(*conn) bool { return true }) {
		s.cfg.Logger.Error("statements are stuck", "goroutines", goroutines())
		return errors.New("wire: connections are still running statements that cannot be cancelled")
	}
	for _, inner := range s.inner {
		inner.SessionManager().WaitForClosedConnections()
	}
	return nil
}

// drain ends the chosen connections, idle ones after lastRequestTime, others after their statement. It
// reports whether all are gone after DrainTimeout.
func (s *Server) drain(which func(*conn) bool) bool {
	conns := s.mux.connections(which)
	for _, c := range conns {
		c.leave()
	}
	if waitClosed(s.cfg, conns) {
		return true
	}
	for _, c := range conns {
		s.gms.ProcessList.Kill(c.id)
		_ = c.Conn.Close()
	}
	return waitClosed(s.cfg, conns)
}
