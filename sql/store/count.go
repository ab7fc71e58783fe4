package store

import (
	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/catalog"
)

// countedMax is the number of keys at which counting a range stops: go-mysql-server estimates a
// range with as many or more.
const countedMax = 1000

// CountKeys counts the keys that a lookup reads. It returns false if there are countedMax or more, or if the index is
// not one of ours. It reads committed data in a transaction of its own: a plan's estimates are no part of what the
// statement reads.
func (st *Store) CountKeys(ctx *gms.Context, l gms.IndexLookup) (float64, bool) {
	x, ok := l.Index.(*Index)
	if !ok {
		return 0, false
	}
	ranges, ok := l.Ranges.(gms.MySQLRangeCollection)
	if !ok {
		return 0, false
	}
	k, all := x.Key.Lookup(ctx, ranges)
	if k.Access == catalog.AccessHash {
		return float64(len(all)), true // hash indexes: whole unique keys only
	}
	n, ok := st.CountRanges(k, all, countedMax)
	return float64(n), ok
}

// CountRanges counts the keys of an index that are in ranges. It returns false if their number reaches most, or if
// they cannot be read. Like CountKeys it reads committed data in a transaction of its own.
func (st *Store) CountRanges(k *KeyInfo, ranges []KeyRange, most int) (int, bool) {
	tx := st.Machine.Begin()
	defer tx.Discard()
	n := 0
	for i := range ranges {
		for keys := st.Access(k.Index).Keys(tx, ranges[i].Low, ranges[i].High); ; n++ {
			_, _, ok, err := keys.Next()
			if err != nil || n == most {
				return n, false
			}
			if !ok {
				break
			}
		}
	}
	return n, true
}
