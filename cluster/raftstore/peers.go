package raftstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/farmsql/farmsql/rdma"
)

// peers are the other machines that a machine of the store talks with, and the founders that it
// knows. They never change: a change makes new peers.
type peers struct {
	links    map[uint64]*link // indexed by the peers' numbers in the library
	founders Founders
}

// voters returns the founders' numbers in the library, ascending.
func (p *peers) voters() (ids []uint64) {
	for _, m := range slices.Sorted(maps.Keys(p.founders.Machines)) {
		ids = append(ids, raftID(m))
	}
	return ids
}

// regroup makes the machines that take part in votes the peers: it opens links to new ones, and
// closes the links to others. A successor that has heard nothing yet knows no votes, but the
// founders of its Founding. Only open and the loop call it.
func (s *Store) regroup(votes *raftpb.ConfState, founders Founders) {
	ids := slices.Concat(votes.GetVoters(), votes.GetLearners(), votes.GetVotersOutgoing())
	if len(ids) == 0 {
		for m := range founders.Machines {
			ids = append(ids, raftID(m))
		}
	}
	former := s.peers.Load()
	p := &peers{links: make(map[uint64]*link), founders: founders.clone()}
	var opened []*link
	for _, id := range ids {
		if id == raftID(s.founding.Machine) || p.links[id] != nil {
			continue
		}
		if l := former.links[id]; l != nil && l.address == founders.address(machineOf(id)) {
			p.links[id] = l
			continue
		}
		p.links[id] = s.newLink(machineOf(id), founders.address(machineOf(id)))
		opened = append(opened, p.links[id])
	}
	s.peers.Store(p)
	for id, l := range former.links {
		if p.links[id] != l {
			l.stop()
		}
	}
	for _, l := range opened {
		l.start()
	}
}

// newLink returns a link that is not started.
func (s *Store) newLink(to rdma.MachineID, address string) *link {
	l := newLink(&s.cfg, &s.founding, to, address)
	ctx, cancel := context.WithCancel(s.ctx)
	l.stop = cancel
	l.start = func() { s.running.Go(func() { l.run(ctx) }) }
	l.removed, l.broken = func() { s.stopAs(ErrRemoved) }, s.stirs
	return l
}

// stopAs makes the loop end with an error.
func (s *Store) stopAs(reason error) {
	select {
	case s.ending <- reason:
	default: // the loop is ending already
	}
}

// Founders returns the founders as this machine knows them: others may know later ones.
func (s *Store) Founders() (Founders, error) { return s.peers.Load().founders.clone(), nil }

// Forget says that a founder is gone for good, so that Replace may give its place to another machine. It
// fails with ErrFounders if the machine is no founder, or a member of the configuration, and otherwise as
// CompareAndSwap does.
func (s *Store) Forget(m rdma.MachineID) error {
	return s.change(&change{kind: changeForget, id: s.newID(), changeText: changeText{Successor: Successor{For: m}}}, s.cfg.Patience)
}

// Replace gives a successor the place of a founder that was forgotten, or a free place. When Replace
// returns nil, the founders have agreed on that. The successor becomes a founder later, once it has
// made its part of the store, with Create, and opened it: see Founders.Joining. It displaces an
// earlier successor that has not got the vote yet. Replace fails with ErrFounders if the successor
// cannot have the place, and otherwise as CompareAndSwap does.
func (s *Store) Replace(by Successor) error {
	return s.change(&change{kind: changeReplace, id: s.newID(), changeText: changeText{Successor: by}}, s.cfg.Patience)
}

// Want says how many founders there should be: Replace may give free places to machines until there are as many. If there
// should be as many already, or more, nothing changes. It fails as Replace does.
func (s *Store) Want(n int) error {
	return s.change(&change{kind: changeWant, id: s.newID(), changeText: changeText{Wanted: n}}, s.cfg.Patience)
}

// change carries out a change of the founders, unless checkPrograms or checkForget refuses it.
func (s *Store) change(c *change, patience time.Duration) error {
	if err := s.checkPrograms(c.kind); err != nil {
		return err
	}
	if c.kind == changeForget {
		b, err := s.ask(&request{id: s.newID()}, patience)
		if err == nil {
			err = checkForget(c.For, b)
		}
		if err != nil {
			return err
		}
	}
	_, err := s.ask(&request{id: c.id, change: c}, patience)
	return err
}

// needs returns what a machine must know, of knowsFormat, to apply a change of the founders of some kind.
func (f *Founders) needs(kind byte) byte {
	switch {
	case kind == changeWant:
		return knowsWant
	case f.isFurther():
		return knowsRefounded
	}
	return knowsChanges
}

// isFurther reports whether the founders have fields that only programs with knowsRefounded
// know. Other programs would drop these fields, and apply later changes differently.
func (f *Founders) isFurther() bool { return len(f.Line) > 0 || f.Wanted > 0 }

// checkPrograms refuses changes of the founders as long as a founder could not read them. One that is not
// connected, and has an earlier program, stops with ErrNewer when it gets them.
func (s *Store) checkPrograms(kind byte) error {
	var earlier []string
	p := s.peers.Load()
	for _, id := range slices.Sorted(maps.Keys(p.links)) {
		if p.links[id].isEarlier(p.founders.needs(kind)) {
			earlier = append(earlier, fmt.Sprint(machineOf(id)))
		}
	}
	if len(earlier) == 0 {
		return nil
	}
	return fmt.Errorf("%w: machines %v have an earlier farmsql, which does not know such changes: start them with this one first", ErrFounders, earlier)
}

var errNoSuccessor = errors.New("cluster: this machine is not to keep the configuration")

// Joining returns the Founding with which a machine that is to become a founder creates its
// part of the store. It fails if m is not Next.
func (f Founders) Joining(cluster uint64, founded map[rdma.MachineID]string, m rdma.MachineID) (Founding, error) {
	if f.Next == nil || f.Next.Machine != m {
		return Founding{}, errNoSuccessor
	}
	return Founding{Cluster: cluster, Machine: m, Machines: founded, Joined: new(f.clone())}, nil
}
