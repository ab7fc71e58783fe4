package hash

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/invariant"
	"github.com/farmsql/farmsql/internal/prefetch"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/lookup"
	"github.com/farmsql/farmsql/txn/worker"
)

// served returns the handles of a table on machines all of which serve.
func served(t *testing.T, machines int, cfg Config) []*Table {
	c := openFarm(t, machines, 1)
	anchor := createTable(t, c.Machine(0), cfg)
	var tables []*Table
	for i := range machines {
		tables = append(tables, Serve(c.Machine(i)).Open(anchor))
	}
	return tables
}

// Single operations from all machines, on one key and on many, have the results of some serial order:
// inserts and removals of a key succeed in turn.
func TestSingleOperations(t *testing.T) {
	tables := served(t, 3, Config{Buckets: 16})
	const keys, workers, each = 4, 12, 150
	var mu sync.Mutex
	balance := map[int]int{}
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			tb := tables[w%len(tables)]
			rnd := rand.New(rand.NewPCG(1, uint64(w)))
			for range each {
				i := rnd.IntN(keys)
				key, n := testKey(i), 0
				var err error
				if rnd.IntN(2) == 0 {
					if err = tb.InsertNow(ctx, key, []byte("v")); err == nil {
						n = 1
					} else if errors.Is(err, ErrExists) {
						err = nil
					}
				} else {
					var ok bool
					if ok, err = tb.DeleteNow(ctx, key); ok {
						n = -1
					}
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				balance[i] += n
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	got := checkTable(t, tables[0])
	for i := range keys {
		_, in := got[string(testKey(i))]
		if want := map[bool]int{true: 1}[in]; balance[i] != want {
			t.Errorf("key %d: inserts less removals %d, there: %v", i, balance[i], in)
		}
	}
	if tables[0].Stats().Shipped != 0 || tables[1].Stats().Shipped == 0 {
		t.Errorf("shipped: %+v, %+v", tables[0].Stats(), tables[1].Stats())
	}
}

// While one transaction changes a key, other operations on the key wait. They then become one
// transaction, in their order.
func TestCombining(t *testing.T) {
	tb := served(t, 1, Config{})[0]
	key := []byte("hot")
	under := newRequest(key, single{kind: singlePut})
	here := tb.here.place(under)
	if here.join(tb.m.Clock(), under) {
		t.Fatal("the key is being changed")
	}
	// A change of the key is under way.
	const n = 20
	var wg sync.WaitGroup
	inserted, deleted := make([]bool, n), make([]bool, n)
	for i := range n {
		wg.Go(func() {
			err := tb.InsertNow(ctx, key, fmt.Append(nil, i))
			inserted[i] = err == nil
			if err != nil && !errors.Is(err, ErrExists) {
				t.Error(err)
			}
		})
		wg.Go(func() {
			var err error
			if deleted[i], err = tb.DeleteNow(ctx, key); err != nil {
				t.Error(err)
			}
		})
	}
	var before uint64
	for {
		here.mu.Lock()
		waiting := len(under.waiting)
		here.mu.Unlock()
		if waiting == 2*n { // it ends
			before = tb.m.Stats().Commits
			here.leave(under)
			break
		}
	}
	wg.Wait()
	if got := tb.m.Stats().Commits - before; got != 1 {
		t.Errorf("%d transactions", got)
	}
	if s := tb.Stats(); s.Combined != 2*n-1 {
		t.Errorf("%d combined, want %d", s.Combined, 2*n-1)
	}
	in := 0
	for i := range n {
		if inserted[i] {
			in++
		}
		if deleted[i] {
			in--
		}
	}
	if got := len(checkTable(t, tb)); got != in {
		t.Errorf("%d keys, %d inserts less removals succeeded", got, in)
	}
	if here.changing != [combiningLists]*request{} {
		t.Error("the key is still being changed")
	}
}

// A single operation whose context has ended does nothing, and the next one gets its turn.
func TestSingleCancelled(t *testing.T) {
	tb := served(t, 1, Config{})[0]
	over, cancel := context.WithCancel(ctx)
	cancel()
	if err := tb.PutNow(over, []byte("k"), nil); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := tb.PutNow(ctx, []byte("k"), []byte("v")); err != nil {
		t.Fatal(err)
	}
	if v, ok, err := tb.Lookup([]byte("k"), nil); !ok || err != nil || string(v) != "v" {
		t.Fatal(v, ok, err)
	}
}

// Operations on different keys in one list of a part do not wait for each other, and leave the list
// in any order.
func TestCombiningLists(t *testing.T) {
	cl, parts := clock.System{}, newCombining(1)
	var of [3]*request
	first := newRequest([]byte("first"), single{})
	c := parts.place(first)
	of[0] = first
	for i, n := 0, 1; n < len(of); i++ {
		r := newRequest(testKey(i), single{})
		if parts.place(r) == c && r.list == first.list {
			of[n] = r
			n++
		}
	}
	for _, r := range of {
		if c.join(cl, r) {
			t.Fatalf("%s waits for another key", r.key)
		}
	}
	heir := newRequest(of[1].key, single{})
	if parts.place(heir); !c.join(cl, heir) {
		t.Fatal("a second operation on a key does not wait")
	}
	c.leave(of[1]) // the one in the middle gives the turn on
	if !heir.turn.WaitFor(0) || heir.settled {
		t.Error("the turn of the second operation has not come")
	}
	for _, r := range []*request{of[2], of[0], heir} {
		if again := newRequest(r.key, single{}); c.changing[first.list] == nil || parts.place(again) != c || !c.join(cl, again) {
			t.Errorf("%s is not being changed", r.key)
		}
		r.waiting = nil
		c.leave(r)
	}
	if c.changing[first.list] != nil {
		t.Error("a key is still being changed")
	}
}

// There are as many parts as processors need, within bounds, and a part's words are on one line that
// no other part touches.
func TestCombiningParts(t *testing.T) {
	for _, c := range []struct{ processors, want int }{{1, 8}, {8, 8}, {9, 16}, {64, 64}, {500, 64}} {
		if got := len(newCombining(c.processors)); got != c.want {
			t.Errorf("%d parts for %d processors, want %d", got, c.processors, c.want)
		}
	}
	part := reflect.TypeFor[combiningPart]()
	changing, _ := part.FieldByName("changing")
	end := changing.Offset + changing.Type.Size()
	if part.Size() < end+2*prefetch.LineBytes || !invariant.Enabled && end > prefetch.LineBytes {
		t.Errorf("%d bytes are used, of %d", end, part.Size())
	}
}

// An operation that does not fit into a message, or that the shard's primary refuses, is done here.
func TestSingleNotShipped(t *testing.T) {
	tables := served(t, 2, Config{})
	large := make([]byte, 100<<10)
	if err := tables[1].PutNow(ctx, []byte("large"), large); err != nil {
		t.Fatal(err)
	}
	if v, ok, err := tables[0].Lookup([]byte("large"), nil); !ok || err != nil || len(v) != len(large) {
		t.Fatal(len(v), ok, err)
	}
	c := openFarm(t, 2, 1) // where nobody serves
	tb := Open(c.Machine(1), createTable(t, c.Machine(0), Config{}))
	if err := tb.PutNow(ctx, []byte("k"), nil); err != nil {
		t.Fatal(err)
	}
	if got := len(checkTable(t, tb)); got != 1 {
		t.Fatal(got)
	}
}

// With one-two-sided operations a lookup costs one READ, and one message if the READ does not decide
// it.
func TestOneTwoSided(t *testing.T) {
	c := openFarm(t, 2, 1)
	anchor := createTable(t, c.Machine(0), Config{Buckets: 4, MaxLoad: 100, Neighbourhood: 2})
	home := Serve(c.Machine(0)).Open(anchor)
	Serve(c.Machine(1))
	const items = 16
	for i := range items {
		put(t, home, testKey(i), []byte("value"))
	}
	tb := OpenWith(c.Machine(1), anchor, Options{Lookups: lookup.OneTwoSided})
	one := func(i int) (found bool) {
		v, ok, err := tb.Lookup(testKey(i), make([]byte, 16))
		if err != nil || ok && string(v) != "value" {
			t.Fatal(v, ok, err)
		}
		return ok
	}
	for i := range 2 * items {
		one(i)
	}
	shipped, before := tb.Stats().Shipped, c.Machine(1).Stats()
	for i := range 2 * items {
		if found := one(i); found != (i < items) {
			t.Fatalf("key %d: %v", i, found)
		}
	}
	s := c.Machine(1).Stats().Sub(before)
	shipped = tb.Stats().Shipped - shipped
	if s.RemoteReads != 2*items || shipped == 0 || s.Messages < shipped {
		t.Errorf("%d reads, %d lookups shipped, %d messages for %d lookups", s.RemoteReads, shipped, s.Messages, 2*items)
	}
}

// If each of two machines takes the other for the shard's primary, they do not send an operation back
// and forth, and do not wait for each other.
func TestShippedIsDone(t *testing.T) {
	tables := served(t, 2, Config{})
	var away region.Addr // where machine 1 is the primary
	mustRun(t, tables[1].m, func(tx *txn.Tx) error {
		p, _, err := tx.Alloc(64, 0)
		away = p.Addr
		return err
	})
	o, err := tables[0].open()
	if err != nil {
		t.Fatal(err)
	}
	key := []byte("k")
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			r := newRequest(key, single{kind: singlePut, value: []byte{byte(i)}})
			tb, to := tables[i%2], away
			if i%2 == 1 {
				to = o.root.first.Addr
			}
			if err := tb.combine(tb.there, r, func(ops []single, _ bool) error {
				return tb.doThere(ctx, to, key, ops)
			}); err != nil || !r.ops[0].done {
				t.Error(r.ops[0].done, err)
			}
		})
	}
	wg.Wait()
	if got := len(checkTable(t, tables[0])); got != 1 {
		t.Error(got)
	}
}

// Invalid messages are refused.
func TestBadMessages(t *testing.T) {
	c := openFarm(t, 2, 1)
	anchor := createTable(t, c.Machine(0), Config{})
	Serve(c.Machine(0))
	var other region.Ptr
	mustRun(t, c.Machine(0), func(tx *txn.Tx) (err error) {
		other, _, err = tx.Alloc(anchorBytes, 0)
		return err
	})
	key := appendKey(nil, []byte("k"))
	long := appendKey(nil, make([]byte, KeyBytesMax+1))
	at := anchor.Append(nil)
	for _, m := range []struct {
		h   worker.HandlerID
		arg []byte
	}{
		{handlerLookup, nil}, {handlerLookup, at}, {handlerLookup, append(at, 9, 0, 1)},
		{handlerLookup, append(append(at, key...), 0)}, {handlerLookup, append(other.Append(nil), key...)},
		{handlerLookup, append(make([]byte, 16), key...)},
		{handlerLookups, nil}, {handlerLookups, append(at, 9, 0, 1)}, {handlerLookups, append(other.Append(nil), key...)},
		{handlerSingle, nil}, {handlerSingle, at}, {handlerSingle, append(append(at, key...), byte(singleKinds), 0, 0, 0, 0)},
		{handlerSingle, append(append(at, key...), 0, 9, 0, 0, 0)}, {handlerSingle, append(append(at, long...), 0, 0, 0, 0, 0)},
		{handlerSingle, append(append(other.Append(nil), key...), 0, 0, 0, 0, 0)},
		{handlerSplit, nil}, {handlerSplit, appendSplit(nil, anchor, region.Ptr{}, 0, anchor.Addr)},
		{handlerSplit, appendSplit(nil, anchor, anchor, depthMax, anchor.Addr)},
		{handlerSplit, appendSplit(nil, anchor, anchor, 0, anchor.Addr)}, // no header
		{handlerSplit, appendSplit(nil, other, anchor, 0, anchor.Addr)},
		{handlerSplit, appendSplit(nil, region.Ptr{}, anchor, 0, anchor.Addr)},
	} {
		if _, err := c.Machine(1).Ship(ctx, anchor.Addr, m.h, m.arg); err == nil {
			t.Errorf("handler %#x takes %x", m.h, m.arg)
		}
	}
}

func FuzzMessages(f *testing.F) {
	f.Add(appendSingles(nil, []single{{kind: singleInsert, value: []byte("v")}, {kind: singleDelete}}))
	f.Add(binary.LittleEndian.AppendUint16(nil, 7))
	f.Fuzz(func(t *testing.T, b []byte) {
		if ops, err := decodeSingles(b); err == nil {
			if again := appendSingles(nil, ops); string(again) != string(b) {
				t.Fatalf("%x decodes to %+v, which encodes to %x", b, ops, again)
			}
		}
		if key, rest, err := decodeKey(b); err == nil {
			if again := append(appendKey(nil, key), rest...); string(again) != string(b) {
				t.Fatalf("%x: key %x, rest %x", b, key, rest)
			}
		}
	})
}
