package main

import (
	"log/slog"
	"runtime/debug"
	"runtime/metrics"
)

// A spareMemory is what the heap holds besides the objects in use: garbage that has not been
// collected yet, and room for objects to come. Go lets it become as large as what is in use
// and keeps it, however idle the process is. To collect costs some milliseconds and makes the
// next statements allocate from the operating system again, so it is done once when the
// process has become idle, and not again before much has been allocated.
type spareMemory struct {
	allocated uint64 // bytes since the process started, at the last look
	collected uint64 // the same, when it was last given back
}

const (
	// idleBytes is what an idle process allocates at most between two looks.
	idleBytes = 4 << 20
	// spareBytes is how much is worth a collection.
	spareBytes = 32 << 20
)

// giveBack looks how much has been allocated since the last look, and gives back what is
// spare if the process is idle.
func (s *spareMemory) giveBack(log *slog.Logger) {
	allocated, spare := heapNow()
	if !s.isDue(allocated, spare) {
		return
	}
	debug.FreeOSMemory()
	_, left := heapNow()
	log.Debug("idle: spare memory is given back", "bytes", spare-min(left, spare))
}

// isDue reports whether spare bytes are to be given back by a process that has allocated so
// many since it started.
func (s *spareMemory) isDue(allocated, spare uint64) bool {
	idle := allocated-s.allocated < idleBytes
	s.allocated = allocated
	if !idle || spare < spareBytes || allocated-s.collected < spareBytes {
		return false
	}
	s.collected = allocated
	return true
}

// heapNow returns how many bytes have been allocated since the process started, and how many
// the heap holds besides those that were in use when they were last collected.
func heapNow() (allocated, spare uint64) {
	samples := []metrics.Sample{
		{Name: "/gc/heap/allocs:bytes"},
		{Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(samples)
	held := samples[2].Value.Uint64() + samples[3].Value.Uint64() + samples[4].Value.Uint64()
	return samples[0].Value.Uint64(), held - min(samples[1].Value.Uint64(), held)
}
