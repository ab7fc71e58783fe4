package main

import (
	"log/slog"
	"runtime/debug"
	"runtime/metrics"
)

// A spareMemory tracks the heap's spare memory: garbage that has not been collected yet, and
// room for new objects. Go lets it grow to the size of the memory in use, and keeps it even
// if the process is idle. Collecting it takes some milliseconds, and the next statements then
// have to allocate from the operating system again. So it is collected once when the process
// has become idle, and not again before much has been allocated.
type spareMemory struct {
	allocated uint64 // bytes since the process started, at the last check
	collected uint64 // bytes allocated since the process started, at the last collection
}

const (
	// idleBytes is the most that an idle process allocates between two checks.
	idleBytes = 4 << 20
	// spareBytes is the least spare memory for which a collection pays.
	spareBytes = 32 << 20
)

// giveBack checks how much has been allocated since the last check, and gives spare memory
// back if the process is idle.
func (s *spareMemory) giveBack(log *slog.Logger) {
	allocated, spare := heapNow()
	if !s.isDue(allocated, spare) {
		return
	}
	debug.FreeOSMemory()
	_, left := heapNow()
	log.Debug("idle: spare memory is given back", "bytes", spare-min(left, spare))
}

// isDue reports whether the process, which has allocated this many bytes since it started,
// should give spare bytes back.
func (s *spareMemory) isDue(allocated, spare uint64) bool {
	idle := allocated-s.allocated < idleBytes
	s.allocated = allocated
	if !idle || spare < spareBytes || allocated-s.collected < spareBytes {
		return false
	}
	s.collected = allocated
	return true
}

// heapNow returns the bytes allocated since the process started, and the bytes of the heap
// beyond those in use at the last collection.
func heapNow() (allocated, spare uint64) {
	samples := []metrics.Sample{
		{Name: "/gc/heap/allocs:bytes"},
		{Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(samples)
	live := samples[1].Value.Uint64()
	held := samples[2].Value.Uint64() + samples[3].Value.Uint64() + samples[4].Value.Uint64()
	return samples[0].Value.Uint64(), held - min(live, held)
}
