package raftstore

import (
	"fmt"
	"slices"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
	"google.golang.org/protobuf/proto"
)

// lagMax is how many committed entries a successor may lack when it gets its vote, since
// entries are committed all the time.
const lagMax = inflightMax

// founders returns the founders as they are after the entry applied.
func (r *replica) founders() Founders {
	if r.state.founders != nil {
		return r.state.founders.clone()
	}
	return r.store.founding.founders()
}

// votesAlone reports whether no other machine has to agree to anything.
func (r *replica) votesAlone() bool {
	return slices.Equal(r.votes.GetVoters(), []uint64{r.node.Status().ID}) && len(r.votes.GetVotersOutgoing()) == 0
}

// applyChange carries out a committed change of the founders, and answers the request if it is one of this
// machine.
func (r *replica) applyChange(b []byte) error {
	c, err := decodeChange(b)
	if err != nil {
		return fmt.Errorf("%w, number %d in the log", err, r.applied)
	}
	f := r.founders()
	if err = f.apply(c); err == nil {
		r.changed(f)
	}
	if q := r.pending[c.id]; q != nil {
		r.answer(q, answer{err: err})
	}
	return nil
}

// changed notes that the founders are f now.
func (r *replica) changed(f Founders) {
	r.state.founders = &f
	r.store.regroup(r.votes, f)
}

// applyVotes carries out a committed change of the votes. A change that does not follow from
// the present founders is left out, at all machines alike: a leader has proposed it before an
// entry that came in between, or two leaders have proposed the same change.
func (r *replica) applyVotes(b []byte) error {
	c := new(raftpb.ConfChangeV2)
	if err := proto.Unmarshal(b, c); err != nil {
		return fmt.Errorf("%w: a change of votes, number %d in the log: %w", ErrDamaged, r.applied, err)
	}
	f := r.founders()
	if c.LeaveJoint() {
		if len(r.votes.GetVotersOutgoing()) == 0 {
			return nil
		}
		r.votes = r.node.ApplyConfChange(c)
		f.leave()
		r.changed(f)
		return r.checkRemoved()
	}
	step, isDue := due(r.votes, f)
	if !isDue || !proto.Equal(step, c) {
		return nil
	}
	r.votes = r.node.ApplyConfChange(c)
	if c.GetChanges()[0].GetType() == raftpb.ConfChangeAddNode {
		f.vote()
	}
	r.fresh = true // the library refuses snapshots to machines that the snapshot's votes do not name
	r.changed(f)
	return nil
}

// due returns the change of the votes that the founders call for, whether or not it is time for it: a former
// successor is dropped, then the present one becomes a learner, and then it gets the vote, of the machine that it
// replaces if there is one. ok is false if no change is due, and while the last one is not complete.
func due(votes *raftpb.ConfState, f Founders) (c *raftpb.ConfChangeV2, ok bool) {
	if len(votes.GetVotersOutgoing()) > 0 {
		return nil, false
	}
	for _, id := range votes.GetLearners() {
		if f.Next == nil || id != raftID(f.Next.Machine) {
			return votesChange(id, raftpb.ConfChangeRemoveNode), true
		}
	}
	switch {
	case f.Next == nil:
		return nil, false
	case len(votes.GetLearners()) == 0:
		return votesChange(raftID(f.Next.Machine), raftpb.ConfChangeAddLearnerNode), true
	}
	if c = votesChange(raftID(f.Next.Machine), raftpb.ConfChangeAddNode); f.Next.IsFurther() {
		return c, true
	}
	c.Changes = append(c.Changes, votesChange(raftID(f.Next.For), raftpb.ConfChangeRemoveNode).Changes...)
	return c, true
}

// votesChange returns the change of one machine's vote.
func votesChange(id uint64, kind raftpb.ConfChangeType) *raftpb.ConfChangeV2 {
	return &raftpb.ConfChangeV2{Changes: []*raftpb.ConfChangeSingle{{Type: kind.Enum(), NodeId: new(id)}}}
}

// drive proposes, as the leader, the next change of the votes when its time has come. A proposal that is lost
// is made again: at most one takes effect. A leader that would lose its own vote hands over instead.
func (r *replica) drive() {
	if r.driven--; r.driven > 0 {
		return
	}
	f := r.founders()
	c, ok := due(r.votes, f)
	if !ok {
		return
	}
	status := r.node.Status()
	isVote := c.GetChanges()[0].GetType() == raftpb.ConfChangeAddNode
	if status.RaftState != raft.StateLeader || (isVote && (!isReady(status, f) || r.isTooEarly(f))) {
		return
	}
	r.driven = retryTicks
	if len(c.Changes) == 2 && f.Next.For == r.store.founding.Machine {
		r.handOver(status)
		return
	}
	_ = r.node.ProposeConfChange(c) // fails if the leader has too much to do
}

// isTooEarly reports whether the successor has a program that would drop a part of the
// founders, and so apply later changes differently from the others. The successor gets no vote
// until it runs another program.
func (r *replica) isTooEarly(f Founders) bool {
	l := r.store.peers.Load().links[raftID(f.Next.Machine)]
	return f.isFurther() && (l == nil || !l.isRefoundable())
}

// handOver makes another machine the leader, since this one is about to lose its vote. A leader
// that is removed stops as soon as it knows that the change is committed, perhaps before it has
// told the others. These still count the former votes then: if one of them is down, they are no
// majority.
func (r *replica) handOver(status raft.Status) {
	best, match := raft.None, uint64(0)
	for _, id := range r.votes.GetVoters() {
		if progress := status.Progress[id]; id != status.ID && progress.RecentActive && progress.Match >= match {
			best, match = id, progress.Match
		}
	}
	if best != raft.None {
		r.node.TransferLeader(best)
	}
}

// isReady reports whether the successor has the log, and a majority of the founders after the
// change answers: the change must not cost the store its majority.
func isReady(status raft.Status, f Founders) bool {
	successor := status.Progress[raftID(f.Next.Machine)]
	if successor.State != tracker.StateReplicate || !successor.RecentActive || successor.Match+lagMax < status.GetCommit() {
		return false
	}
	answering := 1 // the successor counts as answering
	for m := range f.Machines {
		id := raftID(m)
		if m != f.Next.For && (id == status.ID || status.Progress[id].RecentActive) {
			answering++
		}
	}
	voters := len(f.Machines)
	if f.Next.IsFurther() {
		voters++
	}
	return answering > voters/2
}

// checkRemoved returns ErrRemoved if this machine is no founder any more.
func (r *replica) checkRemoved() error {
	if slices.Contains(r.founders().Removed, r.store.founding.Machine) {
		return ErrRemoved
	}
	return nil
}
