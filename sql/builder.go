package sql

import (
	"cmp"
	"errors"
	"io"
	"math"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/vitess/go/mysql"

	"github.com/farmsql/farmsql/sql/change"
	"github.com/farmsql/farmsql/sql/compat"
	"github.com/farmsql/farmsql/sql/executor"
	"github.com/farmsql/farmsql/sql/explain"
	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/sql/routine"
	"github.com/farmsql/farmsql/sql/store"
)

var _ gms.NodeExecBuilder = (*builder)(nil)

// A builder executes nodes of plans. go-mysql-server calls it for every node, and executes the
// node itself only if the builder returns no rows.
type builder struct{ e *Engine }

// Build implements gms.NodeExecBuilder.
func (b *builder) Build(ctx *gms.Context, n gms.Node, row gms.Row) (gms.RowIter, error) {
	s, ok := ctx.Session.(*Session)
	if !ok {
		return nil, nil // the session is go-mysql-server's own
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if s.running.result == nil {
		s.running.result = n.Schema(ctx)
	}
	// TakeInput removes the note, because the Build below calls this method again for n.
	if m, ok := s.Holding.TakeInput(n); ok {
		rows, err := b.e.gms.Analyzer.ExecBuilder.Build(ctx, n, row)
		if err != nil {
			return nil, err
		}
		if m.Again {
			s.Holding.NoteInput(n, m)
		}
		return s.Holding.Metered(rows, m), nil
	}
	if a := s.takeAhead(n); a != nil {
		return b.buildAhead(ctx, a, n, row)
	}
	s.Holding.NoteInputs(ctx, n)
	if m := s.running.measuring; m.Measures(n) {
		return m.Build(ctx, n, row)
	}
	return b.build(ctx, s, n, row)
}

// build is Build once the notes about the node's own rows have been taken: for a metering, a lookAhead or a measurement.
func (b *builder) build(ctx *gms.Context, s *Session, n gms.Node, row gms.Row) (gms.RowIter, error) {
	if rows := s.TakeLeaf(n); rows != nil {
		return rows, nil
	}
	if s.running.plain != nil && s.running.plain == n { // see ordinary
		s.running.plain = nil
		return nil, nil
	}
	if check := s.running.changing.TakeInserted(n); check != nil {
		rows, err := b.e.gms.Analyzer.ExecBuilder.Build(ctx, n, row)
		if err != nil {
			return nil, err
		}
		return check(rows), nil
	}
	m, same, err := useComparisons(ctx, n)
	if err != nil {
		return nil, err
	}
	if !same {
		s.running.changing.Replace(n, m) // build is called for m, too
		return b.e.gms.Analyzer.ExecBuilder.Build(ctx, m, row)
	}
	if err := b.refuse(ctx, n); err != nil {
		return nil, err
	}
	if rows, err := b.statement(ctx, s, n, row); rows != nil || err != nil {
		return rows, err
	}
	switch n := n.(type) {
	case *plan.Filter:
		if narrowed := b.e.columnsFilter(ctx, n); narrowed != nil {
			return b.ordinary(ctx, s, narrowed, row)
		}
	case *plan.IndexedTableAccess:
		if rows, err := b.lookup(ctx, n, row); rows != nil || err != nil {
			return rows, err
		}
	case *plan.JoinNode:
		s.noteJoin(ctx, n)
	case *plan.HashLookup:
		compat.BoundKeys(ctx, n)
		if err := b.fill(ctx, s, n, row); err != nil {
			return nil, err
		}
		return b.kept(ctx, s, n, row)
	case *plan.CachedResults:
		return b.kept(ctx, s, n, row)
	case *plan.GroupBy:
		return b.executor(s).GroupBy(ctx, n, row)
	case *plan.Distinct:
		return b.executor(s).Distinct(ctx, n, row)
	case *plan.SetOp:
		return b.executor(s).SetOp(ctx, n, row)
	case *plan.Sort:
		if !s.running.changing.IsWhole(n) {
			return b.executor(s).Sort(ctx, n, row)
		}
	case *plan.CreateTable:
		if err := compat.NoteExisting(ctx, n); err != nil {
			return nil, err
		}
	case *plan.TableCopier:
		return b.createFilled(ctx, n, row)
	case *plan.Update:
		s.Changes(ctx, !n.Ignore)
		compat.CompareExactly(ctx, n)
		compat.ReferLate(ctx, n)
	case *plan.UpdateSource:
		s.running.changing.ReadSource(ctx, n)
	case *plan.DeleteFrom:
		if tr := store.CurrentOf(ctx); tr != nil {
			tr.Tx.ToFree()
		}
		s.Changes(ctx, true)
		s.running.changing.ReadSource(ctx, n)
	case *plan.InsertInto:
		s.Changes(ctx, !n.Ignore)
		s.running.changing.ReadSource(ctx, n)
		s.running.changing.CheckInserted(ctx, n)
		s.Replaces(ctx, n)
		s.Inserts(ctx, n)
		s.noteInsert(ctx, n)
		compat.ReferLate(ctx, n.Destination)
		if n.OnDupExprs.HasUpdates() {
			compat.CompareExactly(ctx, n.Destination)
		}
	}
	if !s.running.changing.TakeWhole(n) {
		return nil, nil
	}
	rows, err := b.ordinary(ctx, s, n, row)
	if err != nil {
		return nil, err
	}
	return change.Whole(s.Holding.Metered(rows, store.Metering{Most: math.MaxInt64})), nil
}

// createFilled executes CREATE TABLE ... SELECT: it creates the table and fills it. For copies of other kinds it
// returns nil.
func (b *builder) createFilled(ctx *gms.Context, n *plan.TableCopier, row gms.Row) (gms.RowIter, error) {
	create, ok := n.Destination.(*plan.CreateTable)
	if !ok {
		return nil, nil
	}
	if _, err := b.e.gms.Analyzer.ExecBuilder.Build(ctx, create, row); err != nil {
		return nil, err
	}
	t, _, err := n.Database().GetTableInsensitive(ctx, create.Name())
	if err != nil {
		return nil, err
	}
	filling, err := compat.Filling(ctx, n, t)
	if err != nil {
		return nil, err
	}
	return b.e.gms.Analyzer.ExecBuilder.Build(ctx, filling, row)
}

// executor returns the executor of the session's running statement.
func (b *builder) executor(s *Session) executor.Executor {
	return executor.Executor{Builder: b.e.gms.Analyzer.ExecBuilder, Holding: &s.Holding, Ordinary: func(ctx *gms.Context, n gms.Node, row gms.Row) (gms.RowIter, error) {
		return b.ordinary(ctx, s, n, row)
	}}
}

// statement executes a node that is a whole statement, if this package executes such statements;
// otherwise it returns no rows.
func (b *builder) statement(ctx *gms.Context, s *Session, n gms.Node, row gms.Row) (gms.RowIter, error) {
	switch n := n.(type) {
	case *plan.CreateUser, *plan.AlterUser, *plan.RenameUser, *plan.DropUser, *plan.CreateRole, *plan.DropRole,
		*plan.Grant, *plan.GrantRole, *plan.Revoke, *plan.RevokeRole, *plan.FlushPrivileges:
		return b.changeAccounts(ctx, s, n, row)
	case *plan.Call:
		if n.Procedure.ExternalProc != nil {
			return b.ordinary(ctx, s, n, row)
		}
		return b.e.routines.Call(ctx, n, row)
	case *plan.ShowCreateTable:
		return b.showCreate(ctx, n, row)
	case *plan.ShowColumns:
		return showColumns(ctx, n, row)
	case *plan.ShowDatabases:
		return showDatabases(ctx, n), nil
	case *plan.ShowTables:
		return b.showTables(ctx, n, row)
	case *plan.ShowTableStatus:
		return b.showTables(ctx, n, row)
	case *plan.ShowProcessList:
		rows, err := b.ordinary(ctx, s, n, row)
		if err != nil {
			return rows, err
		}
		return b.e.privileges.SeenConnections(ctx, rows)
	case *plan.ShowVariables:
		return showVariables(ctx, n)
	case *plan.ShowIndexes:
		return showIndexes(ctx, n, row)
	case *plan.ShowCreateTrigger:
		return showDefinition(ctx, n, row)
	case *plan.ShowCreateProcedure:
		return showDefinition(ctx, n, row)
	case *plan.ShowCreateEvent:
		return showDefinition(ctx, n, row)
	case *plan.DescribeQuery:
		switch {
		case compat.IsJSONFormat(n.Format):
			return explain.JSON(ctx, b.e.Store, n.Child)
		case n.Format.Analyze:
			return b.analyze(ctx, s, n)
		case !n.Format.Plan:
			return explain.Rows(ctx, b.e.Store, n.Child)
		}
		if text, ok := s.Explain(ctx, compat.ExplainedText(ctx.Query())); ok {
			return explain.Lines(text), nil
		}
	case *plan.ShowStatus:
		return b.showStatus(ctx, n)
	case *plan.RenameTable:
		return b.rename(ctx, n)
	case *plan.LockTables:
		return b.lockTables(ctx, s)
	case *plan.UnlockTables:
		return b.unlockTables(ctx, s)
	}
	return nil, nil
}

// changeAccounts executes a statement about accounts.
func (b *builder) changeAccounts(ctx *gms.Context, s *Session, n gms.Node, row gms.Row) (gms.RowIter, error) {
	execute := func(n gms.Node) (gms.RowIter, error) { return b.ordinary(ctx, s, n, row) }
	if b.e.opt.Accounts == nil {
		return execute(n)
	}
	return b.e.opt.Accounts.Execute(ctx, b.e.Store, n, execute)
}

// analyze executes EXPLAIN ANALYZE.
func (b *builder) analyze(ctx *gms.Context, s *Session, n *plan.DescribeQuery) (gms.RowIter, error) {
	root, _, err := useComparisons(ctx, n.Child)
	if err != nil {
		return nil, err
	}
	m := explain.NewMeasuring(b.e.Store.Machine.Clock(), b.e.gms.Analyzer.ExecBuilder)
	s.running.measuring = m
	defer func() { s.running.measuring = nil }()
	return m.Run(ctx, root)
}

// erEventsOff is MariaDB's error number for creating an event while events are not run.
const erEventsOff = mysql.ERUnknownError

// refuse returns an error if a node may not be executed for a reason that go-mysql-server
// does not check. Before a SET it drops old warnings, and it warns of events that do not run.
func (b *builder) refuse(ctx *gms.Context, n gms.Node) error {
	switch n := n.(type) {
	case *plan.Set:
		if !routine.IsRunning(ctx) && !sets(n, "lock_warnings") {
			ctx.ClearWarnings() // drop the previous statement's warnings, which go-mysql-server keeps
		}
		return b.e.settable(ctx, n)
	case *plan.CreateEvent:
		if n.Status == gms.EventStatus_Enable {
			ctx.Warn(erEventsOff, "Events are kept, and nothing runs them")
		}
	case *plan.PrepareQuery:
		return preparable(ctx, n)
	case *plan.Kill:
		return b.e.privileges.RefuseKill(ctx, n)
	case *plan.AnalyzeTable:
		return b.e.privileges.RefuseAnalyze(ctx, n)
	case *plan.Into:
		return b.e.intoFile(ctx, n)
	case *plan.LoadData:
		return b.e.fromFile(ctx, n)
	case *plan.Truncate:
		return cmp.Or(b.e.opt.Accounts.RefuseTables(n.Child), truncatable(ctx, n))
	case *plan.Update:
		return b.e.opt.Accounts.RefuseTables(n.Child)
	case *plan.DeleteFrom:
		return b.e.opt.Accounts.RefuseTables(n.Child)
	case *plan.InsertInto:
		return b.e.opt.Accounts.RefuseTables(n.Destination)
	}
	return nil
}

// preparable refuses PREPARE of statements whose bodies are stored as text: go-mysql-server would take the text of
// EXECUTE for the text of the body.
func preparable(ctx *gms.Context, n *plan.PrepareQuery) error {
	switch n.Child.(type) {
	case *plan.CreateProcedure, *plan.CreateView, *plan.CreateTrigger, *plan.CreateEvent, *plan.AlterEvent:
		ctx.Session.UnprepareQuery(n.Name)
		return myerr.NotPreparable.New()
	}
	return nil
}

// kept executes a node that keeps its rows.
func (b *builder) kept(ctx *gms.Context, s *Session, n gms.Node, row gms.Row) (gms.RowIter, error) {
	rows, err := b.ordinary(ctx, s, n, row)
	if err != nil || plan.IsEmptyIter(rows) {
		return rows, err
	}
	return &store.WantedIter{RowIter: rows}, nil
}

// fill fills the hash table of a join that decides a row of its left side by the first match. Such a join may not read
// its right side to the end, and go-mysql-server keeps the table only if it was read to the end.
func (b *builder) fill(ctx *gms.Context, s *Session, h *plan.HashLookup, row gms.Row) error {
	if h.Lookup != nil || !h.JoinType.IsPartial() {
		return nil
	}
	rows, err := b.kept(ctx, s, h, row)
	if err != nil {
		return err
	}
	for err == nil {
		_, err = rows.Next(ctx)
	}
	if err != io.EOF {
		return errors.Join(err, rows.Close(ctx))
	}
	return rows.Close(ctx)
}

// ordinary makes go-mysql-server execute a node. go-mysql-server calls the builder again for the
// node; the builder finds the node in running.plain, and leaves it alone.
func (b *builder) ordinary(ctx *gms.Context, s *Session, n gms.Node, row gms.Row) (gms.RowIter, error) {
	s.running.plain = n
	defer func() { s.running.plain = nil }()
	return b.e.gms.Analyzer.ExecBuilder.Build(ctx, n, row)
}
