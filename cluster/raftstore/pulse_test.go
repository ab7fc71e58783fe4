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
		if n := p.pass(p.since.Add(after)); n != want {
			t.Errorf("%s counts %d ticks, want %d", what, n, want)
		}
	}
	check(tick, 1, "the first ring")
	p.set(time.Now(), restTicks)
	check(restTicks*tick, restTicks, "a ring after a rest")
	check(100*tick, restTicks, "a late ring")
	for name, m := range map[string]*raftpb.Message{
		"a follower":    {From: new(uint64(7)), Type: raftpb.MsgHeartbeat.Enum()},
		"a former life": {From: new(uint64(leader)), Type: raftpb.MsgPreVote.Enum()},
	} {
		if isOfLeader(m, leader) {
			t.Errorf("a message of %s counts as a sign of the leader", name)
		}
	}
	if !isOfLeader(&raftpb.Message{From: new(uint64(leader)), Type: raftpb.MsgHeartbeat.Enum()}, leader) {
		t.Error("a heartbeat is no sign of the leader")
	}
	p.set(time.Now().Add(-3*tick), restTicks)
	p.hear(false)
	if !p.heard || p.span != restTicks || time.Since(p.since) >= 3*tick {
		t.Error("a heartbeat does not make ticks count anew")
	}
	p.set(time.Now(), 1)
	check(100*tick, 1, "a ring with a request under way")
}

// TestSilentLeader: the ring that follows a rest finds the leader silent, although it was heard of before the
// rest, so that the last ticks before an election are counted one by one.
func TestSilentLeader(t *testing.T) {
	s := &Store{}
	s.leader.Store(raftID(2))
	r := &replica{store: s}
	p := newPulse(time.Hour)
	defer p.timer.Stop()
	ring := func() {
		p.set(time.Now(), r.rest(p.hears()))
		p.heard = false
	}
	p.hear(false)
	if ring(); p.span != restTicks {
		t.Fatalf("a machine that hears of the leader rests for %d ticks", p.span)
	}
	p.hear(false) // the last
	if ring(); p.span != 1 {
		t.Errorf("a machine that has not heard of the leader for %d ticks rests again, for %d", restTicks, p.span)
	}
	p.hear(false)
	if ring(); p.span != restTicks {
		t.Errorf("when the leader is heard of again, it rests for %d ticks", p.span)
	}
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
