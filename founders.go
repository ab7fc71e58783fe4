package farmsql

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/cluster/raftstore"
	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/rdma"
)

// The founders of a cluster are replaced when they are gone for good. It takes several machines:
//
//	an operator    forgets the founder (farmsql forget), at any machine
//	the CM         chooses a member, and tells the store (Replace); again if that member fails before it votes
//	that member    notices, and opens its part of the store
//	the store      gives it the log, and then the vote: package raftstore
//	all machines   note the founders in their identities, and ask them from then on
//
// A founder that was replaced while it was away is told so by the others when it comes back. It asks them
// from then on, as machines do that never were founders.

// tendPeriod is how often a machine looks whether the founders have changed.
const tendPeriod = 2 * time.Second

// tend follows the founders until the store is closed.
func (s *ownStore) tend() {
	for {
		if err := s.follow(); err != nil && s.ctx.Err() == nil {
			s.cfg.Logger.Debug("to be tried again", "what", "follow the founders", "error", err)
		}
		rung := make(chan struct{})
		timer := clock.System{}.AfterFunc(tendPeriod, func() { close(rung) })
		select {
		case <-s.ctx.Done():
			timer.Stop()
			return
		case <-rung:
		}
	}
}

// follow does once what the founders, as they are now, demand of this machine.
func (s *ownStore) follow() error {
	f, err := s.asked().Founders()
	if err != nil {
		s.askIssuer(s.ctx)
		return err
	}
	if part := s.ownPart(); part != nil && part.Err() != nil && s.ctx.Err() == nil {
		if errors.Is(part.Err(), raftstore.ErrRemoved) {
			return s.retire()
		}
		s.reportFailed(part.Err())
	}
	if err := s.note(f); err != nil {
		return err
	}
	if f.Next != nil && f.Next.Machine == s.id.Machine && s.ownPart() == nil {
		return s.succeed(f)
	}
	if c := s.applied.Load(); c != nil && c.CM == s.id.Machine {
		return s.replaceFounder(c, f)
	}
	return nil
}

// reportFailed says once that the part of this machine has ended. Its calls may go to the others, and then
// nothing else would show that it has no vote any more.
func (s *ownStore) reportFailed(err error) {
	if !s.hasFailed {
		s.cfg.Logger.Error("this machine keeps the configuration no more, until it is restarted: its vote is missing", "machine", s.id.Machine, "error", err)
	}
	s.hasFailed = true
}

func (s *ownStore) ownPart() *raftstore.Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.part
}

// current returns the founders that the machine's identity knows.
func (s *ownStore) current() (f raftstore.Founders) {
	if err := json.Unmarshal(s.id.Current, &f); err != nil { // the store tells them again
		return raftstore.Founders{}
	}
	return f
}

// note keeps the founders where they are found at the next start, and tells machines that join.
func (s *ownStore) note(f raftstore.Founders) error {
	known := s.known.Load()
	if known != nil && known.Version >= f.Version {
		return nil
	}
	if f.Version > 0 {
		b, err := json.Marshal(f)
		if err != nil {
			return err
		}
		s.id.Current = b
		if err := s.saveIdentity(); err != nil {
			return err
		}
	}
	s.know(f)
	if known == nil {
		return nil // no news
	}
	s.cfg.Logger.Info("machines that keep the configuration", "machines", slices.Sorted(maps.Keys(f.Machines)), "gone", f.Gone)
	return nil
}

// know tells the other parts of this machine the founders, and machines that join.
func (s *ownStore) know(f raftstore.Founders) {
	s.known.Store(&f)
	if s.issuer != nil && s.id.Current != nil {
		s.issuer.Announce(s.id.Current)
	}
}

// askIssuer asks the machine that admits others for the founders: if all have been replaced that this one
// knows, nobody else can tell.
func (s *ownStore) askIssuer(ctx context.Context) {
	asking := s.id
	if s.issuer != nil || !asking.AskCurrent(ctx, s.cfg.PeerTLS) {
		return
	}
	var f raftstore.Founders
	if json.Unmarshal(asking.Current, &f) != nil {
		return
	}
	s.mu.Lock()
	client := s.mu.client
	s.mu.Unlock()
	switch {
	case client != nil:
		client.Learn(f)
	case slices.Contains(f.Removed, s.id.Machine):
		// Those that this machine's part knows may all have been replaced, too: they cannot tell it.
		if err := errors.Join(s.note(f), s.retire()); err != nil {
			s.cfg.Logger.Debug("to be tried again", "what", "ask those that keep the configuration now", "error", err)
		}
	}
}

// succeed opens the part of the store of a machine that is to become a founder. The identity knows of the part
// before it votes: a part that was lost must not be made again.
func (s *ownStore) succeed(f raftstore.Founders) error {
	if !s.id.IsSuccessor {
		founding, err := f.Joining(s.id.Cluster, s.id.Store, s.id.Machine)
		if err == nil {
			err = raftstore.Create(s.partFolder(), founding)
		}
		if err != nil && !errors.Is(err, raftstore.ErrCreated) {
			return err
		}
		s.id.IsSuccessor = true
		if err := s.saveIdentity(); err != nil {
			return err
		}
	}
	s.cfg.Logger.Info("this machine keeps the configuration from now on", "machine", s.id.Machine, "instead of", f.Next.For)
	return s.openPart()
}

// retire makes a machine that has been replaced ask the founders.
func (s *ownStore) retire() error {
	part := s.ownPart()
	if part == nil {
		return nil // it has been done
	}
	f, err := part.Founders()
	if known := s.known.Load(); known != nil && (err != nil || known.Version > f.Version) {
		f, err = *known, nil
	}
	if err != nil {
		return err
	}
	if err := s.openClient(f); err != nil {
		return err
	}
	s.mu.Lock()
	s.mu.part = nil
	s.mu.Unlock()
	s.cfg.Logger.Warn("another machine has taken the place of this one among those that keep the configuration, since this one was forgotten as gone: it asks them from now on",
		"machine", s.id.Machine)
	return part.Close()
}

// replaceFounder chooses, as the CM, the machine that takes the place of a founder that is gone.
func (s *ownStore) replaceFounder(c *cluster.Configuration, f raftstore.Founders) error {
	if len(f.Gone) == 0 || f.Leaving != nil {
		return nil
	}
	if f.Next != nil {
		if _, isMember := c.Member(f.Next.Machine); isMember {
			return nil // it is catching up
		}
	}
	by, ok := successor(c, f)
	if !ok {
		if !s.alone {
			s.cfg.Logger.Warn("no member can take the place of a machine that kept the configuration: let another machine join", "gone", f.Gone)
		}
		s.alone = true
		return nil
	}
	s.alone = false
	s.cfg.Logger.Info("a machine takes the place of one that kept the configuration", "machine", by.Machine, "instead of", by.For)
	return s.asked().Replace(by)
}

// successor chooses a member for the place of the first founder that is gone: one of a failure domain without
// a founder, if there is one.
func successor(c *cluster.Configuration, f raftstore.Founders) (best raftstore.Successor, ok bool) {
	taken := make(map[int]bool)
	for m := range f.Machines {
		if member, is := c.Member(m); is && !slices.Contains(f.Gone, m) {
			taken[member.FailureDomain] = true
		}
	}
	for _, m := range c.Machines {
		member, _ := c.Member(m)
		address, isTCP := strings.CutPrefix(member.Address, tcpAddress(""))
		if !isTCP || f.Has(m) || slices.Contains(f.Removed, m) {
			continue
		}
		if !ok || !taken[member.FailureDomain] {
			best, ok = raftstore.Successor{Machine: m, Address: address, For: f.Gone[0]}, true
		}
		if !taken[member.FailureDomain] {
			return best, true
		}
	}
	return best, ok
}

// forget says that a founder is gone. It tries again until ctx is done.
func (s *ownStore) forget(ctx context.Context, m rdma.MachineID) error {
	for {
		err := s.asked().Forget(m)
		if err == nil || !errors.Is(err, cluster.ErrUnreachable) || ctx.Err() != nil {
			return ours(err)
		}
		clock.System{}.Sleep(requestRetry)
	}
}

// status returns the founders as the machine knows them.
func (s *ownStore) status() (list []FounderStatus) {
	f := s.known.Load()
	if f == nil {
		return nil
	}
	for _, m := range slices.Sorted(maps.Keys(f.Machines)) {
		founder := FounderStatus{Machine: int(m), Address: f.Machines[m], IsGone: slices.Contains(f.Gone, m)}
		if f.Next != nil && f.Next.For == m {
			founder.Successor = new(int(f.Next.Machine))
		}
		list = append(list, founder)
	}
	return list
}
