package exec

import (
	"errors"
	"strconv"
	"sync/atomic"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/planbuilder"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/sql/plan"
	"github.com/farmsql/farmsql/sql/store"
)

// A prepared is a Statement with its fixed literals, for one version of its tables.
type prepared struct {
	tables []*store.TableInfo
	// refused is set if the statement cannot be planned.
	refused bool
	// text is the statement's text with question marks for parameters. parameters has the numbers of their values.
	text       string
	parameters []int
	header     *Header
	// values are the values for which it was made.
	values []plan.Value
	// shared is the query if several goroutines may run it at the same time. Otherwise idle has the
	// queries that are not running.
	shared *plan.Query
	idle   struct {
		lockrank.Mutex[lockrank.Leaf]
		queries []*plan.Query
	}
	// large has idle queries that take much memory. The garbage collector drops those that are not used.
	large clock.Pool
	// runs counts executions. chosen has the choice for each source of the query: the number of an
	// access, or of a join's order.
	runs   atomic.Uint64
	chosen [plan.SourcesMax]atomic.Int64
}

// newPrepared plans the statement, and lets go-mysql-server plan it with these values, to learn whether it is
// right and what it returns. It returns ErrPlan if go-mysql-server reports an error, which may
// be due to the values.
func (s *Statement) newPrepared(ctx *gms.Context, tables []*store.TableInfo, values []plan.Value) (*prepared, error) {
	p := &prepared{tables: tables, large: s.st.Machine.Clock().NewPool(func() any { return nil })}
	p.text, p.parameters = s.literals.Fixed(s.text, values)
	q, err := p.build(ctx, s, values) // before check, which takes longer: a statement without a plan need not be checked
	switch {
	case errors.Is(err, plan.ErrRefused):
		p.refused = true
		return p, nil
	case err != nil:
		return nil, ErrPlan
	}
	if !s.literals.Inserts { // an INSERT returns nothing, and its plan is go-mysql-server's
		schema, err := s.check(ctx, p, values)
		if err != nil {
			return nil, err
		}
		p.header = &Header{Schema: schema}
	}
	switch {
	case !s.literals.Inserts && !s.canName(p, values), q.Change != nil && !q.Change.IsPlain():
		p.refused = true
	case q.Shared:
		p.shared = q
	default:
		p.give(q)
	}
	return p, nil
}

// parse parses a statement's text.
func (s *Statement) parse(ctx *gms.Context, text string) (sqlparser.Statement, error) {
	ast, _, _, err := s.gms.Parser.ParseWithOptions(ctx, text, ';', false, gms.LoadSqlMode(ctx).ParserOptions())
	return ast, err
}

// check has go-mysql-server plan the statement, and returns the columns of its result.
func (s *Statement) check(ctx *gms.Context, p *prepared, values []plan.Value) (gms.Schema, error) {
	ast, err := s.parse(ctx, p.text)
	if err != nil {
		return nil, ErrPlan
	}
	bound := make(map[string]sqlparser.Expr, len(p.parameters))
	for i, n := range p.parameters {
		bound["v"+strconv.Itoa(i+1)] = values[n].Expr()
	}
	tx, warnings := ctx.GetTransaction(), len(ctx.Warnings())
	root, err := s.gms.BoundQueryPlan(ctx, p.text, ast, bound)
	if ctx.GetTransaction() == nil {
		ctx.SetTransaction(tx) // planning the statement again reports the error
	}
	if err != nil || len(ctx.Warnings()) > warnings {
		return nil, ErrPlan
	}
	return root.Schema(ctx), nil
}

// build makes a query. go-mysql-server resolves the names.
func (p *prepared) build(ctx *gms.Context, s *Statement, values []plan.Value) (*plan.Query, error) {
	ast, err := s.parse(ctx, p.text)
	if err != nil {
		return nil, ErrPlan
	}
	if s.literals.Inserts {
		return p.buildInsert(ctx, s, ast, values)
	}
	return p.query(ctx, s, ast, p.tables, values)
}

// query makes the query of a statement, or of a SELECT within it, that reads tables.
func (p *prepared) query(ctx *gms.Context, s *Statement, ast sqlparser.Statement, tables []*store.TableInfo, values []plan.Value) (*plan.Query, error) {
	root, _, err := planbuilder.New(ctx, s.gms.Analyzer.Catalog, s.gms.EventScheduler).BindOnly(ast, p.text, nil)
	if err != nil {
		return nil, ErrPlan
	}
	return plan.Build(ctx, root, tables, p.parameters, values)
}

// take returns an idle query or the shared one, or makes a query.
func (p *prepared) take(ctx *gms.Context, s *Statement, values []plan.Value) (*plan.Query, error) {
	if p.shared != nil {
		return p.shared, nil
	}
	p.idle.Lock()
	if n := len(p.idle.queries); n > 0 {
		q := p.idle.queries[n-1]
		p.idle.queries = p.idle.queries[:n-1]
		p.idle.Unlock()
		return q, nil
	}
	p.idle.Unlock()
	if q, ok := p.large.Get().(*plan.Query); ok {
		return q, nil
	}
	q, err := p.build(ctx, s, values)
	if err != nil {
		return nil, ErrPlan
	}
	return q, nil
}

// give returns a query to the idle ones, unless it is the shared one or idleMax are idle. A large INSERT goes to large.
func (p *prepared) give(q *plan.Query) {
	switch {
	case p.shared != nil:
		return
	case q.Insert != nil && q.Insert.Size() > idleValuesMax:
		p.large.Put(q)
		return
	}
	p.idle.Lock()
	defer p.idle.Unlock()
	if len(p.idle.queries) < idleMax {
		p.idle.queries = append(p.idle.queries, q)
	}
}
