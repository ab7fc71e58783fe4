package raftstore

import (
	"bufio"
	"encoding/json"
	"net"
	"time"
)

// errNotBegun means that a machine was refounded, and may still find that the others keep the
// configuration. Its clients must not learn its founders before: they would never go back to
// the others.
var errNotBegun = &unanswered{"cluster: this machine was refounded, and asks those that it has left behind before it begins"}

// serve carries out the calls of a client, one after the other, until the connection breaks or has been
// idle for long.
func (s *Store) serve(stream net.Conn) {
	in := bufio.NewReader(stream)
	for {
		// A client whose host has lost its power does not close the connection.
		if stream.SetReadDeadline(time.Now().Add(s.cfg.after(idleTicks))) != nil {
			return
		}
		c, err := readCall(in)
		if err != nil {
			return
		}
		r := s.carryOut(&c)
		if stream.SetWriteDeadline(time.Now().Add(s.cfg.after(silenceTicks))) != nil {
			return
		}
		if _, err := stream.Write(r.encode()); err != nil {
			return
		}
	}
}

// carryOut carries out the call of a client as if it were this machine's. A swap keeps the client's
// identifier, so that all copies of it are one, whatever machines it was sent to. A Load gets an
// identifier here: the leader answers only the first of two reads with one identifier.
func (s *Store) carryOut(c *call) result {
	if c.suspect != nil {
		s.Suspect(*c.suspect)
	}
	patience := min(c.patience, s.cfg.Patience)
	switch c.operation {
	case operationLoad:
		b, err := s.ask(&request{id: s.newID()}, patience)
		return resultOf(c.swap.id, b, err)
	case operationFounders:
		if !s.hasBegun.Load() {
			return resultOf(c.swap.id, nil, errNotBegun)
		}
		b, err := json.Marshal(s.peers.Load().founders)
		return resultOf(c.swap.id, b, err)
	case operationStanding:
		s.hear(c.swap.configuration)
		b, err := json.Marshal(s.standing())
		return resultOf(c.swap.id, b, err)
	case operationChange:
		return resultOf(c.change.id, nil, s.change(&c.change, patience))
	}
	err := c.swap.check()
	if err == nil {
		_, err = s.ask(&request{id: c.swap.id, swap: &c.swap}, patience)
	}
	return resultOf(c.swap.id, nil, err)
}
