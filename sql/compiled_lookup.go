package sql

import (
	"bytes"
	"context"
	"slices"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/sql/row"
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
		if at < 0 || where[at].isRange && i < len(where)-1 || !index.parts[i].TakesLiterals() {
			return lookup{}, false
		}
		if where[at].isRange && !index.parts[i].IsInteger() {
			return lookup{}, false
		}
		l.parts = append(l.parts, where[at])
	}
	hashed := index.Access == catalog.AccessHash && len(l.parts) < len(index.parts)
	return l, len(l.parts) > 0 && !hashed
}

// key appends the encoding of a literal that the column can hold as it is.
func (l operand) key(dst []byte, k *row.KeyCodec, values []Value) ([]byte, bool) {
	v, ok := l.in(values)
	if !ok || v.IsNull || v.IsNumber != k.IsInteger() {
		return dst, false
	}
	dst = append(dst, row.KeyValue)
	if !v.IsNumber {
		if !k.AsItIs(v.Text) {
			return dst, false
		}
		return k.AppendNative(dst, v.Text)
	}
	n, ok := k.Whole(v.Number)
	if !ok {
		return dst, false
	}
	return k.AppendNative(dst, n)
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
			if key, ok = c.lo.key(key, k, values); !ok {
				return r, false, false
			}
			continue
		}
		hi := bytes.Clone(key)
		if key, ok = c.lo.key(key, k, values); !ok {
			return r, false, false
		}
		if hi, ok = c.hi.key(hi, k, values); !ok {
			return r, false, false
		}
		if bytes.Compare(key, hi) > 0 {
			return r, true, true
		}
		return keyRange{lo: key, hi: row.PrefixEnd(hi)}, false, true
	}
	if len(key) > row.KeyBytesMax {
		return r, false, false
	}
	point := len(l.parts) == len(l.index.parts)
	if point && l.unique {
		return keyRange{lo: key, point: true}, false, true
	}
	return keyRange{lo: key, hi: row.PrefixEnd(bytes.Clone(key)), point: point}, false, true
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
