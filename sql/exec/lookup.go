package exec

import (
	"bytes"
	"math"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/sql/plan"
	"github.com/farmsql/farmsql/sql/row"
	"github.com/farmsql/farmsql/sql/store"
)

// A lookup makes the keys by which a join looks up a table's rows.
type lookup struct {
	index *store.KeyInfo
	parts []keyPart
	// isWhole is set if the key has a part for each column of the index.
	isWhole bool
	hasNull bool // whether a part is NULL
	isNone  bool // whether the key matches no row
}

// A keyPart is a part of a key: fixed or, if that is nil, made from a column of the joined rows.
type keyPart struct {
	fixed []byte
	at    int
	codec *row.KeyCodec
}

// newLookup returns the lookup of a step for the values of the statement; false if a value is not plain.
func (r *run) newLookup(n *plan.Join, s *plan.JoinStep) (*lookup, bool) {
	l := &lookup{index: s.Lookup.Index, isWhole: len(s.Lookup.Parts) == len(s.Lookup.Index.Columns)}
	for i := range s.Lookup.Parts {
		p, part := &s.Lookup.Parts[i], keyPart{codec: &l.index.Codecs[i]}
		switch {
		case p.Outer != nil:
			part.at = n.Place(*p.Outer)
		case p.Null:
			part.fixed, l.hasNull = []byte{row.KeyNull}, true
		default:
			v, ok := p.Values[0].In(r.values)
			if !ok {
				return nil, false
			}
			value, ok := plan.Constant(part.codec, v)
			if !ok {
				return nil, false
			}
			if value == nil { // nothing equals NULL
				l.isNone = true
				return l, true
			}
			if part.fixed, ok = part.codec.AppendNative([]byte{row.KeyValue}, value); !ok {
				return nil, false
			}
		}
		l.parts = append(l.parts, part)
	}
	return l, true
}

// rangeFor returns the keys for a row of the earlier tables. It returns false if no key can match:
// nothing equals NULL, or a value that the column cannot hold. For a value of an unexpected Go type the error is
// ErrPlan.
func (l *lookup) rangeFor(outer gms.Row) (store.KeyRange, bool, error) {
	if l.isNone {
		return store.KeyRange{}, false, nil
	}
	key := make([]byte, 0, 32)
	for i := range l.parts {
		p := &l.parts[i]
		if p.fixed != nil {
			key = append(key, p.fixed...)
			continue
		}
		v, ok := inTypeOf(p.codec, outer[p.at])
		if !ok {
			return store.KeyRange{}, false, nil
		}
		if key, ok = p.codec.AppendNative(append(key, row.KeyValue), v); !ok {
			return store.KeyRange{}, false, ErrPlan
		}
	}
	return store.KeyRange{Low: key, High: row.PrefixEnd(bytes.Clone(key)), Point: l.isWhole, HasNull: l.hasNull}, true, nil
}

// inTypeOf returns a value in the Go type of the column of codec; the value is of a column that is compared in the same
// way. It returns false for NULL, and for an integer that the column cannot hold. For a value of an unexpected Go type it
// returns nil and true.
func inTypeOf(codec *row.KeyCodec, v any) (any, bool) {
	if v == nil || !codec.IsInteger() {
		return v, v != nil
	}
	if n, ok := row.Signed(v); ok {
		return codec.Whole(n)
	}
	n, ok := row.Unsigned(v)
	switch {
	case ok && n <= math.MaxInt64:
		return codec.Whole(int64(n))
	case ok && codec.Kind == catalog.KindUint64:
		return n, true
	}
	return nil, !ok // of another Go type: AppendNative refuses nil
}
