package worker

import (
	"errors"
	"testing"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/ring"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/message"
	"github.com/farmsql/farmsql/txn/outcome"
	"github.com/farmsql/farmsql/txn/participant"
	"github.com/farmsql/farmsql/txn/record"
	"github.com/farmsql/farmsql/txn/route"
)

// Dropping an annex takes it away from peers before its memory is given back.
func TestDroppedAnnexIsDeregisteredFirst(t *testing.T) {
	m, _ := listener(t)
	again := make(chan error, 1)
	m.Replicas.Annex = func(_ uint64, bytes int64) (*nvram.Memory, error) { return nvram.NewMemory(bytes), nil }
	m.Replicas.DropAnnex = func(number uint64, memory *nvram.Memory) error {
		again <- m.cfg.NIC.Register(route.AnnexKey(number), memory)
		return nil
	}
	number, err := m.Replicas.Annexes.Add(5000)
	must(t, err)
	m.Replicas.Annexes.Drop(number)
	if err := <-again; err != nil {
		t.Errorf("peers can still write to it: %v", err)
	}
	if m.Annexes() != 0 {
		t.Error("it is still there")
	}
}

// What a peer that has left has written is known as long as it is not decided, or parked if
// it cannot be; what it has asked for and no record names goes with the recovery.
func TestAnnexesOfAPeerThatHasLeft(t *testing.T) {
	for _, isAway := range []bool{false, true} {
		m, _ := listener(t)
		withAnnexes(t, m)
		self, err := participant.NewOwnLog(nvram.NewMemory(64<<10), record.Coordinator{Machine: 0, Worker: 0}, 1)
		must(t, err)
		m.workers[0].self = self
		var parked []*nvram.Memory
		m.recovery.OpenParked = func(_ cluster.ID, _ int, bytes int64) (*nvram.Memory, error) {
			parked = append(parked, nvram.NewMemory(bytes))
			return parked[len(parked)-1], nil
		}
		_, err = m.Listen(1)
		must(t, err)
		local, err := region.Format(2, nvram.NewMemory(region.MinSize))
		must(t, err)
		m.Routes.Store(&route.List{2: {Placement: cluster.Placement{Region: 2, Primary: 1}, Local: local}})
		p := m.workers[0].peerLocked(1)
		ptr := region.MakePtr(region.MakeAddr(2, 0x440), 10, 0)
		fillAnnex(t, m, p.in, ptr) // and its record has not come
		rec := record.Record{Kind: record.Lock, ID: record.ID{Config: 2, Machine: 1, Seq: 2<<record.LifeShift + 1}, Regions: []region.ID{2}, Annex: fillAnnex(t, m, p.in, ptr)}
		state, err := p.in.Receiver().State()
		must(t, err)
		_, _, err = ring.NewLocalSender(state, p.memory, 0).Append(rdma.Unsignalled, record.Append(nil, &rec))
		must(t, err)

		without := &cluster.Configuration{ID: 3, NextRegion: 3, Regions: []cluster.Placement{{Region: 2, Primary: 1}}}
		if isAway {
			without.Regions[0].Away = []cluster.Memory{{Machine: 1, Token: 7}}
		}
		m.Freeze(without)
		found, err := m.recovery.Drain(3)
		must(t, err)
		if len(found) != 1 || found[0].ID != rec.ID || found[0].At.Key != route.AnnexKey(rec.Annex.Number) || m.Annexes() != 2 {
			t.Fatalf("found %+v, %d annexes", found, m.Annexes())
		}
		if !isAway {
			must(t, m.recovery.Decide(3, rec.ID, false))
			if m.Annexes() != 2 {
				t.Error("an annex is gone before its transaction is truncated")
			}
			must(t, m.recovery.Truncate(3, rec.ID))
		}
		must(t, m.recovery.Settle(without))
		if n := m.Annexes(); n != 0 {
			t.Errorf("unavailable %v: %d annexes are left", isAway, n)
		}
		writes := 0
		for _, memory := range parked {
			writes += writesIn(t, memory)
		}
		if (writes == 1) != isAway {
			t.Errorf("unavailable %v: %d writes are parked", isAway, writes)
		}
	}
}

// An annex whose sender has another connection by the time it is made, or none, goes at once.
func TestAnnexForAnEndedConnection(t *testing.T) {
	m, _ := listener(t)
	withAnnexes(t, m)
	_, err := m.Listen(1)
	must(t, err)
	ask := func(r message.AnnexRequest) error {
		_, err := m.handleAnnex(t.Context(), r.Encode())
		return err
	}
	must(t, ask(message.AnnexRequest{Sender: 1, Bytes: 64}))
	for name, r := range map[string]message.AnnexRequest{
		"another connection": {Sender: 1, Connection: 7, Bytes: 64},
		"no machine":         {Sender: 2, Bytes: 64},
		"no worker":          {Sender: 1, Worker: 9, Bytes: 64},
	} {
		if err := ask(r); !errors.Is(err, outcome.ErrLost) || m.Annexes() != 1 {
			t.Errorf("%s: %v, %d annexes", name, err, m.Annexes())
		}
	}
	m.workers[0].markLostLocked(m.workers[0].peerLocked(1))
	if err := ask(message.AnnexRequest{Sender: 1, Bytes: 64}); !errors.Is(err, outcome.ErrLost) || m.Annexes() != 1 {
		t.Errorf("no connection: %v, %d annexes", err, m.Annexes())
	}
}

// A connection that is made anew takes all annexes of the one before along, also that of a
// record which has fenced its writer: no log has it.
func TestListenAgainGivesBackAnnexes(t *testing.T) {
	m, _ := listener(t)
	withAnnexes(t, m)
	_, err := m.Listen(1)
	must(t, err)
	in := m.workers[0].peerLocked(1).in
	ptr := region.MakePtr(region.MakeAddr(2, 0x440), 10, 0)
	fillAnnex(t, m, in, ptr)
	bound := fillAnnex(t, m, in, ptr)
	_, err = m.Replicas.Annexes.Bind(&bound, in)
	must(t, err)
	_, err = m.Listen(1)
	must(t, err)
	if n := m.Annexes(); n != 0 {
		t.Errorf("%d annexes are left", n)
	}
}

// writesIn counts the writes of the records in a log.
func writesIn(t *testing.T, log *nvram.Memory) (n int) {
	t.Helper()
	rx, err := record.OpenLog(log)
	must(t, err)
	for {
		raw, ok, err := rx.Poll()
		must(t, err)
		if !ok {
			return n
		}
		var rec record.Record
		must(t, record.Decode(raw.Payload, &rec))
		n += len(rec.Writes)
	}
}
