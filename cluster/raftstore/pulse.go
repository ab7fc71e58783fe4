package raftstore

import (
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// A pulse says when the library's time goes on. Each ring of its timer wakes up several threads of the process,
// so on an idle machine it rings only as often as the library has to do something: on the leader once in
// heartbeatTicks, and on others when they have not heard of the leader for restTicks.
type pulse struct {
	timer *time.Timer
	tick  time.Duration
	since time.Time // up to then, ticks have been counted
	span  int       // the ticks that the next ring stands for
	heard bool      // of the leader, since the timer last rang
}

// restTicks is less than the library's shortest wait for the leader, so that the last ticks of it are counted
// one by one.
const restTicks = electionTicks - 2

func newPulse(tick time.Duration) *pulse {
	return &pulse{timer: time.NewTimer(tick), tick: tick, since: time.Now(), span: 1}
}

// hear takes note of a message. After one that shows that the leader lives the library begins to count anew, and so does
// the pulse: if time before it counted, a follower would stand for election too early. A timer that rings once a
// tick goes on, because requests wait for it.
func (p *pulse) hear(m *raftpb.Message, leader uint64) {
	t := m.GetType()
	if m.GetFrom() != leader || t != raftpb.MsgApp && t != raftpb.MsgHeartbeat && t != raftpb.MsgSnap {
		return
	}
	p.heard, p.since = true, time.Now()
	if p.span > 1 {
		p.timer.Reset(time.Duration(p.span) * p.tick)
	}
}

// pass returns how many ticks have passed, and counts them. Those that the machine has slept through do not
// count: messages that have come meanwhile are not handled yet.
func (p *pulse) pass(now time.Time) int {
	n := min(p.span, int(now.Sub(p.since)/p.tick))
	p.since = now
	return n
}

// hears reports at a ring whether the leader lives. If the timer rings after several ticks it does not: each
// message of the leader would have set it anew.
func (p *pulse) hears() bool { return p.heard && p.span == 1 }

// set sets the timer.
func (p *pulse) set(now time.Time, span int) {
	p.since, p.span = now, span
	p.timer.Reset(time.Duration(span) * p.tick)
}

// ring lets ticks pass, and begins requests again that are due.
func (r *replica) ring(p *pulse, now time.Time) {
	r.pass(p, now)
	r.tick(now)
	p.set(now, r.rest(p.hears()))
	p.heard = false
}

func (r *replica) pass(p *pulse, now time.Time) {
	for range p.pass(now) {
		r.node.Tick()
		r.drive()
	}
}

// hurry ends a rest, if there is one: from now on the timer rings once a tick.
func (r *replica) hurry(p *pulse) {
	if p.span == 1 {
		return
	}
	now := time.Now()
	r.pass(p, now)
	p.set(now, 1)
}

// rest returns how many ticks at once are soon enough: several if this machine is the leader, or has just heard
// of it, and neither requests nor a change of the votes are under way.
func (r *replica) rest(heard bool) int {
	switch leader := r.store.leader.Load(); {
	case leader == raft.None || len(r.pending) > 0 || r.driven > 0:
		return 1
	case leader == raftID(r.store.founding.Machine):
		return heartbeatTicks
	case heard:
		return restTicks
	default:
		return 1
	}
}
