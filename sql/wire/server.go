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

// VersionComment is what @@version_comment says.
const VersionComment = "farmsql"

// A SessionBuilder makes the session of a connection that has authenticated: as
// the engine sees it and as this package does.
type SessionBuilder func(ctx context.Context, c *mysql.Conn, addr string) (gms.Session, Session, error)

// Engine is what a server runs statements on: one machine's SQL. All fields
// but ShowStatusOf and Refresh must be set.
type Engine struct {
	GMS        *sqle.Engine
	NewContext gms.ContextFactory
	NewSession SessionBuilder
	// ShowStatusOf, if not nil, is told what SHOW STATUS is to show.
	ShowStatusOf func(sql.StatusSource)
	// Refresh is called before a client is authenticated, of the first engine: clients are
	// authenticated by the accounts that it finds. A client is refused with its error.
	Refresh func(context.Context) error
}

// A Server answers MySQL clients, from any number of listeners and from within
// the process. It is safe for concurrent use.
type Server struct {
	cfg    Config
	gms    *sqle.Engine // the first; all share its users, locks and process list
	mux    *mux
	inner  []*server.Server
	stats  counters
	accept sync.WaitGroup
	watch  watch
	local  account
	closed atomic.Bool

	started time.Time
	lastPid atomic.Uint64
}

// account is the superuser of in-process connections. It exists only in this
// process, and only this process knows its password, so whoever holds the
// database open can always get in, whatever becomes of root.
type account struct{ user, password string }

// localUser is the name that in-process connections go by. Like MySQL's own
// mysql.sys it has a dot, which keeps it apart from users' names.
const localUser = "farmsql.local"

// New returns a server over the engines of a database, at least one; it has no
// listener yet. Clients are dealt out to the engines in turn. If the first
// engine has no users of its own, there is root@localhost without a password, as
// a MySQL initialised for development has it.
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
	s.mux.refresh = engines[0].Refresh
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
	s.watch.start(s)
	return s, nil
}

func (s *Server) addEngine(e Engine) error {
	e.GMS.ProcessList = s.gms.ProcessList
	e.GMS.LS = s.gms.LS
	e.GMS.Analyzer.Catalog.MySQLDb = s.gms.Analyzer.Catalog.MySQLDb
	// Each session manager numbers its statements from 1, but the process list
	// that the engines share wants them unique.
	newContext := func(ctx context.Context, opts ...gms.ContextOption) *gms.Context {
		return e.NewContext(ctx, append(opts, gms.WithPid(s.lastPid.Add(1)))...)
	}
	wrap := func(h mysql.Handler) (mysql.Handler, error) {
		eh, ok := h.(engineHandler)
		if !ok {
			return nil, fmt.Errorf("wire: the engine's handler %T cannot run parsed statements", h)
		}
		return &handler{engineHandler: eh, gms: e.GMS, newContext: newContext, mux: s.mux, cfg: s.cfg,
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

func (s *Server) innerConfig() server.Config {
	return server.Config{
		Listener:                s.mux,
		Address:                 "localhost",
		Version:                 handshakeVersion(),
		TLSConfig:               s.cfg.TLS, // so that the greeting offers it
		MaxLoggedQueryLen:       -1,
		ProtocolListenerFactory: newListener,
	}
}

// handshakeVersion is what clients are told on connecting. Clients choose
// their SQL by it, so it is the MySQL version the engine implements.
func handshakeVersion() string {
	version := "8.0.31"
	if _, v, ok := gms.SystemVariables.GetGlobal("version"); ok {
		version = fmt.Sprint(v)
	}
	return version + "-farmsql"
}

// setVariables makes the settings visible to SHOW VARIABLES. The variables are
// the process's: with several servers the last one's are shown.
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

// tlsVersions are those that clients may use, as tls_version has them.
func tlsVersions(c *tls.Config) string {
	switch {
	case c == nil:
		return ""
	case c.MinVersion == tls.VersionTLS13:
		return "TLSv1.3"
	}
	return "TLSv1.2,TLSv1.3"
}

func (s *Server) createAccounts() {
	s.local = account{user: localUser, password: rand.Text()}
	db := s.gms.Analyzer.Catalog.MySQLDb
	hasUsers := db.Enabled() // those whose root was dropped get none
	db.SetEnabled(true)
	ed := db.Editor()
	defer ed.Close()
	if !hasUsers && len(ed.GetUsersByUsername("root")) == 0 {
		db.AddSuperUser(ed, "root", "localhost", "")
	}
	ed.RemoveUser(mysql_db.UserPrimaryKey{User: s.local.user, Host: "localhost"}) // of an earlier server on this engine
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
		// Only fails for a variable that does not exist; this one does.
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
	defer s.watch.stop()
	if !s.drain(func(*conn) bool { return true }) {
		s.cfg.Logger.Error("statements are stuck", "goroutines", goroutines())
		return errors.New("wire: connections are still running statements that cannot be cancelled")
	}
	for _, inner := range s.inner {
		inner.SessionManager().WaitForClosedConnections()
	}
	return nil
}

// drain ends the chosen connections and reports whether all of them are gone:
// idle ones at once, running ones after their statement or DrainTimeout.
func (s *Server) drain(which func(*conn) bool) bool {
	conns := s.mux.connections(which)
	for _, c := range conns {
		c.stopReading()
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
