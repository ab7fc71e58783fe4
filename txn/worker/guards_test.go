package worker

import (
	"errors"
	"testing"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma/ring"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/message"
	"github.com/farmsql/farmsql/txn/outcome"
	"github.com/farmsql/farmsql/txn/participant"
	"github.com/farmsql/farmsql/txn/record"
	"github.com/farmsql/farmsql/txn/route"
)

// Guards that hardly anything comes to, each by itself.

// A commit begins only by the routes that it was planned with, and not while the
// configuration changes: its records would go to machines that are no replicas any
// more, and not to those that are.
func TestPlannedForOtherRoutes(t *testing.T) {
	planned, later := new(route.List), new(route.List)
	for name, c := range map[string]struct {
		now             *route.List
		frozen, stopped bool
		want            error
	}{
		"as planned":      {now: planned},
		"changed since":   {now: later, want: ErrMoved},
		"just changing":   {now: planned, frozen: true, want: ErrMoved},
		"shutting down":   {now: planned, stopped: true, want: outcome.ErrClosed},
		"changed, frozen": {now: later, frozen: true, want: ErrMoved},
	} {
		m := &Machine{}
		m.Routes.Store(c.now)
		w := &Worker{m: m, frozen: c.frozen, stopped: c.stopped}
		if err := w.AdmitLocked(&Commit{Routes: planned}); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// One primary's LOCK-REPLY counts once, whatever comes after it: the commit waits for
// the other's, and the first is what counts.
func TestLockReplyCountsOnce(t *testing.T) {
	c := &Commit{Participants: []Participant{{Machine: 1, LockWrites: 1}, {Machine: 2, LockWrites: 1}, {Machine: 3, BackupWrites: 1}}}
	c.Wait.Add(2)
	reply := func(v message.Verdict) message.Message { return message.Message{Kind: message.LockReply, A: uint8(v)} }
	c.lockReplyLocked(1, reply(message.Locked))
	c.lockReplyLocked(1, reply(message.Same))
	c.LostLocked(1, outcome.ErrLost)
	c.lockReplyLocked(3, reply(message.Same)) // which is a backup
	if c.Wait.Settled() || c.Wait.Open() != 1 || c.Participants[0].Verdict != message.Locked {
		t.Errorf("%d replies are open after one of two, machine 1 says %v", c.Wait.Open(), c.Participants[0].Verdict)
	}
	c.lockReplyLocked(2, reply(message.Same))
	if !c.Wait.Settled() {
		t.Errorf("%d replies are open", c.Wait.Open())
	}
}

// A testLog is a log that machine 1 writes to machine 0, which is the primary of a
// region with one object.
type testLog struct {
	t    *testing.T
	tx   *ring.Sender
	in   *participant.Log
	free *region.Allocator
	m    *Machine
	ptr  region.Ptr
}

func newTestLog(t *testing.T) *testLog {
	t.Helper()
	r, err := region.Format(1, nvram.NewMemory(region.MinSize))
	must(t, err)
	a := region.NewAllocator(region.AllocatorConfig{Workers: 1})
	a.Add(r)

	log := nvram.NewMemory(64 << 10)
	rx, err := record.CreateLog(log, 1)
	must(t, err)
	state, err := rx.State()
	must(t, err)
	m := &Machine{}
	m.initReplicas()
	rt := &route.Route{PrimaryHere: true, Local: r, State: route.Active}
	m.Routes.Store(&route.List{1: rt})
	l := record.NewLedger(log, record.Coordinator{Machine: 1, Worker: 0})
	tl := &testLog{t: t, tx: ring.NewLocalSender(state, log, 0), in: participant.NewLog(&m.Replicas, 1, 0, rx, l), free: a, m: m}
	tl.ptr = tl.object()
	return tl
}

// object makes an object.
func (l *testLog) object() region.Ptr {
	l.t.Helper()
	ptr, v, _, err := l.free.Alloc(region.Ordinary, 0, 100, 0)
	must(l.t, err)
	r := l.m.Route(1).Local
	if !r.Lock(ptr, v) {
		l.t.Fatal("the slot is locked")
	}
	r.Write(ptr, nil, v+1, true, ptr.Incarnation())
	return ptr
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// An acknowledgement that comes when another configuration has begun counts no more:
// recovery has the transaction, and truncates it when all know how it ended.
func TestOldAcknowledgementsDoNotCount(t *testing.T) {
	for config, want := range map[uint32]bool{2: true, 1: false} {
		log := nvram.NewMemory(64 << 10)
		self, err := participant.NewOwnLog(log, record.Coordinator{Machine: 0, Worker: 0}, 1)
		must(t, err)
		w := &Worker{m: &Machine{}, self: self, config: 2, window: record.NewWindow(1)}
		seq := w.window.Begin()
		w.ackedLocked(&Acks{seq: seq, config: config, open: 1}, nil)
		if w.window.Finished(seq) != want {
			t.Errorf("an acknowledgement of configuration %d in 2: truncated %v", config, !want)
		}
	}
}

// A placement that was asked for in one configuration is no route in the next, which has routes of its
// own: the region may have moved.
func TestLocatedInAnEarlierConfiguration(t *testing.T) {
	placed := cluster.Placement{Region: 2, Primary: 1}
	moved := cluster.Placement{Region: 2, Primary: 4}
	for what, c := range map[string]struct {
		meanwhile func(m *Machine)
		want      *cluster.Placement
	}{
		"nothing changes":               {func(*Machine) {}, &placed},
		"another has located it":        {func(m *Machine) { m.AddRegion(moved, nil) }, &moved},
		"the next configuration begins": {func(m *Machine) { m.config.Store(8) }, nil},
	} {
		m := &Machine{}
		m.Routes.Init(3)
		m.config.Store(7)
		m.cfg.Locate = func(region.ID) (cluster.Placement, error) {
			c.meanwhile(m)
			return placed, nil
		}
		must(t, m.Locate(region.MakeAddr(2, 0)))
		rt := m.Route(2)
		switch {
		case c.want == nil && rt != nil:
			t.Errorf("%s: a route to machine %d", what, rt.Primary)
		case c.want != nil && (rt == nil || rt.Primary != c.want.Primary):
			t.Errorf("%s: %+v", what, rt)
		}
	}
}
