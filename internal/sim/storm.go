package sim

import "time"

// A Storm has faults of datagrams beyond loss, small delays and overtaking.
type Storm struct {
	// Doubled is how many of a thousand datagrams arrive twice. Late is how many are delayed by up
	// to LateMax, which may be longer than any lease.
	Doubled, Late int
	LateMax       time.Duration
}

// Storm sets the faults of datagrams from now on.
func (w *World) Storm(s Storm) { w.network.storm = s }

// late draws the extra delay of a datagram.
func (w *World) late() time.Duration {
	if s := w.network.storm; s.Late > 0 && w.rng.IntN(1000) < s.Late {
		return w.upTo(s.LateMax)
	}
	return 0
}

// isDoubled draws whether a datagram arrives twice.
func (w *World) isDoubled() bool {
	s := w.network.storm
	return s.Doubled > 0 && w.rng.IntN(1000) < s.Doubled
}
