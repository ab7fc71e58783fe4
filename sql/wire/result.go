package wire

import (
	"bytes"

	"github.com/dolthub/vitess/go/mysql"
	"github.com/dolthub/vitess/go/sqltypes"
)

// A resultBuffer collects the rows of one statement until its transaction has
// ended well. The engine reuses the memory behind its rows as soon as the
// statement returns, so the buffer copies every value into chunks of its own.
type resultBuffer struct {
	limit int64
	used  int64 // bytes held, with what the slices around the values cost
	chunk []byte
	res   *sqltypes.Result
}

const (
	chunkBytesMin = 512
	chunkBytesMax = 256 << 10

	// Memory behind one value and one row besides the value's own bytes.
	valueOverheadBytes = 32
	rowOverheadBytes   = 24
)

// add takes over the next batch of the statement's result. It is the callback
// given to the engine, which calls it from one goroutine at a time.
func (b *resultBuffer) add(r *sqltypes.Result, _ bool) error {
	if err := b.hold(r.Rows); err != nil {
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

// hold makes the values of rows independent of the engine's memory.
func (b *resultBuffer) hold(rows [][]sqltypes.Value) error {
	for _, row := range rows {
		b.used += rowOverheadBytes
		for i, v := range row {
			b.used += valueOverheadBytes + int64(v.Len())
			if b.used > b.limit {
				return b.tooLarge()
			}
			if v.Len() > 0 {
				row[i] = sqltypes.MakeTrusted(v.Type(), b.copy(text(v)))
			}
		}
	}
	return nil
}

// text is a value as MySQL writes it. The engine knows no TIME but TIME(6).
func text(v sqltypes.Value) []byte {
	if v.Type() == sqltypes.Time {
		return bytes.TrimSuffix(v.Raw(), []byte(".000000"))
	}
	return v.Raw()
}

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
	return mysql.NewSQLError(errCapacityExceeded, stateGeneral,
		"Memory capacity of %d bytes for 'result_buffer' exceeded: a statement's rows are held until its transaction is validated; "+
			"return fewer rows (LIMIT) or raise --result-buffer (Config.ResultBuffer)", b.limit)
}

// result returns everything collected, or nil if the engine sent nothing.
func (b *resultBuffer) result() *sqltypes.Result { return b.res }
