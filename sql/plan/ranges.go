package plan

import (
	"bytes"
	"context"
	"slices"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/sql/compat"
	"github.com/farmsql/farmsql/sql/row"
	"github.com/farmsql/farmsql/sql/store"
)

// rangesMax bounds the ranges of a branch. If lists of several columns have more combinations, the
// ranges ignore the later columns.
const rangesMax = 4096

// Ranges returns the ranges of keys that a branch reads for the values of a statement, in the order
// of the index and without overlaps. It also returns the index to which the ranges apply. It
// returns false if a value is not plain.
func (b *Branch) Ranges(ctx context.Context, table *store.TableInfo, values []Value) (*store.KeyInfo, []store.KeyRange, bool) {
	if b.Alternatives == nil {
		return b.ranges(ctx, table, values)
	}
	var all []store.KeyRange
	for i := range b.Alternatives {
		// The index may be one that the primary key extends. Its keys begin like the keys of the original index.
		_, ranges, ok := b.Alternatives[i].ranges(ctx, table, values)
		if !ok {
			return nil, nil, false
		}
		all = append(all, ranges...)
	}
	return b.Index, apart(all), true
}

// ranges is Ranges for a branch without alternatives.
func (b *Branch) ranges(ctx context.Context, table *store.TableInfo, values []Value) (*store.KeyInfo, []store.KeyRange, bool) {
	if b.hasKeys() {
		if all, isFew, ok := b.keyRanges(values); isFew {
			return b.Index, all, ok
		}
	}
	ranges, isWide := gms.MySQLRangeCollection{nil}, false // at first one range, without bounds
	for i := range b.Parts {
		p := &b.Parts[i]
		exprs, ok := p.exprs(table, values)
		if !ok {
			return nil, nil, false
		}
		if len(ranges)*len(exprs) > rangesMax && i > 0 {
			isWide = true
			break
		}
		next := make(gms.MySQLRangeCollection, 0, len(ranges)*len(exprs))
		for _, r := range ranges {
			for _, e := range exprs {
				next = append(next, append(slices.Clone(r), e))
			}
		}
		ranges = next
	}
	if len(b.Parts) == 0 {
		return b.Index, []store.KeyRange{{}}, true
	}
	k, all := b.Index.Lookup(ctx, ranges)
	for i := range all {
		// The WHERE is evaluated for each row, so bounds beyond those of the keys are not needed.
		all[i].IsWide = isWide || all[i].Rest != nil || all[i].Check != nil
		all[i].Rest, all[i].Check, all[i].Loose = nil, nil, false
	}
	return k, apart(all), true
}

// hasKeys reports whether the branch reads the keys with given beginnings: single values, not NULL, for each part.
func (b *Branch) hasKeys() bool {
	if len(b.Parts) == 0 || len(b.Parts) > len(b.Index.Columns) || b.Index.Access == catalog.AccessHash {
		return false
	}
	for i := range b.Parts {
		if len(b.Parts[i].Values) == 0 || hasPrefix(b.Index.Codecs[i]) {
			return false
		}
	}
	return true
}

// keyRanges is ranges for a branch with hasKeys. Most branches are such, in particular those that a
// subquery reads for each outer row. It encodes keys, which is faster than computing bounds. isFew is false if lists of
// several columns have more combinations than rangesMax.
func (b *Branch) keyRanges(values []Value) (all []store.KeyRange, isFew, ok bool) {
	var room [4][]any
	lists, n := room[:0], 1
	for i := range b.Parts {
		list, ok := Constants(&b.Index.Codecs[i], b.Parts[i].Values, values)
		if !ok {
			return nil, true, false
		}
		list = slices.DeleteFunc(list, func(v any) bool { return v == nil }) // nothing equals NULL
		lists = append(lists, list)
		if n *= len(list); n > rangesMax && i > 0 {
			return nil, false, true
		}
	}
	all = make([]store.KeyRange, 0, n)
	all, ok = b.appendKeys(all, nil, lists)
	if len(all) > 1 {
		all = apart(all)
	}
	return all, true, ok
}

// appendKeys appends the ranges of the keys that begin with beginning, followed by a value of each list, the values
// of the index's last parts.
func (b *Branch) appendKeys(all []store.KeyRange, beginning []byte, lists [][]any) ([]store.KeyRange, bool) {
	if len(lists) == 0 {
		isWhole := len(b.Parts) == len(b.Index.Columns)
		return append(all, store.KeyRange{Low: beginning, High: row.PrefixEnd(bytes.Clone(beginning)), Point: isWhole}), true
	}
	codec := &b.Index.Codecs[len(b.Parts)-len(lists)]
	for _, v := range lists[0] {
		key, ok := codec.AppendNative(append(append(make([]byte, 0, keyBytesGuessed), beginning...), row.KeyValue), v)
		if !ok {
			return nil, false
		}
		if all, ok = b.appendKeys(all, key, lists[1:]); !ok {
			return nil, false
		}
	}
	return all, true
}

// keyBytesGuessed is the memory that is allocated for a key at first.
const keyBytesGuessed = 32

// exprs returns the bounds of a column; none if no value can meet them; false if a value is not plain.
func (p *Part) exprs(table *store.TableInfo, values []Value) ([]gms.MySQLRangeColumnExpr, bool) {
	t, codec := table.Rows.Columns[p.Column].Type, table.Codec(p.Column)
	if p.Null {
		return []gms.MySQLRangeColumnExpr{gms.NullRangeColumnExpr(t)}, true
	}
	if len(p.Values) == 0 {
		e, isPossible, ok := p.bounds(t, codec, values)
		if !isPossible || !ok {
			return nil, ok
		}
		return []gms.MySQLRangeColumnExpr{e}, true
	}
	all, ok := Constants(codec, p.Values, values)
	if !ok {
		return nil, false
	}
	exprs := make([]gms.MySQLRangeColumnExpr, 0, len(all))
	for _, c := range all {
		if c != nil { // nothing equals NULL
			exprs = append(exprs, gms.ClosedRangeColumnExpr(c, c, t))
		}
	}
	return exprs, true
}

// bounds returns the bounds of a part without single values. If it has several lower or several upper bounds, the last of
// them counts: the range may then have rows that the WHERE leaves out. isPossible is false if no value can meet the
// bounds.
func (p *Part) bounds(t gms.Type, codec *row.KeyCodec, values []Value) (e gms.MySQLRangeColumnExpr, isPossible, ok bool) {
	e = gms.NotNullRangeColumnExpr(t)
	for _, c := range p.Bounds {
		v, ok := constant(codec, c.Value, values)
		if !ok || v == nil {
			return e, false, ok // a comparison with NULL is never true
		}
		switch c.Op {
		case Less:
			e.UpperBound = gms.Below{Key: v, Typ: t}
		case LessEqual:
			e.UpperBound = gms.Above{Key: v, Typ: t}
		case Greater:
			e.LowerBound = gms.Above{Key: v, Typ: t}
		case GreaterEqual:
			e.LowerBound = gms.Below{Key: v, Typ: t}
		}
	}
	for _, l := range p.Likes {
		v, ok := constant(codec, l.Pattern, values)
		pattern, isText := v.(string)
		if !ok || !isText {
			return e, false, ok && v == nil // nothing matches NULL
		}
		boundByPattern(&e, codec, t, pattern)
	}
	return e, true, true
}

// boundByPattern bounds a column by the least and the greatest text that matches a pattern. It keeps existing bounds.
func boundByPattern(e *gms.MySQLRangeColumnExpr, codec *row.KeyCodec, t gms.Type, pattern string) {
	typ, ok := t.(gms.StringType)
	if !ok {
		return
	}
	length := typ.MaxCharacterLength()
	if codec.Prefix > 0 { // the index has only the texts' beginnings
		length = int64(codec.Prefix)
	}
	first, last := compat.LikeBounds(pattern, codec.Collation, length)
	if _, free := e.LowerBound.(gms.AboveNull); free && first != "" {
		e.LowerBound = gms.Below{Key: first, Typ: t}
	}
	if _, free := e.UpperBound.(gms.AboveAll); free && last != "" {
		e.UpperBound = gms.Above{Key: last, Typ: t}
	}
}

// constant returns the value of an operand in the Go type of a column.
func constant(codec *row.KeyCodec, o Operand, values []Value) (any, bool) {
	v, ok := o.In(values)
	if !ok {
		return nil, false
	}
	return Constant(codec, v)
}

// apart sorts ranges, and merges those that overlap, in the memory of all.
func apart(all []store.KeyRange) []store.KeyRange {
	slices.SortFunc(all, func(a, b store.KeyRange) int { return bytes.Compare(a.Low, b.Low) })
	out := all[:0]
	for _, r := range all {
		if len(out) == 0 {
			out = append(out, r)
			continue
		}
		last := &out[len(out)-1]
		switch {
		case last.High != nil && bytes.Compare(r.Low, last.High) >= 0:
			out = append(out, r)
			continue
		case bytes.Equal(r.Low, last.Low) && bytes.Equal(r.High, last.High): // the same key, of values that the collation takes for equal: it stays a Point
		default:
			last.Point = false
			if r.High == nil || (last.High != nil && bytes.Compare(r.High, last.High) > 0) {
				last.High = r.High
			}
		}
		last.IsWide = last.IsWide || r.IsWide
	}
	return out
}

// hasPrefix reports whether a column of an index holds only the beginnings of values.
func hasPrefix(k row.KeyCodec) bool { return k.Prefix > 0 }

// isWhole reports whether no two entries of an index are equal in its lookup columns, which include those of the primary
// key unless the index is unique. A unique index may have several entries with NULL.
func isWhole(table *store.TableInfo, k *store.KeyInfo) bool {
	return k == table.PrimaryKey || (!k.Unique && !table.IsKeyless() && !slices.ContainsFunc(table.PrimaryKey.Codecs, hasPrefix))
}
