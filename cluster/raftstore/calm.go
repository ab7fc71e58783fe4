package raftstore

import (
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// A store in which nothing has happened for calmAfter ticks becomes calm: ticks are calmFactor times as long, so that the
// leader sends as many fewer heartbeats, and others wait for it as much longer.
//
//	leader                              founder                         founder
//	  ---- heartbeat, calm: 5 -----------> the next one comes late
//	  ---- heartbeat, calm: 5 ------------------------------------------->
//	                                       a request, a suspicion, a
//	                                       connection that has broken
//	  <--- stir: 6 ----------------------- ------------ stir: 6 --------> ticks are short again
//	  ---- heartbeat -------------------->
//	  ---- heartbeat ---------------------------------------------------->
//
// The leader alone decides on it, and says so with each heartbeat; any other message of the leader ends the calm of the
// machine that gets it. So no machine waits longer for the leader than the leader has said, and a machine that has not been
// told does not wait longer at all. A machine that has something to do tells all others, and not only the leader: if the
// leader is dead, all count short ticks from then on, as if they had never been calm, and elect another within the same
// time. If the leader fails, the store is stirred by any machine whose connection to it breaks, whose lease with it runs
// out (Store.Suspect), or whose request waits for it. Without any of these, all notice the failure late, by silence.
//
// Neither promises nor elections depend on it: the library is safe however long ticks are.
const (
	// calmFactor: at three heartbeats in five seconds they are few among the wake-ups of an idle machine.
	calmFactor = 8
	// calmAfter is longer than the pauses between the changes of one reconfiguration.
	calmAfter = 40
)

// An arrival is what another machine has sent to this one.
type arrival struct {
	message *raftpb.Message // nil: something is to be done, so the store must not be calm
	calm    bool            // it is a heartbeat of a leader that is calm
}

// mayBeCalm reports whether this machine is the leader, and may let all others wait longer for its heartbeats: they
// have everything that it has, all are connected in both directions, and know what it tells them.
func (r *replica) mayBeCalm(now time.Time) bool {
	if p := r.pulse; p.leader != r.self() || !p.isIdle(now) || len(r.pending) > 0 || r.driven > 0 || r.stands {
		return false
	}
	for id, l := range r.store.peers.Load().links {
		if !l.knowsCalm() || !r.store.hasAccepted(machineOf(id)) {
			return false
		}
	}
	_, isDue := due(r.votes, r.founders())
	return !isDue && len(r.votes.GetVotersOutgoing()) == 0 && r.haveAll()
}

// haveAll reports whether all machines have all entries of this one, the leader, and they are applied here.
func (r *replica) haveAll() bool {
	status := r.node.Status()
	last, _ := r.log.memory.LastIndex() // never fails
	for _, by := range status.Progress {
		if by.Match != last {
			return false
		}
	}
	return status.RaftState == raft.StateLeader && r.applied == last
}

// isIdle reports whether nothing has happened for calmAfter ticks.
func (p *pulse) isIdle(now time.Time) bool { return now.Sub(p.stirred) >= calmAfter*p.tick }

// receive takes what another machine has sent. If this machine has something to do that the leader cannot know, it tells
// the leader instead of being calm.
func (r *replica) receive(a arrival) {
	p, m := r.pulse, a.message
	if m == nil {
		r.stir()
		return
	}
	if leader := r.store.leader.Load(); isOfLeader(m, leader) {
		isIdle := len(r.pending) == 0 && !r.stands && time.Since(p.stirred) >= calmAfter*p.tick/2
		p.hear(a.calm && isIdle && m.GetTerm() == r.node.BasicStatus().GetTerm())
		if a.calm && !isIdle {
			r.tellStir(leader)
		}
	}
	if t := m.GetType(); t != raftpb.MsgHeartbeat && t != raftpb.MsgHeartbeatResp {
		r.stir()
	}
	_ = r.node.Step(m) // fails for a proposal if there is no leader; it will be sent again
}

// stir notes that something is to be done, and ends the calm. The leader sends a heartbeat at once, which tells all others;
// another machine begins to count the ticks one by one, and tells all.
func (r *replica) stir() {
	p, now := r.pulse, time.Now()
	p.stirred = now
	if !p.calm {
		return
	}
	passed := r.pass(now)
	p.calm, p.heard = false, false
	p.set(now, 1)
	if p.leader == r.self() {
		r.advance(heartbeatTicks - passed)
		return
	}
	for id := range r.store.peers.Load().links {
		r.tellStir(id)
	}
}

// tellStir tells a machine that the store must not be calm.
func (r *replica) tellStir(id uint64) {
	if l := r.store.peers.Load().links[id]; l != nil && l.knowsCalm() {
		l.send(stirFrame)
	}
}

// stirs has the loop end the calm, because of something that is no message. It does not wait.
func (s *Store) stirs() {
	select {
	case s.stirring <- struct{}{}:
	default: // it will
	}
}
