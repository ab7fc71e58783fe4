package hash

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/lookup"
)

// Messages are for networks where a READ costs more than a key of a message.
func TestAsksFrom(t *testing.T) {
	tcp := rdma.Costs{Read: 2 * time.Microsecond, Wait: 8 * time.Microsecond, Message: 20 * time.Microsecond}
	card := rdma.Costs{Read: 200 * time.Nanosecond, Wait: 700 * time.Nanosecond, Message: 2 * time.Microsecond}
	for _, c := range []struct {
		way   lookup.Way
		costs rdma.Costs
		want  int
	}{
		{lookup.Measured, tcp, 9}, {lookup.Measured, card, math.MaxInt}, {lookup.TwoSided, card, 1},
		{lookup.OneSided, tcp, math.MaxInt}, {lookup.OneTwoSided, tcp, math.MaxInt},
	} {
		if got := asksFrom(c.way, c.costs); got != c.want {
			t.Errorf("%v: from %d keys on, want %d", c.way, got, c.want)
		}
	}
}

// LookupMany asks the primary by one message, and reads nothing; a way of READs alone sends none.
func TestLookupManyAsks(t *testing.T) {
	const items = 64
	_, open := crowded(t, items)
	var keys [][]byte
	for i := range 2 * items {
		keys = append(keys, testKey(i))
	}
	for _, w := range []lookup.Way{lookup.TwoSided, lookup.OneSided} {
		tb := open(w)
		lookUpItems(t, tb, keys, items)
		reads, sent := tb.m.Stats().RemoteReads, tb.Stats().Shipped
		lookUpItems(t, tb, keys, items)
		reads, sent = tb.m.Stats().RemoteReads-reads, tb.Stats().Shipped-sent
		if isAsked := w == lookup.TwoSided; isAsked != (reads == 0) || isAsked != (sent == 1) {
			t.Errorf("%v: %d READs, %d messages", w, reads, sent)
		}
	}
}

// lookUpItems looks keys up, of which the first have values.
func lookUpItems(t *testing.T, tb *Table, keys [][]byte, items int) {
	t.Helper()
	n := 0
	err := tb.LookupMany(keys, func(i int, v []byte, ok bool) {
		n++
		if ok != (i < items) || ok && !bytes.Equal(v, valueOf(i)) {
			t.Errorf("key %d: %q, %v", i, v, ok)
		}
	})
	if err != nil || n != len(keys) {
		t.Errorf("%d answers for %d keys: %v", n, len(keys), err)
	}
}

// READs answer if the primary knows no such message, as a machine of the version before, or its reply would be too long.
func TestLookupManyWithoutAnAnswer(t *testing.T) {
	c := openFarm(t, 2, 1)
	anchor := createTable(t, c.Machine(0), Config{ValueBytes: 8})
	home := Open(c.Machine(0), anchor)
	var keys [][]byte
	for i := range 64 {
		put(t, home, testKey(i), valueOf(i))
		keys = append(keys, testKey(i))
	}
	tb := OpenWith(c.Machine(1), anchor, Options{Lookups: lookup.TwoSided})
	lookUpItems(t, tb, keys, len(keys))
	Serve(c.Machine(0))
	long := bytes.Repeat([]byte("long"), 1000)
	for _, key := range keys {
		put(t, home, key, long)
	}
	n := 0
	err := tb.LookupMany(keys, func(_ int, v []byte, ok bool) {
		if n++; !ok || !bytes.Equal(v, long) {
			t.Errorf("%d bytes, %v", len(v), ok)
		}
	})
	if err != nil || n != len(keys) {
		t.Errorf("%d answers: %v", n, err)
	}
}

// A primary that has no part in a key any more says so, and a READ finds the key and learns of the split. When all is known each primary
// gets one message.
func TestLookupManyLearnsOfSplits(t *testing.T) {
	c := openFarm(t, 3, 1)
	places := make([]region.Addr, 2)
	for i, m := range []int{0, 2} {
		Serve(c.Machine(m))
		mustRun(t, c.Machine(m), func(tx *txn.Tx) error {
			p, _, err := tx.Alloc(64, 0)
			places[i] = p.Addr
			return err
		})
	}
	anchor := createTable(t, c.Machine(0), Config{ValueBytes: 8, Buckets: 4, Places: places})
	tb := OpenWith(c.Machine(1), anchor, Options{Lookups: lookup.TwoSided})
	var keys [][]byte
	lookUpItems(t, tb, [][]byte{testKey(0)}, 0) // learns the first shard
	home := Open(c.Machine(0), anchor)
	for i := range 400 {
		put(t, home, testKey(i), valueOf(i))
		keys = append(keys, testKey(i))
	}
	shards := tb.Stats().Shards
	for range 10 {
		lookUpItems(t, tb, keys, len(keys))
	}
	if n := tb.Stats().Shards; n <= shards {
		t.Errorf("%d shards are known, and before the splits %d", n, shards)
	}
	reads, sent := tb.m.Stats().RemoteReads, tb.Stats().Shipped
	lookUpItems(t, tb, keys, len(keys))
	if reads, sent := tb.m.Stats().RemoteReads-reads, tb.Stats().Shipped-sent; reads > 0 || sent != 2 {
		t.Errorf("%d READs and %d messages after all is known", reads, sent)
	}
}

func TestAnswersOfMany(t *testing.T) {
	b := appendAnswer(appendAnswer(appendAnswer(nil, answerFound, []byte("value")), answerMoved, nil), answerAbsent, nil)
	var got string
	for rest := b; len(rest) > 0; {
		answer, value, after, err := decodeAnswer(rest)
		if err != nil {
			t.Fatal(err)
		}
		got += fmt.Sprintf("%d %s;", answer, value)
		rest = after
	}
	if want := "1 value;2 ;0 ;"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, bad := range [][]byte{{}, {answerFound, 0, 0, 0}, {answerMoved + 1, 0, 0, 0, 0}, b[:7]} {
		if _, _, _, err := decodeAnswer(bad); !errors.Is(err, errMessage) {
			t.Errorf("%x: %v", bad, err)
		}
	}
}

func FuzzDecodeAnswer(f *testing.F) {
	f.Add(appendAnswer(nil, answerFound, []byte("value")))
	f.Fuzz(func(t *testing.T, b []byte) {
		answer, value, rest, err := decodeAnswer(b)
		if err == nil && !bytes.Equal(append(appendAnswer(nil, answer, value), rest...), b) {
			t.Errorf("%x is %d, %x, %x", b, answer, value, rest)
		}
	})
}
