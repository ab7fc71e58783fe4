package enginetest

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	sqle "github.com/dolthub/go-mysql-server"
	gmstest "github.com/dolthub/go-mysql-server/enginetest"
	"github.com/dolthub/go-mysql-server/enginetest/scriptgen/setup"
	"github.com/dolthub/go-mysql-server/server"
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/vitess/go/mysql"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/sql"
	"github.com/farmsql/farmsql/sql/myerr"
)

// memory is what an instance of the suite gets: volatile, and large enough for
// the largest of its statements.
var memory = farm.Config{RegionBytes: 16 << 20, LogBytes: 16 << 20}

// The settings that the suite assumes: it was written for go-mysql-server's default collation and
// sql_mode; ours are MySQL 8's.
var (
	suiteCollation = map[string]any{
		"collation_server":     gms.Collation_utf8mb4_0900_bin.String(),
		"collation_database":   gms.Collation_utf8mb4_0900_bin.String(),
		"collation_connection": gms.Collation_utf8mb4_0900_bin.String(),
	}
	suiteMode = map[string]any{"sql_mode": "NO_ENGINE_SUBSTITUTION,ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES"}
)

// A harness gives the suite fresh instances. Only the latest is open.
type harness struct {
	t *testing.T
	// skips are what the test leaves out, by query or name of a script, and
	// used how often each was asked for.
	skips   map[string]skip
	used    map[skip]int
	scripts []setup.SetupScript
	in      *instance
	// ownCollation says that the collation is the server's, and not the suite's.
	ownCollation bool
	// engine says that the instance has been given out by NewEngine.
	engine bool
	// contextFirst says that the test asks for a context with a client before
	// each new engine, and only then.
	contextFirst bool
	// concurrent says that the test has sessions that meet.
	concurrent bool
	// session is the session of NewContext, and sessions are all open ones.
	session  *sql.Session
	sessions []*sql.Session
}

var (
	_ gmstest.Harness             = (*harness)(nil)
	_ gmstest.ClientHarness       = (*harness)(nil)
	_ gmstest.SkippingHarness     = (*harness)(nil)
	_ gmstest.IndexHarness        = (*harness)(nil)
	_ gmstest.ForeignKeyHarness   = (*harness)(nil)
	_ gmstest.KeylessTableHarness = (*harness)(nil)
	_ gmstest.TransactionHarness  = (*harness)(nil)
	_ gmstest.ServerHarness       = (*harness)(nil)
)

// An instance is a cluster of one machine with an engine.
type instance struct {
	cluster *farm.Local
	cat     *catalog.Catalog
	e       *sql.Engine
}

func (h *harness) openInstance() (*instance, error) {
	cluster, err := farm.Open(memory)
	if err != nil {
		return nil, err
	}
	in := &instance{cluster: cluster}
	if in.cat, err = sql.OpenCatalog(context.Background(), cluster.Machine(0), cluster.Root(), catalog.Config{}); err != nil {
		return nil, err
	}
	if in.e, err = sql.NewEngine(cluster.Machine(0), in.cat, sql.Options{Files: "/"}); err != nil {
		return nil, err
	}
	in.e.GMS().Analyzer.Catalog.MySQLDb.AddRootAccount()
	if err := gms.SystemVariables.AssignValues(suiteMode); err != nil || h.ownCollation {
		return in, err
	}
	return in, gms.SystemVariables.AssignValues(suiteCollation)
}

func (in *instance) close() error {
	ctx := context.Background()
	err := in.e.Close(ctx)
	if e := in.cat.Close(ctx); err == nil {
		err = e
	}
	if e := in.cluster.Close(); err == nil {
		err = e
	}
	return err
}

// check frees what was dropped and walks everything that is left.
func (in *instance) check(t *testing.T) {
	ctx := context.Background()
	if err := in.cat.Sweep(ctx); err != nil {
		t.Errorf("sweep: %v", err)
	}
	used := map[region.Ptr]bool{in.cluster.Root(): true}
	err := in.e.Check(ctx, in.cluster.Root(), func(p region.Ptr) error {
		if used[p] {
			t.Errorf("object %v is used twice", p)
		}
		used[p] = true
		return nil
	}, nil)
	if err != nil {
		t.Errorf("check: %v", err)
	}
}

// end closes the instance, if there is one.
func (h *harness) end(t *testing.T) {
	if h.in == nil {
		return
	}
	for _, s := range h.sessions {
		s.Abort()
	}
	h.session, h.sessions = nil, nil
	h.in.check(t)
	if err := h.in.close(); err != nil {
		t.Error(err)
	}
	h.in, h.engine = nil, false
}

// open opens an instance unless there is one. Contexts may be asked for before
// the engine.
func (h *harness) open() (err error) {
	if h.in == nil {
		h.in, err = h.openInstance()
	}
	return err
}

// Setup implements gmstest.Harness.
func (h *harness) Setup(scripts ...[]setup.SetupScript) {
	h.scripts = nil
	for _, s := range scripts {
		h.scripts = append(h.scripts, s...)
	}
}

// NewEngine implements gmstest.Harness.
func (h *harness) NewEngine(t *testing.T) (gmstest.QueryEngine, error) {
	if h.engine {
		h.end(t)
	}
	if err := h.open(); err != nil {
		return nil, err
	}
	h.engine = true
	scripts := h.scripts
	if len(scripts) == 0 {
		scripts = setup.MydbData
	}
	e, err := gmstest.RunSetupScripts(gmstest.NewContext(h), h.in.e.GMS(), supported(scripts), true)
	h.session = nil
	if err == nil && h.concurrent {
		return &retrying{e}, nil
	}
	return e, err
}

// retrying runs a statement again after a conflict, as the listener does.
type retrying struct{ *sqle.Engine }

const retriesMax = 1000

// Query implements gmstest.QueryEngine.
func (r *retrying) Query(ctx *gms.Context, query string) (schema gms.Schema, _ gms.RowIter, flags *gms.QueryFlags, err error) {
	for range retriesMax {
		var iter gms.RowIter
		var rows []gms.Row
		if schema, iter, flags, err = r.Engine.Query(ctx, query); err == nil {
			rows, err = gms.RowIterToRows(ctx, iter)
		}
		if err == nil {
			return schema, gms.RowsToRowIter(rows...), flags, nil
		}
		if !myerr.IsConflict(err) {
			break
		}
		sql.FromContext(ctx).Abort()
	}
	return nil, nil, nil, err
}

// supported leaves out the VECTOR indexes, which farmsql does not have, of
// tables that many tests share.
func supported(scripts []setup.SetupScript) []setup.SetupScript {
	var all []setup.SetupScript
	for _, s := range scripts {
		all = append(all, slices.DeleteFunc(slices.Clone(s), func(q string) bool {
			return strings.Contains(strings.ToLower(q), "vector index")
		}))
	}
	return all
}

// NewContext implements gmstest.Harness.
func (h *harness) NewContext() *gms.Context {
	if h.session == nil {
		h.session = h.newSession(gms.Client{Address: "localhost", User: "root"})
	}
	return h.in.e.NewContext(context.Background(), h.session)
}

func (h *harness) newSession(c gms.Client) *sql.Session {
	if err := h.open(); err != nil {
		panic(err) // the suite has no way to be told of an error
	}
	s := h.in.e.NewSession("address", c, 1)
	h.sessions = append(h.sessions, s)
	return s
}

// NewSession implements gmstest.TransactionHarness.
func (h *harness) NewSession() *gms.Context {
	h.session = nil
	return h.NewContext()
}

// NewContextWithClient implements gmstest.ClientHarness.
func (h *harness) NewContextWithClient(c gms.Client) *gms.Context {
	if h.contextFirst && h.engine {
		h.end(h.t)
	}
	return h.in.e.NewContext(context.Background(), h.newSession(c))
}

// SessionBuilder implements gmstest.ServerHarness.
func (h *harness) SessionBuilder() server.SessionBuilder {
	return func(_ context.Context, c *mysql.Conn, _ string) (gms.Session, error) {
		client := gms.Client{Capabilities: c.Capabilities}
		if u, ok := c.UserData.(gms.MysqlConnectionUser); ok {
			client.User, client.Address = u.User, u.Host
		}
		return h.newSession(client), nil
	}
}

func newHarness(t *testing.T, test string, ownCollation bool) *harness {
	h := &harness{t: t, ownCollation: ownCollation, skips: make(map[string]skip), used: make(map[skip]int), contextFirst: test == "UserAuthentication"}
	h.concurrent = test == "ConcurrentCreateDatabaseIfNotExists" || test == "ConcurrentDropDatabaseIfExists"
	left := skips
	if ownCollation {
		left = slices.Concat(skips, collationSkips)
	}
	for _, s := range left {
		if slices.Contains(strings.Fields(s.tests), test) {
			h.skips[s.query] = s
		}
	}
	return h
}

// SkipQueryTest implements gmstest.SkippingHarness.
func (h *harness) SkipQueryTest(query string) bool {
	s, ok := h.skips[strings.TrimSpace(query)]
	if ok {
		h.used[s]++
	}
	return ok && os.Getenv("FARMSQL_SKIPPED") == ""
}

// reportStale reports skips of queries that the suite does not have. In the server's own collation such a
// query may be in a script that is left out as a whole.
func (h *harness) reportStale(t *testing.T) {
	for _, s := range h.skips {
		if h.used[s] == 0 && (!h.ownCollation || slices.Contains(collationSkips, s)) {
			t.Errorf("to be left out, but not asked for: %s", s.query)
		}
	}
}

// SupportsNativeIndexCreation implements gmstest.IndexHarness.
func (h *harness) SupportsNativeIndexCreation() bool { return true }

// SupportsForeignKeys implements gmstest.ForeignKeyHarness.
func (h *harness) SupportsForeignKeys() bool { return true }

// SupportsKeylessTables implements gmstest.KeylessTableHarness.
func (h *harness) SupportsKeylessTables() bool { return true }
