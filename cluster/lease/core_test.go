package lease

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
)

func peers(machines ...rdma.MachineID) []call.Peer {
	list := make([]call.Peer, len(machines))
	for i, m := range machines {
		list[i] = call.Peer{Machine: m, Incarnation: 100 + uint64(m)}
	}
	return list
}

func peer(m rdma.MachineID) call.Peer { return peers(m)[0] }

const length = 3200 // of a lease, in these tests; drift is 100

// handshake makes the CM and machine 1 exchange leases once. Each message arrives when it is sent.
func handshake(t *testing.T, cm, m *core, now int64) {
	t.Helper()
	if isDue, _ := cm.tick(now, nil); !isDue {
		t.Fatal("no message is due")
	}
	answer, ok := m.receive(now, peer(cm.self), cm.message(now, 0))
	if !ok {
		t.Fatal("the machine does not answer")
	}
	if _, ok := cm.receive(now, peer(m.self), answer); ok {
		t.Fatal("the CM answers the answer")
	}
}

func two() (cm, m *core) {
	cm, m = &core{self: 0, length: length}, &core{self: 1, length: length}
	cm.configure(1000, 0, peers(0, 1))
	m.configure(1000, 0, peers(0, 1))
	return cm, m
}

// TestPaper5_1_ThreeWayHandshake: a machine sends a request, the CM answers with a grant and a
// request, and the machine answers with a grant. Here that grant is also the machine's next
// request.
func TestPaper5_1_ThreeWayHandshake(t *testing.T) {
	cm, m := two()
	if cm.valid != 0 || m.valid != 0 {
		t.Error("leases before the first message")
	}
	handshake(t, cm, m, 1000)
	if cm.valid != 1000+length-100 || m.valid != 0 {
		t.Errorf("CM's lease until %d, the machine's until %d", cm.valid, m.valid)
	}
	handshake(t, cm, m, 1100) // now the CM has something to grant from, and to grant
	if cm.valid != 1100+length-100 || m.valid <= 1100 || m.valid > 1000+length-100 {
		t.Errorf("CM's lease until %d, the machine's until %d", cm.valid, m.valid)
	}
}

// TestPaper5_1_RenewalEveryFifth: lease renewal is attempted every 1/5 of the lease expiry period.
// The CM renews with all machines at once, at multiples of that time. A machine does nothing by
// itself.
func TestPaper5_1_RenewalEveryFifth(t *testing.T) {
	cm, m := two()
	now := int64(1000)
	handshake(t, cm, m, now)
	if next := cm.next(now); next > now+length/beginnings {
		t.Errorf("until there are leases: next attempt at %d", next)
	}
	now += length / beginnings
	handshake(t, cm, m, now)
	for range 3 {
		due := cm.asked - cm.asked%(length/5) + length/5
		if got := cm.next(now); got != due {
			t.Errorf("next attempt at %d, want %d", got, due)
		}
		if got := m.next(now); got < now+length/5 {
			t.Errorf("the machine wakes at %d", got)
		}
		if isDue, _ := cm.tick(due-1, nil); isDue {
			t.Error("attempt before it is time")
		}
		now = due + 17 // a little late
		handshake(t, cm, m, now)
	}
}

// TestPaper5_1_EveryLeaseCounts: expiry of any lease triggers failure recovery, whether a machine's
// lease at the CM or the CM's lease at a machine.
func TestPaper5_1_EveryLeaseCounts(t *testing.T) {
	for name, lost := range map[string]uint8{"the CM's messages lost": grantRequest, "answers lost": grant} {
		cm, m := two()
		handshake(t, cm, m, 1000)
		var atCM, atMachine []rdma.MachineID
		for now := int64(1001); now < 1000+4*length; now++ {
			isDue, expired := cm.tick(now, nil)
			atCM = append(atCM, expired...)
			if isDue && lost != grantRequest {
				m.receive(now, peer(0), cm.message(now, 0))
			}
			_, expired = m.tick(now, nil)
			atMachine = append(atMachine, expired...)
		}
		if !slices.Contains(atCM, 1) {
			t.Errorf("%s: the CM suspects nobody", name)
		}
		if slices.Contains(atMachine, 0) != (lost == grantRequest) {
			t.Errorf("%s: the machine suspects %v", name, atMachine)
		}
	}
}

// A CM that hears nobody, but is heard by all, does not renew the machines' leases. So they suspect
// it, but not before the CM had time to give up the machines that it does not hear.
func TestCMThatHearsNobody(t *testing.T) {
	cm, m := two()
	for now := int64(1000); now < 1000+length; now = cm.next(now) {
		handshake(t, cm, m, now)
	}
	held := m.relations[0].held
	suspected := int64(0)
	for now := held; now < held+8*length && suspected == 0; now++ {
		if isDue, _ := cm.tick(now, nil); isDue {
			m.receive(now, peer(0), cm.message(now, 0)) // the answer is lost
		}
		if _, expired := m.tick(now, nil); len(expired) > 0 {
			suspected = now
		}
	}
	if suspected < held+length || suspected > held+3*length {
		t.Errorf("the machine's lease ends at %d, and it suspects the CM at %d", held, suspected)
	}
}

// TestPaper5_2_LeasesAreResetForANewCMOnly: if the CM is unchanged, the exchange goes on during a
// reconfiguration, and leases last as they would have. If it has changed, NEW-CONFIG acts as a
// lease request from the new CM: earlier leases do not count, not even between the new CM and the
// old one, and the new CM asks at once.
func TestPaper5_2_LeasesAreResetForANewCMOnly(t *testing.T) {
	exchanged := func() (cm, m *core, now int64) {
		cm, m = two()
		handshake(t, cm, m, 1000)
		handshake(t, cm, m, 1100)
		return cm, m, 1150
	}
	cm, m, now := exchanged()
	before := []int64{cm.valid, m.valid, cm.relations[0].granted, m.relations[0].granted}
	cm.configure(now, 0, peers(0, 1, 2))
	m.configure(now, 0, peers(0, 1, 2))
	after := []int64{cm.relations[0].held, m.valid, cm.relations[0].granted, m.relations[0].granted}
	if !slices.Equal(before, after) || before[0] <= now || before[1] <= now {
		t.Errorf("at %d, with the same CM: %v has become %v", now, before, after)
	}

	old, m, now := exchanged()
	granted := old.relations[0].granted
	old.configure(now, 1, peers(0, 1))
	m.configure(now, 1, peers(0, 1))
	if old.valid > 0 || m.valid > 0 || old.relations[0].held > 0 || m.relations[0].held > 0 {
		t.Errorf("with a new CM: leases until %d and %d", old.valid, m.valid)
	}
	if old.relations[0].granted != granted {
		t.Errorf("what the old CM has granted lasts until %d, not %d", old.relations[0].granted, granted)
	}
	if isDue, _ := m.tick(now, nil); !isDue {
		t.Error("the new CM does not ask at once")
	}
	if isDue, _ := old.tick(now, nil); isDue {
		t.Error("the old CM asks still")
	}
}

// The loss of any one message ends no lease.
func TestOneLoss(t *testing.T) {
	for _, lost := range []uint8{grantRequest, grant} {
		cm, m := two()
		for i, now := 0, int64(1000); now < 1000+4*length; now++ {
			isDue, _ := cm.tick(now, nil)
			if now > 1000+length/10 && (cm.valid <= now || m.valid <= now) {
				t.Fatalf("kind %d lost: at %d the CM's lease lasts until %d, the machine's until %d", lost, now, cm.valid, m.valid)
			}
			if !isDue {
				continue
			}
			i++
			loses := i%7 == 6
			if ask := cm.message(now, 0); !loses || lost != grantRequest {
				if answer, ok := m.receive(now, peer(0), ask); ok && !loses {
					cm.receive(now, peer(1), answer)
				}
			}
		}
	}
}

// A lease that has run out is reported once. It can be reported again after a message of the peer.
func TestExpiredOnce(t *testing.T) {
	cm, m := two()
	_, first := cm.tick(1000+grace*length, nil)
	_, second := cm.tick(1000+grace*length+1, nil)
	if !slices.Equal(first, []rdma.MachineID{1}) || len(second) > 0 {
		t.Errorf("reported %v, then %v", first, second)
	}
	handshake(t, cm, m, 10000)
	var again []rdma.MachineID
	for now := int64(10000); now <= 10000+2*length; now += length / renewals {
		_, again = cm.tick(now, again)
	}
	if !slices.Equal(again, []rdma.MachineID{1}) {
		t.Errorf("reported %v", again)
	}
}

// A CM that was held up while leases ran out asks for the leases exactly once more before it
// suspects anybody.
func TestLateCM(t *testing.T) {
	for _, answers := range []bool{true, false} {
		cm, m := two()
		handshake(t, cm, m, 1000)
		handshake(t, cm, m, 1100)
		late := int64(1100 + 2*length)
		isDue, expired := cm.tick(late, nil)
		if !isDue || len(expired) > 0 {
			t.Errorf("a CM that is late: asks: %v, suspects %v", isDue, expired)
		}
		if answers {
			answer, _ := m.receive(late, peer(0), cm.message(late, 0))
			cm.receive(late, peer(1), answer)
			const interval = length / renewals
			handshake(t, cm, m, late-late%interval+interval) // with what the answer has asked for
		}
		later := late + 2*length/renewals
		switch _, expired := cm.tick(later, nil); {
		case answers && len(expired) > 0:
			t.Errorf("suspects %v, which has answered", expired)
		case !answers && !slices.Equal(expired, []rdma.MachineID{1}):
			t.Errorf("suspects %v, want machine 1, which has not answered", expired)
		}
		if _, expired := cm.tick(later+2*length, nil); answers && len(expired) > 0 {
			t.Errorf("late again, suspects %v without asking", expired)
		}
		if _, expired := cm.tick(later+4*length, nil); answers && !slices.Equal(expired, []rdma.MachineID{1}) {
			t.Errorf("always late, suspects %v", expired)
		}
	}
}

// A machine that was held up, with all of its workers, listens once more before it suspects the CM.
// It makes no difference whether the machine beats before or after the tick, and whether it
// received a message while it counted as hung.
func TestLateMachine(t *testing.T) {
	for _, answers := range []bool{true, false} {
		for _, beatsFirst := range []bool{true, false} {
			cm, m := two()
			m.beat = 1100
			handshake(t, cm, m, 1000)
			handshake(t, cm, m, 1100)
			m.tick(1100, nil)
			late := int64(1100 + 10*length)
			if !beatsFirst {
				m.receive(late, peer(0), cm.message(late, 0))
			}
			m.beat = late
			if _, expired := m.tick(late, nil); len(expired) > 0 {
				t.Errorf("a machine that is late suspects %v; beats first: %v", expired, beatsFirst)
			}
			if answers {
				m.receive(late+1, peer(0), cm.message(late+1, 0))
			}
			soon := late + 2*length/renewals
			switch _, expired := m.tick(soon, nil); {
			case answers && len(expired) > 0:
				t.Errorf("suspects %v, which it has heard", expired)
			case !answers && !slices.Equal(expired, []rdma.MachineID{0}):
				t.Errorf("suspects %v, want the CM, which it has not heard", expired)
			}
		}
	}
}

// receive ignores invalid messages.
func TestReceiveRefuses(t *testing.T) {
	cm, m := two()
	other := call.Peer{Machine: 0, Incarnation: 999}
	for name, try := range map[string]func() bool{
		"a stranger":         func() bool { _, ok := m.receive(1100, peer(7), message{kind: grantRequest, sent: 1}); return ok },
		"an earlier life":    func() bool { _, ok := m.receive(1100, other, message{kind: grantRequest, sent: 1}); return ok },
		"a request at CM":    func() bool { _, ok := cm.receive(1100, peer(1), message{kind: grantRequest, sent: 1}); return ok },
		"an answer at other": func() bool { _, ok := m.receive(1100, peer(0), message{kind: grant, sent: 1}); return ok },
	} {
		if try() {
			t.Errorf("%s is answered", name)
		}
	}
	for name, msg := range map[string]message{
		"a request to come":  {grant, 0, 1101, length},
		"a request long ago": {grant, 0, 1100 - length - 1, length},
		"less than nothing":  {grant, 0, 1100, -5},
		"no request":         {grant, 0, 0, length},
	} {
		cm.receive(1100, peer(1), msg)
		if cm.valid != 0 {
			t.Errorf("%s is believed", name)
		}
	}
	cm.receive(1100, peer(1), message{grant, 0, 1000, forever})
	if cm.valid != 1000+length-100 {
		t.Errorf("a lease too long is believed: until %d", cm.valid)
	}
}

// The CM's own lease lasts while it has leases from a majority, which includes the CM.
func TestMajority(t *testing.T) {
	for _, c := range []struct {
		held []int64
		want int64
	}{
		{nil, forever}, {[]int64{5}, 5}, {[]int64{5, 9}, 9}, {[]int64{5, 9, 7}, 7}, {[]int64{5, 9, 7, 1}, 7}, {[]int64{4, 4, 4, 4}, 4}, {[]int64{0, 0, 8}, 0},
	} {
		cm := &core{isCM: true}
		for _, h := range c.held {
			cm.relations = append(cm.relations, relation{held: h})
		}
		if got := cm.majority(); got != c.want {
			t.Errorf("%v: until %d, want %d", c.held, got, c.want)
		}
	}
}

// A rig has some machines with clocks of their own, and a network that loses and delays messages,
// in continuous simulated time.
type rig struct {
	r     *rand.Rand
	now   float64
	cores []*core
	rate  []float64
	begin []float64
	sleep []float64 // until when a machine is stopped
	sent  []sent
}

type sent struct {
	at       float64
	from, to int
	m        message
}

func newRig(seed uint64, n int) *rig {
	g := &rig{r: rand.New(rand.NewPCG(seed, 3)), now: 1}
	all := make([]rdma.MachineID, n)
	for i := range n {
		all[i] = rdma.MachineID(i)
		g.cores = append(g.cores, &core{self: all[i], length: length})
		g.rate = append(g.rate, 1+(g.r.Float64()*2-1)/64)
		g.begin = append(g.begin, g.r.Float64()*1e6)
		g.sleep = append(g.sleep, 0)
	}
	for i, c := range g.cores {
		c.configure(g.clock(i), 0, peers(all...))
	}
	return g
}

func (g *rig) clock(i int) int64 { return int64(g.begin[i] + g.now*g.rate[i]) }

// run lets time pass, with at most one thing happening at a time.
func (g *rig) run(until float64, check func()) {
	for g.now < until {
		g.now += 1 + g.r.Float64()*30
		if g.r.IntN(300) == 0 {
			g.sleep[g.r.IntN(len(g.sleep))] = g.now + g.r.Float64()*3*length
		}
		for i, c := range g.cores {
			if g.sleep[i] > g.now {
				continue
			}
			now := g.clock(i)
			if isDue, _ := c.tick(now, nil); isDue {
				for k := range c.relations {
					g.send(i, int(c.relations[k].peer.Machine), c.message(now, k))
				}
			}
		}
		due := slices.Clone(g.sent)
		g.sent = g.sent[:0]
		for _, s := range due {
			if s.at > g.now || g.sleep[s.to] > g.now {
				g.sent = append(g.sent, s)
			} else if reply, ok := g.cores[s.to].receive(g.clock(s.to), peer(rdma.MachineID(s.from)), s.m); ok {
				g.send(s.to, s.from, reply)
			}
		}
		check()
	}
}

func (g *rig) send(from, to int, m message) {
	if g.r.IntN(5) > 0 {
		g.sent = append(g.sent, sent{g.now + g.r.Float64()*float64(g.r.IntN(2000)), from, to, m})
	}
}

// valid reports whether machine i relies on its lease now.
func (g *rig) valid(i int) bool { return g.clock(i) < g.cores[i].valid }

// oneSided returns an error if a holder relies on a lease that its granter has given up.
func (g *rig) oneSided() error {
	for i, c := range g.cores {
		for _, held := range c.relations {
			if g.clock(i) >= held.held {
				continue
			}
			k := int(held.peer.Machine)
			for _, granted := range g.cores[k].relations {
				if int(granted.peer.Machine) == i && g.clock(k) >= granted.granted {
					return fmt.Errorf("at %.0f machine %d relies on its lease at %d, which has ended", g.now, i, k)
				}
			}
		}
	}
	return nil
}

// No machine relies on a lease that has ended, even if messages are lost or delayed, or machines
// stop.
func TestNoOneSidedLease(t *testing.T) {
	for seed := range uint64(60) {
		g := newRig(seed, 2+int(seed%4))
		relied := 0
		g.run(60*length, func() {
			if err := g.oneSided(); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			for i := range g.cores {
				if g.valid(i) {
					relied++
				}
			}
		})
		if relied == 0 {
			t.Errorf("seed %d: no lease was ever valid", seed)
		}
	}
}

// TestPaper5_2_WaitForOldLeases: a new configuration's members, a majority of the last
// configuration, acknowledge it. Then the leases run out that they had granted to other machines.
// After that no evicted machine relies on its lease, whether the CM is new or the old one.
func TestPaper5_2_WaitForOldLeases(t *testing.T) {
	for seed := range uint64(200) {
		n := 3 + int(seed%4)
		g := newRig(seed, n)
		g.run(5*length+g.r.Float64()*5*length, func() {})
		order := g.r.Perm(n)
		if g.r.IntN(2) == 0 { // the old CM survives, and stays CM
			k := slices.Index(order, 0)
			order[0], order[k] = order[k], order[0]
		} else if k := slices.Index(order, 0); k < n/2+1 {
			order[k], order[n-1] = order[n-1], order[k]
		}
		members := order[:n/2+1+g.r.IntN((n-1)-n/2)]
		var machines []rdma.MachineID
		for _, i := range members {
			machines = append(machines, rdma.MachineID(i))
		}
		slices.Sort(machines)
		end := 0.0
		for _, i := range g.r.Perm(len(members)) { // each applies it when it hears of it
			k := members[i]
			g.run(g.now+g.r.Float64()*length, func() {})
			g.cores[k].configure(g.clock(k), rdma.MachineID(order[0]), peers(machines...))
			left := float64(g.cores[k].left(g.clock(k)))
			end = max(end, g.now+left/g.rate[order[0]]) // as the CM's clock measures it
		}
		g.run(end, func() {})
		g.run(g.now+5*length, func() {
			for _, i := range order[len(members):] {
				if g.valid(i) {
					t.Fatalf("seed %d: at %.0f machine %d of %v, not among %v, relies on its lease", seed, g.now, i, order, machines)
				}
			}
		})
	}
}

func TestMessage(t *testing.T) {
	want := message{grantRequest, 1, -2, 3}
	if got, ok := decode(want.encode()); !ok || got != want {
		t.Errorf("%+v, %v", got, ok)
	}
	for _, b := range [][]byte{nil, make([]byte, messageBytes), append([]byte{3}, make([]byte, messageBytes-1)...), make([]byte, messageBytes+1)} {
		if _, ok := decode(b); ok {
			t.Errorf("%v is a message", b)
		}
	}
}

// With arbitrary messages, nobody holds a lease for longer than the lease time.
func FuzzReceive(f *testing.F) {
	f.Add(message{grant, 0, 1000, forever}.encode(), uint8(1))
	f.Add(message{grantRequest, -1, 0, 0}.encode(), uint8(1))
	f.Fuzz(func(t *testing.T, b []byte, from uint8) {
		m, ok := decode(b)
		if !ok {
			return
		}
		cm, other := two()
		cm.receive(1100, peer(rdma.MachineID(from)), m)
		other.receive(1100, peer(rdma.MachineID(from)), m)
		if cm.valid > 1100+length || other.valid > 1100+length {
			t.Errorf("valid until %d and %d", cm.valid, other.valid)
		}
	})
}
