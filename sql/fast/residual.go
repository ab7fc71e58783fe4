package fast

import (
	"bytes"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/row"
)

// A residual is a condition on a row besides its key. Values are compared by their
// key encodings, which have the same order.
type residual struct {
	comparison
	codec *row.KeyCodec
	at    int // position of the column among the columns read
}

// boundsOf encodes the literals that rows are compared with; false if a column cannot hold its
// literal.
func boundsOf(rest []residual, values []Value) (bounds [][]byte, ok bool) {
	for i := range rest {
		b, ok := rest[i].value.key(nil, rest[i].codec, values)
		if !ok {
			return nil, false
		}
		bounds = append(bounds, b)
	}
	return bounds, true
}

// meets reports whether a row meets conditions.
func meets(rest []residual, row gms.Row, bounds [][]byte) bool {
	for i := range rest {
		if !rest[i].holds(row, bounds[i]) {
			return false
		}
	}
	return true
}

// holds reports whether a row meets a condition. A NULL meets none.
func (r *residual) holds(values gms.Row, bound []byte) bool {
	if values[r.at] == nil {
		return false
	}
	var room [32]byte
	key, ok := r.codec.AppendNative(append(room[:0], row.KeyValue), values[r.at])
	order := bytes.Compare(key, bound)
	switch r.op {
	case sqlparser.EqualStr:
		return ok && order == 0
	case sqlparser.LessThanStr:
		return ok && order < 0
	case sqlparser.LessEqualStr:
		return ok && order <= 0
	case sqlparser.GreaterThanStr:
		return ok && order > 0
	}
	return ok && order >= 0
}
