package hash

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/txn"
)

// TestLookupManyAgreesWithLookup: on machines that are primary of some shards, of
// all and of none, in tables of every layout.
func TestLookupManyAgreesWithLookup(t *testing.T) {
	for name, network := range networks {
		c := openNetwork(t, 3, 2, network)
		for i := range c.Machines() {
			Serve(c.Machine(i))
		}
		for _, cfg := range []Config{{ValueBytes: 32}, {KeyBytes: 3, ValueBytes: 20}, {Neighbourhood: 2}, {Neighbourhood: 64}} {
			t.Run(fmt.Sprint(name, cfg.KeyBytes, cfg.ValueBytes, cfg.Neighbourhood), func(t *testing.T) {
				anchor := createTable(t, c.Machine(0), cfg)
				keep := Open(c.Machine(0), anchor)
				for first := 0; first < 1000; first += 100 {
					insertGlanced(t, keep, first)
				}
				for i := range c.Machines() {
					for _, opt := range []Options{{}, {OneTwoSided: true}} {
						compareMany(t, OpenWith(c.Machine(i), anchor, opt))
					}
				}
			})
		}
	}
}

func compareMany(t *testing.T, tb *Table) {
	t.Helper()
	var keys [][]byte
	for i := range 2000 { // half of them absent
		keys = append(keys, glanceKey(i))
	}
	asked := 0
	err := tb.LookupMany(keys, func(i int, value []byte, ok bool) {
		want, found, err := tb.Lookup(keys[i], nil)
		if err != nil || i != asked || ok != found || !bytes.Equal(value, want) {
			t.Fatalf("key %d %q: %q %v, Lookup says %q %v, %v", i, keys[i], value, ok, want, found, err)
		}
		asked++
	})
	if err != nil || asked != len(keys) {
		t.Fatalf("%d of %d keys, %v", asked, len(keys), err)
	}
}

// TestLookupManyReads: a key elsewhere costs the READs that it costs alone.
func TestLookupManyReads(t *testing.T) {
	c := openFarm(t, 2, 1)
	anchor := createTable(t, c.Machine(0), Config{ValueBytes: 32})
	insertGlanced(t, Open(c.Machine(0), anchor), 0)
	tb := Open(c.Machine(1), anchor)
	var keys [][]byte
	for i := range 64 {
		keys = append(keys, glanceKey(i))
	}
	reads := func(lookups func()) uint64 {
		before := tb.m.Stats().RemoteReads
		lookups()
		return tb.m.Stats().RemoteReads - before
	}
	each := func() {
		for _, key := range keys {
			if _, _, err := tb.Lookup(key, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	each() // reads the anchor
	together := reads(func() {
		if err := tb.LookupMany(keys, func(int, []byte, bool) {}); err != nil {
			t.Fatal(err)
		}
	})
	if alone := reads(each); together != alone || together < 64 {
		t.Errorf("%d READs for 64 keys, and %d one after the other", together, alone)
	}
}

// TestLookupManyAmongWriters: values that are changed, moved by growth, deleted
// and inserted meanwhile are found whole, and what is always there is found.
func TestLookupManyAmongWriters(t *testing.T) {
	for name, network := range networks {
		t.Run(name, func(t *testing.T) {
			c := openNetwork(t, 3, 3, network)
			anchor := createTable(t, c.Machine(0), Config{ValueBytes: 64, Buckets: 8})
			insertPaired(t, Open(c.Machine(0), anchor), 0, 300)
			var stop atomic.Bool
			var wg sync.WaitGroup
			wg.Go(func() {
				tb := Open(c.Machine(1), anchor)
				for i := 300; !stop.Load() && i < 20000; i++ { // more and more, so that the table grows
					insertPaired(t, tb, i, i+1)
					insertPaired(t, tb, i%300, i%300+1)
				}
			})
			var keys [][]byte
			for i := range 300 {
				keys = append(keys, binary.BigEndian.AppendUint64(nil, uint64(i)))
			}
			tables := []*Table{Open(c.Machine(0), anchor), Open(c.Machine(2), anchor)}
			for round := range 200 / scale {
				err := tables[round%2].LookupMany(keys, func(i int, v []byte, ok bool) {
					if !ok || len(v) != 64 || !bytes.Equal(v[:32], v[32:]) {
						t.Errorf("key %d: %x %v", i, v, ok)
					}
				})
				if err != nil {
					t.Error(err)
				}
			}
			stop.Store(true)
			wg.Wait()
		})
	}
}

var paired atomic.Uint64

// insertPaired puts keys whose values have two equal halves, new each time.
func insertPaired(t *testing.T, tb *Table, from, to int) {
	err := tb.m.Run(ctx, func(tx *txn.Tx) error {
		for i := from; i < to; i++ {
			half := bytes.Repeat(binary.BigEndian.AppendUint64(nil, paired.Add(1)), 4)
			if err := tb.Put(tx, binary.BigEndian.AppendUint64(nil, uint64(i)), append(half, half...)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestLookupManyFails: of a table that is gone it says so.
func TestLookupManyFails(t *testing.T) {
	c := openFarm(t, 1, 1)
	m := c.Machine(0)
	tb := Open(m, createTable(t, m, Config{}))
	if err := tb.Destroy(ctx, nil); err != nil {
		t.Fatal(err)
	}
	other := Open(m, tb.Anchor())
	if err := other.LookupMany([][]byte{{1}}, func(int, []byte, bool) { t.Error("an answer") }); err == nil {
		t.Error("a table that is gone has answered")
	}
}

// TestLookupManyAllocates nothing where this machine is the primary.
func TestLookupManyAllocates(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes sync.Pool drop what it is given")
	}
	c, err := farm.Open(farm.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	tb := Open(c.Machine(0), createTable(t, c.Machine(0), Config{ValueBytes: 40}))
	insertGlanced(t, tb, 0)
	var keys [][]byte
	for i := range 100 {
		keys = append(keys, glanceKey(i))
	}
	visit := func(int, []byte, bool) {}
	if n := testing.AllocsPerRun(1000, func() {
		if err := tb.LookupMany(keys, visit); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
