package store

import (
	"bytes"
	"context"
	"slices"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/sql/row"
)

// A KeyRange is one of go-mysql-server's ranges, translated for an index. It has the rows with
// keys in [Low, High), where nil is an open end, and with further parts within Rest.
type KeyRange struct {
	Low, High []byte
	// Point is set if the range gives every part of the key: Low is the key.
	Point bool
	// HasNull is set if a given part is NULL.
	HasNull bool
	// Rest bounds the parts from restAt on, which Low and High leave open; nil for
	// none.
	Rest   []row.Bounds
	restAt int
	// Check is the original range. It is set only if the other bounds admit more rows than it
	// does, because the column's type cannot express a bound, or only a prefix is indexed.
	Check gms.MySQLRange
	// Loose is set if the keys may not be in the order of the values: a part that
	// may vary is indexed by a prefix only.
	Loose bool
	// IsWide is set if the range may have more rows than are wanted, and neither Rest nor Check leaves
	// them out.
	IsWide bool
}

// bounded returns a range without the unbounded columns at its end.
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

// physical returns a range in terms of the parts of the entries. It ends before the
// first part that the range does not bound.
func (k *KeyInfo) physical(r gms.MySQLRange) gms.MySQLRange {
	if k.lookupParts == nil {
		return r
	}
	var p gms.MySQLRange
	for _, at := range k.lookupParts {
		if at < 0 || at >= len(r) {
			break
		}
		p = append(p, r[at])
	}
	return p
}

// Lookup translates go-mysql-server's ranges into ranges of keys, and returns the index that these
// are for: k or, if a range bounds more columns than k has, k extended by the columns of the primary
// key.
func (k *KeyInfo) Lookup(ctx context.Context, ranges gms.MySQLRangeCollection) (*KeyInfo, []KeyRange) {
	for _, r := range ranges {
		if len(bounded(r)) > len(k.Codecs) && k.primary != nil {
			k = k.extended()
		}
	}
	var all []KeyRange
	for _, r := range ranges {
		if kr, empty := k.keyRange(ctx, k.physical(bounded(r))); !empty {
			all = append(all, kr)
		}
	}
	return k, all
}

// keyRange translates a range. empty is set if the range contains no key.
//
// The translated range may contain more keys than r, never fewer; then rows are
// checked against Check. go-mysql-server itself filters again by WHERE, but not by
// the condition of a join or a foreign key.
func (k *KeyInfo) keyRange(ctx context.Context, r gms.MySQLRange) (kr KeyRange, empty bool) {
	if len(r) > len(k.Codecs) {
		r = r[:len(k.Codecs)]
	}
	inexact := false
	defer func() {
		if inexact {
			kr.Check = slices.Clone(r) // a join changes it in place for its next lookup
		}
		kr.Loose = k.loose(ctx, r)
	}()
	// Parts that equal one value form a prefix of the keys. The first other part bounds the keys
	// after that prefix, and Rest bounds the parts behind.
	prefix := []byte{}
	for i := range r {
		part, equal, none := k.Codecs[i].Bounds(ctx, r[i])
		inexact = inexact || part.Inexact
		if none {
			return KeyRange{}, true
		}
		if equal {
			kr.HasNull = kr.HasNull || part.Lo[0] == row.KeyNull
			prefix = append(prefix, part.Lo...)
			continue
		}
		kr.Low = append(bytes.Clone(prefix), part.Lo...)
		kr.High = row.PrefixEnd(bytes.Clone(prefix))
		if part.Hi != nil {
			kr.High = append(bytes.Clone(prefix), part.Hi...)
		}
		kr.restAt = i + 1
		for j, x := range r[i+1:] {
			part, _, none := k.Codecs[i+1+j].Bounds(ctx, x)
			inexact = inexact || part.Inexact
			if none {
				return KeyRange{}, true
			}
			kr.Rest = append(kr.Rest, part)
		}
		return kr, false
	}
	kr.Low, kr.High, kr.Point = prefix, row.PrefixEnd(bytes.Clone(prefix)), len(r) == len(k.Codecs)
	return kr, false
}

// loose reports whether rows of a range may differ in a part of which only a prefix
// is indexed.
func (k *KeyInfo) loose(ctx context.Context, r gms.MySQLRange) bool {
	for i := range k.Codecs {
		if k.Codecs[i].Prefix > 0 && (i >= len(r) || !k.Codecs[i].IsSingle(ctx, r[i])) {
			return true
		}
	}
	return false
}
