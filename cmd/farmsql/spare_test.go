package main

import (
	"log/slog"
	"runtime/debug"
	"testing"
)

// An idle process gives back spare memory once. A busy process does not.
func TestSpareMemoryIsDue(t *testing.T) {
	const much = 100 << 20
	var s spareMemory
	for i, look := range []struct {
		allocated, spare uint64
		want             bool
	}{
		{much, much, false}, // busy since the last look
		{much + idleBytes/2, spareBytes - 1, false},
		{much + idleBytes, much, true},
		{much + idleBytes + 1, much, false}, // it cannot be given back: no second try
		{much + idleBytes*2, much, false},
		{much * 2, much, false},
		{much*2 + 1, much, true},
	} {
		if got := s.isDue(look.allocated, look.spare); got != look.want {
			t.Errorf("look %d: %t, want %t", i, got, look.want)
		}
	}
}

// burst keeps the test's allocations on the heap.
var burst []byte

// TestSpareMemoryIsGivenBack: after a burst of work the heap holds little besides what is in use.
func TestSpareMemoryIsGivenBack(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // so that all of the burst is there in the end
	log := slog.New(slog.DiscardHandler)
	for range 64 {
		burst = make([]byte, 1<<20)
	}
	burst = nil
	var s spareMemory
	s.giveBack(log) // sees that much has been allocated
	if _, spare := heapNow(); spare < spareBytes {
		t.Fatalf("%d bytes are spare after the burst", spare)
	}
	s.giveBack(log)
	if _, spare := heapNow(); spare >= spareBytes {
		t.Errorf("%d bytes are spare in an idle process", spare)
	}
}
