package wire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/vitess/go/mysql"
	"github.com/dolthub/vitess/go/sqltypes"
	querypb "github.com/dolthub/vitess/go/vt/proto/query"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/fast"
	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/sql/plan"
	"github.com/farmsql/farmsql/sql/row"
)

// standIn is the statement that the protocol library prepares in place of the client's: the
// library knows less SQL than the engine.
const standIn = "SELECT 1"

// keepText keeps the statement that p prepares for handler.ComPrepare, and replaces it in p by
// standIn. Statements above the limit, or longer than a packet, are left to the library.
func (c *conn) keepText(p []byte) (bool, error) {
	length := packetLength(p)
	if c.preparing != nil || length == packetBytesMax || int64(length) > c.meter.limit {
		return false, nil
	}
	whole := make([]byte, length)
	have := copy(whole, p[packetHeaderBytes:])
	have += copy(whole[have:], c.ahead)
	c.ahead = c.ahead[have-len(p)+packetHeaderBytes:] // without the bytes just copied
	if _, err := io.ReadFull(c.stream(), whole[have:]); err != nil {
		return false, err
	}
	text := string(whole[1:])
	c.preparing = &text
	c.counts.add(bytesReceived, uint64(max(0, len(text)-len(standIn))))
	c.ahead = append(packet(0, append([]byte{mysql.ComPrepare}, standIn...)), c.ahead...)
	return true, nil
}

// takeText returns the statement that keepText has kept; query if there is none.
func (c *conn) takeText(query string) string {
	if c == nil || c.preparing == nil {
		return query
	}
	text := *c.preparing
	c.preparing = nil
	return text
}

// ComPrepare prepares a statement, and stores what its text says about locking and retries.
func (h *handler) ComPrepare(ctx context.Context, c *mysql.Conn, query string, prepare *mysql.PrepareData) ([]*querypb.Field, error) {
	defer stateOf(c).settle()
	query = gms.RemoveSpaceAndDelimiter(connOf(c).takeText(query), ';')
	prepare.PrepareStmt = query
	if err := h.preparable(ctx, c, query); err != nil {
		delete(c.PrepareData, prepare.StatementID)
		return nil, err
	}
	if farm := stateOf(c).farm; farm != nil {
		if err := farm.KeepPrepared(prepare.StatementID, query); err != nil {
			delete(c.PrepareData, prepare.StatementID)
			return nil, err
		}
	}
	var fields []*querypb.Field
	_, err := h.run(ctx, c, statement{text: query, retry: true, aside: true, command: comStmtPrepare}, func(ctx context.Context, _ *resultBuffer) (err error) {
		fields, err = h.engineHandler.ComPrepare(ctx, c, query, prepare)
		return err
	})
	if err != nil {
		delete(c.PrepareData, prepare.StatementID) // the protocol library keeps failed ones, too
		stateOf(c).forgetPrepared(prepare.StatementID)
		return nil, err
	}
	describe(fields, nil)
	if n := stateOf(c).remember(c, prepare.StatementID, query); n > parametersMax {
		delete(c.PrepareData, prepare.StatementID)
		stateOf(c).forgetPrepared(prepare.StatementID)
		return nil, myerr.TooManyParameters.New(n, parametersMax)
	}
	return fields, nil
}

// preparable returns an error for a text that is not a single statement, or is LOAD DATA.
func (h *handler) preparable(ctx context.Context, c *mysql.Conn, query string) error {
	if query == "" {
		return myerr.EmptyQuery.New()
	}
	if !strings.Contains(query, ";") && !containsFold(query, "load") {
		return nil
	}
	opts, err := h.ParserOptionsForConnection(c)
	if err != nil {
		return err
	}
	stmt, _, rest, err := h.gms.Parser.ParseWithOptions(ctx, query, ';', true, opts)
	if _, ok := stmt.(*sqlparser.Load); ok {
		return myerr.NotPreparable.New()
	}
	if err != nil || rest == "" {
		return nil // parsing it again reports the error
	}
	if _, _, _, err := h.gms.Parser.ParseWithOptions(ctx, rest, ';', true, opts); errors.Is(err, sqlparser.ErrEmpty) {
		return nil // the text is only a comment
	}
	return myerr.SeveralPrepared.New(len(query) - len(rest) + 1)
}

// parametersMax is the greatest number of a prepared statement's parameters. MySQL's limit,
// from the protocol, is 65,535. The protocol library adds seven to the number, and the sum
// must fit the same 16 bits.
const parametersMax = math.MaxUint16 - 7

// remember stores a prepared statement, and returns the number of its parameters. The protocol
// library does not report when a client closes a statement, so remember removes closed ones
// once they outnumber the open ones.
func (s *connState) remember(c *mysql.Conn, id uint32, query string) int {
	if len(s.prepared) > 2*len(c.PrepareData)+16 {
		for old := range s.prepared {
			if _, open := c.PrepareData[old]; !open {
				s.forgetPrepared(old)
			}
		}
	}
	ast, _ := s.engine.GetPreparedQuery(query)
	st := newStatement(query, ast)
	st.prepared = new(fast.Prepared)
	s.prepared[id] = st
	return countParameters(c.PrepareData[id], ast)
}

// countParameters returns the number of a statement's parameters, and stores it in p, the protocol
// library's description of the statement. The library cannot count them: it parsed standIn in the
// statement's place, or nothing.
func countParameters(p *mysql.PrepareData, ast sqlparser.Statement) int {
	if p == nil || ast == nil {
		return 0
	}
	nodes := []sqlparser.SQLNode{ast}
	if own, ok := ast.(sqlparser.InjectedStatement); ok { // a statement that only our parser knows
		nodes = nodes[:0]
		for _, e := range own.Children {
			nodes = append(nodes, e)
		}
	}
	count := 0
	eachNode(func(n sqlparser.SQLNode) {
		if v, ok := n.(*sqlparser.SQLVal); ok && v.Type == sqlparser.ValArg {
			count++
		}
	}, nodes...)
	p.ParamsCount, p.ParamsType = uint16(count), make([]int32, count)
	if count > 0 && p.BindVars == nil {
		p.BindVars = make(map[string]*querypb.BindVariable, count)
	}
	return count
}

// eachNode calls visit for nodes and all below them, also those that sqlparser.Walk leaves out: the
// ends of UNIONs, and what EXPLAIN explains.
func eachNode(visit func(sqlparser.SQLNode), nodes ...sqlparser.SQLNode) {
	// The visitor never fails, so neither does Walk.
	_ = sqlparser.Walk(func(n sqlparser.SQLNode) (bool, error) {
		visit(n)
		switch n := n.(type) {
		case *sqlparser.SetOp:
			eachNode(visit, n.With, n.OrderBy, n.Limit)
		case *sqlparser.Explain:
			eachNode(visit, n.Statement)
		}
		return true, nil
	}, nodes...)
}

// forgetPrepared removes a prepared statement that is closed, or could not be prepared.
func (s *connState) forgetPrepared(id uint32) {
	delete(s.prepared, id)
	if s.farm != nil {
		_ = s.farm.KeepPrepared(id, "") // an empty text needs no memory
	}
}

// ComStmtExecute runs a prepared statement. If the client opens a cursor, the protocol library keeps the
// result, and runs the connection's next requests before callback returns. So the result is then a copy with memory of
// its own, and ComStmtExecute does nothing after callback.
func (h *handler) ComStmtExecute(ctx context.Context, c *mysql.Conn, prepare *mysql.PrepareData, callback func(*sqltypes.Result) error) error {
	state, accepted := stateOf(c), connOf(c)
	opensCursor := accepted != nil && accepted.meter.opensCursor()
	form := row.BinaryForm
	if opensCursor {
		form = row.NoPackets
	}
	res, err := h.execute(ctx, c, prepare, form)
	if err == nil && opensCursor {
		if res == &state.result {
			res = ownResult(res)
		}
		state.settle()
		return callback(res)
	}
	defer state.settle()
	if err != nil {
		return err
	}
	return answer(c, res, callback)
}

// ownResult returns a copy of a result that has its own memory.
func ownResult(r *sqltypes.Result) *sqltypes.Result {
	r = r.Copy() // which shares the values' bytes
	for _, row := range r.Rows {
		for i, v := range row {
			row[i] = sqltypes.MakeTrusted(v.Type(), bytes.Clone(v.Raw()))
		}
	}
	return r
}

// execute returns the result of a prepared statement, which is valid until settle. form is that of packets that the client
// can get.
func (h *handler) execute(ctx context.Context, c *mysql.Conn, prepare *mysql.PrepareData, form row.Form) (*sqltypes.Result, error) {
	st, ok := stateOf(c).prepared[prepare.StatementID]
	if !ok {
		st = statement{text: prepare.PrepareStmt}
	}
	st.command = comStmtExecute
	mendTimes(prepare.BindVars)
	if farm := stateOf(c).farm; farm != nil {
		if err := farm.TakeText(st.text, bindBytes(prepare.BindVars)); err != nil {
			return nil, err
		}
	}
	bound, plain := stateOf(c).boundValues(prepare.BindVars)
	stmt, isCompiled := compiled{}, false
	if plain {
		stmt, isCompiled = stateOf(c).findPrepared(st, bound)
	}
	res, err := h.run(ctx, c, st, func(ctx context.Context, buf *resultBuffer) error {
		if isCompiled {
			if err := h.runCompiled(ctx, c, st.text, stmt, form, buf); !errors.Is(err, fast.ErrPlan) {
				return err
			}
		}
		return h.killing(st, func() error {
			return h.engineHandler.ComStmtExecute(ctx, c, prepare, func(r *sqltypes.Result) error { return buf.add(r, false) })
		})
	})
	if err != nil {
		return nil, err
	}
	if res != nil {
		binaryTimes(res)
	}
	return res, nil
}

// boundValues returns the values bound to the parameters of a prepared statement. They are valid until the connection's
// next statement. It returns false if a value is of a kind that no literal has.
func (s *connState) boundValues(vars map[string]*querypb.BindVariable) ([]fast.Value, bool) {
	s.bound = slices.Grow(s.bound[:0], len(vars))
	s.bound = s.bound[:len(vars)]
	values := s.bound
	for i := range values {
		v, ok := vars["v"+strconv.Itoa(i+1)]
		if !ok {
			return nil, false
		}
		if values[i], ok = boundValue(v); !ok {
			return nil, false
		}
	}
	return values, true
}

func boundValue(v *querypb.BindVariable) (fast.Value, bool) {
	switch v.Type {
	case sqltypes.Int8, sqltypes.Int16, sqltypes.Int24, sqltypes.Int32, sqltypes.Int64,
		sqltypes.Uint8, sqltypes.Uint16, sqltypes.Uint24, sqltypes.Uint32, sqltypes.Uint64:
		n, err := strconv.ParseInt(string(v.Value), 10, 64)
		return fast.Value{Number: n, IsNumber: true}, err == nil
	case sqltypes.Char, sqltypes.VarChar, sqltypes.Text, sqltypes.VarBinary: // clients send strings in these types
		return fast.Value{Text: string(v.Value)}, true
	case sqltypes.Null:
		return fast.Value{IsNull: true}, true
	case sqltypes.Float32, sqltypes.Float64: // with an exponent, as the engine writes their literals
		f, err := strconv.ParseFloat(string(v.Value), 64)
		return fast.Value{Text: strconv.FormatFloat(f, 'e', -1, 64), Form: plan.Float}, err == nil && !math.IsInf(f, 0) && !math.IsNaN(f)
	case sqltypes.Decimal:
		return fast.Value{Text: string(v.Value), Form: plan.Decimal}, row.IsDecimalText(string(v.Value)) && bytes.IndexByte(v.Value, '.') >= 0
	}
	return fast.Value{}, false
}

// bindBytes returns the memory of bound values: as received, and as literals of a plan.
func bindBytes(vars map[string]*querypb.BindVariable) int64 {
	const times = 2
	n := int64(0)
	for _, v := range vars {
		n += times * int64(len(v.Value))
	}
	return n
}
