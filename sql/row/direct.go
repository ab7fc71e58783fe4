package row

import (
	"strconv"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"

	"github.com/farmsql/farmsql/catalog"
)

// This file sends stored integers and texts to clients without decoding them into Go values.

// IsDirect reports whether a column's values are integers, or characters that are stored
// as they are sent.
func (c *ValueCodec) IsDirect() bool {
	switch c.Kind {
	case catalog.KindChar, catalog.KindVarchar, catalog.KindText:
		s, ok := c.Type.(types.StringType)
		return ok && s.Collation().CharacterSet() == gms.CharacterSet_utf8mb4
	}
	return c.IsSigned() || c.IsUnsigned()
}

// IsSigned reports whether the column holds integers with a sign.
func (c *ValueCodec) IsSigned() bool {
	switch c.Kind {
	case catalog.KindInt8, catalog.KindInt16, catalog.KindInt24, catalog.KindInt32, catalog.KindInt64:
		return true
	}
	return false
}

// IsUnsigned reports whether the column holds unsigned integers.
func (c *ValueCodec) IsUnsigned() bool {
	switch c.Kind {
	case catalog.KindUint8, catalog.KindUint16, catalog.KindUint24, catalog.KindUint32, catalog.KindUint64:
		return true
	}
	return false
}

// IsSound reports whether stored bytes can be a value: an integer has at most eight.
func (c *ValueCodec) IsSound(b []byte) bool {
	return len(b) <= 8 || !c.IsSigned() && !c.IsUnsigned()
}

// AppendText appends a stored value in the form sent to the client.
func (c *ValueCodec) AppendText(dst, b []byte) []byte {
	switch {
	case c.IsSigned():
		n, _ := ReadInt(b)
		return strconv.AppendInt(dst, n, 10)
	case c.IsUnsigned():
		n, _ := ReadUint(b)
		return strconv.AppendUint(dst, n, 10)
	}
	return append(dst, b...)
}

// IsSummed reports whether a column's values can be added up one by one as int64.
func (c *ValueCodec) IsSummed() bool {
	return c.IsSigned() || c.IsUnsigned() && c.Kind != catalog.KindUint64
}
