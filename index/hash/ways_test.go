package hash

import (
	"errors"
	"fmt"
	"testing"

	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/lookup"
)

// crowded returns a handle of the first of two machines on a table there, of which many keys are in chains and some outside
// of their slots, and a function that opens one of the second machine.
func crowded(t *testing.T, keys int) (home *Table, open func(lookup.Way) *Table) {
	t.Helper()
	c := openFarm(t, 2, 1)
	anchor := createTable(t, c.Machine(0), Config{Buckets: 4, MaxLoad: 100, Neighbourhood: 2, ValueBytes: 8})
	home = Serve(c.Machine(0)).Open(anchor)
	for i := range keys {
		put(t, home, testKey(i), valueOf(i))
	}
	return home, func(w lookup.Way) *Table { return OpenWith(c.Machine(1), anchor, Options{Lookups: w}) }
}

// valueOf is outside of its slot for every third key.
func valueOf(i int) []byte {
	if i%3 == 0 {
		return fmt.Appendf(nil, "a long value %d", i)
	}
	return fmt.Append(nil, i)
}

// A cost is what one lookup takes.
type cost struct{ reads, asked uint64 }

// A lookup at another machine costs what its way says, in a transaction and outside: all READs, one READ and then a
// message, or one message.
func TestCostsOfWays(t *testing.T) {
	const items = 16
	home, open := crowded(t, items)
	for _, inTx := range []bool{false, true} {
		measure := func(tb *Table, i int) (c cost) {
			reads, asked := tb.m.Stats().RemoteReads, tb.client.Asked()
			v, ok, err := getOrLookUp(tb, testKey(i), inTx)
			if err != nil || ok != (i < items) || ok && string(v) != string(valueOf(i)) {
				t.Fatalf("key %d: %q, %v, %v", i, v, ok, err)
			}
			return cost{tb.m.Stats().RemoteReads - reads, tb.client.Asked() - asked}
		}
		handles := map[lookup.Way]*Table{}
		for _, w := range []lookup.Way{lookup.Measured, lookup.OneSided, lookup.OneTwoSided, lookup.TwoSided} {
			handles[w] = open(w)
			for i := range 2 * items { // so that the directory is known
				measure(handles[w], i)
			}
		}
		chased := 0
		for i := range 2 * items {
			all := measure(handles[lookup.OneSided], i)
			if all.reads == 0 || all.asked != 0 {
				t.Fatalf("key %d by READs alone: %v", i, all)
			}
			want := cost{1, 0}
			if all.reads > 1 {
				want.asked = 1
				chased++
			}
			if got := measure(handles[lookup.OneTwoSided], i); got != want {
				t.Errorf("in a transaction %v, key %d by one READ and a message: %v, want %v", inTx, i, got, want)
			}
			if got, want := measure(handles[lookup.TwoSided], i), (cost{0, 1}); got != want {
				t.Errorf("in a transaction %v, key %d by a message: %v, want %v", inTx, i, got, want)
			}
			want = all
			if most := uint64(home.m.Costs().StepsPerMessage()); all.reads > most {
				want = cost{most, 1}
			}
			if got := measure(handles[lookup.Measured], i); got != want {
				t.Errorf("in a transaction %v, key %d as measured: %v, want %v", inTx, i, got, want)
			}
		}
		if chased < items/2 || chased == 2*items {
			t.Errorf("%d of %d lookups need more than one READ", chased, 2*items)
		}
	}
}

// getOrLookUp looks a key up, in a transaction that is then aborted, or outside of one.
func getOrLookUp(tb *Table, key []byte, inTx bool) (value []byte, ok bool, err error) {
	if !inTx {
		return tb.Lookup(key, nil)
	}
	tx := tb.m.Begin()
	defer tx.Abort()
	value, ok, err = tb.Get(tx, key)
	return append([]byte(nil), value...), ok, err
}

// A transaction validates the owner's answers as it does its own reads: it aborts if an answer has changed
// at its commit, and only then.
func TestAskedAnswersAreValidated(t *testing.T) {
	const items = 16
	for _, w := range []lookup.Way{lookup.OneSided, lookup.OneTwoSided, lookup.TwoSided} {
		home, open := crowded(t, items)
		tb := open(w)
		for i := range 2 * items {
			for _, changes := range []int{i, (i + 1) % (2 * items)} {
				tx := tb.m.Begin()
				if _, ok, err := tb.Get(tx, testKey(i)); err != nil || ok != (i < items) {
					t.Fatal(ok, err)
				}
				put(t, home, testKey(changes), []byte("new"))
				if _, _, err := tb.Get(tx, testKey((i+2)%(2*items))); err != nil { // what is read alone is true when it is read
					t.Fatal(err)
				}
				err := tx.Commit(ctx)
				var abort *txn.AbortError
				if isAbort := errors.As(err, &abort) && abort.Reason == txn.ReasonAnswer; isAbort != (changes == i) || err != nil && !isAbort {
					t.Errorf("%v: key %d, and key %d changes: %v", w, i, changes, err)
				}
				restore(t, home, changes, items)
			}
		}
	}
}

// restore gives key i the value that crowded has given it, or removes it if that has given it none.
func restore(t *testing.T, tb *Table, i, items int) {
	t.Helper()
	mustRun(t, tb.m, func(tx *txn.Tx) error {
		if i < items {
			return tb.Put(tx, testKey(i), valueOf(i))
		}
		_, err := tb.Delete(tx, testKey(i))
		return err
	})
}
