package raftstore

import (
	"testing"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// TestPulse: ticks count from the last ring, or from when the leader was heard of, and never more of them than the
// ring stands for.
func TestPulse(t *testing.T) {
	const tick, leader = time.Hour, 8 // it never rings by itself
	p := newPulse(tick)
	defer p.timer.Stop()
	check := func(after time.Duration, want int, what string) {
		t.Helper()
		if n := p.count(p.since.Add(after)); n != want {
			t.Errorf("%s counts %d ticks, want %d", what, n, want)
		}
	}
	check(tick, 1, "the first ring")
	p.set(time.Now(), restTicks)
	check(restTicks*tick, restTicks, "a ring after a rest")
	check(100*tick, restTicks, "a late ring")
	p.since = p.since.Add(-3 * tick)
	p.hear(&raftpb.Message{From: new(uint64(7))}, leader)
	check(restTicks*tick, restTicks, "a ring after a message of a follower")
	if p.heard || time.Since(p.since) < 3*tick {
		t.Error("a message of a follower counts as one of the leader")
	}
	p.hear(&raftpb.Message{From: new(uint64(leader))}, leader)
	if !p.heard || p.span != restTicks || time.Since(p.since) >= 3*tick {
		t.Error("a message of the leader does not make ticks count anew")
	}
	p.hurry()
	check(100*tick, 1, "a ring with a request under way")
}

// TestRest: a machine rests while it is the leader or hears of it, and nothing is under way.
func TestRest(t *testing.T) {
	const self, other = 1, 2
	for name, c := range map[string]struct {
		leader  uint64
		heard   bool
		pending int
		driven  int
		want    int
	}{
		"the leader":              {leader: raftID(self), want: heartbeatTicks},
		"a follower":              {leader: raftID(other), heard: true, want: restTicks},
		"the leader is silent":    {leader: raftID(other), want: 1},
		"no leader":               {leader: raft.None, heard: true, want: 1},
		"a request":               {leader: raftID(self), pending: 1, want: 1},
		"votes are being changed": {leader: raftID(self), driven: 3, want: 1},
	} {
		s := &Store{}
		s.founding.Machine = self
		s.leader.Store(c.leader)
		r := &replica{store: s, driven: c.driven, pending: map[requestID]*request{}}
		for i := range c.pending {
			r.pending[requestID{byte(i)}] = &request{}
		}
		if got := r.rest(c.heard); got != c.want {
			t.Errorf("%s: it rests for %d ticks, want %d", name, got, c.want)
		}
	}
}
