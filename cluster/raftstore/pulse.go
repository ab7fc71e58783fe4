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

// hear takes note of a message. After one of the leader the library begins to count anew, and so does the pulse:
// if time before it counted, a follower would stand for election too early.
func (p *pulse) hear(m *raftpb.Message, leader uint64) {
	if m.GetFrom() == leader {
		p.heard = true
		p.set(time.Now(), p.span)
	}
}

// hurry makes the timer ring once a tick.
func (p *pulse) hurry() {
	if p.span > 1 {
		p.set(time.Now(), 1)
	}
}

// count returns how many ticks have passed at a ring. Those that the machine has slept through do not count:
// messages that have come meanwhile are not handled yet.
func (p *pulse) count(now time.Time) int {
	return min(p.span, int(now.Sub(p.since)/p.tick))
}

// set sets the timer.
func (p *pulse) set(now time.Time, span int) {
	p.since, p.span = now, span
	p.timer.Reset(time.Duration(span) * p.tick)
}

// ring lets ticks pass.
func (r *replica) ring(p *pulse, now time.Time) {
	for range p.count(now) {
		r.node.Tick()
		r.drive()
	}
	r.tick(now)
	p.set(now, r.rest(p.heard))
	p.heard = false
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
