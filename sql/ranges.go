package sql

import (
	"bytes"
	"context"
	"slices"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/sql/row"
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
	rest   []row.Bounds
	restAt int
	// check is the range itself, if the bounds hold more than it does: they
	// cannot be said in the column's own type, or only a prefix is indexed.
	check gms.MySQLRange
	// loose says that the keys are not in the order of the values: of a part
	// that may vary, only a prefix is indexed.
	loose bool
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
		part, equal, none := k.parts[i].Bounds(ctx, r[i])
		inexact = inexact || part.Inexact
		if none {
			return keyRange{}, true
		}
		if equal {
			kr.hasNull = kr.hasNull || part.Lo[0] == row.KeyNull
			prefix = append(prefix, part.Lo...)
			continue
		}
		kr.lo = append(bytes.Clone(prefix), part.Lo...)
		kr.hi = row.PrefixEnd(bytes.Clone(prefix))
		if part.Hi != nil {
			kr.hi = append(bytes.Clone(prefix), part.Hi...)
		}
		kr.restAt = i + 1
		for j, x := range r[i+1:] {
			part, _, none := k.parts[i+1+j].Bounds(ctx, x)
			inexact = inexact || part.Inexact
			if none {
				return keyRange{}, true
			}
			kr.rest = append(kr.rest, part)
		}
		return kr, false
	}
	kr.lo, kr.hi, kr.point = prefix, row.PrefixEnd(bytes.Clone(prefix)), len(r) == len(k.parts)
	return kr, false
}

// loose reports whether rows of a range may differ where only a prefix of their
// values is indexed.
func (k *keyInfo) loose(ctx context.Context, r gms.MySQLRange) bool {
	for i := range k.parts {
		if k.parts[i].Prefix > 0 && (i >= len(r) || !k.parts[i].IsSingle(ctx, r[i])) {
			return true
		}
	}
	return false
}
