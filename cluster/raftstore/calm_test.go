package raftstore

import (
	"bytes"
	"context"
	"errors"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/farmsql/farmsql/cluster/storetest"
	"github.com/farmsql/farmsql/rdma"
)

// electionMax is a limit for elections after a stir, half as long again as the library's. Without a stir a leader is
// noticed to be silent a heartbeat of the calm later at the earliest.
const electionMax = (heartbeatTicks*calmFactor - 2) * testTick

// calmGroup starts a group and waits until it is calm: until the machines have sent little for long.
func calmGroup(t *testing.T, founded, machines int) *group {
	t.Helper()
	g := newGroupWith(t, founded, machines)
	g.awaitCalm()
	return g
}

// sendings returns how often machines send in a time in which they would send 10 heartbeats to each other if they were not
// calm.
func (g *group) sendings() int64 {
	before := g.sent.Load()
	time.Sleep(10 * heartbeatTicks * testTick)
	return g.sent.Load() - before
}

func (g *group) awaitCalm() {
	g.t.Helper()
	for range 100 {
		if g.sendings() <= 24 { // two heartbeats to each of two machines, with asks and answers
			return
		}
	}
	g.t.Fatal("the store does not become calm")
}

// A counted connection counts writes.
type counted struct {
	net.Conn
	sent *atomic.Int64
}

func (c counted) Write(b []byte) (int, error) {
	c.sent.Add(1)
	return c.Conn.Write(b)
}

// countSendings makes a dialer whose connections count what is sent over them.
func (g *group) countSendings(dial func(context.Context, string) (net.Conn, error)) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, address string) (net.Conn, error) {
		c, err := dial(ctx, address)
		if err != nil {
			return nil, err
		}
		return counted{c, &g.sent}, nil
	}
}

// TestCalm: a store in which nothing happens sends little, and any machine that has a request stirs it at once.
func TestCalm(t *testing.T) {
	t.Parallel()
	g := calmGroup(t, 3, 3)
	for m := range 3 {
		begin := time.Now()
		mustLoad(t, g.store(m))
		if took := time.Since(begin); took > electionMax {
			t.Errorf("a calm store answers machine %d after %v", m, took)
		}
		if n := g.sendings(); n <= 24 {
			t.Errorf("after a request of machine %d the store is calm: %d sendings", m, n)
		}
		g.awaitCalm()
	}
}

// notLeader returns a function for awaitLeader.
func notLeader(leader int) func(int) bool { return func(m int) bool { return m != leader } }

// tries repeats what a slow computer may disturb.
func tries(t *testing.T, what string, f func() (time.Duration, bool)) {
	t.Helper()
	for range 5 {
		took, ok := f()
		t.Logf("%s: %v", what, took)
		if ok {
			return
		}
	}
	t.Errorf("%s: no leader within %v", what, electionMax)
}

// TestCalmLeaderDies: when the leader of a calm store is killed, its connections break, and another is elected as soon as
// in a store that is not calm.
func TestCalmLeaderDies(t *testing.T) {
	t.Parallel()
	g := calmGroup(t, 3, 3)
	tries(t, "killed", func() (time.Duration, bool) {
		leader := g.awaitLeader(nobody, anyLeader)
		begin := time.Now()
		g.kill(leader)
		g.awaitLeader(leader, notLeader(leader))
		took := time.Since(begin)
		g.start(leader)
		g.awaitLeader(nobody, anyLeader)
		g.awaitCalm()
		return took, took <= electionMax
	})
}

// TestCalmLeaderIsSilent: the leader of a calm store is cut off, and no connection breaks. A suspicion or a request at one
// machine has all others elect another as soon as in a store that is not calm. Without them it takes longer,
// but it happens.
func TestCalmLeaderIsSilent(t *testing.T) {
	t.Parallel()
	g := calmGroup(t, 3, 3)
	silence := func(leader int) {
		for m := range 3 {
			g.relays[leader][m].Drop(storetest.Requests)
			g.relays[m][leader].Drop(storetest.Requests)
		}
	}
	for what, stir := range map[string]func(s *Store, leader int){
		"suspected":                 func(s *Store, leader int) { s.Suspect(rdma.MachineID(leader)) },
		"another machine suspected": func(s *Store, _ int) { s.Suspect(9) },
		"asked":                     func(s *Store, _ int) { go func() { _, _ = s.Load() }() },
	} {
		tries(t, what, func() (time.Duration, bool) {
			leader := g.awaitLeader(nobody, anyLeader)
			silence(leader)
			begin := time.Now()
			stir(g.store((leader+1)%3), leader)
			g.awaitLeader(leader, notLeader(leader))
			took := time.Since(begin)
			g.heal(leader)()
			g.awaitLeader(nobody, anyLeader)
			g.awaitCalm()
			return took, took <= electionMax
		})
	}
	leader := g.awaitLeader(nobody, anyLeader)
	silence(leader)
	g.awaitLeader(leader, notLeader(leader))
	g.heal(leader)()
	mustLoad(t, g.store(leader))
}

// TestJoinWhileCalm: the founders of a calm store change as at any other time, and it is calm again.
func TestJoinWhileCalm(t *testing.T) {
	t.Parallel()
	g := calmGroup(t, 3, 4)
	g.kill(0)
	g.forget(1, 0)
	g.replace(1, 0, 3)
	g.awaitCalm()
	mustLoad(t, g.store(3))
}

// TestNoCalmWithEarlierProgram: while a machine has a program that knows nothing of calm, the leader is not calm, and
// sends it nothing that the program would not understand.
func TestNoCalmWithEarlierProgram(t *testing.T) {
	t.Parallel()
	g := calmGroup(t, 3, 3)
	leader := g.awaitLeader(nobody, anyLeader)
	l := g.store(leader).peers.Load().links[raftID(rdma.MachineID((leader+1)%3))]
	l.mu.Lock()
	l.mu.knows = knowsCalm - 1
	l.mu.Unlock()
	mustLoad(t, g.store(leader))
	time.Sleep(2 * calmAfter * testTick)
	n := g.sendings()
	if g.awaitLeader(nobody, anyLeader) == leader && !l.knowsCalm() && n <= 24 { // it is the same connection
		t.Errorf("it is calm: %d sendings", n)
	}
}

// replicaOf returns machine 0's replica of a store, which does not run, with connections to all others.
func replicaOf(t *testing.T, machines int) *replica {
	t.Helper()
	folder := t.TempDir()
	if err := Create(folder, founding(machines, 0)); err != nil {
		t.Fatal(err)
	}
	f, log, err := openFolder(folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.close() })
	s := unopened(f)
	s.cfg.tick = time.Hour
	s.mu.accepted = map[rdma.MachineID]connection{1: {Conn: new(net.TCPConn)}, 2: {Conn: new(net.TCPConn)}}
	for _, l := range s.peers.Load().links {
		l.mu.reason, l.mu.knows = nil, knowsFormat
	}
	r, err := newReplica(s, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.pulse.timer.Stop() })
	return r
}

// works has the library do what it wants done.
func (r *replica) works(t *testing.T) {
	t.Helper()
	if err := r.work(); err != nil {
		t.Fatal(err)
	}
	r.pulse.follow(r.store.leader.Load())
}

// TestMayBeCalm: only a leader is calm to which nothing is left to be done, and only if all others know what that means.
func TestMayBeCalm(t *testing.T) {
	later := (calmAfter + 1) * time.Hour
	for name, c := range map[string]struct {
		change func(r *replica)
		after  time.Duration
		want   bool
	}{
		"idle":             {func(*replica) {}, later, true},
		"not for long":     {func(*replica) {}, later - 2*time.Hour, false},
		"no leader":        {func(r *replica) { r.pulse.leader = raftID(1) }, later, false},
		"a request":        {func(r *replica) { r.pending[requestID{1}] = new(request) }, later, false},
		"a change of vote": {func(r *replica) { r.driven = 1 }, later, false},
		"a suspicion":      {func(r *replica) { r.stands = true }, later, false},
		"not all applied":  {func(r *replica) { r.applied-- }, later, false},
		"a change is due": {func(r *replica) {
			f := r.founders()
			f.Next = &Successor{Machine: 7, Address: addressOf(7), For: 7}
			r.state.founders = &f
		}, later, false},
		"two sets of votes":   {func(r *replica) { r.votes.VotersOutgoing = []uint64{9} }, later, false},
		"a broken connection": {func(r *replica) { r.link(1).mu.reason = errSilent }, later, false},
		"no connection from":  {func(r *replica) { delete(r.store.mu.accepted, 1) }, later, false},
		"an earlier program":  {func(r *replica) { r.link(1).mu.knows = knowsCalm - 1 }, later, false},
	} {
		r := replicaOf(t, 1)
		l := newLink(&r.store.cfg, &r.store.founding, 1, addressOf(1))
		l.mu.reason, l.mu.knows = nil, knowsFormat
		r.store.peers.Load().links[raftID(1)] = l
		if err := r.node.Campaign(); err != nil {
			t.Fatal(err)
		}
		r.works(t)
		c.change(r)
		if got := r.mayBeCalm(r.pulse.stirred.Add(c.after)); got != c.want {
			t.Errorf("%s: the leader may be calm: %v, want %v", name, got, c.want)
		}
	}
}

// elect makes machine 0 the leader of three.
func (r *replica) elect(t *testing.T) {
	t.Helper()
	if err := r.node.Campaign(); err != nil {
		t.Fatal(err)
	}
	for _, answer := range []raftpb.MessageType{raftpb.MsgPreVoteResp, raftpb.MsgVoteResp} {
		r.works(t)
		term := r.node.BasicStatus().GetTerm()
		if answer == raftpb.MsgPreVoteResp {
			term++
		}
		_ = r.node.Step(&raftpb.Message{Type: &answer, From: new(raftID(1)), To: new(raftID(0)), Term: &term})
	}
	r.works(t)
	if r.node.BasicStatus().RaftState != raft.StateLeader {
		t.Fatal("it is not the leader")
	}
}

// TestCalmLeader: a leader is not calm while another machine lacks an entry. When it is calm it says so with each
// heartbeat, but to no machine with an earlier program; and when it is stirred it tells all at once.
func TestCalmLeader(t *testing.T) {
	r := replicaOf(t, 3)
	r.elect(t)
	status := r.node.BasicStatus()
	for m := range rdma.MachineID(3) {
		if r.haveAll() {
			t.Errorf("it takes machine %d to have what it has not", m)
		}
		if m > 0 {
			last, _ := r.log.memory.LastIndex()
			_ = r.node.Step(&raftpb.Message{Type: raftpb.MsgAppResp.Enum(), From: new(raftID(m)), To: new(raftID(0)), Term: new(status.GetTerm()), Index: &last})
			r.works(t)
		}
	}
	heartbeats := func(what string, want ...byte) {
		t.Helper()
		r.works(t)
		for i, kind := range want {
			l := r.link(rdma.MachineID(1 + i))
			var last arrival
			for len(l.frames) > 0 {
				last, _, _ = readArrival(bytes.NewReader(<-l.frames))
			}
			if last.message.GetType() != raftpb.MsgHeartbeat || last.calm != (kind == frameCalm) {
				t.Errorf("%s: machine %d gets %+v", what, 1+i, last)
			}
		}
	}
	rings := func() {
		r.pulse.since = time.Now().Add(-heartbeatTicks * r.pulse.length())
		r.ring(time.Now())
	}
	r.pulse.set(time.Now(), heartbeatTicks)
	r.pulse.stirred = time.Now().Add(-calmAfter * time.Hour)
	rings()
	heartbeats("idle", frameCalm, frameCalm)
	if r.pulse.length() != calmFactor*time.Hour || r.pulse.span != heartbeatTicks {
		t.Errorf("the next heartbeat is due after %d ticks of %v", r.pulse.span, r.pulse.length())
	}
	r.receive(arrival{})
	heartbeats("stirred", frameMessage, frameMessage)
	r.pulse.set(time.Now(), heartbeatTicks)
	r.pulse.stirred = time.Now().Add(-calmAfter * time.Hour)
	rings()
	r.link(2).mu.knows = knowsCalm - 1
	heartbeats("another program", frameCalm, frameMessage)
	rings()
	heartbeats("another program", frameMessage, frameMessage)
}

func (r *replica) link(m rdma.MachineID) *link { return r.store.peers.Load().links[raftID(m)] }

// stirred returns to which machines the replica has sent a stir since the last call.
func (r *replica) stirred() (to []rdma.MachineID) {
	for m := range rdma.MachineID(3) {
		for l := r.link(m); l != nil && len(l.frames) > 0; {
			if bytes.Equal(<-l.frames, stirFrame) {
				to = append(to, m)
			}
		}
	}
	return to
}

// TestFollowerIsCalm: a machine is calm if the leader of its term says so and it has nothing to do; otherwise it tells the
// leader. Another message of the leader, a stir or a new leader ends that, and the machine tells all others.
func TestFollowerIsCalm(t *testing.T) {
	r := replicaOf(t, 3)
	heartbeat := func(term uint64, calm bool) {
		r.receive(arrival{&raftpb.Message{Type: raftpb.MsgHeartbeat.Enum(), From: new(raftID(1)), To: new(raftID(0)), Term: &term}, calm})
		r.works(t)
	}
	check := func(what string, calm bool, told ...rdma.MachineID) {
		t.Helper()
		if r.pulse.calm != calm {
			t.Errorf("%s: it is calm: %v", what, r.pulse.calm)
		}
		if to := r.stirred(); !slices.Equal(to, told) {
			t.Errorf("%s: it has stirred machines %v, want %v", what, to, told)
		}
	}
	idle := func() { r.pulse.stirred = time.Now().Add(-calmAfter * time.Hour) }
	heartbeat(5, false)
	check("a heartbeat", false)
	heartbeat(5, true)
	check("a calm heartbeat soon after work", false, 1)
	idle()
	heartbeat(4, true)
	check("a calm heartbeat of an earlier term", false)
	heartbeat(5, true)
	check("a calm heartbeat", true)
	r.ring(time.Now())
	check("the ring that was set before", true)
	if r.pulse.span != restTicks {
		t.Errorf("it rests for %d ticks", r.pulse.span)
	}
	r.pending[requestID{1}] = &request{deadline: time.Now().Add(time.Hour)}
	heartbeat(5, true)
	check("a calm heartbeat while a request waits", false, 1)
	clear(r.pending)
	heartbeat(5, true)
	check("a calm heartbeat", true)
	heartbeat(5, false)
	check("a heartbeat", false)
	heartbeat(5, true)
	r.pulse.set(time.Now(), restTicks)
	r.ring(time.Now())
	check("silence", false, 1, 2)
	idle()
	heartbeat(5, true)
	r.receive(arrival{})
	check("a stir", false, 1, 2)
	r.receive(arrival{})
	check("another stir", false)
	idle()
	heartbeat(5, true)
	r.receive(arrival{message: &raftpb.Message{Type: raftpb.MsgPreVote.Enum(), From: new(raftID(2)), To: new(raftID(0)), Term: new(uint64(6)), LogTerm: new(uint64(1)), Index: new(uint64(1))}})
	check("a candidate", false, 1, 2)
	idle()
	heartbeat(5, true)
	r.pulse.follow(raftID(2))
	check("another leader", false)
}

// TestCalmTicks: in the calm ticks are longer, and those that have passed by its end count as many as they were.
func TestCalmTicks(t *testing.T) {
	r := replicaOf(t, 3)
	p := r.pulse
	p.calm = true
	p.set(time.Now(), restTicks)
	if n := p.pass(p.since.Add((2*calmFactor + 1) * time.Hour)); n != 2 {
		t.Errorf("%d ticks have passed, want 2", n)
	}
	p.since = time.Now().Add(-3*calmFactor*time.Hour - time.Minute)
	r.hurry()
	if p.calm || p.span != 1 || time.Since(p.since) > time.Minute {
		t.Errorf("after a request: calm %v, a span of %d", p.calm, p.span)
	}
}

// TestGarbageOfCalm: only heartbeats can be calm, and stirs have no payload.
func TestGarbageOfCalm(t *testing.T) {
	b, err := messageFrame(frameCalm, &raftpb.Message{Type: raftpb.MsgApp.Enum()})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range [][]byte{b, payloadFrame(frameStir, []byte{1}), payloadFrame(frameCalm, []byte{1})} {
		if _, _, err := readArrival(bytes.NewReader(b)); !errors.Is(err, errGarbage) {
			t.Errorf("% x: %v", b, err)
		}
	}
	if a, isAsk, err := readArrival(bytes.NewReader(stirFrame)); err != nil || isAsk || a.message != nil {
		t.Errorf("a stir: %+v, %v, %v", a, isAsk, err)
	}
}
