package txn

import (
	"errors"
	"testing"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/ring"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/message"
	"github.com/farmsql/farmsql/txn/record"
	"github.com/farmsql/farmsql/txn/route"
)

// annexedLog makes a log of an earlier life with a LOCK record of transaction n, whose
// writes, one to each of two regions, are in an annex.
func annexedLog(t *testing.T, n uint64) (log, annex *nvram.Memory, rec record.Record) {
	t.Helper()
	var body []byte
	for _, id := range []region.ID{2, 3} {
		p := region.MakePtr(region.MakeAddr(id, 0x440), 10, 0)
		body = record.AppendWrite(body, &record.Write{Ptr: p, Op: record.OpUpdate, Version: region.Version(n), Payload: make([]byte, p.Capacity())})
	}
	annex = nvram.NewMemory(8192)
	annex.CopyIn(0, body)
	rec = record.Record{Kind: record.Lock, ID: idOf(1, 5, n), Regions: []region.ID{2, 3}, Annex: record.Annex{Number: 77, Writes: 2, Bytes: uint64(len(body))}}
	log = nvram.NewMemory(64 << 10)
	record.NewLedger(log, record.Coordinator{Machine: 1, Worker: 0})
	rx, err := record.CreateLog(log, 1)
	must(t, err)
	state, err := rx.State()
	must(t, err)
	_, _, err = ring.NewLocalSender(state, log, 0).Append(rdma.Unsignalled, record.Append(nil, &rec))
	must(t, err)
	return log, annex, rec
}

// A record of an earlier life is evidence with what its annex says, of each region where
// that is; without the annex, or with less of it, its memory is damaged.
func TestAnnexOfAnEarlierLife(t *testing.T) {
	log, annex, rec := annexedLog(t, 1)
	for name, annexes := range map[string]map[uint64]*nvram.Memory{
		"missing":   nil,
		"another":   {78: annex},
		"too small": {77: nvram.NewMemory(64)},
	} {
		m := recoveringIn(t, 6, true)
		m.initReplicas()
		if err := m.Recall([]*nvram.Memory{log}, nil, annexes, 0); !errors.Is(err, errDamagedLog) {
			t.Errorf("%s: %v", name, err)
		}
	}
	m := recoveringIn(t, 6, true)
	m.initReplicas()
	must(t, m.Recall([]*nvram.Memory{log}, nil, map[uint64]*nvram.Memory{77: annex}, 0))
	var seen []region.ID
	for p := range m.RecalledWrites {
		seen = append(seen, p.Addr.Region())
	}
	if len(seen) != 2 || seen[0] != 2 || seen[1] != 3 {
		t.Errorf("it writes to %v", seen)
	}
	r := &m.recovery
	r.scanLocked(log, route.RecalledKey(0), ^uint64(0), func(*record.Record, uint64) bool { return true })
	r.takeFoundLocked()
	half := rec.Annex.Bytes / 2
	for i, id := range rec.Regions {
		e, ok := m.Evidence(rec.ID, id)
		want := Extent{Key: route.AnnexKey(77), Off: uint64(i) * half, N: half}
		if !ok || e.Seen != SeenLock || e.At != want {
			t.Errorf("region %d: %+v", id, e)
		}
		writes, err := record.WritesIn(annex.View(e.At.Off, e.At.N))
		if err != nil || len(writes) != 1 || !isOf(id, writes) || isOf(9, writes) {
			t.Errorf("region %d: %v, %v", id, writes, err)
		}
	}
	m.recalled.settleLocked(m, 7, nil)
	if m.Annexes() != 0 {
		t.Error("the annex is still there when the recovery is over")
	}
	must(t, m.cfg.NIC.Register(route.AnnexKey(77), annex)) // nobody reads it any more
}

// Whoever asks what earlier lives have written, once a configuration has begun, meets no
// memory that is being removed: what the recovery of an older one has not given up by then
// it will not.
func TestRecalledWritesAreThere(t *testing.T) {
	writes := func(m *Machine) (n int) {
		for range m.RecalledWrites {
			n++
		}
		return n
	}
	for _, isSettled := range []bool{false, true} {
		log, annex, _ := annexedLog(t, 1)
		m := recoveringIn(t, 6, true)
		m.initReplicas()
		must(t, m.Recall([]*nvram.Memory{log}, nil, map[uint64]*nvram.Memory{77: annex}, 0))
		before, want := &cluster.Configuration{ID: 6}, 2
		if isSettled {
			must(t, m.Settle(before))
			want = 0
		}
		m.Freeze(&cluster.Configuration{ID: 8})
		if err := m.Settle(before); !errors.Is(err, ErrConfiguration) {
			t.Errorf("settled in another configuration: %v", err)
		}
		if n := writes(m); n != want {
			t.Errorf("settled %v: %d objects are written to, want %d", isSettled, n, want)
		}
	}
}

// What counts no longer may have lost its annex.
func TestAnnexOfWhatIsSettled(t *testing.T) {
	log, _, _ := annexedLog(t, 1)
	m := recoveringIn(t, 8, true)
	m.initReplicas()
	must(t, m.Recall([]*nvram.Memory{log}, nil, nil, 6))
	for p := range m.RecalledWrites {
		t.Errorf("it writes to %v", p)
	}
}

// A note that has more writes than a log holds gets memory of its own that is large enough,
// in this life and the next.
func TestNoteLargerThanALog(t *testing.T) {
	const in, writes = 7, 200
	m := recoveringIn(t, in, true)
	var made []*nvram.Memory
	m.cfg.LogBytes = 64 << 10
	m.recovery.notes.open = func(_ cluster.ID, n int, bytes int64) (*nvram.Memory, error) {
		made = append(made, nvram.NewMemory(bytes))
		return made[n], nil
	}
	e := Evidence{ID: idOf(1, 5, 1), Regions: []region.ID{2}, Region: 2, Seen: SeenLock}
	var all []record.Write
	for i := range uint32(writes) {
		p := region.MakePtr(region.MakeAddr(2, 0x440+0x400*i), 10, 0)
		all = append(all, record.Write{Ptr: p, Op: record.OpUpdate, Version: 1, Payload: make([]byte, p.Capacity())})
	}
	must(t, m.Learn(in, e, all))
	must(t, learnOne(m, in, 2)) // small ones still go where they did
	if len(made) != 1 || made[0].Size() <= 64<<10 {
		t.Fatalf("made %d", len(made))
	}
	again := recoveringIn(t, in+2, true)
	again.initReplicas()
	must(t, again.Recall([]*nvram.Memory{made[0]}, nil, nil, in-1))
	again.recovery.scanLocked(made[0], 1, ^uint64(0), func(*record.Record, uint64) bool { return true })
	again.recovery.takeFoundLocked()
	got, ok := again.Evidence(e.ID, 2)
	if !ok || len(again.recovery.traces[e.ID].parts[0].writes) != writes || got.Seen != SeenLock {
		t.Errorf("the next life knows %+v", got)
	}
}

// Bytes that are no writes are refused, wherever they end.
func TestBadAnnexBodies(t *testing.T) {
	_, annex, rec := annexedLog(t, 1)
	body := annex.View(0, rec.Annex.Bytes)
	for n := uint64(8); n < rec.Annex.Bytes; n += 8 {
		if _, err := record.AnnexWrites(&rec.Annex, body[:n]); !errors.Is(err, record.ErrBad) {
			t.Errorf("%d bytes: %v", n, err)
		}
		if _, err := record.WritesIn(body[:n]); !errors.Is(err, record.ErrBad) && n != rec.Annex.Bytes/2 {
			t.Errorf("part of %d bytes: %v", n, err)
		}
	}
	if _, err := record.AnnexWrites(&rec.Annex, annex.View(0, rec.Annex.Bytes+8)); !errors.Is(err, record.ErrBad) {
		t.Errorf("too much: %v", err)
	}
	for _, b := range [][]byte{nil, make([]byte, annexRequestBytes+1)} {
		if _, err := decodeAnnexRequest(b); !errors.Is(err, message.ErrBad) {
			t.Errorf("request %v: %v", b, err)
		}
	}
	for _, body := range [][]byte{nil, make([]byte, 8), {0, 0, 0, 0, 0, 0, 0, 1}} {
		if _, err := annexReply(message.Message{Kind: message.Reply, Body: body}); !errors.Is(err, message.ErrBad) {
			t.Errorf("reply %v: %v", body, err)
		}
	}
}

// Dropping an annex takes it away from peers before its memory is given back.
func TestDroppedAnnexIsDeregisteredFirst(t *testing.T) {
	m := recoveringIn(t, 6, true)
	m.initReplicas()
	again := make(chan error, 1)
	m.replicas.Annex = func(_ uint64, bytes int64) (*nvram.Memory, error) { return nvram.NewMemory(bytes), nil }
	m.replicas.DropAnnex = func(number uint64, memory *nvram.Memory) error {
		again <- m.cfg.NIC.Register(route.AnnexKey(number), memory)
		return nil
	}
	number, err := m.replicas.Annexes.Add(5000)
	must(t, err)
	m.replicas.Annexes.Drop(number)
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
		self, err := newSelfLog(nvram.NewMemory(64<<10), record.Coordinator{Machine: 0, Worker: 0}, 1)
		must(t, err)
		m.workers[0].self, m.workers[0].selfMemory = self, self.ledger.Log()
		var parked []*nvram.Memory
		m.cfg.Park = func(_ cluster.ID, _ int, bytes int64) (*nvram.Memory, error) {
			parked = append(parked, nvram.NewMemory(bytes))
			return parked[len(parked)-1], nil
		}
		_, err = m.Listen(1)
		must(t, err)
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
		found, err := m.Drain(3)
		must(t, err)
		if len(found) != 1 || found[0].ID != rec.ID || found[0].At.Key != route.AnnexKey(rec.Annex.Number) || m.Annexes() != 2 {
			t.Fatalf("found %+v, %d annexes", found, m.Annexes())
		}
		if !isAway {
			must(t, m.Decide(3, rec.ID, false))
			if m.Annexes() != 2 {
				t.Error("an annex is gone before its transaction is truncated")
			}
			must(t, m.Truncate(3, rec.ID))
		}
		must(t, m.Settle(without))
		if n := m.Annexes(); n != 0 {
			t.Errorf("unavailable %v: %d annexes are left", isAway, n)
		}
		writes := 0
		for _, memory := range parked {
			for _, rec := range recordsIn(memory) {
				writes += len(rec.Writes)
			}
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
	ask := func(r annexRequest) error {
		_, err := m.handleAnnex(t.Context(), r.encode())
		return err
	}
	must(t, ask(annexRequest{sender: 1, bytes: 64}))
	for name, r := range map[string]annexRequest{
		"another connection": {sender: 1, connection: 7, bytes: 64},
		"no machine":         {sender: 2, bytes: 64},
		"no worker":          {sender: 1, worker: 9, bytes: 64},
	} {
		if err := ask(r); !errors.Is(err, ErrLost) || m.Annexes() != 1 {
			t.Errorf("%s: %v, %d annexes", name, err, m.Annexes())
		}
	}
	m.workers[0].markLostLocked(m.workers[0].peerLocked(1))
	if err := ask(annexRequest{sender: 1, bytes: 64}); !errors.Is(err, ErrLost) || m.Annexes() != 1 {
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
	_, err = m.replicas.Annexes.Bind(&bound, in)
	must(t, err)
	_, err = m.Listen(1)
	must(t, err)
	if n := m.Annexes(); n != 0 {
		t.Errorf("%d annexes are left", n)
	}
}
