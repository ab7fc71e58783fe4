package bench

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Bounds of the histograms. Three digits are kept from 100 ns on only if the
// library's lowest discernible value is smaller than that.
const (
	latencyUnit   = 1 // latencies are recorded in units of 1 ns
	latencyMax    = 100 * time.Second
	latencyDigits = 3
)

func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(latencyUnit, int64(latencyMax), latencyDigits)
}

// A record is the measurement of one or several threads.
type record struct {
	Kinds []kindRecord
	// Series counts the transactions that ended in each millisecond.
	Series []uint32
	// Arrivals is set in the open loop.
	Arrivals *arrivalRecord `json:",omitempty"`
}

type kindRecord struct {
	Latency histogram
	Misses  uint64
}

// A histogram is a histogram of latencies with a text form.
type histogram struct{ *hdrhistogram.Histogram }

// MarshalText implements encoding.TextMarshaler: it is base 64.
func (h histogram) MarshalText() ([]byte, error) {
	return h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (h *histogram) UnmarshalText(text []byte) (err error) {
	h.Histogram, err = hdrhistogram.Decode(text)
	return err
}

func newRecord(kinds int) *record {
	r := &record{Kinds: make([]kindRecord, kinds)}
	for i := range r.Kinds {
		r.Kinds[i].Latency.Histogram = newHistogram()
	}
	return r
}

// add counts n transactions that ended at the given point of the measured time.
func (r *record) add(kind int, latency, at time.Duration, missed bool, n int) {
	k := &r.Kinds[kind]
	// Cannot fail: the value is within the bounds.
	_ = k.Latency.RecordValues(int64(min(max(latency, 0), latencyMax)), int64(n))
	if missed {
		k.Misses += uint64(n)
	}
	ms := int(at / time.Millisecond)
	for ms >= len(r.Series) {
		r.Series = append(r.Series, 0)
	}
	r.Series[ms] += uint32(n)
}

// merge adds another thread's measurements.
func (r *record) merge(other *record) {
	for i := range r.Kinds {
		r.Kinds[i].Latency.Merge(other.Kinds[i].Latency.Histogram)
		r.Kinds[i].Misses += other.Kinds[i].Misses
	}
	if other.Arrivals != nil {
		if r.Arrivals == nil {
			r.Arrivals = newArrivalRecord()
		}
		r.Arrivals.merge(other.Arrivals)
	}
	for len(r.Series) < len(other.Series) {
		r.Series = append(r.Series, 0)
	}
	for i, n := range other.Series {
		r.Series[i] += n
	}
}
