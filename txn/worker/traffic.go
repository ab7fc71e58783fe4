package worker

import "sync/atomic"

// Traffic counts what a machine read, and what it exchanged with others, since it started.
type Traffic struct {
	// LocalReads counts objects read from regions of this machine, RemoteReads READs of objects:
	// neighbours that are read together count once.
	LocalReads, RemoteReads uint64
	// RoundTrips counts the waits of reads and validations for other machines. READs that are
	// posted together count once, and so do a VALIDATE message and its reply.
	RoundTrips uint64
	// Messages counts messages sent, Records log records written.
	Messages, Records uint64
}

// Sub subtracts the earlier counts from t: it returns what was counted in between.
func (t Traffic) Sub(before Traffic) Traffic {
	t.LocalReads -= before.LocalReads
	t.RemoteReads -= before.RemoteReads
	t.RoundTrips -= before.RoundTrips
	t.Messages -= before.Messages
	t.Records -= before.Records
	return t
}

// counters are one worker's part of Traffic.
type counters struct {
	remoteReads, roundTrips, messages, records atomic.Uint64
}

// Traffic returns the machine's counts.
func (m *Machine) Traffic() (t Traffic) {
	for i := range m.stripes {
		t.LocalReads += m.stripes[i].localReads()
	}
	for _, w := range m.workers {
		t.RemoteReads += w.stats.remoteReads.Load()
		t.RoundTrips += w.stats.roundTrips.Load()
		t.Messages += w.stats.messages.Load()
		t.Records += w.stats.records.Load()
	}
	return t
}

// CountRoundTrip counts one wait for other machines.
func (w *Worker) CountRoundTrip() { w.stats.roundTrips.Add(1) }

// CountRemoteReads counts n READs of objects.
func (w *Worker) CountRemoteReads(n int) { w.stats.remoteReads.Add(uint64(n)) }
