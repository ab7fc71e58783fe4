package sql

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	sqle "github.com/dolthub/go-mysql-server"
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/analyzer"
	"github.com/dolthub/go-mysql-server/sql/types"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/sql/compat"
	"github.com/farmsql/farmsql/sql/row"
	"github.com/farmsql/farmsql/txn"
)

// Options are the settings of an Engine.
type Options struct {
	// ReadOnly refuses every change.
	ReadOnly bool
	// Accounts makes clients log in as users with grants; at first there is root,
	// from the local host and without a password. Engines of one process have the same
	// ones. Without Accounts everybody may do everything, and there are no users.
	Accounts *Accounts
	// Files is the folder in which users with the FILE privilege may read and write
	// (secure_file_priv); without one nobody may anywhere.
	Files string
	// Memory bounds what statements hold; nil: nothing does.
	Memory *Memory
	// Processors is how many transactions are worth running at a time where most are in
	// conflict; 0: as many as this computer has processors. What runs in the simulator
	// must not depend on the computer.
	Processors int
}

// An Engine runs SQL on one machine.
type Engine struct {
	m        *txn.Machine
	cat      *catalog.Catalog
	opt      Options
	gms      *sqle.Engine
	counters *counters
	compiled statementCache
	turns    *turns
	status   atomic.Pointer[StatusSource]

	mu struct {
		lockrank.RWMutex[lockrank.Engine]
		infos map[uint64]*tableInfo // by table id: the latest committed one
		// pruneAt is how many of them are too many: see prune.
		pruneAt int
	}
}

// OpenCatalog opens the catalog that NewEngine needs. Several machines of one
// process share their sequences, and one of them sweeps.
func OpenCatalog(ctx context.Context, m *txn.Machine, root region.Ptr, cfg catalog.Config) (*catalog.Catalog, error) {
	cfg.FreeRow = row.Free
	return catalog.Open(ctx, m, root, cfg)
}

// mysqlDefaults are the variables whose defaults are not MySQL 8's in
// go-mysql-server.
var mysqlDefaults = map[string]any{
	"collation_server":     gms.Collation_utf8mb4_0900_ai_ci.String(),
	"collation_database":   gms.Collation_utf8mb4_0900_ai_ci.String(),
	"collation_connection": gms.Collation_utf8mb4_0900_ai_ci.String(),
	"event_scheduler":      "OFF", // nothing runs events
	"sql_mode":             "ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION,ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES",
}

// NewEngine returns an engine over a catalog. Close it before the catalog.
func NewEngine(m *txn.Machine, cat *catalog.Catalog, o Options) (*Engine, error) {
	e := &Engine{m: m, cat: cat, opt: o, counters: newCounters(m), turns: newTurns(m.Clock(), o.Processors)}
	e.mu.infos, e.mu.pruneAt = make(map[uint64]*tableInfo), pruneLeast
	gms.SystemVariables.AddSystemVariables([]gms.SystemVariable{secureFilePriv(o.Files)})
	if err := gms.SystemVariables.AssignValues(mysqlDefaults); err != nil {
		return nil, fmt.Errorf("sql: set defaults: %w", err)
	}
	a := analyzer.NewBuilder(&provider{e}).AddOverrides(overrides()).AddPreAnalyzeRule(findChecksRule, findChecks).AddPreAnalyzeRule(plainLiteralsRule, plainLiterals).AddPreAnalyzeRule(accountsRule, commitForAccounts).AddPreAnalyzeRule(plainFiltersRule, plainFilters).AddPreAnalyzeRule(movedRule, compat.Moved).
		AddPreAnalyzeRule(framesRule, compat.Framed).AddPreAnalyzeRule(possibleTimesRule, compat.PossibleTimes).Build()
	ownRules(a, e)
	a.Catalog.AuthHandler = authorizer{a.Catalog.AuthHandler, e}
	e.hideProcesses(a.Catalog.InfoSchema)
	a.Catalog.StatsProvider = newStatistics()
	e.gms = sqle.New(a, &sqle.Config{IsReadOnly: o.ReadOnly})
	a.ExecBuilder.PriorityBuilder = &builder{e}
	if o.Accounts == nil {
		return e, nil
	}
	a.Catalog.MySQLDb = o.Accounts.db
	if err := e.RefreshAccounts(context.Background()); err != nil {
		return nil, fmt.Errorf("sql: load accounts: %w", err)
	}
	return e, nil
}

// GMS returns the engine of go-mysql-server that runs the statements.
func (e *Engine) GMS() *sqle.Engine { return e.gms }

// Close writes what is pending. No statement may be running.
func (e *Engine) Close(ctx context.Context) error {
	e.counters.flush(ctx)
	return e.gms.Close()
}

// NewSession returns the session of a new client.
func (e *Engine) NewSession(server string, c gms.Client, id uint32) *Session {
	s := &Session{baseSession: newBaseSession(server, c, id), e: e}
	s.holding.memory = e.opt.Memory
	return s
}

// NewContext returns the context for one statement of a session.
func (e *Engine) NewContext(ctx context.Context, s *Session, opts ...gms.ContextOption) *gms.Context {
	opts = append([]gms.ContextOption{gms.WithSession(s), gms.WithProcessList(e.gms.ProcessList), gms.WithMemoryManager(e.gms.MemoryManager)}, opts...)
	return NewContext(ctx, opts...)
}

// NewContext is gms.NewContext for one statement of a session of this package, which is among
// the options.
func NewContext(ctx context.Context, opts ...gms.ContextOption) *gms.Context {
	c := gms.NewContext(ctx, opts...)
	if s, ok := c.Session.(*Session); ok {
		s.begun(c)
	}
	return c
}

// view runs a read in the context's transaction, or in one of its own if the
// context has none.
func (e *Engine) view(ctx *gms.Context, read func(*txn.Tx) error) error {
	if tr := currentOf(ctx); tr != nil {
		return read(tr.tx)
	}
	var c context.Context = context.Background()
	if ctx != nil && ctx.Context != nil {
		c = ctx.Context
	}
	return e.m.Run(c, read)
}

// info returns a descriptor made ready for use. What the transaction itself has
// changed is not kept for others.
func (e *Engine) info(tr *transaction, tbl *catalog.Table) (*tableInfo, error) {
	e.mu.RLock()
	info := e.mu.infos[tbl.ID]
	e.mu.RUnlock()
	if info != nil && info.Table == tbl {
		return info, nil
	}
	info, err := newTableInfo(tbl)
	if err != nil || e.cat.Changed(tr.tx) {
		return info, err
	}
	e.mu.Lock()
	e.mu.infos[tbl.ID] = info
	tooMany := len(e.mu.infos) > e.mu.pruneAt
	e.mu.Unlock()
	if tooMany {
		e.prune()
	}
	return info, nil
}

// prune forgets what was made of tables that the catalog has forgotten. It does so when
// there is twice as much as was left the last time, which costs little for each.
func (e *Engine) prune() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for id, info := range e.mu.infos { // any order
		if !e.cat.Has(info.Table) {
			delete(e.mu.infos, id)
			e.counters.forget(info.Counter)
		}
	}
	e.mu.pruneAt = max(2*len(e.mu.infos), pruneLeast)
}

// pruneLeast is of how many tables something is kept at least when prune looks over it.
const pruneLeast = 256

// lockWait is what a session has set it to.
func lockWait(ctx *gms.Context) (time.Duration, error) {
	v, err := ctx.GetSessionVariable(ctx, lockWaitName)
	if err != nil {
		return 0, err
	}
	seconds, _, err := types.Int64.Convert(ctx, v)
	if err != nil {
		return 0, err
	}
	return time.Duration(seconds.(int64)) * time.Second, nil
}
