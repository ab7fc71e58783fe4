package farmsql

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
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
// A founder that was replaced while it was away is told so by the others when it comes back. It
// asks the others from then on, like a machine that never was a founder. If a majority is lost,
// an operator makes a machine that is left the only founder (Refounding), and the CM gives
// further places to members as above. The CM also gives further places when regions are to have
// more replicas than those that the cluster was made for. With three replicas, an operator
// expects that any machine can be lost. But a cluster that was made with one replica has one
// founder, without which no machine could go on.

// tendPeriod is how often a machine looks whether the founders have changed.
const tendPeriod = 2 * time.Second

// tend follows the founders until the store is closed.
func (s *ownStore) tend() {
	for {
		if err := s.follow(); err != nil {
			s.reportRetry("follow the founders", err)
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

// follow does once what the present founders demand of this machine.
func (s *ownStore) follow() error {
	f, err := s.asked().Founders()
	if err != nil {
		s.askIssuer(s.ctx)
		return err
	}
	if part := s.ownPart(); part != nil && part.Err() != nil && s.ctx.Err() == nil {
		switch err := part.Err(); {
		case errors.Is(err, raftstore.ErrRemoved):
			return s.retire() // the next call asks the others, and notes what they say
		case errors.Is(err, raftstore.ErrSplit):
			return err
		default:
			s.reportFailed(err)
		}
	}
	if err := s.note(f); err != nil {
		return err
	}
	if f.Next != nil && f.Next.Machine == s.id.Machine && s.ownPart() == nil {
		return s.succeed(f)
	}
	if c := s.applied.Load(); c != nil && c.CM == s.id.Machine {
		return errors.Join(s.wantFounders(s.asked(), c, f), s.replaceFounder(c, f))
	}
	return nil
}

// foundersFor returns how many machines should keep the configuration if regions have the given
// number of replicas: an odd number, since one more machine would not survive more failures.
func foundersFor(replicas int) int { return replicas | 1 }

// wantFounders tells the store, as the CM, that there should be more founders, since regions
// have more replicas than there were. It never asks for fewer founders: one vote less helps
// nobody.
func (s *ownStore) wantFounders(store foundersStore, c *cluster.Configuration, f raftstore.Founders) error {
	n := foundersFor(c.Replicas)
	if !c.CanResize() || n <= max(f.Wanted, len(f.Machines)) {
		return nil
	}
	if err := store.Want(n); err != nil {
		if errors.Is(err, raftstore.ErrFounders) && !s.isRefused { // an operator has to start something anew
			s.cfg.Logger.Warn("fewer machines keep the configuration than regions have replicas, and others cannot be added", "machine", s.id.Machine, "machines", len(f.Machines), "wanted", n, "error", err)
			s.isRefused = true
		}
		return err
	}
	s.isRefused = false
	s.cfg.Logger.Info("more machines are to keep the configuration, since regions have more replicas", "machine", s.id.Machine, "machines", len(f.Machines), "wanted", n)
	return nil
}

// reportFailed logs once that this machine's part of the store has ended. The machine's calls
// may go to the others, and then nothing else would show that its vote is missing.
func (s *ownStore) reportFailed(err error) {
	if !s.hasFailed {
		s.cfg.Logger.Error("this machine keeps the configuration no more, until it is restarted: its vote is missing", "machine", s.id.Machine, "error", err)
	}
	s.hasFailed = true
}

// reportRetry logs what has failed and is tried again. If it is in vain, since another machine
// was refounded than this one, or than the one that this one follows, reportRetry logs that
// once.
func (s *ownStore) reportRetry(what string, err error) {
	switch {
	case s.ctx.Err() != nil:
	case !errors.Is(err, raftstore.ErrSplit):
		s.cfg.Logger.Debug("to be tried again", "what", what, "error", err)
	default:
		s.rival.Store(&sighting{err.Error(), clock.System{}.Now()})
		if !s.isSplit {
			s.cfg.Logger.Error("this machine cannot go on with the others", "machine", s.id.Machine, "error", err)
		}
		s.isSplit = true
	}
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

// newest returns the newest founders that this machine can learn.
func (s *ownStore) newest() raftstore.Founders {
	f, err := s.asked().Founders()
	if known := s.current(); err != nil || known.Version > f.Version {
		return known
	}
	return f
}

const (
	// rivalPeriod is how often a machine that keeps a configuration of its own is logged.
	rivalPeriod = time.Hour
	// rivalSeen is how long the status shows such a machine; it is asked every 10 s.
	rivalSeen = time.Minute
)

// A sighting is what was found out about another machine that keeps a configuration of its own.
type sighting struct {
	reason string
	at     time.Time
}

// rivalAt returns what is known, at time now, about another machine that keeps a configuration
// of its own.
func (s *ownStore) rivalAt(now time.Time) string {
	if last := s.rival.Load(); last != nil && now.Sub(last.at) < rivalSeen {
		return last.reason
	}
	return ""
}

// reportRival returns a function that logs that another machine keeps a configuration of its
// own, too, each reason at most once in rivalPeriod. One goroutine calls it.
func (s *ownStore) reportRival(now func() time.Time) func(reason error) {
	logged := make(map[string]time.Time) // when each reason was last logged
	return func(reason error) {
		s.rival.Store(&sighting{reason.Error(), now()})
		if last, ok := logged[reason.Error()]; ok && now().Sub(last) < rivalPeriod {
			return
		}
		logged[reason.Error()] = now()
		s.cfg.Logger.Error("another machine keeps a configuration of this cluster, too", "machine", s.id.Machine, "error", reason)
	}
}

// checkLine refuses a configuration of another line than that of the founders that this machine
// has noted. It also refuses one whose line goes on from that line, until the machine has noted
// founders of the longer line: a machine that could still be taken for a follower of another
// refounded machine must not have memory of this one.
func (s *ownStore) checkLine(line cluster.Line) error {
	var known cluster.Line
	if f := s.known.Load(); f != nil {
		known = f.Line
	}
	if err := raftstore.CheckLine(known, line); err != nil {
		return ours(err)
	}
	if len(line) > len(known) {
		return errUnknownLine{}
	}
	return nil
}

// An errUnknownLine means that the configuration store was refounded, and this machine has not noted that yet. It
// matches cluster.ErrUnreachable, after which callers try again.
type errUnknownLine struct{}

func (errUnknownLine) Error() string {
	return "farmsql: another machine keeps the configuration since it was refounded, which this one has to note first"
}

// Is makes errors.Is find cluster.ErrUnreachable.
func (errUnknownLine) Is(target error) bool { return target == cluster.ErrUnreachable }

// note keeps founders that are later than those noted, for the next start, and for machines that join. It fails with
// ErrSplit for founders of another line than those that this machine knows. Only tend, and code
// that runs before tend, calls note.
func (s *ownStore) note(f raftstore.Founders) error {
	known := s.known.Load()
	if known != nil {
		if err := raftstore.CheckLine(known.Line, f.Line); err != nil {
			return err
		}
	}
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
		return nil // the machine's first founders are no news
	}
	s.cfg.Logger.Info("machines that keep the configuration", "machines", slices.Sorted(maps.Keys(f.Machines)), "gone", f.Gone)
	return nil
}

// know tells the founders to the other parts of this machine, and to machines that join.
func (s *ownStore) know(f raftstore.Founders) {
	s.known.Store(&f)
	if s.issuer != nil && s.id.Current != nil {
		s.issuer.Announce(s.id.Current)
	}
}

// askIssuer asks the machine that admits others for the founders: if all founders that this
// machine knows have been replaced, no other machine can name the present ones. At the machine that admits
// others it does nothing.
func (s *ownStore) askIssuer(ctx context.Context) {
	asking := s.id // a copy: several goroutines call askIssuer, and only tend may change s.id
	if s.issuer != nil || !asking.AskCurrent(ctx, s.cfg.PeerTLS) {
		return
	}
	var f raftstore.Founders
	if json.Unmarshal(asking.Current, &f) != nil {
		return
	}
	if err := s.heed(f); err != nil {
		s.reportRetry("ask those of whom the first machine tells", err)
	}
}

// heed goes on with founders that another machine has named: a client asks them, and a machine without one
// retires if they have removed it.
func (s *ownStore) heed(f raftstore.Founders) error {
	s.mu.Lock()
	client := s.mu.client
	s.mu.Unlock()
	if client != nil {
		return client.Learn(f)
	}
	if !slices.Contains(f.Removed, s.id.Machine) {
		return nil
	}
	// The founders that this machine's part knows may all have been replaced, too: they cannot
	// tell the part.
	if err := s.note(f); err != nil {
		return err // this machine keeps its part: f may be of another line
	}
	return s.retire()
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
	s.cfg.Logger.Info("this machine keeps the configuration from now on", "machine", s.id.Machine, "place", placeOf(*f.Next))
	return s.openPart()
}

// retire makes a machine that has been replaced ask the founders. Its part has noted that, and so cannot be
// opened again; the founders are noted by tend, since several goroutines may call this at once.
func (s *ownStore) retire() error {
	part := s.ownPart()
	if part == nil {
		return nil // the machine has retired already
	}
	f, err := part.Founders()
	// If known says that this machine was removed, the part may have a line that it gives up.
	known := s.known.Load()
	if known != nil && (err != nil || known.Version > f.Version || slices.Contains(known.Removed, s.id.Machine)) {
		f, err = *known, nil
	}
	if err != nil {
		return err
	}
	if err := s.openClient(f); err != nil {
		return err
	}
	if !s.dropPart(part) {
		return nil // another call was faster
	}
	s.cfg.Logger.Warn("this machine does not keep the configuration any more, because it was forgotten as gone, or another one was refounded without it: it asks those that do from now on",
		"machine", s.id.Machine)
	return part.Close()
}

// dropPart makes calls go to the client only, and reports whether they went to the part until
// now.
func (s *ownStore) dropPart(part *raftstore.Store) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.part != part {
		return false
	}
	s.mu.part = nil
	return true
}

// replaceFounder chooses, as the CM, the machine that takes the place of a founder that is gone, or a free place. It does
// nothing while another machine is about to take one.
func (s *ownStore) replaceFounder(c *cluster.Configuration, f raftstore.Founders) error {
	if (len(f.Gone) == 0 && len(f.Machines) >= f.Wanted) || f.Leaving != nil {
		return nil
	}
	if isAwaited(c, f) {
		return nil
	}
	by, ok := successor(c, f)
	if !ok {
		if !s.lacksSuccessor {
			s.cfg.Logger.Warn("fewer machines keep the configuration than should, and no member is eligible: let another machine join", "gone", f.Gone)
		}
		s.lacksSuccessor = true
		return nil
	}
	s.lacksSuccessor = false
	s.cfg.Logger.Info("a machine takes a place among those that keep the configuration", "machine", by.Machine, "place", placeOf(by))
	return s.asked().Replace(by)
}

// isAwaited reports whether the cluster waits for the machine that is about to become a founder: because it is catching up, or
// because it is away and too few others could take its place. A machine that is replaced can never become a founder again.
func isAwaited(c *cluster.Configuration, f raftstore.Founders) bool {
	if f.Next == nil {
		return false
	}
	if _, isMember := c.Member(f.Next.Machine); isMember {
		return true
	}
	places := max(f.Wanted-len(f.Machines), 0) + len(f.Gone)
	return len(eligible(c, f)) < places
}

// placeOf says whose place a successor takes.
func placeOf(s raftstore.Successor) string {
	if s.IsFurther() {
		return "a free one"
	}
	return fmt.Sprintf("that of machine %d", s.For)
}

// successor chooses a member for the place of the first founder that is gone, or for a free
// place. It prefers one in a failure domain without a founder. It chooses none that is being
// drained: that one is about to go, and its place would have to be given away once more.
func successor(c *cluster.Configuration, f raftstore.Founders) (best raftstore.Successor, ok bool) {
	taken := make(map[int]bool)
	for m := range f.Machines {
		if member, isMember := c.Member(m); isMember && !slices.Contains(f.Gone, m) {
			taken[member.FailureDomain] = true
		}
	}
	for _, member := range eligible(c, f) {
		if !ok || !taken[member.FailureDomain] {
			at, _ := hostPortOf(member.Address)
			best, ok = raftstore.Successor{Machine: member.Machine, Address: at, For: member.Machine}, true
			if len(f.Gone) > 0 {
				best.For = f.Gone[0]
			}
		}
		if !taken[member.FailureDomain] {
			return best, true
		}
	}
	return best, ok
}

// eligible returns the members that may become founders.
func eligible(c *cluster.Configuration, f raftstore.Founders) (all []cluster.Member) {
	for _, m := range c.Machines {
		member, _ := c.Member(m)
		_, isOfHost := hostPortOf(member.Address)
		if isOfHost && !f.Has(m) && !slices.Contains(f.Removed, m) && !c.IsDraining(m) {
			all = append(all, member)
		}
	}
	return all
}

// forget tells the store that a founder is gone. It tries again until ctx is done.
func (s *ownStore) forget(ctx context.Context, m rdma.MachineID) error {
	for {
		err := s.asked().Forget(m)
		if err == nil || !errors.Is(err, cluster.ErrUnreachable) || ctx.Err() != nil {
			return ours(err)
		}
		clock.System{}.Sleep(requestRetry)
	}
}

// status returns the founders as the machine knows them, and, if there are too few, how many
// there should be.
func (s *ownStore) status() (list []FounderStatus, wanted int) {
	f := s.known.Load()
	if f == nil {
		return nil, 0
	}
	for _, m := range slices.Sorted(maps.Keys(f.Machines)) {
		founder := FounderStatus{Machine: int(m), Address: f.Machines[m], IsGone: slices.Contains(f.Gone, m)}
		if f.Next != nil && f.Next.For == m {
			founder.Successor = new(int(f.Next.Machine))
		}
		list = append(list, founder)
	}
	if f.Wanted > len(list) {
		wanted = f.Wanted
	}
	return list, wanted
}
