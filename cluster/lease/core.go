package lease

import (
	"slices"
	"time"

	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
)

const (
	// renewals is how often a lease is renewed in its time.
	renewals = 5
	// beginnings is how often in a lease time a machine asks for a lease while it has none.
	beginnings = 50
	// drift: a time divided by drift is the allowance for clocks. Each of the three clocks involved
	// may run fast or slow by 1/64, half of the allowance.
	drift = 32
	// grace is how many lease times a machine has to begin the exchange.
	grace = 2
	// again is the number of renewal intervals that a machine that was held up gives each peer
	// afterwards. In that time the peer can answer and grant it a lease; then the machine suspects
	// the peer.
	again = 2
	// margin: a machine renews only while its last beat is younger than the lease time minus
	// 1/margin of it. Then every lease that was renewed before the machine hung ends within two
	// leases of its last beat, drift included.
	margin = 8
)

// The kinds of messages. Each asks for a lease, and grants the lease that the receiver asked for.
const (
	grantRequest = 1 // CM to machine
	grant        = 2 // machine to CM, in answer
)

// A message of the handshake. sent is a time of the sender's clock. echo is a time of the receiver's
// clock: it repeats the sent of the receiver's request.
type message struct {
	kind uint8
	sent int64 // when this request is made
	echo int64 // when the request that this message grants was made; 0: it grants none
	// length is how long after that request the lease lasts, in nanoseconds.
	length int64
}

// A relation is this machine's state for one peer with which it exchanges leases. Times are
// nanoseconds of this machine's clock.
type relation struct {
	peer call.Peer
	// request is when the peer made its latest request, by the peer's clock, and arrived when this
	// machine received it; 0 if there was none. The CM grants it with its next message, and again
	// with later messages until there is a newer request, since messages may be lost.
	request, arrived int64
	// served says that the latest lease granted was longer than 0.
	served bool
	// granted is the end of the lease that this machine has granted to the peer.
	granted int64
	// held is the end of the lease that the peer has granted to this machine.
	held int64
	// patience is the time before which this machine does not suspect the peer, even if leases have
	// run out. It covers the first exchange, and the exchange after this machine was held up.
	patience int64
	standing standing
}

// A core implements the rules for one machine. Its caller drives it: it has no clock of its own.
// Times are nanoseconds of one monotonic clock, and never zero.
type core struct {
	self   rdma.MachineID
	length int64 // how long a lease lasts

	cm        rdma.MachineID
	isCM      bool
	relations []relation // one to the CM, or, at the CM, one to each other member; by machine
	asked     int64      // when the CM sent its last messages
	wakes     int64      // when tick is to be called again at the latest; 0 if it has not been
	// outstanding is the latest expiry of leases that this machine has granted to former peers,
	// with which it has no relation any more.
	outstanding int64
	// valid is when this machine's own lease ends.
	valid int64

	// beat is when this machine's workers were last known to work; 0 if nobody calls Beat.
	beat int64
	hung bool // the latest tick found this machine hung
}

// configure makes members exchange leases with cm. It keeps relations that are also part of the new
// configuration and ends the others. self need not be among the members; it then has no relations.
func (c *core) configure(now int64, cm rdma.MachineID, members []call.Peer) {
	var next []relation
	isMember := slices.ContainsFunc(members, func(p call.Peer) bool { return p.Machine == c.self })
	for _, p := range members {
		if isMember && p.Machine != c.self && (cm == c.self || p.Machine == cm) {
			next = append(next, c.continued(now, cm, p))
		}
	}
	for _, r := range c.relations {
		if !slices.ContainsFunc(next, func(n relation) bool { return n.peer == r.peer }) {
			c.outstanding = max(c.outstanding, r.granted)
		}
	}
	c.cm, c.isCM, c.relations, c.asked, c.wakes = cm, isMember && cm == c.self, next, 0, 0
	c.renewValid(isMember)
}

// continued returns the existing relation with p if the CM is the same and the relation has not
// expired, and otherwise a new relation.
func (c *core) continued(now int64, cm rdma.MachineID, p call.Peer) relation {
	i := slices.IndexFunc(c.relations, func(r relation) bool { return r.peer == p })
	r := relation{peer: p}
	if i >= 0 {
		if c.cm == cm && c.relations[i].standing != expired {
			return c.relations[i]
		}
		r.granted = c.relations[i].granted // the peer may rely on it, whatever its role is now
	}
	r.patience = now + grace*c.length
	return r
}

// renewValid computes when this machine's own lease ends. The CM's lease lasts while it holds
// leases from a majority, itself included.
func (c *core) renewValid(isMember bool) {
	switch {
	case !isMember:
		c.valid = 0
	case !c.isCM:
		c.valid = 0
		if len(c.relations) > 0 {
			c.valid = c.relations[0].held
		}
	default:
		c.valid = c.majority()
	}
}

// forever is later than any time.
const forever = int64(1) << 62

// majority returns the time until which the CM holds leases from enough machines: with n members
// it needs n/2 others.
func (c *core) majority() int64 {
	need := (len(c.relations) + 1) / 2
	if need == 0 || sabotage.LeaseMajority.Skipped() {
		return forever
	}
	// The need-th largest, without allocating or sorting: for each end, count the leases that end then
	// or later.
	best := int64(0)
	for i := range c.relations {
		t, n := c.relations[i].held, 0
		for k := range c.relations {
			if c.relations[k].held >= t {
				n++
			}
		}
		if n >= need && t > best {
			best = t
		}
	}
	return best
}

// ends returns the time at which this machine suspects r's peer, because a lease that one of the two
// has granted to the other has run out.
func (c *core) ends(r *relation) int64 {
	held := r.held
	if c.isCM {
		// The CM considers a lease that it holds ended a little early, so that nothing relies on it
		// too long. As a sign of failure, the lease counts for as long as one that the CM has granted.
		held += 2 * (c.length / drift)
		return max(min(r.granted, held), r.patience)
	}
	// If the CM cannot hear this machine, the CM suspects it, and has grace lease times to do that.
	// But a CM that cannot hear any machine cannot suspect any. The machines still hear the CM, so
	// they do not suspect it for lack of messages: then this machine has to suspect it.
	held = max(held, r.patience) + grace*c.length
	return max(min(r.granted, held), r.patience)
}

// tick reports whether the CM's messages are due, and appends to suspects the machines whose lease
// has run out, once each time. If this machine hangs, it does neither.
func (c *core) tick(now int64, suspects []rdma.MachineID) (isDue bool, _ []rdma.MachineID) {
	isLate := c.isLate(now)
	defer func() { c.wakes = c.next(now) }()
	if c.isHung(now) {
		c.hung = true
		return false, suspects
	}
	if c.hung {
		c.revive(now)
	}
	for i := range c.relations {
		r := &c.relations[i]
		switch {
		case r.standing == expired || now < c.ends(r) || sabotage.Expiry.Skipped():
		case isLate && r.standing == trusted:
			r.become(spared)
			c.wait(r, now)
		default:
			r.become(expired)
			suspects = append(suspects, r.peer.Machine)
		}
	}
	if !c.isCM || len(c.relations) == 0 || now < c.due(now) {
		return false, suspects
	}
	c.asked = now
	return true, suspects
}

// wait gives r's peer time to answer this machine, and to grant what it asks for.
func (c *core) wait(r *relation, now int64) {
	r.patience = max(r.patience, now+again*c.length/renewals)
}

// isHung reports whether this machine's workers have not worked for so long that others must not rely
// on it. The machine then lets all leases run out, both the leases that it holds and the leases that
// it grants. It suspects nobody meanwhile, because it has not renewed anything itself. If nobody calls Beat,
// it is never hung.
func (c *core) isHung(now int64) bool {
	return c.beat != 0 && !sabotage.Beats.Skipped() && now-c.beat >= c.length-c.length/margin
}

// revive is called when this machine runs again after isHung. Leases have run out because this
// machine has not renewed them. So the peers get time to renew, as after isLate.
func (c *core) revive(now int64) {
	c.hung = false
	for i := range c.relations {
		c.wait(&c.relations[i], now)
	}
}

// isLate reports whether this machine has been held up: leases may have run out because it has not
// sent requests, or not processed the requests of others. Then it exchanges messages once more before
// it suspects anybody. Without that, a majority of machines that have stood still for a while would
// evict a machine that has gone on. Virtual machines stand still while they are moved.
func (c *core) isLate(now int64) bool {
	return c.wakes != 0 && now-c.wakes > c.length/renewals
}

// message returns the CM's message to the peer of its i-th relation.
func (c *core) message(now int64, i int) message {
	r := &c.relations[i]
	m := message{kind: grantRequest, sent: now, echo: r.request}
	if r.request != 0 {
		m.length = c.grant(r)
		r.served = m.length > 0
	}
	return m
}

// due returns when the CM's next messages are to be sent: at a multiple of the interval.
func (c *core) due(now int64) int64 {
	i := c.interval(now)
	return c.asked - c.asked%i + i
}

// interval returns the time from one message to the next. It is short while a machine that may be
// alive has no lease.
func (c *core) interval(now int64) int64 {
	isBeginning := c.valid <= now
	for i := range c.relations {
		r := &c.relations[i]
		isBeginning = isBeginning || (r.standing != expired && (r.held <= now || !r.served))
	}
	if isBeginning {
		return c.length / beginnings
	}
	return c.length / renewals
}

// next returns when tick next has something to do.
func (c *core) next(now int64) int64 {
	if c.isHung(now) {
		return now + c.length/renewals
	}
	t := now + c.length
	for i := range c.relations {
		if r := &c.relations[i]; r.standing != expired {
			t = min(t, c.ends(r))
		}
	}
	if c.isCM && len(c.relations) > 0 {
		t = min(t, c.due(now))
	}
	return max(t, now)
}

// receive processes a message and returns the reply, if there is one: the CM's is in its next message, and a
// machine that hangs lets the CM's lease run out.
func (c *core) receive(now int64, from call.Peer, m message) (reply message, isReply bool) {
	i := slices.IndexFunc(c.relations, func(r relation) bool { return r.peer == from })
	if i < 0 || (m.kind == grantRequest) == c.isCM { // a stranger, or a kind that only the other side receives
		return message{}, false
	}
	r := &c.relations[i]
	r.become(trusted)
	c.hold(now, r, m)
	if !c.isCM && c.isHung(now) {
		return message{}, false
	}
	r.request, r.arrived = m.sent, now
	if c.isCM {
		return message{}, false
	}
	return message{kind: grant, sent: now, echo: m.sent, length: c.grant(r)}, true
}

// grant grants r's peer the lease that the peer requested last, and returns the lease's length: a
// whole lease time, but not beyond the end of the CM's own lease. For this machine the lease ends a
// lease time after the request arrived; for the peer, a lease time after it made the request, which is
// earlier.
func (c *core) grant(r *relation) int64 {
	length := c.length
	if c.isCM && !sabotage.GrantedLease.Skipped() {
		length = max(0, min(length, c.valid-r.arrived))
	}
	r.granted = max(r.granted, r.arrived+c.length+c.length/drift)
	return length
}

// hold records that r's peer has granted a lease. It ignores times that this machine cannot have
// written, and those older than a lease.
func (c *core) hold(now int64, r *relation, m message) {
	if m.echo == 0 || m.echo > now || m.echo < now-c.length || m.length < 0 {
		return
	}
	length := min(m.length, c.length)
	begin := m.echo
	if sabotage.LeaseBegin.Skipped() {
		begin = now
	}
	r.held = max(r.held, begin+length-length/drift)
	c.renewValid(true)
}

// left returns how long the outstanding leases may still last, whichever machine's clock measures it.
func (c *core) left(now int64) time.Duration {
	left := max(0, c.outstanding-now)
	return time.Duration(left + left/drift)
}
