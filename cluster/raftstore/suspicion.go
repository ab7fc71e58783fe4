package raftstore

import (
	"context"
	"slices"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/farmsql/farmsql/rdma"
)

// suspicionsMax is how many suspicions wait for the loop. Further ones are dropped: the
// leader's silence is noticed in any case.
const suspicionsMax = 16

// answerPause is how often a machine that wants to stand for election looks who has answered.
const answerPause = 5 * time.Millisecond

// Suspect says that a machine is taken to have failed: its lease has run out, or its process
// has ended. If it is the leader, another machine stands for election at once, instead of after
// electionTicks, or up to twice as many, of silence. A leader that is well loses its office by
// that, and nothing else: the library's elections are safe whenever they are held. Suspect does
// not wait.
func (s *Store) Suspect(m rdma.MachineID) {
	select {
	case s.suspected <- m:
	default:
	}
}

// suspect makes this machine stand for election at its turn, if machine m is the leader.
//
// It stands only if a majority answers. A machine that is cut off suspects the leader, too. An
// election that it cannot win would give it a higher term than the others have. When the
// machine is back, their leader would have to give up.
func (r *replica) suspect(m rdma.MachineID) {
	s := r.store
	leader := raftID(m)
	voters := slices.DeleteFunc(s.peers.Load().voters(), func(id uint64) bool { return id == leader })
	turn := slices.Index(voters, raftID(s.founding.Machine))
	if s.leader.Load() != leader || turn < 0 || r.stands {
		return
	}
	r.stands = true
	s.running.Go(func() {
		if !s.hasMajority(s.ctx, voters, time.Duration(turn)*s.cfg.tick) {
			leader = raft.None
		}
		select {
		case s.stand <- leader:
		case <-s.ctx.Done():
		}
	})
}

// hasMajority asks voters, which are all except the suspected leader, whether they are there.
// At this machine's turn it reports whether a majority is, this machine included. Without
// turns, all machines that suspect the leader would stand at once, and none of them would get
// enough votes. It gives up two ticks after its turn.
func (s *Store) hasMajority(ctx context.Context, voters []uint64, turn time.Duration) bool {
	begin := time.Now()
	links := s.peers.Load().links
	for _, id := range voters {
		if l := links[id]; l != nil {
			l.send(nil)
		}
	}
	for pause(ctx, max(turn, answerPause)); ctx.Err() == nil; pause(ctx, answerPause) {
		answering := 0
		for _, id := range voters {
			l := links[id]
			if l == nil {
				answering++ // this machine counts as answering
			} else if ok, _ := l.answeredSince(begin); ok {
				answering++
			}
		}
		if answering > (len(voters)+1)/2 {
			return true
		}
		if time.Since(begin) > turn+2*s.cfg.tick {
			return false
		}
	}
	return false
}

// standAgainst begins an election, if the leader is still the one that is suspected. Voters
// that have heard of the leader lately vote as well: to them it looks as if the leader had
// asked the candidate to stand, as when it hands over its office.
func (r *replica) standAgainst(leader uint64) {
	r.stands = false
	status := r.node.BasicStatus()
	if leader == raft.None || status.Lead != leader || status.RaftState != raft.StateFollower {
		return
	}
	_ = r.node.Step(&raftpb.Message{Type: raftpb.MsgTimeoutNow.Enum(), From: new(leader), To: new(status.ID), Term: new(status.GetTerm())}) // the message is for this machine
}
