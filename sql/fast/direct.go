package fast

import (
	"slices"
	"strconv"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/vitess/go/sqltypes"
	querypb "github.com/dolthub/vitess/go/vt/proto/query"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/sql/compat"
	"github.com/farmsql/farmsql/sql/exec"
	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/sql/row"
	"github.com/farmsql/farmsql/sql/store"
	"github.com/farmsql/farmsql/txn"
)

// A direct is a SELECT that copies integers and texts from the stored rows to the client without
// making Go values of them. Step by step, it sorts rows, drops duplicates and sums columns as the
// statement's plan does. A plan takes more time to make, sort and encode a hundred rows than to
// read them.
type direct struct {
	// Part is the part of each row that is read.
	row.Part
	// returned has, for each column of the result, its position among the columns read.
	returned []int
	types    []querypb.Type
	// packers write the columns of the result into packets of each form; nil if they cannot.
	packers [row.BinaryForm + 1][]row.Packer
	steps   []rowStep
	// sums is set if the result is one row of the columns' sums.
	sums bool
}

// newDirect returns the direct form of a plan, nil if there is none.
func newDirect(ctx *gms.Context, p *selectPlan, info *store.TableInfo) *direct {
	d := &direct{Part: row.Part{Rows: info.Rows}}
	returned, ok := d.follow(ctx, p.root, p.leaf, info)
	if !ok {
		return nil
	}
	schema := p.root.Schema(ctx)
	for i, at := range returned {
		if !d.Rows.Columns[at].IsDirect() {
			return nil
		}
		d.returned = append(d.returned, d.place(at))
		d.types = append(d.types, schema[i].Type.Type())
	}
	for _, f := range []row.Form{row.TextForm, row.BinaryForm} {
		d.packers[f] = d.packersOf(f, schema)
	}
	return d
}

// packersOf returns the packers of a result's columns; nil if there are none.
func (d *direct) packersOf(f row.Form, schema gms.Schema) (packers []row.Packer) {
	for i, place := range d.returned {
		c := d.column(place)
		p, ok := c.Packer(f)
		if !ok || !schema[i].Type.Equals(c.Type) {
			return nil
		}
		packers = append(packers, p)
	}
	return packers
}

// place returns the position of a column among the columns read. If it is not one of them yet, place adds it.
func (d *direct) place(column int) int {
	for i, c := range d.Columns {
		if c == column {
			return i
		}
	}
	d.Columns = append(d.Columns, column)
	return len(d.Columns) - 1
}

// column returns the codec of a column that is read.
func (d *direct) column(place int) *row.Column { return &d.Rows.Columns[d.Columns[place]] }

// isDirect reports whether a session's rows may be returned directly: there is a direct form, the session's character
// set is that of the stored text, the rows are not locked, and no editor is within a statement.
func (d *direct) isDirect(ctx *gms.Context, s *Session, tr *store.Transaction) bool {
	if d == nil || s.ForUpdate || tr.Editing > 0 {
		return false
	}
	switch ctx.GetCharacterSetResults() {
	case gms.CharacterSet_Unspecified, gms.CharacterSet_binary, gms.CharacterSet_utf8mb4:
		return true
	}
	return false
}

// A directRoom is the memory of a direct SELECT, which the session's next one reuses.
type directRoom struct {
	// cells are the values that were read, row by row, in the transaction's memory; nil
	// for NULL.
	cells [][]byte
	// order has the rows' numbers in their present order, and places is the buffer for the next
	// order.
	order, places []int32
	text          int // bytes of the characters in cells
	// sent is the memory of the latest result, if that is small.
	sent struct {
		rows   [][]sqltypes.Value
		values []sqltypes.Value
		text   []byte
	}
}

// Results of at most this size leave their memory to the next one.
const (
	keptValuesMax = 64
	keptTextMax   = 4 << 10
)

// clear drops the rows, so that nothing refers to the transaction's memory.
func (r *directRoom) clear() {
	clear(r.cells)
	r.cells, r.order, r.text = r.cells[:0], r.order[:0], 0
}

// A directRun reads rows for one statement.
type directRun struct {
	*direct
	tx   *txn.Tx
	room *directRoom
	// part is set if only the columns that are read enter the read set: other transactions may then
	// change the other columns.
	part   bool
	totals []compat.Total
	// packets is the memory for rows in packets.
	packets *exec.Packets
}

// newDirectRun begins a direct SELECT. The caller must clear its room in the end.
func (f *form) newDirectRun(s *Session, tr *store.Transaction) directRun {
	run := directRun{direct: f.direct, tx: tr.Tx, room: &s.room, part: s.IsOpen(), packets: &s.packets}
	if run.sums {
		run.totals = make([]compat.Total, len(run.Columns))
	}
	return run
}

// runDirect returns the rows of a range. With ErrPlan the plan itself has to be run.
func (f *form) runDirect(ctx *gms.Context, s *Session, tr *store.Transaction, r store.KeyRange, empty bool) (*Result, error) {
	run := f.newDirectRun(s, tr)
	defer run.room.clear()
	if !empty {
		if err := run.read(ctx, s.Store.Access(f.lookup.index.Index), r); err != nil {
			return nil, myerr.Storage(err)
		}
	}
	return run.result(f.schema)
}

// result returns the rows that have been read as the plan arranges them.
func (d *directRun) result(header *Header) (*Result, error) {
	res := &Result{Header: header}
	if d.sums {
		res.Values, res.Bytes = d.sumRow()
		return res, nil
	}
	n := len(d.room.cells) / len(d.Columns)
	for i := range n {
		d.room.order = append(d.room.order, int32(i))
	}
	if !d.arrange() {
		return nil, ErrPlan // running the plan reports the error
	}
	if d.pack() {
		res.Packets = d.packets
		return res, nil
	}
	res.Values, res.Bytes = d.values()
	return res, nil
}

// pack writes the rows into packets; false if there are none to write, or the rows cannot be written into them.
func (d *directRun) pack() bool {
	packers := d.packers[d.packets.Form]
	if len(packers) == 0 {
		return false
	}
	d.packets.Begin(d.packets.Form)
	for _, at := range d.room.order {
		d.packets.BeginRow(len(packers))
		cells := d.cells(at)
		for i, place := range d.returned {
			if cells[place] == nil {
				d.packets.Null(i)
			} else if !d.packets.Value(&packers[i], cells[place]) {
				return false
			}
		}
		if _, ok := d.packets.EndRow(); !ok {
			return false
		}
	}
	return true
}

// read reads the rows of a range; ErrPlan if there are too many to return.
func (d *directRun) read(ctx *gms.Context, index store.Access, r store.KeyRange) error {
	if r.High == nil && r.Point { // a unique key
		p, ok, err := index.Get(d.tx, r.Low)
		if err != nil || !ok {
			return err
		}
		return d.take(p)
	}
	rows := index.Rows(d.tx, r.Low, r.High, false, compiledRowsMax)
	for n := 0; ; n++ {
		_, p, ok, err := rows.Next()
		if err != nil || !ok {
			return err
		}
		if err = ctx.Err(); err != nil {
			return err
		}
		if !d.sums && n == compiledRowsMax {
			return ErrPlan
		}
		if err = d.take(p); err != nil {
			return err
		}
		if d.room.text > compiledBytesMax {
			return ErrPlan
		}
	}
}

// take reads the row at p, and keeps its columns, or adds them to the sums.
func (d *directRun) take(p region.Ptr) error {
	var b []byte
	var err error
	if d.part {
		b, err = d.tx.ReadPart(p, &d.Part)
	} else {
		b, err = d.tx.Read(p)
	}
	if err != nil {
		return err
	}
	r, err := row.Parse(b)
	if err != nil {
		return err
	}
	for i := range d.Columns {
		v, spilled, err := r.Slot(d.column(i).Slot)
		if err == nil && spilled {
			v, err = catalog.GetChain(d.tx, v)
		}
		if err == nil && !d.column(i).IsSound(v) {
			err = row.ErrCorrupt
		}
		if err != nil {
			return err
		}
		if d.sums {
			d.totals[i].AddStored(&d.column(i).ValueCodec, v)
			continue
		}
		d.room.cells = append(d.room.cells, v)
		d.room.text += len(v)
	}
	return nil
}

// sumRow returns the row of sums, and how many bytes it has.
func (d *directRun) sumRow() (rows [][]sqltypes.Value, bytes int) {
	row := make([]sqltypes.Value, len(d.returned))
	for i, at := range d.returned {
		t := &d.totals[at]
		switch {
		case t.Rows == 0:
			continue
		case t.Rest.IsZero():
			row[i] = sqltypes.MakeTrusted(d.types[i], strconv.AppendInt(nil, t.Whole, 10))
		default:
			row[i] = sqltypes.MakeTrusted(d.types[i], []byte(t.Sum().String()))
		}
		bytes += row[i].Len()
	}
	return [][]sqltypes.Value{row}, bytes
}

// numberBytes is the greatest length of an integer's text.
const numberBytes = len("-9223372036854775808")

// values returns the rows in the protocol's form, and the size of their values. They are valid until the session's
// next statement.
func (d *directRun) values() (rows [][]sqltypes.Value, bytes int) {
	n, width := len(d.room.order), len(d.returned)
	rows, all, text := d.room.result(n, n*width, d.textBytes())
	for i, at := range d.room.order {
		row := all[i*width : (i+1)*width : (i+1)*width]
		cells := d.cells(at)
		for j, place := range d.returned {
			if cells[place] == nil {
				continue // the zero Value stands for NULL
			}
			start := len(text)
			text = d.column(place).AppendText(text, cells[place])
			row[j] = sqltypes.MakeTrusted(d.types[j], text[start:len(text):len(text)])
		}
		rows[i] = row
	}
	return rows, len(text)
}

// result returns memory for a result: this many rows and values, and no text yet.
func (r *directRoom) result(rows, values, text int) ([][]sqltypes.Value, []sqltypes.Value, []byte) {
	if max(rows, values) > keptValuesMax || text > keptTextMax {
		return make([][]sqltypes.Value, rows), make([]sqltypes.Value, values), make([]byte, 0, text)
	}
	r.sent.rows = slices.Grow(r.sent.rows[:0], rows)
	r.sent.values = slices.Grow(r.sent.values[:0], values)
	r.sent.text = slices.Grow(r.sent.text[:0], text)
	clear(r.sent.values[:values])
	return r.sent.rows[:rows], r.sent.values[:values], r.sent.text
}

func (d *directRun) cells(row int32) [][]byte {
	return d.room.cells[int(row)*len(d.Columns):][:len(d.Columns)]
}

// textBytes bounds the size of the result's text.
func (d *directRun) textBytes() (n int) {
	for _, place := range d.returned {
		if c := d.column(place); c.IsSigned() || c.IsUnsigned() {
			n += len(d.room.order) * numberBytes
			continue
		}
		for _, row := range d.room.order {
			n += len(d.cells(row)[place])
		}
	}
	return n
}
