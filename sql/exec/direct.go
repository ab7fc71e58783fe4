package exec

import (
	"errors"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/vitess/go/sqltypes"
	querypb "github.com/dolthub/vitess/go/vt/proto/query"

	"github.com/farmsql/farmsql/sql/plan"
	"github.com/farmsql/farmsql/sql/row"
)

// This file returns a table's columns in the protocol's form. It copies most values from the stored
// rows, without making Go values of them.

// A directColumn is a column of a result that is a column of the table.
type directColumn struct {
	at    int // its position in the table
	codec *row.Column
	typ   gms.Type
	kind  querypb.Type
}

// isDirect reports whether a query returns columns of a scan, one row for each row, and the session
// takes values in the form in which they are stored.
func (r *run) isDirect(ctx *gms.Context) bool {
	switch ctx.GetCharacterSetResults() {
	case gms.CharacterSet_Unspecified, gms.CharacterSet_binary, gms.CharacterSet_utf8mb4:
		return r.directScan(ctx, r.query.Rows) != nil
	}
	return false
}

// directScan returns the scan whose columns a node returns; nil if the node does something else.
func (r *run) directScan(ctx *gms.Context, n plan.Node) *plan.Scan {
	switch n := n.(type) {
	case *plan.Limit:
		return r.directScan(ctx, n.Child)
	case *plan.Project:
		for _, e := range n.Exprs {
			if _, ok := e.(*expression.GetField); !ok {
				return nil
			}
		}
		return r.sortedScan(ctx, n.Child)
	}
	return r.sortedScan(ctx, n)
}

// sortedScan returns the scan whose rows a node returns unchanged: n itself, or the child of a Sort by whose order the rows
// come; nil if the node does something else.
func (r *run) sortedScan(ctx *gms.Context, n plan.Node) *plan.Scan {
	if sort, ok := n.(*plan.Sort); ok && r.isOrdered(ctx, sort.Child) {
		n = sort.Child
	}
	scan, _ := n.(*plan.Scan)
	return scan
}

// directColumns returns the columns of a direct query; false if they differ from its header's.
func (r *run) directColumns(n plan.Node, scan *plan.Scan) (columns []directColumn, ok bool) {
	var places []int
	switch n := n.(type) {
	case *plan.Limit:
		return r.directColumns(n.Child, scan)
	case *plan.Project:
		for _, e := range n.Exprs {
			places = append(places, e.(*expression.GetField).Index())
		}
	default:
		for i := range scan.Width() {
			places = append(places, i)
		}
	}
	schema := r.prepared.header.Schema
	if len(schema) != len(places) {
		return nil, false
	}
	for i, at := range places {
		if scan.Columns != nil {
			at = scan.Columns[at]
		}
		c := directColumn{at, &scan.Table.Rows.Columns[at], schema[i].Type, schema[i].Type.Type()}
		if !c.typ.Equals(c.codec.Type) {
			return nil, false
		}
		columns = append(columns, c)
	}
	return columns, true
}

// A rowWriter takes the stored rows of a direct query.
type rowWriter interface {
	// write adds a row, and returns the size of its memory.
	write(*gms.Context, storeRows, *row.View) (int64, error)
	count() int // of the rows
}

// direct puts the rows of a direct query into a result: into packets if there are packets to write and all values can be
// written into them. ok is false if directColumns returns false, or if the rows are not read from a table.
func (r *run) direct(ctx *gms.Context, res *Result) (ok bool, err error) {
	scan := r.directScan(ctx, r.query.Rows)
	columns, ok := r.directColumns(r.query.Rows, scan)
	if !ok {
		return false, nil
	}
	if r.packets.Form != row.NoPackets {
		if w, ok := newPacketWriter(r.packets, columns); ok {
			ok, err := r.write(ctx, scan, w)
			if !errors.Is(err, errUnpacked) {
				res.Packets = r.packets
				return ok, err
			}
		}
	}
	w := &directWriter{columns: columns}
	ok, err = r.write(ctx, scan, w)
	res.Values, res.Bytes = w.rows, w.bytes
	return ok, err
}

// write reads the rows of a scan, as far as LIMIT wants them. ok is false if they are not read from a table.
func (r *run) write(ctx *gms.Context, scan *plan.Scan, w rowWriter) (ok bool, err error) {
	skip, count, err := r.limitOf(r.query.Rows)
	if err != nil || count == 0 {
		return true, err
	}
	opened, skip, err := r.skipping(ctx, scan, skip) // skip: the rows that opened does not leave out
	if err != nil {
		return true, err
	}
	for _, rows := range branchesOf(opened) {
		table, ok := rows.(storeRows)
		if !ok {
			return false, nil
		}
		for int64(w.count()) < count {
			v, err := table.NextStored(ctx)
			if err != nil {
				return true, err
			}
			if v == nil {
				break
			}
			if skip > 0 {
				skip--
				continue
			}
			n, err := w.write(ctx, table, v)
			if err == nil {
				err = r.take(n)
			}
			if err != nil {
				return true, err
			}
		}
	}
	return true, nil
}

// limitOf returns the bounds of a query's LIMIT.
func (r *run) limitOf(n plan.Node) (skip, count int64, err error) {
	limit, ok := n.(*plan.Limit)
	if !ok {
		limit = &plan.Limit{}
	}
	return r.bounds(limit)
}

// A directWriter makes rows in the protocol's form.
type directWriter struct {
	columns []directColumn
	rows    [][]sqltypes.Value
	bytes   int // the size of their values
	// text and values are memory for the next rows.
	text   []byte
	values []sqltypes.Value
}

const (
	// textBytesMin and textBytesMax bound the memory for values that is allocated together, and
	// valuesMin and valuesMax that for rows.
	textBytesMin, textBytesMax = 512, 64 << 10
	valuesMin, valuesMax       = 16, 2048
	directValueBytes           = 40 // the size of a sqltypes.Value, without its text
)

// count implements rowWriter.
func (w *directWriter) count() int { return len(w.rows) }

// write implements rowWriter.
func (w *directWriter) write(ctx *gms.Context, from storeRows, v *row.View) (int64, error) {
	width := len(w.columns)
	if len(w.values) < width { // for twice as many rows as there are
		w.values = make([]sqltypes.Value, max(width, min(max(valuesMin, 2*len(w.rows)*width), valuesMax)))
	}
	out := w.values[:width:width]
	w.values = w.values[width:]
	before := w.bytes
	for i := range w.columns {
		c := &w.columns[i]
		b, err := from.StoredValue(v, c.at)
		if err != nil {
			return 0, err
		}
		if b == nil {
			continue // the zero Value stands for NULL
		}
		if out[i], err = w.value(ctx, c, b); err != nil {
			return 0, err
		}
		w.bytes += out[i].Len()
	}
	w.rows = append(w.rows, out)
	return int64(width*directValueBytes + w.bytes - before), nil
}

// value returns a stored value in the protocol's form.
func (w *directWriter) value(ctx *gms.Context, c *directColumn, b []byte) (sqltypes.Value, error) {
	if need := len(b) + resultBytesMax; need > cap(w.text)-len(w.text) {
		w.text = make([]byte, 0, max(need, min(2*cap(w.text), textBytesMax), textBytesMin))
	}
	start := len(w.text)
	if text, ok := c.codec.AppendResult(w.text, b); ok {
		w.text = text
		return sqltypes.MakeTrusted(c.kind, text[start:len(text):len(text)]), nil
	}
	v, err := c.codec.Decode(b)
	if err != nil {
		return sqltypes.Value{}, err
	}
	return c.typ.SQL(ctx, nil, plainZero(v))
}

// resultBytesMax bounds how much longer a value is in the protocol's form than stored, apart from its characters.
const resultBytesMax = 96
