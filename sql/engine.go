package sql

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	sqle "github.com/dolthub/go-mysql-server"
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/analyzer"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/sql/account"
	"github.com/farmsql/farmsql/sql/change"
	"github.com/farmsql/farmsql/sql/compat"
	"github.com/farmsql/farmsql/sql/fast"
	"github.com/farmsql/farmsql/sql/routine"
	"github.com/farmsql/farmsql/sql/row"
	"github.com/farmsql/farmsql/sql/store"
	"github.com/farmsql/farmsql/txn"
)

// Options are the settings of an Engine.
type Options struct {
	// ReadOnly refuses every change.
	ReadOnly bool
	// Accounts makes clients log in as users with grants; at first there is only root, who logs
	// in from the local host and without a password. The engines of a process share the accounts.
	// If Accounts is nil, there are no users, and everybody may do everything.
	Accounts *account.Accounts
	// Files is the folder in which users with the FILE privilege may read and write
	// (secure_file_priv); if it is empty, nobody may.
	Files string
	// Memory bounds the memory that statements hold; nil: there is no bound.
	Memory *store.Memory
	// Processors is the number of transactions that run at a time when most of them conflict; 0: the
	// number of this computer's processors. The simulator sets it, because its runs must not depend
	// on the computer.
	Processors int
}

// An Engine runs SQL on one machine.
type Engine struct {
	*store.Store
	opt        Options
	gms        *sqle.Engine
	privileges account.Privileges
	compiled   *fast.Cache
	routines   *routine.Runner
	status     atomic.Pointer[StatusSource]
	// defaultRules are go-mysql-server's rules for the texts of columns' defaults.
	defaultRules []*analyzer.Rule
}

// OpenCatalog opens the catalog that NewEngine needs. Several machines of one
// process share their sequences, and one of them sweeps.
func OpenCatalog(ctx context.Context, m *txn.Machine, root region.Ptr, cfg catalog.Config) (*catalog.Catalog, error) {
	cfg.FreeRow, cfg.TriggerTable = row.Free, triggerTable
	return catalog.Open(ctx, m, root, cfg)
}

// mysqlDefaults are the variables whose defaults in go-mysql-server are not those of MySQL 8.
var mysqlDefaults = map[string]any{
	"collation_server":     gms.Collation_utf8mb4_0900_ai_ci.String(),
	"collation_database":   gms.Collation_utf8mb4_0900_ai_ci.String(),
	"collation_connection": gms.Collation_utf8mb4_0900_ai_ci.String(),
	"event_scheduler":      "OFF", // nothing runs events
	"sql_mode":             "ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION,ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES",
}

// haveMySQLDefaults makes SET name = DEFAULT set a variable to its value in mysqlDefaults. It runs once, because all
// engines of a process share the variables.
var haveMySQLDefaults = sync.OnceFunc(func() {
	for name, value := range mysqlDefaults { // any order
		if v, _, ok := gms.SystemVariables.GetGlobal(name); ok {
			v.SetDefault(value)
		}
	}
})

// NewEngine returns an engine over a catalog. Close it before the catalog.
func NewEngine(m *txn.Machine, cat *catalog.Catalog, o Options) (*Engine, error) {
	e := &Engine{opt: o}
	e.Store = store.New(m, cat, store.Config{Memory: o.Memory, Processors: o.Processors, Parse: parser{}.Parse, IsSuper: e.isSuper})
	gms.SystemVariables.AddSystemVariables([]gms.SystemVariable{secureFilePriv(o.Files)})
	haveMySQLDefaults()
	if err := gms.SystemVariables.AssignValues(mysqlDefaults); err != nil {
		return nil, fmt.Errorf("sql: set defaults: %w", err)
	}
	a := analyzer.NewBuilder(&provider{e}).AddOverrides(overrides()).AddPreAnalyzeRule(findChecksRule, findChecks).AddPreAnalyzeRule(plainLiteralsRule, plainLiterals).AddPreAnalyzeRule(accountsRule, commitForAccounts).AddPreAnalyzeRule(recursiveRule, compat.RecursiveTypes).AddPreAnalyzeRule(plainFiltersRule, plainFilters).AddPreAnalyzeRule(movedRule, compat.Moved).AddPreAnalyzeRule(fractionsRule, compat.Fractions).AddPreAnalyzeRule(boundedRule, compat.BoundedDefaults).AddPreAnalyzeRule(comparedRowsRule, compat.ComparedRows).AddPreAnalyzeRule(wideUnionsRule, compat.WideUnions).
		AddPreAnalyzeRule(collationsRule, compat.MixedCollations).AddPreAnalyzeRule(framesRule, compat.Framed).AddPreAnalyzeRule(possibleTimesRule, compat.PossibleTimes).Build()
	ownRules(a, e)
	e.privileges = account.NewPrivileges(a.Catalog)
	a.Catalog.AuthHandler = renameAuthorizer{change.Authorizer(account.Authorizer(a.Catalog.AuthHandler, e.privileges), a.Catalog)}
	e.privileges.HideProcesses(a.Catalog.InfoSchema)
	placeViews(a.Catalog.InfoSchema)
	a.Catalog.InfoSchema = infoSchema{a.Catalog.InfoSchema, e}
	a.Catalog.StatsProvider = newStatistics()
	e.gms = sqle.New(a, &sqle.Config{IsReadOnly: o.ReadOnly})
	e.compiled = fast.NewCache(e.Store, e.gms, o.ReadOnly, e.narrowedOrSame)
	e.routines = routine.NewRunner(e.gms, e.queryPart, o.Accounts != nil)
	a.ExecBuilder.PriorityBuilder = &builder{e}
	if o.Accounts == nil {
		return e, nil
	}
	a.Catalog.MySQLDb = o.Accounts.DB()
	if err := e.RefreshAccounts(context.Background()); err != nil {
		return nil, fmt.Errorf("sql: load accounts: %w", err)
	}
	return e, nil
}

// RefreshAccounts reads the accounts again if the stored ones have changed. Call it before
// a client is authenticated.
func (e *Engine) RefreshAccounts(ctx context.Context) error {
	if e.opt.Accounts == nil {
		return nil
	}
	return e.opt.Accounts.Refresh(ctx, e.Store)
}

// GMS returns the engine of go-mysql-server that runs the statements.
func (e *Engine) GMS() *sqle.Engine { return e.gms }

// Close writes what is pending. No statement may be running.
func (e *Engine) Close(ctx context.Context) error {
	e.Store.Counters.Flush(ctx)
	return e.gms.Close()
}

// NewSession returns the session of a new client.
func (e *Engine) NewSession(server string, c gms.Client, id uint32) *Session {
	s := &Session{e: e}
	s.Session.Init(e.compiled, s, server, c, id)
	return s
}

// NewContext returns the context for one statement of a session.
func (e *Engine) NewContext(ctx context.Context, s *Session, opts ...gms.ContextOption) *gms.Context {
	opts = append([]gms.ContextOption{gms.WithSession(s), gms.WithProcessList(e.gms.ProcessList), gms.WithMemoryManager(e.gms.MemoryManager)}, opts...)
	return NewContext(ctx, opts...)
}

// NewContext is gms.NewContext for one statement. The options must include a session of this
// package.
func NewContext(ctx context.Context, opts ...gms.ContextOption) *gms.Context {
	c := gms.NewContext(ctx, opts...)
	if s, ok := c.Session.(*Session); ok {
		s.forget()
		s.Begun(c)
	}
	return c
}

// NextContext returns the context for the session's next statement, which begins now. It copies the context of an
// earlier statement, which costs less than NewContext does.
func (s *Session) NextContext(ctx context.Context, earlier *gms.Context, text string, now time.Time) *gms.Context {
	c := earlier.WithQuery(text)
	c.Context = ctx
	c.SetQueryTime(now)
	s.forget()
	return s.Begun(c)
}

// queryPart begins a statement that is part of another one, such as those of a stored
// procedure. It takes back what change.Authorizer rewrites in the statement, because the statement may be run again.
func (e *Engine) queryPart(ctx *gms.Context, stmt sqlparser.Statement) (gms.Schema, gms.RowIter, error) {
	defer change.TakeBack(stmt)
	s := FromContext(ctx)
	s.bodyStatements++
	if p, ok := stmt.(*sqlparser.Prepare); ok {
		s.UnprepareQuery(p.Name) // the earlier statement is gone even if this one cannot be prepared
	}
	back := s.aside()
	schema, rows, _, err := e.gms.QueryWithBindings(ctx, "", stmt, nil, nil)
	if err != nil {
		back()
		return nil, nil, err
	}
	return schema, &partIter{rows, back}, nil
}

// A partIter gives the session the outer statement back when it is closed.
type partIter struct {
	gms.RowIter
	back func()
}

// Close implements gms.RowIter.
func (i *partIter) Close(ctx *gms.Context) error {
	defer i.back()
	return i.RowIter.Close(ctx)
}

// isSuper reports whether the user of a context's session has the SUPER privilege.
// go-mysql-server's own sessions have all privileges.
func (e *Engine) isSuper(ctx *gms.Context) bool {
	_, ok := ctx.Session.(*Session)
	return !ok || e.privileges.Has(ctx, gms.PrivilegeType_Super)
}
