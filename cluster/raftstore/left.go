package raftstore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"go.etcd.io/raft/v3"

	"github.com/farmsql/farmsql/rdma"
)

// Nobody can be sure that machines are lost for good, and two operators may refound two machines. A machine that was
// refounded knows those that it left behind (Founders.Left), and asks them:
//
//	before it begins   the former majority is back        it does not begin: ErrNotLost
//	                   another was refounded, and begun   it has changed nothing yet, and is removed: ErrRemoved
//	                   another has not begun either       the one with the lower version waits until the other begins, or ends
//	while it runs      another was refounded              the one with the lower version stops: ErrSplit
//
// Until the refounded machine has begun, it tells nobody of its founders. Then former founders
// that connect to it with their old parts are told that they were removed. But it may be gone
// itself by then, and the former founders do not know the machines that have got votes since.
// So a machine that asks says what it keeps: a former founder learns from the question that it
// was removed, and who keeps the configuration now.

// The upper 16 bits of Founders.Version count the Refoundings, and the next 24 are random. So
// the versions of two machines that were both refounded differ, and both machines know which of
// them goes on. Changes of the founders count in the remaining bits. Their lines say whether
// founders follow from others.
const (
	generationShift = 48
	refoundingShift = 24
)

// errAwaited means that the machine must not begin before another one has, or has ended.
var errAwaited = errors.New("cluster: another machine was refounded, and is about to begin")

// refoundedVersion returns the version of the founders after a Refounding.
func refoundedVersion(before, random uint64) uint64 {
	return ((before>>generationShift)+1)<<generationShift | (random>>40)<<refoundingShift
}

// A standing is what a machine of the store says of itself: in the question to a machine that
// it has left behind, or in the answer to that question.
type standing struct {
	Founders
	// HasBegun is false as long as the machine has kept nothing since it was refounded.
	HasBegun bool `json:",omitempty"`
}

func (s *Store) standing() standing {
	return standing{s.peers.Load().founders, s.hasBegun.Load()}
}

// hear ends this machine's part if the machine that asks has kept the configuration since a
// Refounding that has left this one behind. b is the standing of the machine that asks; a
// standing that cannot be read says nothing.
func (s *Store) hear(b []byte) {
	var asker standing
	if json.Unmarshal(b, &asker) != nil || !asker.HasBegun || len(asker.Machines) == 0 {
		return
	}
	if s.standing().isBefore(asker.Founders) && slices.Contains(asker.Removed, s.founding.Machine) {
		s.heirs.Store(&asker.Founders)
		s.stopAs(ErrRemoved)
	}
}

// A left machine is one that was left behind, and answers.
type left struct {
	standing
	machine rdma.MachineID
	keeps   bool // the machine can load the configuration
}

// judge returns the reason why this machine must stop, given the other's answer; nil if it need
// not.
func (s standing) judge(other left) error {
	switch {
	case other.isBefore(s.Founders) && other.keeps && !s.HasBegun:
		return fmt.Errorf("%w: machine %d is one of them; farmsql refound --undo lets this one take part again", ErrNotLost, other.machine)
	case other.isBefore(s.Founders) || other.isOf(s.Founders):
		return nil
	case !other.HasBegun && (s.HasBegun || s.Version > other.Version):
		return nil // the other one gives way
	case !other.HasBegun:
		return errAwaited // the former majority may be back, and then nobody begins
	case !s.HasBegun:
		return fmt.Errorf("%w: machine %d was refounded, too", ErrRemoved, other.machine)
	case other.Version > s.Version:
		return fmt.Errorf("%w: that of machine %d goes on, and all changes since are lost here; stop this machine and those that follow it, and let them join again with empty data folders", ErrSplit, other.machine)
	}
	return nil
}

// rivals returns an error if another machine that was left behind keeps a configuration, and this one goes on.
func (s standing) rivals(other left) error {
	switch {
	case other.isOf(s.Founders) || (other.isBefore(s.Founders) && !other.keeps):
		return nil // the other is told that it was removed when it connects
	case other.isBefore(s.Founders):
		return fmt.Errorf("%w: machine %d is one of them, and cannot have reached this one yet: stop it", ErrNotLost, other.machine)
	}
	return fmt.Errorf("%w: that of machine %d is given up, and all changes since its refounding are lost there; stop it and the machines that follow it, and let them join again with empty data folders", ErrSplit, other.machine)
}

// isBefore reports whether others were refounded after these founders, in their line.
func (f Founders) isBefore(others Founders) bool {
	return len(f.Line) < len(others.Line) && !f.Line.IsApart(others.Line)
}

// isOf reports whether others follow from the same Refounding.
func (f Founders) isOf(others Founders) bool { return slices.Equal(f.Line, others.Line) }

// hasBegun reports whether a machine that votes alone has kept anything since it was refounded. Refound writes a
// snapshot alone, in whose term nobody has voted.
func (l *logFile) hasBegun() bool {
	hard, _, _ := l.memory.InitialState() // never fails
	snapshot, _ := l.memory.Snapshot()    // never fails
	last, _ := l.memory.LastIndex()       // never fails
	metadata := snapshot.GetMetadata()
	return hard.GetVote() != raft.None || hard.GetTerm() != metadata.GetTerm() || last != metadata.GetIndex()
}

// askLeft asks the machines that were left behind, before the only machine of the store begins.
// An error says why it must not begin.
func (s *Store) askLeft(ctx context.Context, hasBegun bool) error {
	s.hasBegun.Store(hasBegun)
	for {
		err := s.judgeAll(s.findLeft(ctx))
		if ctx.Err() != nil {
			return ErrClosed // not all machines were asked: this one has not begun
		}
		if !errors.Is(err, errAwaited) {
			return err
		}
		pause(ctx, s.cfg.after(redialTicks))
	}
}

// judgeAll returns the reason why this machine must not begin, given the answers of others. A
// reason to wait counts only if there is no other.
func (s *Store) judgeAll(found []left) (wait error) {
	for _, other := range found {
		err := s.standing().judge(other)
		if errors.Is(err, ErrRemoved) {
			s.heirs.Store(&other.Founders)
		}
		if err != nil && !errors.Is(err, errAwaited) {
			return err
		}
		wait = cmp.Or(wait, err)
	}
	return wait
}

// watchLeft asks the machines that were left behind from time to time, until the store ends. It
// begins at once: in a store of several machines, none has asked before it votes.
func (s *Store) watchLeft(ctx context.Context) {
	for ; ctx.Err() == nil; pause(ctx, s.cfg.after(watchTicks)) {
		if !s.hasBegun.Load() {
			continue // askLeft asks
		}
		for _, other := range s.findLeft(ctx) {
			if err := s.standing().judge(other); err != nil {
				s.stopAs(err)
				return
			}
			if err := s.standing().rivals(other); err != nil && s.cfg.Rival != nil {
				s.cfg.Rival(err)
			}
		}
	}
}

// findLeft returns the machines that were left behind and answer, in order.
func (s *Store) findLeft(ctx context.Context) (found []left) {
	addresses := s.peers.Load().founders.Left
	answers := make(chan *left, len(addresses))
	for m, address := range addresses {
		go func() { answers <- s.askWhether(ctx, m, address) }() // askWhether ends within twice leftTicks
	}
	for range addresses {
		if other := <-answers; other != nil {
			found = append(found, *other)
		}
	}
	slices.SortFunc(found, func(a, b left) int { return cmp.Compare(a.machine, b.machine) })
	return found
}

// askWhether asks a machine that was left behind what it keeps. It returns nil if that does not answer, or with
// nothing that tells.
func (s *Store) askWhether(ctx context.Context, m rdma.MachineID, address string) *left {
	c, err := NewClient(ClientConfig{
		Cluster: s.founding.Cluster, Machines: s.founding.Machines, Founders: Founders{Version: math.MaxUint64, Machines: map[rdma.MachineID]string{m: address}},
		Dial: s.cfg.Dial, TLS: s.cfg.TLS, Patience: s.cfg.after(leftTicks), tick: s.cfg.tick, // Patience is for each of the two calls
	})
	if err != nil {
		return nil
	}
	defer c.Close()
	own, _ := json.Marshal(s.standing()) // never fails
	r := c.try(ctx, m, call{operation: operationStanding, swap: swap{id: c.newID(), configuration: own}})
	if errors.Is(r.err, errSilent) {
		return nil
	}
	other := &left{machine: m}
	loaded := c.try(ctx, m, call{operation: operationLoad, swap: swap{id: c.newID()}})
	other.keeps = loaded.err == nil && loaded.result.outcome == outcomeDone
	switch {
	case r.err == nil && json.Unmarshal(r.result.content, &other.standing) == nil && len(other.Machines) > 0:
		return other
	case other.keeps: // a former founder with an earlier program, which does not know the question
		other.standing = standing{Founders{Machines: s.founding.Machines}, true}
		return other
	}
	return nil
}
