package bench

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Bounds of the histograms. Three digits hold from 100 ns on only if what the
// library calls the lowest discernible value is finer than that.
const (
	latencyUnit   = 1 // ns
	latencyMax    = 100 * time.Second
	latencyDigits = 3
)

func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(latencyUnit, int64(latencyMax), latencyDigits)
}

// A record is what one thread has measured.
type record struct {
	kinds []kindRecord
	// series counts the transactions that ended in each millisecond.
	series []uint32
}

type kindRecord struct {
	latency *hdrhistogram.Histogram
	misses  uint64
}

func newRecord(kinds int) *record {
	r := &record{kinds: make([]kindRecord, kinds)}
	for i := range r.kinds {
		r.kinds[i].latency = newHistogram()
	}
	return r
}

// add counts a transaction that ended at the given time of the measured ones.
func (r *record) add(kind int, latency, at time.Duration, missed bool) {
	k := &r.kinds[kind]
	// Cannot fail: the value is within the bounds.
	_ = k.latency.RecordValue(int64(min(max(latency, 0), latencyMax)))
	if missed {
		k.misses++
	}
	ms := int(at / time.Millisecond)
	for ms >= len(r.series) {
		r.series = append(r.series, 0)
	}
	r.series[ms]++
}

// merge adds what another thread has measured.
func (r *record) merge(other *record) {
	for i := range r.kinds {
		r.kinds[i].latency.Merge(other.kinds[i].latency)
		r.kinds[i].misses += other.kinds[i].misses
	}
	for len(r.series) < len(other.series) {
		r.series = append(r.series, 0)
	}
	for i, n := range other.series {
		r.series[i] += n
	}
}
