package raftstore

import (
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// A store in which nothing has happened for calmAfter ticks becomes calm: ticks are calmFactor
// times as long. The leader sends heartbeats that much less often, and the others wait that
// much longer for it.
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
// The leader alone decides that the store is calm, and says so with each heartbeat. Any other
// message of the leader ends the calm of the machine that gets it. So a machine waits longer
// for the leader only if the leader has told it to. A machine that has something to do stirs
// all others, and not only the leader, which may be dead: from then on all count short ticks,
// and elect another leader as soon as if they had never been calm. If the leader fails, a
// machine stirs the store when its connection to the leader breaks, when its lease with the
// leader runs out (Store.Suspect), or when its request waits for the leader. If none of these
// happens, all notice the failure late, by silence.
//
// Neither promises nor elections depend on calm: the library is safe however long ticks are.
const (
	// calmFactor leaves three heartbeats in five seconds: few among the wake-ups of an idle
	// machine.
	calmFactor = 8
	// calmAfter is longer than the pauses between the changes of one reconfiguration.
	calmAfter = 40
)

// An arrival is what another machine has sent to this one.
type arrival struct {
	message *raftpb.Message // nil: something is to be done, so the store must not be calm
	calm    bool            // the message is a heartbeat of a leader that is calm
}

// mayBeCalm reports whether this machine is the leader, and may let all others wait longer for its heartbeats:
// nothing is to be done, and no change of the votes is due or under way; the others have everything that it has,
// are connected in both directions, and know of calm.
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
	for _, progress := range status.Progress {
		if progress.Match != last {
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
		// Half of the leader's time will do, since this machine hears of what happens later.
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
		r.advance(heartbeatTicks - passed) // up to the next heartbeat
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

// stirs makes the loop end the calm, for a reason that is no message. It does not wait.
func (s *Store) stirs() {
	select {
	case s.stirring <- struct{}{}:
	default: // the loop has been told already
	}
}
