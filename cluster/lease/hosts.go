//go:build cgo && linux && (amd64 || arm64)

package lease

/*
#include "thread.h"
*/
import "C"

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"net/netip"
	"time"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/internal/protocol"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
)

const (
	// askAgainMin and askAgainMax bound the pause before a machine is asked for a key again.
	askAgainMin = 50 * time.Millisecond
	askAgainMax = 2 * time.Second
	// blockedAfter is how long a machine that has handed out a key may be silent before that is logged.
	blockedAfter = 5 * time.Second
	// refusedEvery is the least time between two lines about datagrams that do not count.
	refusedEvery = 10 * time.Second
)

// hosts keeps leases with machines of other hosts by a thread of C. It gives the thread the
// keys and addresses of the members. Some members hand out no key, because they run the version
// before or a build without the thread: hosts exchanges messages with these as the calls keeper
// does.
type hosts struct {
	*thread
	endpoint *call.Endpoint
	kind     uint8
	line     Line
	log      *slog.Logger
	ctx      context.Context // ends with the keeper
	cancel   context.CancelFunc
	idle     clock.Event // the keeper is closed, and the last running function has ended

	peers struct {
		lockrank.Mutex[lockrank.Partners]
		closed  bool
		running int                         // functions that Close waits for
		members map[rdma.MachineID]*partner // the others of the configuration
		refused uint64                      // datagrams that did not count, when that was last logged
		logged  time.Time
	}
}

// A partner is a member with which this machine may have to exchange leases.
type partner struct {
	peer   call.Peer
	asking bool // the member is being asked for a key, or will be asked again after a pause
	at     netip.AddrPort
}

// NewLine returns a keeper that is a thread of C and exchanges messages with machines of other hosts over
// a line. It has real-time priority if that is permitted.
func NewLine(e *call.Endpoint, kind uint8, line Line, cfg Config) (Keeper, error) {
	unsealed := cfg.Length // the lease time while a member hands out no key
	if cfg.Length == 0 {
		cfg.Length, unsealed = LengthLine, LengthCalls
	}
	if cfg.Speaks == (protocol.Range{}) {
		cfg.Speaks = e.Speaks()
	}
	k := &hosts{thread: newThread(cfg), endpoint: e, kind: kind, line: line, log: cmp.Or(cfg.Log, slog.New(slog.DiscardHandler)), idle: cfg.Clock.NewEvent()}
	k.peers.members = make(map[rdma.MachineID]*partner)
	k.thread.event = k.event
	expired := cfg.Expired
	k.thread.expired = func(m rdma.MachineID) { k.lost(m); expired(m) }
	self := e.Self()
	err := k.start(func(realtime C.int, lowest, highest C.uint8_t, valid, beat *C.int64_t) (*C.struct_lease_thread, error) {
		c, err := C.lease_thread_start_line(C.int(line.Socket()), C.uint16_t(self.Machine), C.uint64_t(self.Incarnation), lowest, highest,
			C.int64_t(cfg.Length), C.int64_t(unsealed), realtime, valid, beat)
		return c, err
	}, cfg)
	if err != nil {
		return nil, err
	}
	k.ctx, k.cancel = context.WithCancel(context.Background())
	k.clock.Go(k.listen)
	line.HandOut(k.handOut)
	e.Handle(kind, k.receive)
	return k, nil
}

// Length implements Keeper. It is longer while a member hands out no key.
func (k *hosts) Length() time.Duration {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if k.c == nil { // the keeper is closed
		return k.length
	}
	return time.Duration(C.lease_thread_length(k.c))
}

func (k *hosts) Close() error {
	k.line.HandOut(nil)
	k.endpoint.Handle(k.kind, nil)
	k.cancel()
	k.peers.Lock()
	isClosed := k.peers.closed
	k.peers.closed = true
	isIdle := k.peers.running == 0
	k.peers.Unlock()
	if isClosed {
		return nil
	}
	if !isIdle {
		k.idle.Wait()
	}
	return k.thread.Close()
}

// Configure implements Keeper. It asks all members for keys, not only those with which this machine
// exchanges leases now: a new CM must not have to ask first.
func (k *hosts) Configure(cm rdma.MachineID, members []call.Peer) {
	for _, p := range k.meet(members) {
		k.ask(p)
	}
	k.thread.Configure(cm, members)
}

// meet makes members the partners, and returns the lives among them that are new. These have no
// key yet: a key of a former life does not count.
func (k *hosts) meet(members []call.Peer) (strangers []call.Peer) {
	k.peers.Lock()
	defer k.peers.Unlock()
	former := k.peers.members
	k.peers.members = make(map[rdma.MachineID]*partner)
	for _, p := range members {
		switch known := former[p.Machine]; {
		case p.Machine == k.endpoint.Self().Machine:
		case known != nil && known.peer == p:
			k.peers.members[p.Machine] = known
		default:
			k.peers.members[p.Machine] = &partner{peer: p}
			k.unseal(p.Machine, false)
			strangers = append(strangers, p)
		}
	}
	return strangers
}

// begin counts a function that Close waits for; ok is false if the keeper is closed.
func (k *hosts) begin() (ok bool) {
	k.peers.Lock()
	defer k.peers.Unlock()
	if !k.peers.closed {
		k.peers.running++
	}
	return !k.peers.closed
}

// end is called when a function that begin has counted returns.
func (k *hosts) end() {
	k.peers.Lock()
	defer k.peers.Unlock()
	k.peers.running--
	if k.peers.closed && k.peers.running == 0 {
		k.idle.Set()
	}
}

// ask asks a life of a machine for a key in the background, and again until it has answered or
// is a member no more. It does nothing if that life is being asked already.
func (k *hosts) ask(p call.Peer) {
	k.peers.Lock()
	m := k.peers.members[p.Machine]
	isDue := m != nil && m.peer == p && !m.asking
	if isDue {
		m.asking = true
	}
	k.peers.Unlock()
	if isDue {
		k.clock.Go(func() { k.askNow(m, askAgainMin) })
	}
}

// askNow asks once, and again after a pause if there is no answer.
func (k *hosts) askNow(m *partner, pause time.Duration) {
	if !k.begin() {
		return
	}
	defer k.end()
	key, at, err := k.line.Ask(k.ctx, m.peer.Machine)
	switch isMember := k.learn(m, key, at, err); {
	case !isMember:
	case err == nil:
		k.clock.AfterFunc(blockedAfter, func() { k.checkHeard(m.peer) })
	case errors.Is(err, errors.ErrUnsupported):
		k.log.Info("a machine keeps leases without a thread, or is of the version before: with it, leases last longer unless their time is given",
			"machine", m.peer.Machine, "length", max(k.length, LengthCalls))
	default:
		k.clock.AfterFunc(pause, func() { k.askNow(m, min(2*pause, askAgainMax)) })
	}
}

// learn takes what a partner has answered, unless the partner is no longer a member. The lock
// is held until the thread has the key, so that a key of a former life cannot replace that of
// the present one. After any error but errors.ErrUnsupported the partner is still being asked.
func (k *hosts) learn(m *partner, key [LineKeyBytes]byte, at netip.AddrPort, err error) (isMember bool) {
	k.peers.Lock()
	defer k.peers.Unlock()
	if k.peers.members[m.peer.Machine] != m {
		return false
	}
	switch {
	case err == nil:
		m.asking, m.at = false, at
		k.seal(m.peer.Machine, at, key)
	case errors.Is(err, errors.ErrUnsupported):
		m.asking = false
		k.unseal(m.peer.Machine, true) // a key of a former life would not count at that machine
	}
	return true
}

// lost is called when the lease of a machine has run out. It asks the machine for its key and
// address again, since those that are known may be out of date. If the machine answers, it is
// only the datagrams that do not get through, and checkHeard logs that.
func (k *hosts) lost(m rdma.MachineID) {
	k.peers.Lock()
	p := k.peers.members[m]
	k.peers.Unlock()
	if p != nil {
		k.ask(p.peer)
	}
}

// checkHeard logs if a partner with which this machine exchanges leases has handed out a key,
// and no datagram has come from it.
func (k *hosts) checkHeard(p call.Peer) {
	k.peers.Lock()
	m := k.peers.members[p.Machine]
	isDue := m != nil && m.peer == p && !k.peers.closed
	var at netip.AddrPort
	if isDue {
		at = m.at
	}
	k.peers.Unlock()
	if isDue && k.exchanges(p.Machine) && k.heard(p.Machine) == 0 {
		k.log.Warn("no datagram of a machine arrives, though it answers over TCP: let UDP through the firewalls, in both directions and with the number of the TCP port",
			"machine", p.Machine, "address", at)
	}
}

// exchanges reports whether this machine exchanges leases with m.
func (k *hosts) exchanges(m rdma.MachineID) bool {
	for _, l := range k.Leases() {
		if l.Machine == m {
			return true
		}
	}
	return false
}

// event handles what the thread leaves to Go.
func (k *hosts) event() {
	for _, m := range k.posted() {
		to := call.Peer{Machine: rdma.MachineID(m.to), Incarnation: uint64(m.to_incarnation)}
		_ = k.endpoint.Notify(to, k.kind, fromC(m).encode()) // a failure is like a lost message
	}
	k.logRefused()
}

// logRefused logs how many datagrams have not counted since it last logged something.
func (k *hosts) logRefused() {
	v := k.verdicts()
	total := v.Garbage + v.UnknownKey + v.Forged + v.Replayed
	now := k.clock.Now()
	k.peers.Lock()
	isDue := total > k.peers.refused && (k.peers.logged.IsZero() || now.Sub(k.peers.logged) >= refusedEvery)
	more := total - k.peers.refused
	if isDue {
		k.peers.refused, k.peers.logged = total, now
	}
	k.peers.Unlock()
	if isDue {
		k.log.Warn("lease messages are refused: a machine that has just started anew, or a stranger, has sent them",
			"refused", more, "garbage", v.Garbage, "unknown key", v.UnknownKey, "forged", v.Forged, "replayed", v.Replayed)
	}
}

// receive handles a message that has come as a notice.
func (k *hosts) receive(from call.Peer, arg []byte) ([]byte, error) {
	m, ok := decode(arg)
	if !ok {
		return nil, nil
	}
	if reply, isReply := k.take(from, m); isReply {
		_ = k.endpoint.Notify(from, k.kind, reply.encode())
	}
	return nil, nil
}

// take gives the thread a message that has come as a notice, and returns the reply, if there is one.
func (k *hosts) take(from call.Peer, m message) (reply message, isReply bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if k.c == nil {
		return message{}, false
	}
	in, out := toC(m), C.struct_lease_message{}
	isReply = C.lease_thread_take(k.c, cPeers([]call.Peer{from})[0], &in, &out) == 1
	return fromC(out), isReply
}

// posted takes the messages to machines without a key.
func (k *hosts) posted() []C.struct_lease_message {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if k.c == nil {
		return nil
	}
	list := make([]C.struct_lease_message, C.LEASE_MEMBERS_MAX)
	return list[:C.lease_thread_post(k.c, &list[0], C.LEASE_MEMBERS_MAX)]
}

// verdicts are how many datagrams of each kind a line has received.
type verdicts struct{ Admitted, Garbage, UnknownKey, Forged, Replayed uint64 }

func (k *hosts) verdicts() verdicts {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if k.c == nil {
		return verdicts{}
	}
	var n [C.LEASE_VERDICTS]C.uint64_t
	C.lease_thread_verdicts(k.c, &n[0])
	return verdicts{
		uint64(n[C.LEASE_ADMITTED]), uint64(n[C.LEASE_GARBAGE]), uint64(n[C.LEASE_UNKNOWN_KEY]), uint64(n[C.LEASE_FORGED]), uint64(n[C.LEASE_REPLAYED]),
	}
}

// heard returns how many datagrams of a machine have counted since the thread got the machine's key.
func (k *hosts) heard(m rdma.MachineID) uint64 {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if k.c == nil {
		return 0
	}
	return uint64(C.lease_thread_heard(k.c, C.uint16_t(m)))
}

// seal makes datagrams to a machine go to an address, with a key that the machine has handed out.
func (k *hosts) seal(m rdma.MachineID, at netip.AddrPort, key [LineKeyBytes]byte) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if k.c == nil {
		return
	}
	var ip [16]C.uint8_t
	for i, b := range at.Addr().As16() {
		ip[i] = C.uint8_t(b)
	}
	c := cKey(key)
	C.lease_thread_seal(k.c, C.uint16_t(m), &ip[0], C.uint16_t(at.Port()), C.uint32_t(scopeOf(at.Addr().Zone())), &c)
}

// unseal makes messages to a machine go as notices, until there is a key. isKeyless says that
// the machine hands out none.
func (k *hosts) unseal(m rdma.MachineID, isKeyless bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if k.c != nil {
		C.lease_thread_unseal(k.c, C.uint16_t(m), C._Bool(isKeyless))
	}
}

// handOut makes datagrams from a machine count that have a key which this machine hands out to it.
func (k *hosts) handOut(to rdma.MachineID, key [LineKeyBytes]byte) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if k.c != nil {
		c := cKey(key)
		C.lease_thread_hand_out(k.c, C.uint16_t(to), &c)
	}
}

func cKey(key [LineKeyBytes]byte) (c C.struct_lease_key) {
	c.number = C.uint64_t(binary.LittleEndian.Uint64(key[:]))
	for i, b := range key[8:] {
		c.secret[i] = C.uint8_t(b)
	}
	return c
}

func toC(m message) C.struct_lease_message {
	return C.struct_lease_message{kind: C.uint8_t(m.kind), sent: C.int64_t(m.sent), echo: C.int64_t(m.echo), length: C.int64_t(m.length)}
}
