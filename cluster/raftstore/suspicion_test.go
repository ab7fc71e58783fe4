package raftstore

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/farmsql/farmsql/rdma"
)

// awaitLeader waits until all machines but some follow the same leader, for which ok holds, and returns it.
func (g *group) awaitLeader(but int, ok func(leader int) bool) (leader int) {
	g.t.Helper()
	for range 1000 {
		var all []uint64
		for m, s := range g.stores {
			if m != but {
				all = append(all, s.leader.Load())
			}
		}
		leader = int(machineOf(all[0]))
		if all = slices.Compact(all); len(all) == 1 && all[0] != 0 && ok(leader) {
			return leader
		}
		time.Sleep(testTick)
	}
	g.t.Fatal("no such leader")
	return 0
}

const nobody = -1

func anyLeader(int) bool { return true }

// A leader that is suspected is replaced although it is well: nobody waits for its silence. Both others suspect it
// at the same moment. On a slow computer both may stand for election, and none be elected: then they suspect it again.
func TestSuspectedLeader(t *testing.T) {
	g := newGroup(t, 3, nil)
	replaced := 0
	for range 20 {
		leader := g.awaitLeader(nobody, anyLeader)
		for m, s := range g.stores {
			if m != leader {
				s.Suspect(rdma.MachineID(leader))
				s.Suspect(rdma.MachineID(leader))
			}
		}
		time.Sleep(5 * testTick)
		if g.awaitLeader(nobody, anyLeader) != leader {
			replaced++
		}
	}
	t.Logf("replaced %d times of 20", replaced)
	if replaced < 3 {
		t.Errorf("of 20 leaders that were suspected %d were replaced", replaced)
	}
	mustLoad(t, g.store(0)) // the store works
}

// Nothing happens if another machine than the leader is suspected, or the leader by itself. On a slow computer there may be
// an election for another reason: then that is tried again.
func TestSuspectedFollower(t *testing.T) {
	g := newGroup(t, 3, nil)
	for range 10 {
		leader := g.awaitLeader(nobody, anyLeader)
		for m, s := range g.stores {
			for suspect := range 5 { // two of them are no founders
				if suspect != leader || m == leader {
					s.Suspect(rdma.MachineID(suspect))
				}
			}
		}
		calm := true
		for range 6 {
			time.Sleep(testTick)
			for _, s := range g.stores {
				calm = calm && s.leader.Load() == raftID(rdma.MachineID(leader))
			}
		}
		if calm {
			return
		}
	}
	t.Error("each time there was another leader")
}

// A machine that is cut off suspects the leader, and does not stand: the others would have to elect another one when
// it is back.
func TestSuspectingAlone(t *testing.T) {
	g := newGroup(t, 3, nil)
	leader := g.awaitLeader(nobody, anyLeader)
	alone := (leader + 1) % 3
	g.system().Cut(alone)
	s := g.store(alone)
	s.Suspect(rdma.MachineID(leader))
	for range 200 {
		if len(s.suspected) == 0 {
			break
		}
		time.Sleep(testTick)
	}
	time.Sleep(6 * testTick) // it would stand after two
	if term, of := g.lastTerm(alone), g.lastTerm(leader); term > of {
		t.Errorf("machine %d is in term %d, the leader in %d", alone, term, of)
	}
}

// Of two founders, which there are while their number grows, one is no majority without the leader. Of three, two are.
func TestMajorityWithoutTheLeader(t *testing.T) {
	g := newGroup(t, 3, nil)
	leader := g.awaitLeader(nobody, anyLeader)
	own, other := (leader+1)%3, (leader+2)%3
	s := g.store(own)
	if s.hasMajority(t.Context(), []uint64{raftID(rdma.MachineID(own))}, 0) {
		t.Error("of two founders one is a majority")
	}
	for range 100 { // on a slow computer answers are late
		if s.hasMajority(t.Context(), []uint64{raftID(rdma.MachineID(own)), raftID(rdma.MachineID(other))}, 0) {
			return
		}
	}
	t.Error("of three founders two are no majority")
}

// A founder gives those before it time to be elected. On a slow computer another leader may be elected sooner for another
// reason: then it is tried again.
func TestTurns(t *testing.T) {
	g := newGroup(t, 3, nil)
	early := 0
	for range 9 {
		leader := g.awaitLeader(nobody, anyLeader)
		later := 2
		if leader == 2 {
			later = 1
		}
		s := g.store(later)
		begin := time.Now()
		for s.Suspect(rdma.MachineID(leader)); s.leader.Load() == raftID(rdma.MachineID(leader)); time.Sleep(time.Millisecond) {
			if time.Since(begin) > 20*testTick { // few answered
				s.Suspect(rdma.MachineID(leader))
				begin = time.Now()
			}
		}
		if time.Since(begin) < testTick {
			early++
		}
	}
	if early > 4 {
		t.Errorf("the second founder has stood before its turn %d times of 9", early)
	}
}

// lastTerm ends a machine, and returns the term that it has kept.
func (g *group) lastTerm(m int) uint64 {
	g.t.Helper()
	g.kill(m)
	_, log, err := openFolder(g.folderOf(m))
	if err != nil {
		g.t.Fatal(err)
	}
	state, _, err := log.memory.InitialState()
	if err = errors.Join(err, log.close()); err != nil {
		g.t.Fatal(err)
	}
	return state.GetTerm()
}

// A client asks a machine that it suspects last, and the others hear of it, until one of them has answered.
func TestClientSuspects(t *testing.T) {
	g := newGroup(t, 3, nil)
	leader := g.awaitLeader(nobody, anyLeader)
	c, _ := g.client()
	c.prefer(rdma.MachineID(leader))
	c.Suspect(rdma.MachineID(leader))
	if order := c.order(); len(order) != 3 || order[2] != rdma.MachineID(leader) {
		t.Errorf("machines are asked in the order %v, though machine %d is suspected", order, leader)
	}
	if _, err := c.Founders(); err != nil { // which any machine knows
		t.Fatal(err)
	}
	if c.suspect() == nil {
		t.Error("a call for which nobody needs the leader has ended the suspicion")
	}
	if _, err := c.Load(); err != nil {
		t.Fatal(err)
	}
	if c.suspect() != nil {
		t.Error("a machine is suspected for ever")
	}
	for range 100 { // on a slow computer a majority does not answer in time
		time.Sleep(5 * testTick)
		if g.awaitLeader(nobody, anyLeader) != leader {
			return
		}
		c.Suspect(rdma.MachineID(leader))
		if _, err := c.Load(); err != nil {
			t.Fatal(err)
		}
	}
	t.Errorf("machine %d, which a client suspects, is the leader still", leader)
}

// A suspicion lasts until a call has been carried out that told of it, and took the leader: others do not show that there
// is one.
func TestSuspicionLasts(t *testing.T) {
	load := func(c *Client) error { _, err := c.Load(); return err }
	swap := func(c *Client) error { return c.CompareAndSwap(1, configuration(2, 0)) }
	for name, x := range map[string]struct {
		outcome outcome
		ask     func(c *Client) error
		late    bool // the machine is suspected while the call is under way
		lasts   bool
	}{
		"a load":                       {outcomeDone, load, false, false},
		"a swap":                       {outcomeDone, swap, false, false},
		"a swap that came too late":    {outcomeMoved, swap, false, true}, // which a machine knows without the leader
		"a change that was refused":    {outcomeRefused, func(c *Client) error { return c.Forget(0) }, false, true},
		"a load that has begun before": {outcomeDone, load, true, true},
	} {
		var c *Client
		f := newFakeMember(t, func(k call) *result {
			if x.late {
				c.Suspect(9)
			}
			return &result{k.id(), x.outcome, nil}
		})
		c = clientOf(t, forever, dials(f.listener))
		c.Suspect(9)
		if err := inTime(t, func() error { return x.ask(c) }); (err != nil) != (x.outcome != outcomeDone) {
			t.Errorf("%s: %v", name, err)
		}
		if lasts := c.suspect() != nil; lasts != x.lasts {
			t.Errorf("after %s the suspicion lasts: %v", name, lasts)
		}
	}
}

// A machine that calls seldom does not tell of a suspicion of long ago: the other may be back, and lead.
func TestSuspicionGetsOld(t *testing.T) {
	f := newFakeMember(t, func(k call) *result { return &result{k.id(), outcomeFailed, nil} })
	c := f.client(t, time.Hour, time.Millisecond)
	c.Suspect(0)
	if c.suspect() == nil {
		t.Error("it is forgotten at once")
	}
	c.mu.forget = time.Now().Add(-time.Millisecond)
	if s := c.suspect(); s != nil {
		t.Errorf("machine %d is suspected for ever", *s)
	}
}

// A call names the machine that is suspected, machine 0 too, or none.
func TestCallOfSuspect(t *testing.T) {
	for _, suspect := range []*rdma.MachineID{nil, new(rdma.MachineID(0)), new(rdma.MachineID(513))} {
		c := call{operation: operationLoad, patience: time.Second, suspect: suspect, swap: swap{id: requestID{1}}}
		again, err := readCall(bytes.NewReader(c.encode()))
		if err != nil || !reflect.DeepEqual(again.suspect, suspect) {
			t.Errorf("%+v, %v", again, err)
		}
	}
}
