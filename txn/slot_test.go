package txn

import (
	"errors"
	"testing"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/record"
	"github.com/farmsql/farmsql/txn/route"
	"github.com/farmsql/farmsql/txn/set"
)

// A transaction that has lost the slot of a new object does not take for its own
// what another has made there since, which has the same pointer.
func TestLostSlotIsNotOurs(t *testing.T) {
	const me, lender, given, connection = 5, 3, 7, 2
	for name, c := range map[string]struct {
		primary    bool
		changed    cluster.ID // the region's primary
		connection uint32     // now
		lost       bool
	}{
		"still lent":              {changed: given, connection: connection},
		"still reserved here":     {primary: true, changed: given},
		"another primary":         {changed: given + 1, connection: connection, lost: true},
		"another connection":      {changed: given, connection: connection + 1, lost: true},
		"we have become primary":  {primary: true, changed: given + 1, lost: true},
		"not connected any more":  {changed: given, lost: true},
		"both have changed since": {changed: given + 1, connection: connection + 1, lost: true},
	} {
		t.Run(name, func(t *testing.T) {
			m := &Machine{}
			m.cfg.ID = me
			w := &worker{m: &m.machine, peers: make([]*peer, lender+1)}
			w.peers[lender] = &peer{id: lender, connection: c.connection}
			rt := &route.Route{PrimaryHere: c.primary}
			rt.Primary, rt.LastPrimaryChange = lender, c.changed
			m.routes.Store(&route.List{1: rt})
			s := &state{m: m, w: w}
			s.late.s = s
			at := func(off uint32) set.Entry {
				p := region.Ptr{Addr: region.MakeAddr(1, off)}
				return set.Entry{Ptr: p, Op: record.OpAlloc, Config: given, Connection: connection, Payload: []byte{42}}
			}
			ours, late := at(4096), at(8192)
			s.writes.Add(ours)
			s.late.set.Add(late)
			for what, read := range map[string]func() ([]byte, error){
				"Tx.Read":               func() ([]byte, error) { return (&Tx{s}).Read(ours.Ptr) },
				"Tx.Write":              func() ([]byte, error) { return (&Tx{s}).Write(ours.Ptr) },
				"Late.Read":             func() ([]byte, error) { return s.late.Read(ours.Ptr) },
				"Late.Write":            func() ([]byte, error) { return s.late.Write(ours.Ptr) },
				"Late.Read, made late":  func() ([]byte, error) { return s.late.Read(late.Ptr) },
				"Late.Write, made late": func() ([]byte, error) { return s.late.Write(late.Ptr) },
			} {
				s.doomed = nil
				b, err := read()
				var a *AbortError
				switch lost := errors.As(err, &a) && a.Reason == ReasonMoved; {
				case c.lost && (!lost || b != nil):
					t.Errorf("%s: %v, %v although the slot is lost", what, b, err)
				case !c.lost && (err != nil || len(b) != 1 || b[0] != 42):
					t.Errorf("%s: %v, %v although we have the slot", what, b, err)
				}
			}
		})
	}
}
