package txn

import (
	"sync/atomic"

	"github.com/farmsql/farmsql/internal/prefetch"
	"github.com/farmsql/farmsql/txn/worker"
)

// Stats counts what a machine's transactions did since it started.
type Stats struct {
	// Commits counts committed transactions. A transaction that is in doubt for its client counts
	// once this machine learns that it has committed.
	Commits uint64
	// Aborts by Reason.
	Aborts [Reasons]uint64
	// Retries counts the further attempts of Commit, made because another transaction had locked or
	// changed an index object.
	Retries uint64
	worker.Traffic
}

// Sub subtracts earlier counts from s, and returns the counts of the time in between.
func (s Stats) Sub(before Stats) Stats {
	s.Commits -= before.Commits
	for i := range s.Aborts {
		s.Aborts[i] -= before.Aborts[i]
	}
	s.Retries -= before.Retries
	s.Traffic = s.Traffic.Sub(before.Traffic)
	return s
}

// counts are what the transactions of one stripe add to Stats.
type counts struct {
	_                prefetch.Pad
	commits, retries atomic.Uint64
	aborts           [Reasons]atomic.Uint64
	_                prefetch.Pad
}

func (c *counts) addTo(s *Stats) {
	s.Commits += c.commits.Load()
	for i := range c.aborts {
		s.Aborts[i] += c.aborts[i].Load()
	}
	s.Retries += c.retries.Load()
}

// Stats returns the machine's counters.
func (m *Machine) Stats() Stats {
	s := Stats{Traffic: m.Traffic()}
	for i := range m.counts {
		m.counts[i].addTo(&s)
	}
	return s
}
