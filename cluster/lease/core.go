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
	// beginnings is how often a lease is asked for in its time as long as there is
	// none.
	beginnings = 50
	// drift divides a time into what is allowed for clocks. Three of them are in
	// play, whose rates may be off by half of it, 1/64, each.
	drift = 32
	// grace is how many lease times a machine has to begin with the exchange.
	grace = 2
	// margin divides the lease time into by how much less than that the last beat of
	// a machine that renews may be old: so that whatever a machine was renewed for
	// before it hung has ended two leases after its last beat, drift included.
	margin = 8
)

// A kind of message. Both ask for a lease, and grant what was asked for before.
const (
	grantRequest = 1 // CM to machine
	grant        = 2 // machine to CM, in answer
)

// A message of the handshake. Times are of the clock of who wrote them first.
type message struct {
	kind uint8
	sent int64 // when this request is made
	echo int64 // when the request was made that this grants; 0: it grants none
	// length is for how long from then the lease is granted, in nanoseconds.
	length int64
}

// A relation is what one machine knows of another, with which it exchanges
// leases. Times are nanoseconds of this machine's clock.
type relation struct {
	peer call.Peer
	// request is when the peer made its last request, by its clock, and arrived when
	// that was heard; 0 if none was. The CM grants it with its next message, and
	// again until there is a newer one, for messages may be lost.
	request, arrived int64
	// served says that what was granted last was of use.
	served bool
	// granted is until when the lease lasts that this machine has granted.
	granted int64
	// held is until when the lease lasts that this machine holds at the peer.
	held int64
	// patience is until when the first exchange may take.
	patience int64
	expired  bool // has been reported, and nothing was heard since
	spared   bool // because this machine was late, and nothing was heard since
}

// A core holds the rules of one machine. It is driven: it has no clock of its
// own. Times are nanoseconds of one monotonic clock, and not zero.
type core struct {
	self   rdma.MachineID
	length int64 // of a lease

	cm        rdma.MachineID
	isCM      bool
	relations []relation // to the CM, or, at the CM, to all others; by machine
	asked     int64      // when the CM sent its last messages
	wakes     int64      // when tick is to be called again at the latest; 0 if it has not been
	// outstanding is until when leases may last that this machine has granted to
	// machines that it has no relation with any more.
	outstanding int64
	// valid is until when this machine may rely on its own lease.
	valid int64

	// beat is when this machine's workers were last seen to work; 0 if nobody looks.
	beat int64
	hung bool // so tick has found it, and not otherwise since
}

// configure makes members exchange leases with cm. Relations that are part of the
// new configuration too go on; others end. self need not be among the members,
// and then has no relations.
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

// continued returns the relation with p, which is a new one unless there was one
// in the same roles.
func (c *core) continued(now int64, cm rdma.MachineID, p call.Peer) relation {
	i := slices.IndexFunc(c.relations, func(r relation) bool { return r.peer == p })
	r := relation{peer: p}
	if i >= 0 {
		if c.cm == cm && !c.relations[i].expired {
			return c.relations[i]
		}
		r.granted = c.relations[i].granted // it may rely on it, whatever its role is now
	}
	r.patience = now + grace*c.length
	return r
}

// renewValid computes until when this machine's own lease is valid: the CM's
// while it holds leases at a majority, itself included.
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

// majority returns until when the CM holds leases at enough machines: of n
// members it needs n/2 others.
func (c *core) majority() int64 {
	need := (len(c.relations) + 1) / 2
	if need == 0 || sabotage.LeaseMajority.Skipped() {
		return forever
	}
	// The need-th largest, without memory or sorting: for each, count those as late.
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

// ends returns when this machine suspects r's peer: a lease granted, or one held,
// has run out.
func (c *core) ends(r *relation) int64 {
	held := r.held
	if c.isCM {
		// The CM's own view of a lease ends early, so that nothing relies on it too
		// long; as a sign of failure it counts for as long as one granted.
		held += c.length / drift * 2
		return max(min(r.granted, held), r.patience)
	}
	// A CM that does not hear this machine gives it up, for it has its own lease to
	// lose. One that hears nobody cannot, and nobody else would: it is heard.
	held = max(held, r.patience) + grace*c.length
	return max(min(r.granted, held), r.patience)
}

// tick says whether the CM's messages are to be sent now, and appends to expired the
// machines whose lease has run out, once each time.
func (c *core) tick(now int64, expired []rdma.MachineID) (isDue bool, _ []rdma.MachineID) {
	isLate := c.isLate(now)
	defer func() { c.wakes = c.next(now) }()
	if c.isHung(now) {
		c.hung = true
		return false, expired
	}
	if c.hung {
		c.revive(now)
	}
	for i := range c.relations {
		r := &c.relations[i]
		switch {
		case r.expired || now < c.ends(r) || sabotage.Expiry.Skipped():
		case isLate && !r.spared:
			r.spared, r.patience = true, now+2*c.length/renewals // to answer, and to be granted what it asks for
		default:
			r.expired = true
			expired = append(expired, r.peer.Machine)
		}
	}
	if !c.isCM || len(c.relations) == 0 || now < c.due(now) {
		return false, expired
	}
	c.asked = now
	return true, expired
}

// isHung says that this machine's workers have not worked for so long that others must
// not count on it: its leases are left to run out, those that it holds and those that it
// grants. It suspects nobody meanwhile, for it has not renewed anything.
func (c *core) isHung(now int64) bool {
	return c.beat != 0 && !sabotage.Beats.Skipped() && now-c.beat >= c.length-c.length/margin
}

// revive ends that. Leases have run out because this machine has not renewed them: the
// peers get as much time to do so as those of a machine that was late.
func (c *core) revive(now int64) {
	c.hung = false
	for i := range c.relations {
		r := &c.relations[i]
		r.patience = max(r.patience, now+2*c.length/renewals)
	}
}

// isLate says that this machine has been held up: leases may have run out because it has
// not asked for new ones, or not taken in what others have asked for. It asks and listens
// once more before it suspects anybody. Where most machines stand still for a while, as
// virtual machines do that are moved, they would evict the one that has not.
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

// due returns when the CM's next messages are: at a multiple of the interval.
func (c *core) due(now int64) int64 {
	i := c.interval(now)
	return c.asked - c.asked%i + i
}

// interval is the time from one message to the next: short as long as somebody
// who may be there has no lease.
func (c *core) interval(now int64) int64 {
	isBeginning := c.valid <= now
	for i := range c.relations {
		r := &c.relations[i]
		isBeginning = isBeginning || !r.expired && (r.held <= now || !r.served)
	}
	if isBeginning {
		return c.length / beginnings
	}
	return c.length / renewals
}

// next returns when tick has something to do again.
func (c *core) next(now int64) int64 {
	if c.isHung(now) {
		return now + c.length/renewals
	}
	t := now + c.length
	for i := range c.relations {
		if r := &c.relations[i]; !r.expired {
			t = min(t, c.ends(r))
		}
	}
	if c.isCM && len(c.relations) > 0 {
		t = min(t, c.due(now))
	}
	return max(t, now)
}

// receive takes in a message and returns the one to answer it with, if any.
func (c *core) receive(now int64, from call.Peer, m message) (reply message, isReply bool) {
	i := slices.IndexFunc(c.relations, func(r relation) bool { return r.peer == from })
	if i < 0 || (m.kind == grantRequest) == c.isCM {
		return message{}, false
	}
	r := &c.relations[i]
	r.expired, r.spared = false, false
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

// grant grants r's peer the lease that it has asked for last, and returns its
// length: that of a whole one, but at the CM no more than is left of its own. The
// request was not made later than it was heard.
func (c *core) grant(r *relation) int64 {
	length := c.length
	if c.isCM && !sabotage.GrantedLease.Skipped() {
		length = max(0, min(length, c.valid-r.arrived))
	}
	r.granted = max(r.granted, r.arrived+c.length+c.length/drift)
	return length
}

// hold notes that r's peer has granted a lease. Times that this machine cannot
// have written are ignored.
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

// left returns how much of the outstanding leases remains, by any clock.
func (c *core) left(now int64) time.Duration {
	left := max(0, c.outstanding-now)
	return time.Duration(left + left/drift)
}
