package wire

import (
	"context"
	"errors"

	"github.com/dolthub/go-mysql-server/server"
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/vitess/go/mysql"
	"github.com/dolthub/vitess/go/sqltypes"
	querypb "github.com/dolthub/vitess/go/vt/proto/query"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/fast"
	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/sql/row"
)

// A compiled statement runs directly on the storage, without go-mysql-server's
// parser and planner.
type compiled struct{ fast.Execution }

// findCompiled returns the compiled form of a statement, for one execution.
func (s *connState) findCompiled(query string) (compiled, bool) {
	if s.farm == nil {
		return compiled{}, false
	}
	x := s.farm.Compiled(query, false, nil)
	return compiled{x}, x.Compiled != nil
}

// findPrepared is findCompiled for a prepared statement to which values are bound.
func (s *connState) findPrepared(st statement, bound []fast.Value) (compiled, bool) {
	if s.farm == nil || st.prepared == nil {
		return compiled{}, false
	}
	x := s.farm.Prepared(st.prepared, st.text, bound)
	return compiled{x}, x.Compiled != nil
}

// statement describes a compiled statement to the handler: its locks, and whether
// it may be retried.
func (s compiled) statement(text string) statement {
	ast := s.AST()
	st := statement{text: text, ast: ast, retry: retryable(text, ast), writes: changesRows(ast)}
	st.setKind(ast)
	if sel, ok := ast.(*sqlparser.Select); ok && sel.Lock != nil {
		st.locking = clauseLocking(sel.Lock.Type)
	}
	return st
}

// runCompiled runs a compiled statement as the engine's handler runs others. It
// returns fast.ErrPlan if the engine has to run it. form is that of packets that the client can get.
func (h *handler) runCompiled(ctx context.Context, c *mysql.Conn, text string, stmt compiled, form row.Form, buf *resultBuffer) error {
	s := stateOf(c)
	stmt.Packets = form
	if s.context == nil {
		s.context = h.newContext(context.Background(), gms.WithSession(s.engine),
			gms.WithProcessList(h.gms.ProcessList), gms.WithMemoryManager(h.gms.MemoryManager))
	}
	now := h.clock.Now()
	sqlCtx := s.farm.NextContext(ctx, s.context, text, now)
	if err := h.processes.begin(sqlCtx, text, now); err != nil {
		return err
	}
	defer h.processes.EndQuery(sqlCtx)
	res, err := s.farm.Run(sqlCtx, stmt.Execution)
	if errors.Is(err, fast.ErrPlan) {
		return err
	}
	if res != nil && res.Planned {
		h.stats.planned.Add(1)
	} else {
		h.stats.compiled.Add(1)
	}
	if err != nil {
		sqlCtx.GetLogger().WithError(err).Warn("error running query")
		return myerr.Of(err)
	}
	s.setStatus(sqlCtx, c)
	switch {
	case res.Header == nil:
		return buf.add(&sqltypes.Result{RowsAffected: res.OK.RowsAffected, InsertID: res.OK.InsertID}, false)
	case res.Packets != nil:
		s.packets = res.Packets
		s.result = sqltypes.Result{Fields: fieldsOf(sqlCtx, res.Header), RowsAffected: uint64(res.Packets.Rows)}
		return buf.take(&s.result, len(res.Packets.Bytes))
	case res.Values != nil:
		s.packets = nil
		s.result = sqltypes.Result{Fields: fieldsOf(sqlCtx, res.Header), Rows: res.Values, RowsAffected: uint64(len(res.Values))}
		if res.Planned {
			inTextForm(&s.result)
		}
		return buf.take(&s.result, res.Bytes)
	}
	return spoolRows(sqlCtx, res, buf.append)
}

// spoolRows passes a result's rows to spool in the protocol's form. Their memory is used again afterwards.
func spoolRows(ctx *gms.Context, res *fast.Result, spool func(*sqltypes.Result) error) error {
	buf := gms.ByteBufPool.Get().(*gms.ByteBuffer)
	defer func() {
		buf.Reset()
		gms.ByteBufPool.Put(buf)
	}()
	out := &sqltypes.Result{Fields: fieldsOf(ctx, res.Header), Rows: make([][]sqltypes.Value, len(res.Rows)), RowsAffected: uint64(len(res.Rows))}
	for i, row := range res.Rows {
		var err error
		if out.Rows[i], err = server.RowToSQL(ctx, res.Header.Schema, row, nil, buf); err != nil {
			return myerr.Of(err)
		}
	}
	return spool(out)
}

// setStatus tells the client, in its next answer, whether it is in a
// transaction, as the engine's handler does.
func (s *connState) setStatus(ctx *gms.Context, c *mysql.Conn) {
	c.StatusFlags &^= uint16(mysql.ServerStatusAutocommit | mysql.ServerInTransaction)
	if s.farm.Autocommit() {
		c.StatusFlags |= uint16(mysql.ServerStatusAutocommit)
	}
	if ctx.GetTransaction() != nil {
		c.StatusFlags |= uint16(mysql.ServerInTransaction)
	}
}

// A fieldSet is a result's header in the protocol's form, for one character set of results.
type fieldSet struct {
	charset gms.CharacterSetID
	fields  []*querypb.Field
}

// fieldsOf returns the header of a result in the protocol's form, for the session's character set
// of results. It caches the latest in h.
func fieldsOf(ctx *gms.Context, h *fast.Header) []*querypb.Field {
	charset := ctx.GetCharacterSetResults()
	if set, ok := h.Fields.Load().(fieldSet); ok && set.charset == charset {
		return set.fields
	}
	set := fieldSet{charset, make([]*querypb.Field, len(h.Schema))}
	for i, c := range h.Schema {
		set.fields[i] = fieldOf(ctx, c, charset)
	}
	h.Fields.Store(set)
	return set.fields
}
