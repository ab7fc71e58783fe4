package hash

import (
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// getsTogether is the largest number of keys whose buckets GetMany requests together.
const getsTogether = 128

// GetMany does the Gets of many keys together, so that their waiting for other machines and for memory
// overlaps; LookupMany does the same outside of transactions. GetMany calls visit for each key, in the
// order of keys. After an error, visit has been called for the keys before the one that failed.
func (tb *Table) GetMany(t *txn.Tx, keys [][]byte, visit func(i int, value []byte, ok bool)) error {
	ov, err := tb.overlay(t)
	if err != nil {
		return err
	}
	taken := 0 // the buckets of keys[:taken] have been requested
	for i, key := range keys {
		if i == taken {
			taken += ov.readAhead(t, keys[i:])
		}
		value, ok, err := tb.Get(t, key)
		if err != nil {
			return err
		}
		visit(i, value, ok)
	}
	return nil
}

// readAhead requests the buckets where t is going to look for the first keys, and returns the
// number of these keys. With a stale directory some of these are the wrong buckets.
func (ov *overlay) readAhead(t *txn.Tx, keys [][]byte) int {
	keys = keys[:min(len(keys), getsTogether)]
	if len(keys) == 1 || ov.isNew {
		return len(keys)
	}
	var room [2 * getsTogether]region.Ptr
	ptrs := room[:0]
	for _, key := range keys {
		home := ov.o.home(&sight{h: sum(ov.o.seed, key)})
		ptrs = append(ptrs, home, home.Element(1))
	}
	return max(t.ReadAhead(ptrs)/2, 1) // two buckets for each key; at least 1, so that GetMany goes on
}
