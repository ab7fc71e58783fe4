package raftstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

const (
	// inflightMax is how many messages with entries may be on their way to a machine.
	inflightMax = 16
	// uncommittedBytesMax is how many bytes of entries a leader takes on before they are committed.
	uncommittedBytesMax = 16 * configurationBytesMax
)

// A replica is the state machine of a Store, with its log and the requests under way. Only the
// goroutine of run uses it.
type replica struct {
	store   *Store
	log     *logFile
	node    *raft.RawNode
	state   state             // the state after the entry applied
	votes   *raftpb.ConfState // the votes after the entry applied
	applied uint64            // the index of the last entry applied
	told    uint64            // the revision last given to Config.Changed
	driven  int               // ticks until the leader may propose a change of the votes again
	fresh   bool              // the next snapshot must have the present votes
	stands  bool              // this machine is about to stand for election: see suspect
	pulse   *pulse
	pending map[requestID]*request
}

func newReplica(s *Store, log *logFile) (r *replica, err error) {
	defer recoverLibrary(&err)
	snapshot, _ := log.memory.Snapshot() // never fails
	r = &replica{store: s, log: log, pulse: newPulse(s.cfg.tick), pending: make(map[requestID]*request), applied: snapshot.GetMetadata().GetIndex()}
	if _, r.votes, err = log.memory.InitialState(); err != nil {
		return nil, err
	}
	if !raft.IsEmptySnap(snapshot) { // a successor has none at first
		if r.state, err = decodeState(snapshot.GetData()); err != nil {
			return nil, err
		}
	}
	r.node, err = raft.NewRawNode(&raft.Config{
		ID:                        raftID(s.founding.Machine),
		ElectionTick:              electionTicks,
		HeartbeatTick:             heartbeatTicks,
		Storage:                   log.memory,
		Applied:                   r.applied,
		MaxSizePerMsg:             appendBytesMax,
		MaxUncommittedEntriesSize: uncommittedBytesMax,
		MaxInflightMsgs:           inflightMax,
		CheckQuorum:               true,
		PreVote:                   true,
		ReadOnlyOption:            raft.ReadOnlySafe,
		StepDownOnRemoval:         true,
		Logger:                    quiet{},
	})
	return r, err
}

// run serves requests and messages until ctx is done, the log cannot be written, or the part must end (stopAs).
// It returns why it has ended: ErrClosed, or the failure. A machine that votes alone first asks the machines
// that it has left behind, and then makes itself the leader.
func (r *replica) run(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, r.log.close()) }()
	defer recoverLibrary(&err)
	if r.votesAlone() {
		if err := r.store.askLeft(ctx, r.log.hasBegun()); err != nil {
			return err
		}
		if err := r.node.Campaign(); err != nil { // nobody else can be the leader
			return err
		}
	}
	r.store.hasBegun.Store(true)
	defer r.pulse.timer.Stop()
	for {
		if err := r.work(); err != nil {
			return err
		}
		r.pulse.follow(r.store.leader.Load())
		select {
		case now := <-r.pulse.timer.C:
			r.ring(now)
		case a := <-r.store.received:
			r.receive(a)
		case <-r.store.stirring:
			r.stir()
		case q := <-r.store.requests:
			r.hurry()
			q.again = r.store.cfg.after(retryTicks)
			r.pending[q.id] = q
			r.begin(q, time.Now())
		case m := <-r.store.suspected:
			r.stir()
			r.suspect(m)
		case leader := <-r.store.stand:
			r.standAgainst(leader)
		case reason := <-r.store.ending:
			return reason
		case <-ctx.Done():
			return ErrClosed
		}
	}
}

// work does all that the library wants done: keep first, then send, then apply. After that it begins
// pending requests again if there is a new leader, who may not have heard of them. A leader that has
// just been elected and is the only machine must have applied all of its log by then: the library
// answers its reads at once.
func (r *replica) work() error {
	for r.node.HasReady() {
		before := r.store.leader.Load()
		for r.node.HasReady() {
			if err := r.step(); err != nil {
				return err
			}
		}
		if r.log.isLong(&r.state) || r.fresh {
			if err := r.log.compact(r.applied, r.votes, &r.state); err != nil {
				return err
			}
			r.fresh = false
		}
		if now := r.store.leader.Load(); now != before && now != raft.None {
			for _, q := range r.pending { // any order
				r.begin(q, time.Now())
			}
		}
	}
	return nil
}

// step carries out one batch of the library's work: it keeps, sends and applies, and then answers Loads. A message may be sent only when all that it tells of is
// on disk.
func (r *replica) step() error {
	ready := r.node.Ready()
	if err := r.log.append(ready.HardState, ready.Snapshot, ready.Entries, ready.MustSync); err != nil {
		return err
	}
	if err := r.send(ready.Messages); err != nil {
		return err
	}
	if !raft.IsEmptySnap(ready.Snapshot) {
		if err := r.restore(ready.Snapshot); err != nil {
			return err
		}
	}
	for _, e := range ready.CommittedEntries {
		if err := r.apply(e); err != nil {
			return err
		}
	}
	r.tellRevision()
	for _, read := range ready.ReadStates {
		r.confirm(read)
	}
	r.answerLoads()
	if ready.SoftState != nil {
		r.store.leader.Store(ready.SoftState.Lead)
	}
	r.node.Advance(ready)
	return nil
}

// tellRevision tells the owner of the machine which revision is kept, if it is a later one than it was told.
func (r *replica) tellRevision() {
	if r.state.revision > r.told && r.store.cfg.Changed != nil {
		r.told = r.state.revision
		r.store.cfg.Changed(r.told)
	}
}

// send queues messages for the other machines, and tells the library what cannot be sent.
func (r *replica) send(messages []*raftpb.Message) error {
	links := r.store.peers.Load().links
	for _, m := range messages {
		to := m.GetTo()
		l := links[to]
		kind := byte(frameMessage)
		if r.pulse.calm && m.GetType() == raftpb.MsgHeartbeat && l != nil && l.knowsCalm() {
			kind = frameCalm
		}
		frame, err := messageFrame(kind, m)
		if err != nil {
			return fmt.Errorf("cluster: send a message of the configuration store: %w", err)
		}
		isSent := l != nil && l.send(frame)
		if !isSent {
			r.node.ReportUnreachable(to)
		}
		if m.GetType() == raftpb.MsgSnap {
			// The library waits for this, and finds out by itself whether the snapshot has arrived.
			status := raft.SnapshotFinish
			if !isSent {
				status = raft.SnapshotFailure
			}
			r.node.ReportSnapshot(to, status)
		}
	}
	return nil
}

// begin asks the leader to carry out a request. Without a leader nothing happens: it is begun
// again when there is one. A swap that replaces a former revision cannot be carried out any
// more. It is answered at once: copies of it would only fill the logs, and on slow disks the
// copies of callers that try again would crowd each other out. A Load whose
// index is known only waits until that entry is applied.
func (r *replica) begin(q *request, now time.Time) {
	q.asked = now
	switch {
	case q.swap != nil && q.swap.old < r.state.revision:
		r.answer(q, answer{err: r.state.apply(*q.swap)}) // the swap changes nothing
	case q.swap != nil:
		_ = r.node.Propose(q.swap.encode()) // fails without a leader, or if the leader has too much to do
	case q.change != nil:
		_ = r.node.Propose(q.change.encode())
	case q.index == 0:
		r.node.ReadIndex(q.id[:])
	}
}

// tick begins requests again that have had no answer for long: the leader may not have got them, or its
// answer is lost. It waits twice as long each time, because each copy of a swap goes to all disks. It
// drops requests whose callers have given up.
func (r *replica) tick(now time.Time) {
	for id, q := range r.pending { // any order
		switch {
		case now.After(q.deadline):
			delete(r.pending, id)
		case now.Sub(q.asked) >= q.again:
			q.again *= 2
			r.begin(q, now)
		}
	}
}

// apply carries out a committed entry, and answers the request if it is one of this machine.
func (r *replica) apply(e *raftpb.Entry) error {
	r.applied = e.GetIndex()
	switch {
	case e.GetType() == raftpb.EntryConfChangeV2:
		return r.applyVotes(e.GetData())
	case len(e.GetData()) == 0:
		return nil // a new leader's first
	case isChange(e.GetData()):
		return r.applyChange(e.GetData())
	}
	c, err := decodeSwap(e.GetData())
	if err != nil {
		return fmt.Errorf("%w, number %d in the log", err, e.GetIndex())
	}
	err = r.state.apply(c)
	if q := r.pending[c.id]; q != nil {
		r.answer(q, answer{err: err})
	}
	return nil
}

// restore replaces the state by a snapshot, which the leader sends to a machine that has fallen
// behind. The entries that it replaces are not applied here, so the snapshot tells of a swap under way
// only if that was the last one. It fails with ErrSplit if the founders are of another line, and with ErrRemoved if
// this machine is no founder any more.
func (r *replica) restore(snapshot *raftpb.Snapshot) (err error) {
	former := r.store.peers.Load().founders.Line
	if r.state, err = decodeState(snapshot.GetData()); err != nil {
		return err
	}
	if err := CheckLine(former, r.founders().Line); err != nil {
		return err
	}
	r.applied, r.votes = snapshot.GetMetadata().GetIndex(), snapshot.GetMetadata().GetConfState()
	r.store.regroup(r.votes, r.founders())
	for _, q := range r.pending { // any order
		switch {
		case q.swap == nil || r.state.revision <= q.swap.old: // it can still be carried out here
		case r.state.writer == q.id:
			r.answer(q, answer{})
		default:
			r.answer(q, answer{err: errUncertain})
		}
	}
	return r.checkRemoved()
}

// confirm notes the entry up to which the state must be applied for a Load.
func (r *replica) confirm(read raft.ReadState) {
	if len(read.RequestCtx) != len(requestID{}) {
		return // this program has not asked for it
	}
	if q := r.pending[requestID(read.RequestCtx)]; q != nil && q.index == 0 {
		q.index = max(read.Index, 1) // 0 would mean that it is not known
	}
}

// answerLoads answers the Loads whose entry is applied.
func (r *replica) answerLoads() {
	for _, q := range r.pending { // any order
		if q.isLoad() && q.index > 0 && q.index <= r.applied {
			r.answer(q, answer{configuration: r.state.configuration})
		}
	}
}

func (r *replica) answer(q *request, a answer) {
	delete(r.pending, q.id)
	q.done <- a
}
