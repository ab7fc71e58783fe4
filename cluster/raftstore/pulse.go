package raftstore

import (
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// A pulse says when the library's time goes on. Each ring of its timer wakes up several threads of the process,
// so on an idle machine it rings only as often as the library has to do something: on the leader once in
// heartbeatTicks, and on others when they have not heard of the leader for restTicks. While the store is calm ticks are
// calmFactor times as long: see calm.go.
type pulse struct {
	timer   *time.Timer
	tick    time.Duration
	since   time.Time // ticks have been counted up to this time
	span    int       // the ticks that the next ring stands for
	heard   bool      // the leader was heard since the timer last rang
	calm    bool
	leader  uint64    // the leader's number in the library
	stirred time.Time // the last time at which there was something to do
}

// restTicks is less than the library's shortest wait for the leader, so that the last ticks of it are counted
// one by one.
const restTicks = electionTicks - 2

func newPulse(tick time.Duration) *pulse {
	now := time.Now()
	return &pulse{timer: time.NewTimer(tick), tick: tick, since: now, span: 1, stirred: now}
}

// length returns how long a tick is.
func (p *pulse) length() time.Duration {
	if p.calm {
		return calmFactor * p.tick
	}
	return p.tick
}

// hear takes note of a message that shows that the leader lives, and whether the leader is calm. The library begins to
// count anew then, and so does the pulse: if time before it counted, a follower would stand for election too early. A
// timer that rings once a tick goes on, because requests wait for it.
func (p *pulse) hear(calm bool) {
	p.heard, p.since, p.calm = true, time.Now(), calm
	if p.span > 1 {
		p.timer.Reset(time.Duration(p.span) * p.length())
	}
}

// isOfLeader reports whether a message shows that the leader lives.
func isOfLeader(m *raftpb.Message, leader uint64) bool {
	t := m.GetType()
	return m.GetFrom() == leader && (t == raftpb.MsgApp || t == raftpb.MsgHeartbeat || t == raftpb.MsgSnap)
}

// pass returns how many ticks have passed, and counts them. Those that the machine has slept through do not
// count: messages that have come meanwhile are not handled yet.
func (p *pulse) pass(now time.Time) int {
	n := min(p.span, int(now.Sub(p.since)/p.length()))
	p.since = now
	return n
}

// hears reports, at a ring, whether the leader lives. A ring that stands for several ticks says
// that it does not: each message of the leader would have set the timer anew.
func (p *pulse) hears() bool { return p.heard && p.span == 1 }

// set makes the timer ring after span ticks, counted from now.
func (p *pulse) set(now time.Time, span int) {
	p.since, p.span = now, span
	p.timer.Reset(time.Duration(span) * p.length())
}

// follow notes who leads. If that has changed, time before must not count for the library's wait for the next leader.
func (p *pulse) follow(leader uint64) {
	if p.leader == leader {
		return
	}
	now := time.Now()
	p.leader, p.calm, p.stirred = leader, false, now
	if p.span > 1 {
		p.set(now, 1)
	}
}

// ring lets ticks pass, and begins requests again that are due.
func (r *replica) ring(now time.Time) {
	p, leads := r.pulse, r.pulse.leader == r.self()
	if p.calm && !leads && !p.hears() {
		r.stir() // even a calm leader should have been heard by now
		return
	}
	r.pass(now)
	r.tick(now)
	if len(r.pending) > 0 {
		p.stirred = now
	}
	if leads {
		p.calm = r.mayBeCalm(now)
	}
	p.set(now, r.rest(p.hears()))
	p.heard = false
}

// pass lets ticks pass, and returns how many.
func (r *replica) pass(now time.Time) int {
	n := r.pulse.pass(now)
	r.advance(n)
	return n
}

// advance makes the library count ticks.
func (r *replica) advance(ticks int) {
	for range ticks {
		r.node.Tick()
		r.drive()
	}
}

// hurry ends a rest, if there is one: from now on the timer rings once a tick.
func (r *replica) hurry() {
	r.stir()
	if r.pulse.span == 1 {
		return
	}
	now := time.Now()
	r.pass(now)
	r.pulse.set(now, 1)
}

// rest returns how many ticks at once are soon enough: several if this machine is the leader, or has just heard
// of it, and neither requests nor a change of the votes are under way.
func (r *replica) rest(heard bool) int {
	switch leader := r.store.leader.Load(); {
	case leader == raft.None || len(r.pending) > 0 || r.driven > 0:
		return 1
	case leader == r.self():
		return heartbeatTicks
	case heard:
		return restTicks
	default:
		return 1
	}
}

// self returns the number of this machine in the library.
func (r *replica) self() uint64 { return raftID(r.store.founding.Machine) }
