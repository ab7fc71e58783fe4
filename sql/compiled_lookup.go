package sql

import (
	"bytes"
	"context"
	"slices"
	"unicode/utf8"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/catalog"
)

// A lookup makes the keys that a statement's conditions give from its literals.
type lookup struct {
	index *keyInfo
	// unique says that there is one row at most under a whole key.
	unique bool
	// parts are the conditions on the first parts of the index; only the last of
	// them may be a range.
	parts []condition
}

// newLookup finds conditions that give a key of an index or a range of its keys,
// and nothing besides.
func newLookup(info *tableInfo, index *keyInfo, where []condition) (lookup, bool) {
	if len(where) > len(index.parts) {
		return lookup{}, false
	}
	l := lookup{index: index, unique: index == info.primary || index.Unique}
	for i := range where {
		at := slices.IndexFunc(where, func(c condition) bool { return sameName(c.column, info.Columns[index.columns[i]].Name) })
		if at < 0 || where[at].isRange && i < len(where)-1 || !index.parts[i].compiles() {
			return lookup{}, false
		}
		if where[at].isRange && !index.parts[i].isInteger() {
			return lookup{}, false
		}
		l.parts = append(l.parts, where[at])
	}
	hashed := index.Access == catalog.AccessHash && len(l.parts) < len(index.parts)
	return l, len(l.parts) > 0 && !hashed
}

// compiles reports whether keys of this part can be made of literals without any
// conversion that rounds or fails.
func (k *keyCodec) compiles() bool {
	if k.prefix > 0 {
		return false
	}
	switch k.kind {
	case catalog.KindChar, catalog.KindVarchar:
		return k.weights != nil && k.collation.CharacterSet() == gms.CharacterSet_utf8mb4
	case catalog.KindBinary, catalog.KindVarbinary:
		return true
	}
	return k.isInteger()
}

// asItIs reports whether a string is a value of the column as it stands: text is
// characters, and BINARY is neither padded nor cut.
func (k *keyCodec) asItIs(text string) bool {
	switch k.kind {
	case catalog.KindChar, catalog.KindVarchar:
		return utf8.ValidString(text)
	case catalog.KindBinary:
		return len(text) == k.length
	case catalog.KindVarbinary:
		return len(text) <= k.length
	}
	return false
}

// isInteger reports whether the column holds whole numbers.
func (k *keyCodec) isInteger() bool {
	switch k.kind {
	case catalog.KindInt8, catalog.KindInt16, catalog.KindInt24, catalog.KindInt32, catalog.KindInt64,
		catalog.KindUint8, catalog.KindUint16, catalog.KindUint24, catalog.KindUint32, catalog.KindUint64:
		return true
	}
	return false
}

// literal appends the encoding of a literal that the column can hold as it is.
func (k *keyCodec) literal(dst []byte, l operand, values []Value) ([]byte, bool) {
	v, ok := l.in(values)
	if !ok || v.IsNull || v.IsNumber != k.isInteger() {
		return dst, false
	}
	dst = append(dst, keyValue)
	if !v.IsNumber {
		if !k.asItIs(v.Text) {
			return dst, false
		}
		return k.appendNative(dst, v.Text)
	}
	n, ok := k.whole(v.Number)
	if !ok {
		return dst, false
	}
	return k.appendNative(dst, n)
}

// whole returns a number as the column's values are, and false if the column
// cannot hold it.
func (c *valueCodec) whole(n int64) (any, bool) {
	bits := intBits[c.kind]
	switch c.kind {
	case catalog.KindInt8, catalog.KindInt16, catalog.KindInt24, catalog.KindInt32:
		if n < -1<<(bits-1) || n >= 1<<(bits-1) {
			return nil, false
		}
	case catalog.KindUint8, catalog.KindUint16, catalog.KindUint24, catalog.KindUint32:
		if n < 0 || n >= 1<<bits {
			return nil, false
		}
	}
	switch c.kind {
	case catalog.KindInt8:
		return int8(n), true
	case catalog.KindInt16:
		return int16(n), true
	case catalog.KindInt24, catalog.KindInt32:
		return int32(n), true
	case catalog.KindInt64:
		return n, true
	case catalog.KindUint8:
		return uint8(n), true
	case catalog.KindUint16:
		return uint16(n), true
	case catalog.KindUint24, catalog.KindUint32:
		return uint32(n), true
	case catalog.KindUint64:
		return uint64(n), n >= 0
	}
	return nil, false
}

// keys returns the range of keys that the literals give, and false if they are
// not plain values of their columns. A range may be empty.
func (l *lookup) keys(values []Value) (r keyRange, empty, ok bool) {
	if l.index == nil {
		return r, false, true // there is nothing to look up
	}
	key := make([]byte, 0, 32)
	for i := range l.parts {
		k, c := &l.index.parts[i], &l.parts[i]
		if !c.isRange {
			if key, ok = k.literal(key, c.lo, values); !ok {
				return r, false, false
			}
			continue
		}
		hi := bytes.Clone(key)
		if key, ok = k.literal(key, c.lo, values); !ok {
			return r, false, false
		}
		if hi, ok = k.literal(hi, c.hi, values); !ok {
			return r, false, false
		}
		if bytes.Compare(key, hi) > 0 {
			return r, true, true
		}
		return keyRange{lo: key, hi: prefixEnd(hi)}, false, true
	}
	if len(key) > keyBytesMax {
		return r, false, false
	}
	point := len(l.parts) == len(l.index.parts)
	if point && l.unique {
		return keyRange{lo: key, point: true}, false, true
	}
	return keyRange{lo: key, hi: prefixEnd(bytes.Clone(key)), point: point}, false, true
}

// matches reports whether go-mysql-server's plan looks for the same keys in the
// same index.
func (l *lookup) matches(ctx context.Context, x *index, ranges gms.MySQLRangeCollection, values []Value) bool {
	want, empty, ok := l.keys(values)
	if !ok || empty || x.key.Name != l.index.Name {
		return false
	}
	k, all := x.key.lookup(ctx, ranges)
	if k != x.key || len(all) != 1 {
		return false
	}
	got := all[0]
	return bytes.Equal(got.lo, want.lo) && (want.hi == nil || bytes.Equal(got.hi, want.hi)) && got.point == want.point &&
		got.rest == nil && got.check == nil && !got.loose && !got.hasNull
}
