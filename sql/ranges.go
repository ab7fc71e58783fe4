package sql

import (
	"bytes"
	"context"
	"slices"
	"time"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"

	"github.com/farmsql/farmsql/catalog"
)

// A keyRange is what one of go-mysql-server's ranges means for an index: the
// keys in [lo, hi), nil being an open end, and of these the rows whose key
// passes rest.
type keyRange struct {
	lo, hi []byte
	// point says that every part of the key is given: lo is the key.
	point bool
	// hasNull says that a part that is given is NULL.
	hasNull bool
	// rest are the bounds of the parts from the one at restAt, which lo and hi
	// leave open; nil for none.
	rest   []partRange
	restAt int
	// check is the range itself, if the bounds hold more than it does: they
	// cannot be said in the column's own type, or only a prefix is indexed.
	check gms.MySQLRange
	// loose says that the keys are not in the order of the values: of a part
	// that may vary, only a prefix is indexed.
	loose bool
}

// A partRange bounds the encoding of one part: [lo, hi), nil being open. inexact
// says that it holds more than was asked for.
type partRange struct {
	lo, hi  []byte
	inexact bool
}

func (r partRange) holds(part []byte) bool {
	return bytes.Compare(part, r.lo) >= 0 && (r.hi == nil || bytes.Compare(part, r.hi) < 0)
}

// bounded is a range without the columns at its end that it does not bound.
func bounded(r gms.MySQLRange) gms.MySQLRange {
	for len(r) > 0 {
		_, below := r[len(r)-1].LowerBound.(gms.BelowNull)
		_, above := r[len(r)-1].UpperBound.(gms.AboveAll)
		if !below || !above {
			break
		}
		r = r[:len(r)-1]
	}
	return r
}

// physical is a range by the parts of the entries. It ends with the first part
// that it says nothing about.
func (k *keyInfo) physical(r gms.MySQLRange) gms.MySQLRange {
	if k.from == nil {
		return r
	}
	var p gms.MySQLRange
	for _, at := range k.from {
		if at < 0 || at >= len(r) {
			break
		}
		p = append(p, r[at])
	}
	return p
}

// lookup translates the ranges of a lookup, for the index as it is to be read.
func (k *keyInfo) lookup(ctx context.Context, ranges gms.MySQLRangeCollection) (*keyInfo, []keyRange) {
	for _, r := range ranges {
		if len(bounded(r)) > len(k.parts) && k.primary != nil {
			k = k.extended()
		}
	}
	var all []keyRange
	for _, r := range ranges {
		if kr, empty := k.keyRange(ctx, k.physical(bounded(r))); !empty {
			all = append(all, kr)
		}
	}
	return k, all
}

// keyRange translates a range. empty says that no key is in it.
//
// The keys may be more than the range asks for, never fewer; rows are checked
// then. go-mysql-server filters what a WHERE asks for once more, but not what a
// join or a foreign key looks up.
func (k *keyInfo) keyRange(ctx context.Context, r gms.MySQLRange) (kr keyRange, empty bool) {
	if len(r) > len(k.parts) {
		r = r[:len(k.parts)]
	}
	inexact := false
	defer func() {
		if inexact {
			kr.check = slices.Clone(r) // a join uses it again for its next lookup
		}
		kr.loose = k.loose(ctx, r)
	}()
	prefix := []byte{}
	for i := range r {
		part, equal, none := k.parts[i].partRange(ctx, r[i])
		inexact = inexact || part.inexact
		if none {
			return keyRange{}, true
		}
		if equal {
			kr.hasNull = kr.hasNull || part.lo[0] == keyNull
			prefix = append(prefix, part.lo...)
			continue
		}
		kr.lo = append(bytes.Clone(prefix), part.lo...)
		kr.hi = prefixEnd(bytes.Clone(prefix))
		if part.hi != nil {
			kr.hi = append(bytes.Clone(prefix), part.hi...)
		}
		kr.restAt = i + 1
		for j, x := range r[i+1:] {
			part, _, none := k.parts[i+1+j].partRange(ctx, x)
			inexact = inexact || part.inexact
			if none {
				return keyRange{}, true
			}
			kr.rest = append(kr.rest, part)
		}
		return kr, false
	}
	kr.lo, kr.hi, kr.point = prefix, prefixEnd(bytes.Clone(prefix)), len(r) == len(k.parts)
	return kr, false
}

// loose reports whether rows of a range may differ where only a prefix of their
// values is indexed.
func (k *keyInfo) loose(ctx context.Context, r gms.MySQLRange) bool {
	for i := range k.parts {
		if k.parts[i].prefix > 0 && (i >= len(r) || !k.parts[i].single(ctx, r[i])) {
			return true
		}
	}
	return false
}

// single reports whether a range holds one value only.
func (k *keyCodec) single(ctx context.Context, c gms.MySQLRangeColumnExpr) bool {
	if _, null := c.LowerBound.(gms.BelowNull); null {
		_, null = c.UpperBound.(gms.AboveNull)
		return null
	}
	lo, below := c.LowerBound.(gms.Below)
	hi, above := c.UpperBound.(gms.Above)
	if !below || !above {
		return false
	}
	n, err := k.typ.Compare(ctx, lo.Key, hi.Key)
	return err == nil && n == 0
}

// partRange translates the bounds of one column. equal says that they admit one
// encoding only, which is lo.
func (k *keyCodec) partRange(ctx context.Context, c gms.MySQLRangeColumnExpr) (r partRange, equal, none bool) {
	lo, loKey, ok := k.lowerBound(ctx, c.LowerBound, &r.inexact)
	if !ok {
		return r, false, true
	}
	hi, hiKey, ok := k.upperBound(ctx, c.UpperBound, &r.inexact)
	if !ok {
		return r, false, true
	}
	r.lo, r.hi = lo, hi
	if hi != nil && bytes.Compare(lo, hi) >= 0 {
		return r, false, true
	}
	return r, loKey && hiKey && bytes.Equal(prefixEnd(bytes.Clone(lo)), hi), false
}

// lowerBound returns the least encoding above a cut, whether it is that of a
// whole value, and false if there is none: nothing compares with NULL, which is
// what a lookup for a row that has no value asks for.
func (k *keyCodec) lowerBound(ctx context.Context, c gms.MySQLRangeCut, inexact *bool) (b []byte, key, ok bool) {
	switch c := c.(type) {
	case gms.BelowNull:
		return []byte{keyNull}, true, true
	case gms.AboveNull:
		return []byte{keyValue}, false, true
	case gms.AboveAll:
		return nil, false, false
	case gms.Below:
		b, exact, ok := k.bound(ctx, c.Key)
		*inexact = *inexact || !exact
		if !ok {
			return []byte{keyValue}, false, c.Key != nil
		}
		return b, true, true
	case gms.Above:
		b, exact, ok := k.bound(ctx, c.Key)
		*inexact = *inexact || !exact
		switch {
		case !ok:
			return []byte{keyValue}, false, c.Key != nil
		case !exact:
			return b, true, true
		}
		b = prefixEnd(b)
		return b, false, b != nil
	}
	return []byte{keyNull}, false, true
}

// upperBound returns the least encoding that is not below a cut, nil if all
// are.
func (k *keyCodec) upperBound(ctx context.Context, c gms.MySQLRangeCut, inexact *bool) (b []byte, key, ok bool) {
	switch c := c.(type) {
	case gms.BelowNull:
		return nil, false, false
	case gms.AboveNull:
		return []byte{keyValue}, true, true
	case gms.Below:
		b, exact, ok := k.bound(ctx, c.Key)
		*inexact = *inexact || !exact
		switch {
		case !ok:
			return nil, false, c.Key != nil
		case exact:
			return b, false, true
		}
		return prefixEnd(b), true, true
	case gms.Above:
		b, exact, ok := k.bound(ctx, c.Key)
		*inexact = *inexact || !exact
		if !ok {
			return nil, false, c.Key != nil
		}
		return prefixEnd(b), true, true
	}
	return nil, false, true
}

// bound encodes the value of a bound. exact says that the encoding stands for
// just that value; if not, it is the nearest that the column can hold, and the
// bound has to be taken inclusively. ok is false if the value cannot be
// compared in the column's order at all.
func (k *keyCodec) bound(ctx context.Context, v any) (b []byte, exact, ok bool) {
	v, err := gms.UnwrapAny(ctx, v)
	if err != nil || v == nil {
		return nil, false, false
	}
	if isCharacter(k.kind) {
		s, ok := text(v)
		if !ok {
			return nil, false, false
		}
		b, err = k.append(ctx, nil, s)
		return b, k.prefix == 0, err == nil
	}
	c, inRange, err := k.typ.Convert(ctx, v)
	if err != nil || c == nil {
		return nil, false, false
	}
	if b, err = k.append(ctx, nil, c); err != nil {
		return nil, false, false
	}
	return b, inRange == gms.InRange && k.prefix == 0 && k.same(ctx, v, c), true
}

func text(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case []byte:
		return string(v), true
	}
	return "", false
}

// same reports whether a value came through the conversion to the column's type
// unchanged.
func (k *keyCodec) same(ctx context.Context, v, c any) bool {
	switch k.kind {
	case catalog.KindDate, catalog.KindDatetime, catalog.KindTimestamp:
		a, err := types.DatetimeMaxPrecision.ConvertWithoutRangeCheck(ctx, v)
		b, isTime := c.(time.Time)
		return err == nil && isTime && a.Equal(b)
	case catalog.KindEnum, catalog.KindSet, catalog.KindTime:
		return true
	}
	if !k.isNumber() || k.kind == catalog.KindYear || k.kind == catalog.KindBit {
		return true
	}
	a, err := types.InternalDecimalType.ConvertToNullDecimal(v)
	if err != nil || !a.Valid {
		return false
	}
	b, err := types.InternalDecimalType.ConvertToNullDecimal(c)
	return err == nil && b.Valid && a.Decimal.Equal(b.Decimal)
}

// holds reports whether a value of the column is in a range. unknown is the
// answer if it cannot be compared with a bound.
func (k *keyCodec) holds(ctx context.Context, c gms.MySQLRangeColumnExpr, v any, unknown bool) bool {
	switch cut := c.LowerBound.(type) {
	case gms.AboveNull:
		if v == nil {
			return false
		}
	case gms.Below:
		if n, ok := k.compare(ctx, v, cut.Key); ok && n < 0 || !ok && !unknown {
			return false
		}
	case gms.Above:
		if n, ok := k.compare(ctx, v, cut.Key); ok && n <= 0 || !ok && !unknown {
			return false
		}
	}
	switch cut := c.UpperBound.(type) {
	case gms.AboveNull:
		return v == nil
	case gms.Below:
		n, ok := k.compare(ctx, v, cut.Key)
		return ok && n < 0 || !ok && unknown
	case gms.Above:
		n, ok := k.compare(ctx, v, cut.Key)
		return ok && n <= 0 || !ok && unknown
	}
	return true
}

// compare compares a value of the column with any other, as neither of the two
// is before a conversion that might round it. NULL is less than everything.
func (k *keyCodec) compare(ctx context.Context, v, with any) (n int, ok bool) {
	if v == nil {
		return -1, true
	}
	if with, err := gms.UnwrapAny(ctx, with); err != nil || with == nil {
		return 0, false
	}
	if !isCharacter(k.kind) && k.isNumber() {
		a, err := types.InternalDecimalType.ConvertToNullDecimal(v)
		if err != nil || !a.Valid {
			return 0, false
		}
		b, err := types.InternalDecimalType.ConvertToNullDecimal(with)
		if err != nil || !b.Valid {
			return 0, false
		}
		return a.Decimal.Cmp(b.Decimal), true
	}
	n, err := k.typ.Compare(ctx, v, with)
	return n, err == nil
}

// isNumber reports whether values of the column are compared as numbers.
func (k *keyCodec) isNumber() bool {
	_, number := k.typ.(gms.NumberType)
	return number || k.kind == catalog.KindDecimal
}
