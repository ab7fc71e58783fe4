package kv

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/bench"
	"github.com/farmsql/farmsql/rdma"
)

// By messages, each other machine is sent one for all of its keys of a batch, and nothing is read there.
func TestByMessage(t *testing.T) {
	const machines, calls = 3, 200
	for batch, most := range map[int]float64{1: 2, 32: 2 * (machines - 1) / 32.} {
		w := loaded(t, bench.TargetConfig{Machines: machines, Replicas: 1}, Config{Keys: 8000, Batch: batch, ByMessage: true})
		res := run(t, w, 1, calls)
		if res.Reads.Remote > 0.01 {
			t.Errorf("lookups of %d: %.3f remote reads for a key", batch, res.Reads.Remote)
		}
		if n := res.Reads.Messages; n > most || n < most/2 { // requests and replies
			t.Errorf("lookups of %d: %.3f messages for a key, want up to %.3f", batch, n, most)
		}
		if !strings.Contains(w.Name(), ", by messages, ") {
			t.Error(w.Name())
		}
		catchBroken(t, w)
	}
}

// Updates go on as they do without messages.
func TestByMessageUpdates(t *testing.T) {
	run(t, loaded(t, bench.TargetConfig{Machines: 2}, Config{Keys: 1000, ByMessage: true, Updates: 20}), 2, 500)
}

// Keys that do not fit a message go in several.
func TestMessagesAreSplit(t *testing.T) {
	const batch, valueBytes = 400, 4000
	w := loaded(t, bench.TargetConfig{Machines: 2, Replicas: 1}, Config{Keys: batch, Occupancy: 50, Batch: batch, ValueBytes: valueBytes, InlineBytes: 8, ByMessage: true})
	made, err := w.store.newExecutor(t.Context(), &bench.Thread{})
	if err != nil {
		t.Fatal(err)
	}
	e := made.(*messageExecutor)
	if e.keysMax >= w.cfg.Keys/4 || e.keysMax*answerBytes(valueBytes) > w.target.Machine(0).MessageBodyMax() {
		t.Fatalf("%d keys in a message", e.keysMax)
	}
	var keys [][]byte
	for i := range w.cfg.Keys {
		keys = append(keys, fillKey(make([]byte, keyBytes), i))
	}
	answered := make([]int, len(keys))
	err = e.lookupMany(keys, func(i int, value []byte, ok bool) {
		answered[i]++
		if err := w.checkAnswer(keys[i], i, value, ok); err != nil {
			t.Error(err)
		}
	})
	if err != nil || slices.ContainsFunc(answered, func(n int) bool { return n != 1 }) {
		t.Errorf("%v, %v", answered, err)
	}
	if len(e.asks) < 3 {
		t.Errorf("%d messages", len(e.asks)-1)
	}
}

// TestBadMessages: the server refuses garbage and requests whose answers are too long, and a client reports an answer
// that is lost.
func TestBadMessages(t *testing.T) {
	w := loaded(t, bench.TargetConfig{Machines: 2}, Config{Keys: 100, ByMessage: true})
	tb := w.store.(*nativeStore).tables[0]
	if _, err := (server{tb, answerBytes(32)}).serve(context.Background(), make([]byte, keyBytes+1)); !errors.Is(err, errMessage) {
		t.Errorf("a key that is cut off: %v", err)
	}
	if _, err := (server{tb, answerBytes(31)}).serve(context.Background(), fillKey(make([]byte, keyBytes), 7)); !errors.Is(err, errMessage) {
		t.Errorf("a value that is too long: %v", err)
	}
	k := &ask{primary: rdma.MachineID(1), which: []int{0}, keys: [][]byte{make([]byte, keyBytes+1)}}
	k.ask(w.target.Machine(0))
	if err := k.visit(answerBytes(32), nil); err == nil {
		t.Error("a refused request has an answer")
	}
}

func TestDecodeReply(t *testing.T) {
	const bytesEach = answerHeaderBytes + 8
	b := make([]byte, 2*bytesEach)
	putAnswer(b, []byte("value"), true)
	putAnswer(b[bytesEach:], nil, false)
	var got []string
	err := decodeReply(b, 2, bytesEach, func(_ int, value []byte, ok bool) {
		got = append(got, map[bool]string{true: string(value), false: "absent"}[ok])
	})
	if err != nil || !slices.Equal(got, []string{"value", "absent"}) {
		t.Errorf("%q, %v", got, err)
	}
	none := func(int, []byte, bool) {}
	for name, change := range map[string]func(b []byte) []byte{
		"short":    func(b []byte) []byte { return b[1:] },
		"long":     func(b []byte) []byte { return append(b, 0) },
		"found":    func(b []byte) []byte { b[0] = 2; return b },
		"too long": func(b []byte) []byte { b[1] = 9; return b },
	} {
		if err := decodeReply(change(bytes.Clone(b)), 2, bytesEach, none); !errors.Is(err, errMessage) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestByMessageIsNative(t *testing.T) {
	sql := loaded(t, bench.TargetConfig{API: bench.SQL}, Config{Keys: 1}).target
	if _, err := New(sql, Config{ByMessage: true}); err == nil || !strings.Contains(err.Error(), "for the API") {
		t.Error(err)
	}
}
