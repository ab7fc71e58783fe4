package hash

import (
	"bytes"
	"testing"
)

// TestFetch: buckets that are only prefetched are neither read nor part of the transaction's reads,
// whichever machine is their primary. Fetch does nothing if the table is not open yet, or if the
// transaction has ended.
func TestFetch(t *testing.T) {
	c := openFarm(t, 2, 1)
	anchor := createTable(t, c.Machine(0), Config{ValueBytes: 40})
	insertGlanced(t, Open(c.Machine(0), anchor), 0)
	for i := range 2 {
		m := c.Machine(i)
		tb := Open(m, anchor)
		tx := m.Begin()
		defer tx.Abort()
		before := m.Stats()
		tb.Fetch(tx, glanceKey(1)) // nothing is known of the table yet
		if reads := m.Stats().Sub(before); reads.LocalReads+reads.RemoteReads != 0 {
			t.Errorf("machine %d: %+v to fetch from a table that is not open", i, reads)
		}
		if _, _, err := tb.Get(tx, glanceKey(2)); err != nil {
			t.Fatal(err)
		}
		before = m.Stats()
		for k := range 200 {
			tb.Fetch(tx, glanceKey(k))
		}
		if reads := m.Stats().Sub(before); reads.LocalReads+reads.RemoteReads != 0 {
			t.Errorf("machine %d: fetching is reading: %+v", i, reads)
		}
		other := Open(c.Machine(0), anchor)
		if err := other.PutNow(ctx, glanceKey(1), []byte("another")); err != nil {
			t.Fatal(err)
		}
		if err := tx.Validate(); err != nil {
			t.Errorf("machine %d: depends on what was fetched: %v", i, err)
		}
		v, ok, err := tb.Get(tx, glanceKey(1))
		if err != nil || !ok || !bytes.Equal(v, []byte("another")) {
			t.Errorf("machine %d: %q %v %v", i, v, ok, err)
		}
		tx.Abort()
		tb.Fetch(tx, glanceKey(1)) // of a transaction that has ended
	}
}
