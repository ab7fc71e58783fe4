package txn

import (
	"errors"
	"testing"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	rdmalocal "github.com/farmsql/farmsql/rdma/local"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/record"
	"github.com/farmsql/farmsql/txn/route"
	"github.com/farmsql/farmsql/txn/set"
	"github.com/farmsql/farmsql/txn/worker"
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
			m := connected(t, me, lender, c.connection)
			rt := &route.Route{PrimaryHere: c.primary}
			rt.Primary, rt.LastPrimaryChange = lender, c.changed
			m.Routes.Store(&route.List{1: rt})
			s := &state{m: m, w: m.Inspect().Workers()[0]}
			s.late.s = s
			at := func(off uint32) set.Entry {
				p := region.Ptr{Addr: region.MakeAddr(1, off)}
				return set.Entry{Ptr: p, Op: record.OpAlloc, Config: given, Connection: connection, Payload: []byte{42}}
			}
			ours, late := at(4096), at(8192)
			s.writes.Add(ours)
			s.late.set.Add(late)
			for what, read := range map[string]func() ([]byte, error){
				"Tx.Read":               func() ([]byte, error) { return (&Tx{state: s}).Read(ours.Ptr) },
				"Tx.Write":              func() ([]byte, error) { return (&Tx{state: s}).Write(ours.Ptr) },
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

// connected returns a machine with one worker that has the given connection to another machine.
func connected(t *testing.T, me, to rdma.MachineID, connection uint32) *Machine {
	t.Helper()
	nic, err := rdmalocal.NewNetwork(rdmalocal.Options{}).Join(me)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nic.Close() })
	m, err := New(worker.Config{
		ID: me, Workers: 1, NIC: nic, LogBytes: 64 << 10, MessageBytes: 16 << 10, Clock: clock.System{},
		Log: func(rdma.MachineID, int) (*nvram.Memory, error) { return nvram.NewMemory(64 << 10), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	g, err := m.Listen(to)
	if err != nil {
		t.Fatal(err)
	}
	g.Workers[0].Life = connection
	if err := m.Connect(to, g); err != nil {
		t.Fatal(err)
	}
	return m
}
