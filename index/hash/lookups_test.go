package hash

import (
	"errors"
	"testing"
)

// compareLookups checks that each key is answered once, in time, and as Lookup answers it.
func compareLookups(t *testing.T, tb *Table, concurrent int, keys [][]byte) {
	t.Helper()
	answers := make([]int, len(keys))
	l := tb.Lookups(concurrent, func(i int, value []byte, ok bool) {
		compareAnswer(t, tb, keys[i], value, ok)
		answers[i]++
	})
	most := max(groups, min(concurrent, ConcurrentMax)) // under way
	for i, key := range keys {
		if err := l.Start(key); err != nil {
			t.Fatal(err)
		}
		if late := i - most + 1; late >= 0 && answers[late] != 1 {
			t.Fatalf("%d concurrent lookups: key %d has %d answers when key %d has been begun", concurrent, late, answers[late], i)
		}
	}
	if err := l.Finish(); err != nil {
		t.Fatal(err)
	}
	for i, n := range answers {
		if n != 1 {
			t.Fatalf("%d concurrent lookups: key %d has %d answers", concurrent, i, n)
		}
	}
}

func startAll(t *testing.T, l *Lookups, keys [][]byte) {
	t.Helper()
	for _, key := range keys {
		if err := l.Start(key); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Finish(); err != nil {
		t.Fatal(err)
	}
}

// TestLookupsLetGo: an idle Lookups refers to no keys and does not prevent the reuse of memory. An
// operation ends even if many keys are looked up without Finish.
func TestLookupsLetGo(t *testing.T) {
	tb := newTable(t, Config{})
	answers := 0
	l := tb.Lookups(8, func(int, []byte, bool) { answers++ })
	if err := l.Finish(); err != nil {
		t.Error(err)
	}
	for i := range keysOfOperation {
		if err := l.Start([]byte("none")); err != nil {
			t.Fatal(err)
		}
		if isOpen := l.pipeline != nil; isOpen != (i < keysOfOperation-1) {
			t.Fatalf("after %d keys an operation is open: %v", i+1, isOpen)
		}
	}
	if answers != keysOfOperation {
		t.Errorf("%d answers", answers)
	}
	startAll(t, l, [][]byte{[]byte("one"), []byte("two"), []byte("three")})
	if l.pipeline != nil {
		t.Error("idle lookups keep a pipeline")
	}
	for _, keys := range l.keys {
		for _, key := range keys {
			if key != nil {
				t.Errorf("idle lookups keep the key %q", key)
			}
		}
	}
}

// TestLookupsFail: if the table is gone, the lookups under way end, and each later one fails.
func TestLookupsFail(t *testing.T) {
	tb := newTable(t, Config{})
	answers := 0
	l := tb.Lookups(groups, func(int, []byte, bool) { answers++ })
	start := func() error { return l.Start([]byte("none")) }
	if err := start(); err != nil {
		t.Fatal(err)
	}
	if err := Open(tb.m, tb.Anchor()).Destroy(ctx, nil); err != nil {
		t.Fatal(err)
	}
	if err := l.Finish(); !errors.Is(err, ErrDestroyed) {
		t.Errorf("finishing: %v", err)
	}
	if err := errors.Join(start(), l.Finish()); !errors.Is(err, ErrDestroyed) {
		t.Errorf("beginning and finishing: %v", err)
	}
	var err error
	for i := 0; err == nil && i < groups; i++ {
		err = start()
	}
	if !errors.Is(err, ErrDestroyed) || l.pipeline != nil {
		t.Errorf("beginning: %v, open: %v", err, l.pipeline != nil)
	}
	if err := l.Finish(); err != nil || answers > 0 {
		t.Errorf("%d answers, %v", answers, err)
	}
	never := Open(tb.m, tb.Anchor()).Lookups(groups, nil)
	if err := errors.Join(never.Start([]byte("none")), never.Finish()); !errors.Is(err, ErrDestroyed) {
		t.Errorf("lookups of a table that is gone: %v", err)
	}
}

// TestLookupsInVisit: visit cannot use its Lookups. The attempt does not disturb the lookups under
// way. A panic of visit leaves no operation open.
func TestLookupsInVisit(t *testing.T) {
	tb := newTable(t, Config{})
	answers, panics := 0, false
	var l *Lookups
	l = tb.Lookups(groups, func(int, []byte, bool) {
		if panics {
			panic("visit")
		}
		answers++
		if err := l.Start([]byte("other")); !errors.Is(err, errVisiting) {
			t.Errorf("Start in visit: %v", err)
		}
		if err := l.Finish(); !errors.Is(err, errVisiting) {
			t.Errorf("Finish in visit: %v", err)
		}
	})
	keys := [][]byte{[]byte("one"), []byte("two"), []byte("three"), []byte("four"), []byte("five")}
	if startAll(t, l, keys); answers != len(keys) {
		t.Errorf("%d answers to %d keys", answers, len(keys))
	}
	func() {
		defer func() { _ = recover() }()
		panics = true
		startAll(t, l, keys)
		t.Error("no panic")
	}()
	if l.pipeline != nil {
		t.Error("an operation is open after a panic")
	}
	panics = false
	if startAll(t, l, keys); answers != 2*len(keys) {
		t.Errorf("%d answers to %d keys", answers, 2*len(keys))
	}
}
