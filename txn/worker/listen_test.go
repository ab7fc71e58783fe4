package worker

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	rdmalocal "github.com/farmsql/farmsql/rdma/local"
	"github.com/farmsql/farmsql/rdma/ring"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/participant"
	"github.com/farmsql/farmsql/txn/record"
	"github.com/farmsql/farmsql/txn/route"
)

// listener returns a machine that maps each log once, as a folder does, and the names of
// those that it has mapped.
func listener(t *testing.T) (m *Machine, mapped map[string]bool) {
	t.Helper()
	nic, err := rdmalocal.NewNetwork(rdmalocal.Options{}).Join(0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nic.Close() })
	mapped = make(map[string]bool)
	m = new(Machine)
	err = Open(m, Config{
		Workers: 1, NIC: nic, LogBytes: 64 << 10, MessageBytes: 16 << 10, Clock: clock.System{},
		Log: func(from rdma.MachineID, w int) (*nvram.Memory, error) { return mapOnce(mapped, from, w, 0) },
		Relog: func(from rdma.MachineID, w, n int) (*nvram.Memory, error) {
			return mapOnce(mapped, from, w, n)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return m, mapped
}

func mapOnce(mapped map[string]bool, from rdma.MachineID, worker, n int) (*nvram.Memory, error) {
	name := fmt.Sprint(from, worker, n)
	if mapped[name] {
		return nil, fmt.Errorf("%w: %s is mapped already", nvram.ErrName, name)
	}
	mapped[name] = true
	return nvram.NewMemory(64 << 10), nil
}

// If there is no message queue for a peer, listening to it can be tried again.
func TestListenAgainAfterAFailure(t *testing.T) {
	m, _ := listener(t)
	good := m.cfg.MessageBytes
	m.cfg.MessageBytes = 8
	if _, err := m.Listen(1); err == nil {
		t.Fatal("listens with a queue of 8 bytes")
	}
	m.cfg.MessageBytes = good
	if _, err := m.Listen(1); err != nil {
		t.Error(err)
	}
}

// No other log is made for a peer that cannot be listened to yet: it would be there
// already the next time, and the one that holds records would pass for replaced.
func TestNoOtherLogWhileRecordsAreHeld(t *testing.T) {
	m, mapped := listener(t)
	if _, err := m.Listen(1); err != nil {
		t.Fatal(err)
	}
	m.Routes.Store(&route.List{2: &route.Route{Placement: cluster.Placement{Region: 2, Away: []cluster.Memory{{Machine: 1, Token: 7}}}}})
	p := m.workers[0].peerLocked(1)
	p.hasLeft = true
	const seq = 1<<record.LifeShift + 7
	state, err := p.in.Receiver().State()
	must(t, err)
	ptr := region.MakePtr(region.MakeAddr(2, 0x440), 10, 0)
	rec := &record.Record{Kind: record.Lock, ID: record.ID{Config: 1, Machine: 1, Seq: seq}, LowBound: seq, Regions: []region.ID{2}, Writes: []record.Write{{Ptr: ptr, Payload: make([]byte, ptr.Capacity())}}}
	_, _, err = ring.NewLocalSender(state, p.memory, 0).Append(rdma.Unsignalled, record.Append(nil, rec))
	must(t, err)
	p.in.Freeze(2)
	_, _, err = p.in.Step()
	must(t, err)
	if _, err := m.Listen(1); !errors.Is(err, ErrHeld) || len(mapped) != 1 {
		t.Errorf("%d logs are mapped, %v", len(mapped), err)
	}
	must(t, p.in.Release(seq))
	if _, err := m.Listen(1); err != nil || len(mapped) != 2 {
		t.Errorf("%d logs are mapped, %v", len(mapped), err)
	}
}

// The ledger of a life that is over stays until a recovery is settled in which no region
// is unavailable: until then memory that was away may have records that nobody has
// decided about, even in a configuration that has it again.
func TestLedgerOfALifeThatIsOver(t *testing.T) {
	in := func(id cluster.ID, away ...cluster.Memory) *cluster.Configuration {
		return &cluster.Configuration{ID: id, NextRegion: 3, Regions: []cluster.Placement{{Region: 2, Primary: 1, Away: away}}}
	}
	memory := cluster.Memory{Machine: 1, Token: 7}
	for _, c := range []struct {
		name string
		// without is the configuration that excludes the peer.
		without   *cluster.Configuration
		isSettled bool
		isKept    bool
	}{
		{"settled", in(3), true, false},
		{"settled without a region", in(3, memory), true, true},
		{"not settled", in(3), false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, mapped := listener(t)
			self, err := participant.NewOwnLog(nvram.NewMemory(64<<10), record.Coordinator{Machine: 0, Worker: 0}, 1)
			if err != nil {
				t.Fatal(err)
			}
			m.workers[0].self = self
			if _, err := m.Listen(1); err != nil {
				t.Fatal(err)
			}
			id := record.ID{Config: 1, Machine: 1, Seq: 1<<record.LifeShift + 7}
			m.workers[0].peerLocked(1).in.Ledger().Raise(id.Seq + 1)
			m.Freeze(c.without)
			if c.isSettled {
				if err := m.recovery.Settle(c.without); err != nil {
					t.Fatal(err)
				}
			}
			with := in(4)
			with.AddMember(cluster.Member{Machine: 1, Incarnation: 9})
			m.Freeze(with)
			if _, err := m.Listen(1); err != nil {
				t.Fatal(err)
			}
			isTruncated := m.recovery.Truncated(id, 2)
			if isKept := len(mapped) == 2 && isTruncated; isKept != c.isKept {
				t.Errorf("%d logs are mapped, its ledger is there: %v, should be kept: %v", len(mapped), isTruncated, c.isKept)
			}
		})
	}
}

// Peers are listened to side by side while others vote.
func TestListenSideBySide(t *testing.T) {
	m, _ := listener(t)
	var all sync.WaitGroup
	const rounds, first = 20, 1<<record.LifeShift + 1
	for n := range uint64(rounds) {
		for peer := rdma.MachineID(1); peer <= 2; peer++ {
			all.Go(func() {
				if _, err := m.Listen(peer); err != nil {
					t.Error(err)
				}
				m.recovery.Truncated(record.ID{Config: 1, Machine: peer}, 1)
			})
		}
		all.Wait()
		for _, p := range m.workers[0].peers {
			if p != nil {
				p.hasLeft = true
			}
		}
		m.workers[0].peerLocked(1).in.Ledger().Name(first + n)
	}
	for n := range uint64(rounds) {
		if !m.recovery.Truncated(record.ID{Config: 1, Machine: 1, Seq: first + n}, 1) {
			t.Errorf("ledger %d is not kept", n)
		}
	}
}
