package wire

import (
	"context"
	stdsql "database/sql"
	"database/sql/driver"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	sqle "github.com/dolthub/go-mysql-server"
	"github.com/dolthub/go-mysql-server/memory"
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/mysql_db"
	"github.com/dolthub/vitess/go/mysql"
	driverlib "github.com/go-sql-driver/mysql"
)

// testSession is go-mysql-server's in-memory session with the hooks of Session
// scripted by the test.
type testSession struct {
	*memory.Session
	script *script
}

var _ Session = (*testSession)(nil)

// script decides how statements end and notes what was asked of the sessions.
type script struct {
	mu      sync.Mutex
	end     func(statement Statement, attempt int, err error) error
	begun   []Statement
	ended   int
	attempt int
	inTx    bool
}

func (s *script) reset(end func(Statement, int, error) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end, s.begun, s.ended, s.attempt, s.inTx = end, nil, 0, 0, false
}

func (s *script) lastBegun() Statement {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun[len(s.begun)-1]
}

func (s *testSession) BeginStatement(st Statement) {
	s.script.mu.Lock()
	defer s.script.mu.Unlock()
	s.script.begun = append(s.script.begun, st)
}

func (s *testSession) EndStatement(_ context.Context, _ Shown, err error) error {
	s.script.mu.Lock()
	defer s.script.mu.Unlock()
	s.script.ended++
	s.script.attempt++
	if s.script.end != nil {
		err = s.script.end(s.script.begun[len(s.script.begun)-1], s.script.attempt, err)
	}
	if !s.GetIgnoreAutoCommit() {
		s.SetTransaction(nil)
	}
	return err
}

func (s *testSession) InTransaction() bool {
	s.script.mu.Lock()
	defer s.script.mu.Unlock()
	return s.script.inTx || s.GetIgnoreAutoCommit()
}

// testServer is a Server over go-mysql-server's own in-memory tables.
type testServer struct {
	*Server
	script *script
	addr   string
}

func startServer(t *testing.T, cfg Config) *testServer {
	t.Helper()
	provider := memory.NewDBProvider(memory.NewDatabase("test"))
	sc := &script{}
	return startEngines(t, cfg, sc, newTestEngine(t, provider, sc))
}

func newTestEngine(t *testing.T, provider *memory.DbProvider, sc *script) Engine {
	t.Helper()
	engine := sqle.NewDefault(provider)
	engine.Analyzer.Catalog.MySQLDb.SetPersister(&mysql_db.NoopPersister{})
	build := func(_ context.Context, c *mysql.Conn, addr string) (gms.Session, Session, error) {
		user, _ := c.UserData.(gms.MysqlConnectionUser)
		client := gms.Client{Address: user.Host, User: user.User, Capabilities: c.Capabilities}
		base := gms.NewBaseSessionWithClientServer(addr, client, c.ConnectionID)
		s := &testSession{Session: memory.NewSession(base, provider), script: sc}
		return s.Session, s, nil
	}
	return Engine{GMS: engine, NewContext: gms.NewContext, NewSession: build}
}

func startEngines(t *testing.T, cfg Config, sc *script, engines ...Engine) *testServer {
	t.Helper()
	s, err := New(cfg, engines...)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(context.Background(), l) }()
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		<-served
		for _, e := range engines {
			if err := e.GMS.Close(); err != nil {
				t.Errorf("engine close: %v", err)
			}
		}
	})
	return &testServer{Server: s, script: sc, addr: l.Addr().String()}
}

// open connects over TCP as root with the driver options given.
func (s *testServer) open(t *testing.T, options string) *stdsql.DB {
	t.Helper()
	db, err := stdsql.Open("mysql", fmt.Sprintf("root@tcp(%s)/test?%s", s.addr, options))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// openLocal connects within the process.
func (s *testServer) openLocal(t *testing.T) *stdsql.DB {
	t.Helper()
	db := stdsql.OpenDB(s.localConnector(t))
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func (s *testServer) localConnector(t *testing.T) driver.Connector {
	t.Helper()
	cfg := driverlib.NewConfig()
	cfg.User, cfg.Passwd = s.LocalAccount()
	cfg.Net, cfg.Addr, cfg.DBName = "pipe", "farmsql", "test"
	cfg.DialFunc = func(ctx context.Context, _, _ string) (net.Conn, error) { return s.Dial(ctx) }
	c, err := driverlib.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func mustExec(t *testing.T, db interface {
	ExecContext(context.Context, string, ...any) (stdsql.Result, error)
}, statements ...string) {
	t.Helper()
	for _, q := range statements {
		if _, err := db.ExecContext(t.Context(), q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
}

func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for range 500 {
		if cond() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("never happened: %s", what)
}
