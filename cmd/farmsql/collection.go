package main

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
)

// A collectionPace sets how much the heap may grow between two garbage collections (GOGC), unless the environment
// does. Go's default lets it grow by the memory in use. In a server most of the data is in regions and little on the
// heap, so statements that allocate would have it collected many times a second, with their caches. So the heap grows by
// growthLeast at least. What an idle process does not need of that is given back (spareMemory).
type collectionPace struct{ percent int }

const (
	// growthLeast is how much may be allocated between two collections, however little is in use.
	growthLeast = 128 << 20
	// percentDefault is Go's default; percentMost bounds what is set for a heap that may grow before the next look at it.
	percentDefault, percentMost = 100, 800
)

// set sets the percentage for the memory in use now. It leaves one that is nearly right, because to change it
// stops all goroutines.
func (c *collectionPace) set() {
	if os.Getenv("GOGC") != "" {
		return
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	if p := percentFor(live[0].Value.Uint64()); p > c.percent+c.percent/4 || p < c.percent-c.percent/4 {
		c.percent = p
		debug.SetGCPercent(p)
	}
}

// percentFor returns the percentage for a number of bytes in use.
func percentFor(live uint64) int {
	return int(min(max(growthLeast*100/max(live, 1), percentDefault), percentMost))
}
