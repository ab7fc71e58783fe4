package transactions

import (
	"errors"
	"fmt"

	"github.com/farmsql/farmsql/rdma/call"
	"github.com/farmsql/farmsql/recovery"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/evidence"
	"github.com/farmsql/farmsql/txn/record"
	"github.com/farmsql/farmsql/txn/worker"
)

// errEarly refuses a call that comes before this machine has reached the required state.
var errEarly = errors.New("transactions: not there yet")

// handle answers the calls of other members.
func (t *Recovery) handle() {
	for kind := uint8(kindNeedRecovery); kind <= kindBlocks; kind++ {
		t.cfg.Endpoint.Handle(kind, func(from call.Peer, arg []byte) ([]byte, error) { return t.answer(kind, from, arg) })
	}
	t.cfg.Endpoint.Handle(kindConnect, t.onConnect)
	t.cfg.Endpoint.Handle(kindRelay, t.onRelay)
	t.cfg.Endpoint.Handle(kindRelayed, t.onRelayed)
	t.cfg.Endpoint.Know(codeHeld, worker.ErrHeld)
}

// answer answers one call. Answering a call again changes nothing.
func (t *Recovery) answer(kind uint8, from call.Peer, arg []byte) ([]byte, error) {
	id, list, last, err := decodeBatch(arg)
	if err != nil {
		return nil, err
	}
	r := t.current(id)
	if r == nil {
		return nil, fmt.Errorf("%w: %d is not the configuration here", recovery.ErrSuperseded, id)
	}
	if from.Machine != r.self && !recovery.IsMember(r.c, from) {
		return nil, recovery.ErrNotMember
	}
	if !r.has(neededFor(kind)) {
		return nil, errEarly
	}
	defer r.wake()
	switch kind {
	case kindNeedRecovery:
		r.onNeedRecovery(from, list, last)
	case kindRegionActive:
		r.onRegionActive(from, list)
	case kindReplicate:
		return nil, r.onReplicate(from, list)
	case kindVote:
		r.onVote(from, list, last)
	case kindRequestVote:
		return r.onRequestVote(list), nil
	case kindOutcome:
		return nil, r.onOutcome(list)
	case kindTruncateRecovery:
		return nil, r.onTruncate(list)
	case kindDecided:
		return nil, r.onDecided(from, list, last)
	case kindPark:
		return nil, r.onPark(list)
	case kindBlocks:
		r.onBlocks(from, list)
	}
	return nil, nil
}

// neededFor returns the first state in which calls of a kind can be answered. Lists that other
// members send are stored from the beginning: the run uses them only when it reaches their step.
func neededFor(kind uint8) state {
	switch kind {
	case kindNeedRecovery, kindRegionActive, kindVote:
		return frozen
	case kindRequestVote:
		return voted
	}
	return drained
}

// onBlocks tells data recovery about regions that are being filled here: their block tables now equal
// the primary's.
func (r *run) onBlocks(from call.Peer, list []entry) {
	for i := range list {
		if p, ok := r.c.Placement(list[i].Region); ok && p.Primary == from.Machine && r.t.cfg.Blocks != nil {
			r.t.cfg.Blocks(p.Region)
		}
	}
}

// onNeedRecovery merges a backup's evidence into the claims on regions whose primary is this machine.
func (r *run) onNeedRecovery(from call.Peer, list []entry, last bool) {
	found := make([]evidence.Evidence, len(list))
	for i := range list {
		found[i] = list[i].Evidence
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.needs[from.Machine] {
		return // a late copy of the call: claims do not change any more
	}
	r.claimLocked(from.Machine, found)
	if last {
		r.mu.needs[from.Machine] = true
	}
}

// onRegionActive makes regions usable here, because their primary has locked the objects of recovering
// transactions.
func (r *run) onRegionActive(from call.Peer, list []entry) {
	var ids []region.ID
	for i := range list {
		if p, ok := r.c.Placement(list[i].Region); ok && p.IsPrimary(from.Machine) {
			ids = append(ids, p.Region)
		}
	}
	r.m.Activate(r.c.ID, ids)
}

// onReplicate notes the merged evidence of a primary, with the writes if this machine lacks them.
func (r *run) onReplicate(from call.Peer, list []entry) error {
	for i := range list {
		e := list[i].Evidence
		var writes []record.Write
		own, ok := r.m.Recovery().Evidence(e.ID, e.Region)
		lacksWrites := !ok || own.At.Empty()
		// The primary has no writes either if an earlier recovery has truncated the transaction.
		if lacksWrites && !e.At.Empty() {
			var err error
			if writes, err = r.m.Recovery().Fetch(from.Machine, e); err != nil {
				return err
			}
		}
		if err := r.m.Recovery().Learn(r.c.ID, e, writes); err != nil {
			return err
		}
	}
	return nil
}

// onVote records the votes of a primary on transactions that this machine decides. The first vote
// on a transaction begins its ballot.
func (r *run) onVote(from call.Peer, list []entry, last bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.voters[from.Machine] {
		return // a late copy of the call: ballots do not change any more
	}
	for i := range list {
		e := &list[i]
		if p, ok := r.c.Placement(e.Region); !ok || !p.IsPrimary(from.Machine) {
			continue
		}
		b := r.mu.ballots[e.ID]
		if b == nil {
			b = &ballot{regions: e.Regions, votes: make(map[region.ID]Vote)}
			r.mu.ballots[e.ID] = b
		}
		b.votes[e.Region] = voteOf(e.Seen)
	}
	if last {
		r.mu.voters[from.Machine] = true
	}
}

// onRequestVote returns this machine's votes on transactions that were not in its RECOVERY-VOTE.
// Without a record the vote tells whether the transaction was truncated here, or is unknown.
func (r *run) onRequestVote(list []entry) []byte {
	reply := make([]byte, len(list))
	for i := range list {
		e, ok := r.m.Recovery().Evidence(list[i].ID, list[i].Region)
		switch {
		case ok:
			reply[i] = byte(voteOf(e.Seen))
		case r.m.Recovery().Truncated(list[i].ID, list[i].Region):
			reply[i] = byte(VoteTruncated)
		default:
			reply[i] = byte(VoteUnknown)
		}
	}
	return reply
}

// onOutcome carries out decisions at this machine's replicas.
func (r *run) onOutcome(list []entry) error {
	for i := range list {
		if err := r.m.Recovery().Decide(r.c.ID, list[i].ID, list[i].flag != 0); err != nil {
			return err
		}
		r.t.reached(recovery.StepOutcome)
	}
	return nil
}

// onTruncate forgets transactions whose outcome all replicas know.
func (r *run) onTruncate(list []entry) error {
	for i := range list {
		if err := r.m.Recovery().Truncate(r.c.ID, list[i].ID); err != nil {
			return err
		}
		r.t.reached(recovery.StepTruncated)
	}
	return nil
}

// onDecided learns what the sender has truncated, and then records that the sender has decided.
func (r *run) onDecided(from call.Peer, list []entry, last bool) error {
	for _, b := range boundsOf(list) {
		if err := r.m.Recovery().LearnBound(r.c.ID, b); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if last {
		r.mu.deciders[from.Machine] = true
	}
	return nil
}
