package txn

import "sync/atomic"

// Stats counts what a machine's transactions did since it started.
type Stats struct {
	// Commits counts a transaction that is in doubt for its client once it has committed. If this
	// machine never learns the outcome, Stats do not count it.
	Commits uint64
	// Aborts by Reason.
	Aborts [Reasons]uint64
	// Retries counts how often Commit prepared again: another transaction had locked or changed an
	// index object.
	Retries uint64
	// LocalReads and RemoteReads count objects read from regions of this
	// machine and with an RDMA READ.
	LocalReads, RemoteReads uint64
	// RoundTrips counts how often reads and validations waited for other machines. READs
	// that are posted together count once, and so do a VALIDATE message and its reply.
	RoundTrips uint64
	// Messages counts messages sent, Records log records written.
	Messages, Records uint64
}

// Sub subtracts the earlier counts from s: it returns what was counted in between.
func (s Stats) Sub(before Stats) Stats {
	s.Commits -= before.Commits
	for i := range s.Aborts {
		s.Aborts[i] -= before.Aborts[i]
	}
	s.Retries -= before.Retries
	s.LocalReads -= before.LocalReads
	s.RemoteReads -= before.RemoteReads
	s.RoundTrips -= before.RoundTrips
	s.Messages -= before.Messages
	s.Records -= before.Records
	return s
}

// counters are one stripe's part of Stats.
type counters struct {
	commits, retries atomic.Uint64
	aborts           [Reasons]atomic.Uint64
}

// traffic is one worker's part of Stats: what it exchanged with others.
type traffic struct {
	remoteReads, roundTrips, messages, records atomic.Uint64
}

func (c *counters) addTo(s *Stats) {
	s.Commits += c.commits.Load()
	for i := range c.aborts {
		s.Aborts[i] += c.aborts[i].Load()
	}
	s.Retries += c.retries.Load()
}

func (t *traffic) addTo(s *Stats) {
	s.RemoteReads += t.remoteReads.Load()
	s.RoundTrips += t.roundTrips.Load()
	s.Messages += t.messages.Load()
	s.Records += t.records.Load()
}

// Stats returns the machine's counters.
func (m *Machine) Stats() Stats {
	var s Stats
	for i := range m.stripes {
		m.stripes[i].addTo(&s)
	}
	for _, w := range m.workers {
		w.stats.addTo(&s)
	}
	return s
}
