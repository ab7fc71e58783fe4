package explain

import (
	"fmt"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/vitess/go/sqltypes"

	"github.com/farmsql/farmsql/sql/row"
)

// EXPLAIN shows the tables of a statement in the order in which they are read, as MySQL's
// traditional format does. It shows go-mysql-server's plan; the compiled form takes its
// indexes and its order of tables from the same plan. Values that are not known before the
// statement runs are NULL.

var explainSchema = func() gms.Schema {
	s := make(gms.Schema, len(plan.DescribeSchema))
	for i, c := range plan.DescribeSchema {
		nullable := *c
		nullable.Nullable = true
		s[i] = &nullable
	}
	return s
}()

// The header of EXPLAIN's result is a global variable of go-mysql-server, whose own value says that
// no column may be NULL.
func init() { plan.DescribeSchema = explainSchema }

// An explained is one row of EXPLAIN: a table.
type explained struct {
	id                             int
	kind, table, access, keys, key string
	keyBytes                       int
	ref                            []string
	rows                           uint64
	rowsKnown                      bool
	extra                          []string
}

// Keys count the keys that lookups read.
type Keys interface {
	// CountKeys returns false if there are too many keys, or the index cannot count them.
	CountKeys(ctx *gms.Context, l gms.IndexLookup) (float64, bool)
}

// An explainer walks a plan.
type explainer struct {
	ctx  *gms.Context
	keys Keys
	rows []*explained
	// last is the number of the last query. later are the subqueries found so far, which
	// are shown after the present query.
	last  int
	later []func()
}

// Rows returns the rows of EXPLAIN without a format for a plan.
func Rows(ctx *gms.Context, keys Keys, root gms.Node) (gms.RowIter, error) {
	explained := explain(ctx, keys, root)
	rows := make([]gms.Row, len(explained))
	for i, r := range explained {
		rows[i] = r.row()
	}
	return gms.RowsToRowIter(rows...), nil
}

// Lines returns the rows of EXPLAIN FORMAT=TREE for a plan of our own as text.
func Lines(text string) gms.RowIter {
	rows := []gms.Row{{"run by sql/exec, not by go-mysql-server:"}}
	for line := range strings.Lines(text) {
		rows = append(rows, gms.Row{strings.TrimRight(line, "\n")})
	}
	return gms.RowsToRowIter(rows...)
}

// explain returns the tables of a plan, those of the outermost query first.
func explain(ctx *gms.Context, keys Keys, root gms.Node) []*explained {
	x := &explainer{ctx: ctx, keys: keys, last: 1}
	x.walk(root, 1, "SIMPLE")
	for len(x.later) > 0 {
		next := x.later[0]
		x.later = x.later[1:]
		next()
	}
	for _, r := range x.rows {
		if r.kind == "SIMPLE" && x.last > 1 {
			r.kind = "PRIMARY"
		}
	}
	return x.rows
}

// row returns the row of EXPLAIN's result.
func (r *explained) row() gms.Row {
	var id, rows, filtered, keyBytes any
	if r.id > 0 {
		id = uint64(r.id)
	}
	if r.rowsKnown {
		rows = r.rows
	}
	if r.access != "" && !r.has("Using where") {
		filtered = float64(100)
	}
	if r.keyBytes > 0 {
		keyBytes = fmt.Sprint(r.keyBytes)
	}
	return gms.NewRow(id, r.kind, orNull(r.table), nil, orNull(r.access), orNull(r.keys), orNull(r.key), keyBytes,
		orNull(strings.Join(r.ref, ",")), rows, filtered, orNull(strings.Join(r.extra, "; ")))
}

// orNull returns a text, or nil for an empty one.
func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// has reports whether the row has a text in its column Extra.
func (r *explained) has(extra string) bool {
	for _, e := range r.extra {
		if e == extra {
			return true
		}
	}
	return false
}

// note adds a text to the row's column Extra, once.
func (r *explained) note(extra string) {
	if !r.has(extra) {
		r.extra = append(r.extra, extra)
	}
}

func (x *explainer) add(r *explained) { x.rows = append(x.rows, r) }

// walk adds the tables of a plan, which belongs to query id.
func (x *explainer) walk(n gms.Node, id int, kind string) {
	x.subqueries(n)
	from := len(x.rows)
	switch n := n.(type) {
	case *plan.TableAlias:
		x.walk(n.Child, id, kind)
		if len(x.rows) == from+1 && !strings.HasPrefix(x.rows[from].table, "<") {
			x.rows[from].table = n.Name()
		}
		return
	case *plan.ResolvedTable:
		x.add(x.table(n, id, kind))
		return
	case *plan.IndexedTableAccess:
		x.add(x.indexed(n, id, kind))
		return
	case *plan.EmptyTable:
		x.add(&explained{id: id, kind: kind, extra: []string{"Impossible WHERE"}})
		return
	case *plan.SubqueryAlias:
		x.derived(n, id, kind)
		return
	case *plan.SetOp:
		x.setOp(n, id, kind)
		return
	case *plan.TriggerExecutor: // MySQL does not show triggers
		x.walk(n.Left(), id, kind)
		return
	case *plan.JoinNode:
		x.join(n, id, kind)
		return
	case *plan.InsertInto:
		x.add(&explained{id: id, kind: "INSERT", table: named(n.Destination), access: "ALL"})
		if _, isValues := n.Source.(*plan.Values); !isValues {
			x.walk(n.Source, id, kind)
		}
		return
	case *plan.Update:
		kind = "UPDATE"
	case *plan.DeleteFrom:
		kind = "DELETE"
	case *plan.Values:
		return
	}
	for _, c := range n.Children() {
		x.walk(c, id, kind)
	}
	x.note(n, x.rows[from:])
}

// note records what a node does with the tables below it.
func (x *explainer) note(n gms.Node, below []*explained) {
	if len(below) == 0 {
		return
	}
	switch n := n.(type) {
	case *plan.Filter, *plan.Having:
		below[len(below)-1].note("Using where")
	case *plan.Sort, *plan.TopN:
		below[0].note("Using filesort")
	case *plan.Distinct, *plan.Window:
		below[0].note("Using temporary")
	case *plan.GroupBy:
		if len(n.GroupByExprs) > 0 {
			below[0].note("Using temporary")
		}
	}
}

// named returns the name of the first table below a node.
func named(n gms.Node) string {
	if name, ok := n.(gms.Nameable); ok {
		return name.Name()
	}
	for _, c := range n.Children() {
		if name := named(c); name != "" {
			return name
		}
	}
	return ""
}

// table returns the row of a table that is read as a whole.
func (x *explainer) table(n *plan.ResolvedTable, id int, kind string) *explained {
	if plan.IsDualTable(n.Table) {
		return &explained{id: id, kind: kind, extra: []string{"No tables used"}}
	}
	r := &explained{id: id, kind: kind, table: n.Name(), access: "ALL"}
	r.rows, r.rowsKnown = x.rowCount(n.Table)
	return r
}

// rowCount returns a table's number of rows; false if it is not known.
func (x *explainer) rowCount(t gms.Table) (uint64, bool) {
	s, ok := gms.GetUnderlyingTable(t).(gms.StatisticsTable)
	if !ok {
		return 0, false
	}
	n, _, err := s.RowCount(x.ctx)
	return n, err == nil
}

// indexed returns the row of a table that is read by an index: by given ranges, or by a
// key for each row joined before.
func (x *explainer) indexed(n *plan.IndexedTableAccess, id int, kind string) *explained {
	r := &explained{id: id, kind: kind, table: n.Name(), keys: n.Index().ID(), key: n.Index().ID()}
	if n.IsStatic() {
		x.static(n, r)
		return r
	}
	for _, e := range n.Expressions() {
		if f, ok := e.(*expression.GetField); ok {
			r.ref = append(r.ref, strings.ToLower(f.Table())+"."+f.Name())
		} else if _, ok := e.(*expression.Literal); ok {
			r.ref = append(r.ref, "const")
		} else {
			r.ref = append(r.ref, "func")
		}
	}
	r.keyBytes = keyBytes(x.ctx, n, len(r.ref))
	r.access = "ref"
	if n.IsStrictLookup(x.ctx) {
		r.access, r.rows, r.rowsKnown = "eq_ref", 1, true
	}
	return r
}

// static fills in the access, the length of the key and the rows of a table that is read by given
// ranges.
func (x *explainer) static(n *plan.IndexedTableAccess, r *explained) {
	l, ok, err := n.GetLookup(x.ctx, nil)
	if err != nil || !ok {
		return
	}
	ranges, _ := l.Ranges.(gms.MySQLRangeCollection)
	points, used := 0, 0 // key parts fixed to one value, and key parts bounded at all
	for _, rg := range ranges {
		p, u := partsOf(rg)
		points, used = max(points, p), max(used, u)
	}
	r.keyBytes = keyBytes(x.ctx, n, used)
	switch {
	case used == 0: // the whole index is read
		r.access, r.keyBytes = "index", keyBytes(x.ctx, n, len(n.Index().Expressions()))
	case len(ranges) == 1 && points == used && l.Index.IsUnique() && used == len(l.Index.Expressions()):
		r.access = "const"
	case len(ranges) == 1 && points == used:
		r.access = "ref"
	default:
		r.access = "range"
	}
	if r.access == "const" || r.access == "ref" {
		for range used {
			r.ref = append(r.ref, "const")
		}
	}
	if n, ok := x.keys.CountKeys(x.ctx, l); ok {
		r.rows, r.rowsKnown = uint64(n), true
		return
	}
	r.rows, r.rowsKnown = x.rowCount(n.Table)
}

// partsOf returns the number of leading parts of a key for which a range gives one value,
// and the number of parts that it bounds.
func partsOf(rg gms.MySQLRange) (points, used int) {
	for i, part := range rg {
		if part.Type() == gms.RangeType_All {
			break
		}
		used++
		if points == i && part.Type() == gms.RangeType_ClosedClosed &&
			fmt.Sprint(gms.GetMySQLRangeCutKey(part.LowerBound)) == fmt.Sprint(gms.GetMySQLRangeCutKey(part.UpperBound)) {
			points++
		}
	}
	return points, used
}

// keyBytes returns the length, as MySQL counts it, of the first parts of a key. Users see
// from it how many parts are used.
func keyBytes(ctx *gms.Context, n *plan.IndexedTableAccess, parts int) (sum int) {
	prefixes := n.Index().PrefixLengths()
	for i, t := range n.Index().ColumnExpressionTypes(ctx) {
		if i == parts {
			break
		}
		prefix := 0
		if i < len(prefixes) {
			prefix = int(prefixes[i])
		}
		sum += partBytes(t.Type, prefix)
		if column := columnOf(ctx, n, t.Expression); column != nil && column.Nullable {
			sum++
		}
	}
	return sum
}

// columnOf returns the column of a node that an index's expression names, nil if there is none.
func columnOf(ctx *gms.Context, n gms.Node, expr string) *gms.Column {
	name := expr[strings.LastIndexByte(expr, '.')+1:]
	for _, c := range n.Schema(ctx) {
		if strings.EqualFold(c.Name, name) {
			return c
		}
	}
	return nil
}

var partSizes = map[string]int{"INT8": 1, "UINT8": 1, "INT16": 2, "UINT16": 2, "INT24": 3, "UINT24": 3, "INT32": 4, "UINT32": 4,
	"INT64": 8, "UINT64": 8, "FLOAT32": 4, "FLOAT64": 8, "DATE": 3, "YEAR": 1, "ENUM": 2, "SET": 8, "BIT": 8}

// partBytes returns the length of a part of a key, as MySQL counts it, without the byte for NULL.
func partBytes(t gms.Type, prefix int) int {
	const fractions = 2 // digits in a byte
	switch t := t.(type) {
	case gms.StringType:
		length := int(t.MaxCharacterLength())
		if prefix > 0 {
			length = prefix
		}
		bytes := length * int(t.Collation().CharacterSet().MaxLength())
		if t.Type() == sqltypes.Char || t.Type() == sqltypes.Binary {
			return bytes
		}
		return bytes + 2
	case gms.DecimalType:
		return decimalBytes(int(t.Precision())-int(t.Scale())) + decimalBytes(int(t.Scale()))
	case gms.DatetimeType:
		switch t.Type() {
		case sqltypes.Datetime:
			return 5 + (t.Precision()+1)/fractions
		case sqltypes.Timestamp:
			return 4 + (t.Precision()+1)/fractions
		}
	}
	if row.IsTimespan(t) {
		return 6
	}
	return partSizes[t.Type().String()]
}

// decimalBytes returns the bytes in which MySQL stores this many digits: nine in four
// bytes.
func decimalBytes(digits int) int { return digits/9*4 + (digits%9+1)/2 }

// derived adds the row of a query in FROM, or of a view.
func (x *explainer) derived(n *plan.SubqueryAlias, id int, kind string) {
	x.last++
	own := x.last
	x.add(&explained{id: id, kind: kind, table: fmt.Sprintf("<derived%d>", own), access: "ALL"})
	x.later = append(x.later, func() { x.walk(n.Child, own, "DERIVED") })
}

// setOp adds the tables of both sides of a UNION, and a row for its result.
func (x *explainer) setOp(n *plan.SetOp, id int, kind string) {
	x.walk(n.Left(), id, kind)
	x.last++
	right := x.last
	x.walk(n.Right(), right, "UNION")
	if n.Distinct {
		x.add(&explained{kind: "UNION RESULT", table: fmt.Sprintf("<union%d,%d>", id, right), access: "ALL", extra: []string{"Using temporary"}})
	}
}

// join adds the tables of both sides of a join, and notes at the right ones how they are joined.
func (x *explainer) join(n *plan.JoinNode, id int, kind string) {
	x.walk(n.Left(), id, kind)
	from := len(x.rows)
	x.walk(n.Right(), id, kind)
	right := x.rows[from:]
	if len(right) == 0 {
		return
	}
	switch {
	case n.Op.IsHash():
		right[0].note("Using join buffer (hash join)")
	case n.Op.IsMerge():
		right[0].note("Using merge join")
	case n.Op.IsLookup():
	case n.Filter != nil:
		right[len(right)-1].note("Using where")
	}
}

// subqueries queues the queries in a node's expressions in later.
func (x *explainer) subqueries(n gms.Node) {
	node, ok := n.(gms.Expressioner)
	if !ok {
		return
	}
	for _, e := range node.Expressions() {
		gms.Inspect(x.ctx, e, func(_ *gms.Context, e gms.Expression) bool {
			sq, ok := e.(*plan.Subquery)
			if !ok {
				return true
			}
			kind := "SUBQUERY"
			if !sq.Correlated().Empty() {
				kind = "DEPENDENT SUBQUERY"
			}
			x.last++
			id := x.last
			x.later = append(x.later, func() { x.walk(sq.Query, id, kind) })
			return true
		})
	}
}
