package store

import (
	"bytes"
	"context"
	"slices"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/sql/row"
)

// A KeyRange is what one of go-mysql-server's ranges means for an index: the
// keys in [Low, High), nil being an open end, and of these the rows whose key
// passes Rest.
type KeyRange struct {
	Low, High []byte
	// Point says that every part of the key is given: Low is the key.
	Point bool
	// HasNull says that a part that is given is NULL.
	HasNull bool
	// Rest are the bounds of the parts from the one at restAt, which Low and High
	// leave open; nil for none.
	Rest   []row.Bounds
	restAt int
	// Check is the range itself, if the bounds hold more than it does: they
	// cannot be said in the column's own type, or only a prefix is indexed.
	Check gms.MySQLRange
	// Loose says that the keys are not in the order of the values: of a part
	// that may vary, only a prefix is indexed.
	Loose bool
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
func (k *KeyInfo) physical(r gms.MySQLRange) gms.MySQLRange {
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

// Lookup translates the ranges of a lookup, for the index as it is to be read.
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

// keyRange translates a range. empty says that no key is in it.
//
// The keys may be more than the range asks for, never fewer; rows are checked
// then. go-mysql-server filters what a WHERE asks for once more, but not what a
// join or a foreign key looks up.
func (k *KeyInfo) keyRange(ctx context.Context, r gms.MySQLRange) (kr KeyRange, empty bool) {
	if len(r) > len(k.Codecs) {
		r = r[:len(k.Codecs)]
	}
	inexact := false
	defer func() {
		if inexact {
			kr.Check = slices.Clone(r) // a join uses it again for its next lookup
		}
		kr.Loose = k.loose(ctx, r)
	}()
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

// loose reports whether rows of a range may differ where only a prefix of their
// values is indexed.
func (k *KeyInfo) loose(ctx context.Context, r gms.MySQLRange) bool {
	for i := range k.Codecs {
		if k.Codecs[i].Prefix > 0 && (i >= len(r) || !k.Codecs[i].IsSingle(ctx, r[i])) {
			return true
		}
	}
	return false
}
