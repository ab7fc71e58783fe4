package fast

import (
	"bytes"
	"context"
	"slices"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/sql/row"
	"github.com/farmsql/farmsql/sql/store"
)

// A lookup computes keys of an index from a statement's literals.
type lookup struct {
	index *store.KeyInfo
	// unique is set if a whole key has at most one row.
	unique bool
	// parts are the conditions on the first parts of the index; only the last of
	// them may be a range.
	parts []condition
	// list is the part that is a list, -1 if none is. Then the parts give whole unique keys.
	list int
}

// newLookup returns the lookup by index if the conditions give exactly a key, or a range of keys,
// of the index; otherwise false.
func newLookup(info *store.TableInfo, index *store.KeyInfo, where []condition) (lookup, bool) {
	if len(where) > len(index.Codecs) {
		return lookup{}, false
	}
	l := lookup{index: index, unique: index == info.PrimaryKey || index.Unique, list: -1}
	for i := range where {
		at := slices.IndexFunc(where, func(c condition) bool { return store.SameName(c.column, info.Columns[index.Columns[i]].Name) })
		if at < 0 || !index.Codecs[i].TakesLiterals() {
			return lookup{}, false
		}
		isLast := i == len(where)-1
		if where[at].isRange && (!isLast || !index.Codecs[i].IsInteger()) {
			return lookup{}, false
		}
		if where[at].list != nil {
			if l.list >= 0 {
				return lookup{}, false
			}
			l.list = i
		}
		l.parts = append(l.parts, where[at])
	}
	if l.list >= 0 && (!l.isPoint() || l.parts[len(l.parts)-1].isRange) {
		return lookup{}, false
	}
	isPartOfHash := index.Access == catalog.AccessHash && len(l.parts) < len(index.Codecs) // a hash table finds whole keys only
	return l, len(l.parts) > 0 && !isPartOfHash
}

// key appends the encoding of a literal; false for NULL, and if the column would not store the literal unchanged.
func (l operand) key(dst []byte, k *row.KeyCodec, values []Value) ([]byte, bool) {
	v, ok := l.in(values)
	v = forColumn(k, v)
	if !ok || v.IsNull || !takes(k, v) {
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

// keys returns the range of keys for the literals; ok is false if they are not plain
// values of their columns. empty is set if the lower bound is above the upper one.
func (l *lookup) keys(values []Value) (r store.KeyRange, empty, ok bool) {
	if l.index == nil {
		return r, false, true // an INSERT has no lookup
	}
	key := make([]byte, 0, 32)
	for i := range l.parts {
		k, c := &l.index.Codecs[i], &l.parts[i]
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
		return store.KeyRange{Low: key, High: row.PrefixEnd(hi)}, false, true
	}
	if len(key) > row.KeyBytesMax {
		return r, false, false
	}
	point := len(l.parts) == len(l.index.Codecs)
	if point && l.unique {
		return store.KeyRange{Low: key, Point: true}, false, true
	}
	return store.KeyRange{Low: key, High: row.PrefixEnd(bytes.Clone(key)), Point: point}, false, true
}

// ranges returns the ranges of keys for the literals, in the order of the index; false if they are
// not plain values of their columns.
func (l *lookup) ranges(values []Value) ([]store.KeyRange, bool) {
	if l.isList() {
		keys, ok := l.listed(values)
		return pointsOf(keys), ok
	}
	r, empty, ok := l.keys(values)
	if empty || !ok {
		return nil, ok
	}
	return []store.KeyRange{r}, true
}

// matches reports whether go-mysql-server's plan reads the same keys of the same
// index.
func (l *lookup) matches(ctx context.Context, x *store.Index, ranges gms.MySQLRangeCollection, values []Value) bool {
	want, ok := l.ranges(values)
	if !ok || len(want) == 0 || x.Key.Name != l.index.Name {
		return false
	}
	k, got := x.Key.Lookup(ctx, ranges)
	return k == x.Key && slices.EqualFunc(got, want, isSameRange)
}

// isSameRange reports whether a range of go-mysql-server's plan has the keys of one from literals.
func isSameRange(got, want store.KeyRange) bool {
	return bytes.Equal(got.Low, want.Low) && (want.High == nil || bytes.Equal(got.High, want.High)) && got.Point == want.Point &&
		got.Rest == nil && got.Check == nil && !got.Loose && !got.HasNull
}
