package hash

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/txn"
)

// TestGlanceAgreesWithSearch looks keys up in both ways, which must agree
// wherever glance decides; and it must decide what is plain.
func TestGlanceAgreesWithSearch(t *testing.T) {
	for _, cfg := range []Config{
		{ValueBytes: 32}, {KeyBytes: 3, ValueBytes: 200}, {Neighbourhood: 2}, {Neighbourhood: 6},
		{Neighbourhood: 2 * glanceSlots}, {Neighbourhood: 2*glanceSlots + 2}, {Neighbourhood: 64},
	} {
		t.Run(fmt.Sprint(cfg.KeyBytes, cfg.ValueBytes, cfg.Neighbourhood), func(t *testing.T) {
			c, err := farm.Open(farm.Config{})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			m := c.Machine(0)
			tb := Open(m, createTable(t, m, cfg))
			for first := 0; first < 2000; first += 100 {
				insertGlanced(t, tb, first)
			}
			decided := 0
			for i := range 4000 {
				decided += compareGlance(t, tb, glanceKey(i))
			}
			o, err := tb.open()
			if err != nil {
				t.Fatal(err)
			}
			if plain := o.slots <= glanceSlots; plain && decided < 1500 || !plain && decided > 0 {
				t.Errorf("%d of 4000 lookups decided at a glance", decided)
			}
		})
	}
}

// glanceKey is the i-th key: a third of them is empty or too long for some tables.
func glanceKey(i int) []byte { return fmt.Append(nil, i)[:max(0, min(3+i%8, len(fmt.Sprint(i))))] }

func insertGlanced(t *testing.T, tb *Table, first int) {
	t.Helper()
	err := tb.m.Run(ctx, func(tx *txn.Tx) error {
		for i := first; i < first+100; i++ {
			if err := tb.Put(tx, glanceKey(i), bytes.Repeat([]byte{byte(i)}, i%40)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// compareGlance returns 1 if a glance decided about key.
func compareGlance(t *testing.T, tb *Table, key []byte) int {
	t.Helper()
	o, err := tb.open()
	if err != nil {
		t.Fatal(err)
	}
	op := tb.m.Start()
	defer op.End()
	h := sum(o.seed, key)
	s := o.dir.find(h)
	want, found, err := tb.search(op, o, s, h, key, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, ok, decided := o.glance(op, s, s.first.Element(bucketOf(h, o.buckets)), h, key, make([]byte, 0, 8))
	if !decided {
		return 0
	}
	if ok != found || !bytes.Equal(got, want) {
		t.Fatalf("key %q: %q %v at a glance, %q %v by search", key, got, ok, want, found)
	}
	return 1
}
