package wire

import (
	"bytes"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/vitess/go/sqltypes"
	querypb "github.com/dolthub/vitess/go/vt/proto/query"

	"github.com/farmsql/farmsql/sql/compat"
	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/sql/row"
)

// A resultBuffer collects the rows of one statement until its transaction has
// ended well. The engine reuses the memory behind its rows as soon as the
// statement returns, so the buffer copies every value into chunks of its own.
type resultBuffer struct {
	limit int64
	used  int64 // bytes held, with the overhead of slices
	chunk []byte
	res   *sqltypes.Result
	// columns returns the result's columns as the engine knows them; nil: they are not
	// known.
	columns func() gms.Schema
	// charge counts more bytes for the statement; nil: none are counted.
	charge  func(int64) error
	counted int64
}

const (
	chunkBytesMin = 512
	chunkBytesMax = 256 << 10

	// Memory behind one value and one row besides the value's own bytes.
	valueOverheadBytes = 32
	rowOverheadBytes   = 24
)

// clear drops the result, so that the buffer can take another one.
func (b *resultBuffer) clear() {
	*b = resultBuffer{limit: b.limit, columns: b.columns, charge: b.charge}
}

// add takes over the next batch of the statement's result. The engine calls it, from one
// goroutine at a time.
func (b *resultBuffer) add(r *sqltypes.Result, _ bool) error {
	if b.res == nil {
		describe(r.Fields, b.columns)
	}
	return b.append(r)
}

// append is add for a result whose fields are described.
func (b *resultBuffer) append(r *sqltypes.Result) error {
	fields := r.Fields
	if b.res != nil {
		fields = b.res.Fields
	}
	if err := b.hold(fields, r.Rows); err != nil {
		return err
	}
	if b.res == nil {
		b.res = r
		return nil
	}
	b.res.Rows = append(b.res.Rows, r.Rows...)
	b.res.RowsAffected += r.RowsAffected
	return nil
}

// take takes over a whole result in MySQL's text form. The result owns its values, which take up
// this many bytes.
func (b *resultBuffer) take(r *sqltypes.Result, bytes int) error {
	b.used = int64(bytes) + int64(len(r.Rows))*(rowOverheadBytes+int64(len(r.Fields))*valueOverheadBytes)
	if b.used > b.limit {
		return b.tooLarge()
	}
	b.res = r
	return b.count()
}

// count charges the bytes that the buffer has gained.
func (b *resultBuffer) count() error {
	if b.charge == nil {
		return nil
	}
	more := b.used - b.counted
	b.counted = b.used
	return b.charge(more)
}

// hold copies the values of rows out of the engine's memory.
func (b *resultBuffer) hold(fields []*querypb.Field, rows [][]sqltypes.Value) error {
	for _, row := range rows {
		b.used += rowOverheadBytes
		for i, v := range row {
			b.used += valueOverheadBytes + int64(v.Len())
			if b.used > b.limit {
				return b.tooLarge()
			}
			if v.Len() > 0 {
				row[i] = sqltypes.MakeTrusted(v.Type(), b.copy(text(fields[i], v)))
			}
		}
	}
	return b.count()
}

// inTextForm puts the values of a result, which owns them, into MySQL's text form.
func inTextForm(r *sqltypes.Result) {
	for _, row := range r.Rows {
		for i, v := range row {
			if v.Len() > 0 {
				row[i] = sqltypes.MakeTrusted(v.Type(), text(r.Fields[i], v))
			}
		}
	}
}

// text returns a value in MySQL's text form, where the engine's differs.
func text(f *querypb.Field, v sqltypes.Value) []byte {
	switch v.Type() {
	case sqltypes.Time:
		if f.Decimals > 0 {
			return v.Raw()
		}
		// The engine gives results of its functions six digits.
		return bytes.TrimSuffix(v.Raw(), []byte(".000000"))
	case sqltypes.Float64, sqltypes.Float32:
		return row.FloatText(v.Raw())
	case sqltypes.Date, sqltypes.Datetime, sqltypes.Timestamp:
		return yearText(v.Raw())
	}
	return compat.EscapeJSON(v)
}

// yearText pads the year of a date to four digits.
func yearText(date []byte) []byte {
	const zeros = "0000"
	if digits := bytes.IndexByte(date, '-'); digits > 0 && digits < len(zeros) {
		return append([]byte(zeros[digits:]), date...)
	}
	return date
}

// copy copies a value into the buffer's present chunk, or into a new one if there is no room.
func (b *resultBuffer) copy(src []byte) []byte {
	if len(src) > cap(b.chunk)-len(b.chunk) {
		size := min(max(2*cap(b.chunk), chunkBytesMin), chunkBytesMax)
		b.chunk = make([]byte, 0, max(size, len(src)))
	}
	start := len(b.chunk)
	b.chunk = append(b.chunk, src...)
	return b.chunk[start:len(b.chunk):len(b.chunk)]
}

func (b *resultBuffer) tooLarge() error {
	return myerr.ResultMemory.New(b.limit)
}

// result returns the collected result, or nil if the engine sent nothing. It drops the text
// beside an OK: the protocol library gets its length wrong, and clients reject the packet.
func (b *resultBuffer) result() *sqltypes.Result {
	if b.res != nil {
		b.res.Info = ""
	}
	return b.res
}
