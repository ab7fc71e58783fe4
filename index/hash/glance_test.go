package hash

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/internal/invariant"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// TestGlanceAgreesWithSearch looks keys up in both ways. They must agree wherever glance decides, and
// glance must decide the plain cases.
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
			inTx := 0
			for i := range 4000 {
				decided += compareGlance(t, tb, glanceKey(i))
				inTx += compareGlanceIn(t, tb, glanceKey(i))
			}
			// Only lookups outside of transactions glance at chains.
			if inTx > decided || cfg.Neighbourhood == 2 && inTx == decided {
				t.Errorf("%d lookups decided at a glance in transactions, %d outside", inTx, decided)
			}
			o := mustOpen(t, tb)
			if plain := o.slots <= glanceSlots; plain && decided < 1500 || !plain && decided > 0 {
				t.Errorf("%d of 4000 lookups decided at a glance", decided)
			}
		})
	}
}

// TestGlanceAlongChains: a glance follows a chain, unless the chain is very long.
func TestGlanceAlongChains(t *testing.T) {
	tb := newTable(t, Config{Buckets: 16, Neighbourhood: 4})
	const most = 4 + glanceBlocks*blockSlots // pairs of a home and its chain that a glance decides about
	keys := keysOf(t, tb, 3, most+2)
	absent := keys[most+1]
	for i, key := range keys[:most+1] {
		mustRun(t, tb.m, func(tx *txn.Tx) error { return tb.Insert(tx, key, key) })
		if i == most {
			break
		}
		for _, key := range append([][]byte{absent}, keys[:i+1]...) {
			if compareGlance(t, tb, key) == 0 {
				t.Fatalf("%d keys of one home, and a glance does not decide about %x", i+1, key)
			}
		}
	}
	if tb.Stats().Shards > 1 {
		t.Fatal("the table has grown")
	}
	if compareGlance(t, tb, absent) != 0 {
		t.Errorf("a glance has decided about a chain of more than %d blocks", glanceBlocks)
	}
}

// TestGlanceAtChanges: a glance decides nothing by a block whose version differs from the link's, by a
// link that leads to no block, or by a pair outside of its slot. It still decides the other lookups.
func TestGlanceAtChanges(t *testing.T) {
	for name, spoil := range map[string]func(p page){
		"version": func(p page) { p.setU16(chainVersion, p.u16(chainVersion)+1) },
		"link":    func(p page) { p.setLink(link{region.MakePtr(region.MakeAddr(1, 64), 0, 0), 0}) },
		"outside": func(p page) {
			for i := range p.slots {
				p.set(i, slot{p.control(i) | outsideFlag, p.data(i)}, false)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			tb := newTable(t, Config{Buckets: 4, MaxLoad: 100, Neighbourhood: 4, KeyBytes: 8})
			o := mustOpen(t, tb)
			nothing := spoilBucketTx(func(page) {})
			for i := 0; ; i++ { // until there is a chain, of one block
				mustRun(t, tb.m, func(tx *txn.Tx) error { return tb.Put(tx, testKey(i), []byte("v")) })
				if tb.m.Run(ctx, func(tx *txn.Tx) error { return nothing(tb, o, tx) }) == nil {
					break
				}
			}
			decided := func() (n int) {
				op := tb.m.Start()
				defer op.End()
				for i := range 400 { // hardly any of them there
					if _, _, ok := o.glance(op, &sight{h: sum(o.seed, testKey(i))}, testKey(i), nil); ok {
						n++
					}
				}
				return n
			}
			before := decided()
			if before < 400 {
				t.Errorf("%d of 400 lookups decided at a glance", before)
			}
			mustRun(t, tb.m, func(tx *txn.Tx) error { return spoilBucketTx(spoil)(tb, o, tx) })
			if after := decided(); after >= before || after == 0 {
				t.Errorf("%d lookups decided at a glance, %d before", after, before)
			}
		})
	}
}

// TestGlanceAtAnotherHome: the bucket after a home proves nothing unless the home is still the key's
// home afterwards.
func TestGlanceAtAnotherHome(t *testing.T) {
	tb := newTable(t, Config{Buckets: 16, Neighbourhood: 4, KeyBytes: 8})
	keys := keysOf(t, tb, 3, 4) // two in the home, two after it
	for _, key := range keys {
		put(t, tb, key, key)
	}
	o := mustOpen(t, tb)
	op := tb.m.Start()
	defer op.End()
	s := sight{h: sum(o.seed, keys[3])}
	first := o.home(&s)
	seek := func() finding {
		_, at := o.seek(&s, keys[3], nil)
		return at
	}
	if !op.LookPair(&s.buckets, first) || seek() != atNext {
		t.Fatal("the key is not in the bucket after its home")
	}
	mustRun(t, tb.m, func(tx *txn.Tx) error {
		return changePage(tx, first, o, func(p page) { p.setDepth(0) })
	})
	if at := seek(); at != undecided {
		t.Errorf("found (%v) after the home has changed", at)
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
	o := mustOpen(t, tb)
	op := tb.m.Start()
	defer op.End()
	h := sum(o.seed, key)
	want, found, err := tb.search(op, o, o.dir.find(h), h, key, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, ok, decided := o.glance(op, &sight{h: h}, key, make([]byte, 0, 8))
	if !decided {
		return 0
	}
	if ok != found || !bytes.Equal(got, want) {
		t.Fatalf("key %q: %q %v at a glance, %q %v by search", key, got, ok, want, found)
	}
	return 1
}

// copier reads for a transaction as other peekers do, except that a glance decides nothing.
type copier struct{ t *txn.Tx }

func (c copier) Peek(p region.Ptr) ([]byte, region.Version, error) { return c.t.Peek(p) }

// compareGlanceIn is compareGlance in a transaction, where the sources must agree,
// too.
func compareGlanceIn(t *testing.T, tb *Table, key []byte) int {
	t.Helper()
	tx := tb.m.Begin()
	defer tx.Abort()
	o := mustOpen(t, tb)
	h := sum(o.seed, key)
	want, found, sources, err := tb.askOnce(copier{tx}, o, h, key, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, ok, seen := o.glanceIn(tx, h, key, nil)
	if len(seen) == 0 {
		return 0
	}
	if ok != found || !bytes.Equal(got, want) || !slices.Equal(seen, sources) {
		t.Fatalf("key %q: %q %v from %v at a glance, %q %v from %v by copies", key, got, ok, seen, want, found, sources)
	}
	return 1
}

// TestGetAllocates nothing, nor does what makes room for a key's value.
func TestGetAllocates(t *testing.T) {
	if invariant.Enabled {
		t.Skip("builds with checks keep no transaction for the next, and the race detector makes sync.Pool drop what it is given")
	}
	c, err := farm.Open(farm.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	m := c.Machine(0)
	tb := Open(m, createTable(t, m, Config{ValueBytes: 40}))
	insertGlanced(t, tb, 0)
	keys := [][]byte{glanceKey(1), glanceKey(2), glanceKey(3), []byte("none")}
	found := 0
	get := func(tx *txn.Tx) error {
		for _, key := range keys {
			tb.Fetch(tx, key)
		}
		for _, key := range keys {
			_, ok, err := tb.Get(tx, key)
			if err != nil {
				return err
			}
			if ok {
				found++
			}
		}
		return nil
	}
	const runs = 1000
	if n := testing.AllocsPerRun(runs, func() {
		if err := m.Run(ctx, get); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations in a transaction of four lookups", n)
	}
	if found != 3*(runs+1) {
		t.Errorf("found %d times", found)
	}
}
