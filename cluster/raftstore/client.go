package raftstore

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/rdma"
)

// A ClientConfig says how a machine that is not one of the store's reaches the store.
type ClientConfig struct {
	// Cluster and Machines are those of the Founding: the store's machines refuse others.
	Cluster  uint64
	Machines map[rdma.MachineID]string
	// Founders are those that a client of the machine has learned last; zero if none has.
	Founders Founders
	// Dial and TLS are as in Config.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	TLS  *tls.Config
	// Patience bounds Load and CompareAndSwap. If it is 0, it is 5 s. Each machine is asked for
	// its share of Patience at a time, and an election, which takes up to a second, must fit
	// into that.
	Patience time.Duration

	// tick is tickDefault, except in tests.
	tick time.Duration
	// hedge is how long to wait for an answer before another machine is asked as well:
	// hedgeTicks, except in tests.
	hedge time.Duration
	// linger is how long to wait for the answers to other copies of a swap once a machine has
	// said "moved on": hedge, except in tests.
	linger time.Duration
}

// complete checks c and sets what has a default.
func (c *ClientConfig) complete() error {
	switch {
	case c.Dial == nil:
		return errors.New("cluster: a client of the configuration store needs a dialer")
	case c.Patience < 0:
		return fmt.Errorf("cluster: a client of the configuration store has a patience of %v", c.Patience)
	}
	if err := checkTLS(c.TLS); err != nil {
		return err
	}
	if c.Patience == 0 {
		c.Patience = patienceDefault
	}
	if c.tick == 0 {
		c.tick = tickDefault
	}
	if c.hedge == 0 {
		c.hedge = hedgeTicks * c.tick
	}
	if c.linger == 0 {
		c.linger = c.hedge
	}
	return nil
}

// A Client lets a machine that is not one of the store's use the store. It is a cluster.Store,
// and safe for concurrent use.
type Client struct {
	cfg      ClientConfig
	founding Founding           // the founding of the store; its Machine means nothing
	life     [8]byte            // a random number, for requestID
	counter  atomic.Uint64      // counts requests
	ctx      context.Context    // done when the Client is closed
	cancel   context.CancelFunc // ends ctx
	mu       struct {
		lockrank.Mutex[lockrank.Leaf]
		founders Founders         // the newest founders that are known
		machines []rdma.MachineID // the numbers of the founders, in order
		first    rdma.MachineID   // the machine that is asked first: it has served last
		suspect  *rdma.MachineID  // the machine that is asked last, and of which the others are told; nil if none is suspected
		forget   time.Time        // when suspect is out of date
		idle     []clientConn     // ordered by last use, the latest at the end
	}
}

var _ cluster.Store = (*Client)(nil)

// errMovedUncertain means that the answer to a swap was lost, and nobody knows any more what it was.
var errMovedUncertain = &unanswered{"cluster: the configuration has changed more than once since the answer to this change was lost: nobody knows whether it was carried out; load the configuration again"}

// NewClient returns a client, which connects at the first call. It fails if cfg cannot work.
func NewClient(cfg ClientConfig) (*Client, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	c := &Client{cfg: cfg, founding: Founding{Cluster: cfg.Cluster, Machines: cfg.Machines}}
	founders := slices.Sorted(maps.Keys(cfg.Machines))
	if len(founders) > 0 {
		c.founding.Machine = founders[0] // check demands one of them
	}
	if err := c.founding.check(); err != nil {
		return nil, err
	}
	c.mu.founders, c.mu.machines = c.founding.founders(), founders
	if err := c.Learn(cfg.Founders); err != nil {
		return nil, err
	}
	binary.LittleEndian.PutUint64(c.life[:], rand.Uint64())
	c.life[2], c.life[3] = 0xff, 0xff // where identifiers of the store's machines have zeros
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.mu.first = c.mu.machines[rand.IntN(len(c.mu.machines))]
	return c, nil
}

// Close implements cluster.Store. Requests under way fail with ErrClosed.
func (c *Client) Close() error {
	c.cancel()
	c.closeIdle(func(clientConn) bool { return true })
	return nil
}

// Load implements cluster.Store.
func (c *Client) Load() (*cluster.Configuration, error) {
	b, err := c.ask(call{operation: operationLoad, swap: swap{id: c.newID()}})
	if len(b) == 0 || err != nil {
		return nil, err
	}
	return cluster.Decode("the configuration store of other machines", b)
}

// CompareAndSwap implements cluster.Store.
func (c *Client) CompareAndSwap(old uint64, next *cluster.Configuration) error {
	s, err := newSwap(c.newID(), old, next)
	if err != nil {
		return err
	}
	_, err = c.ask(call{operation: operationSwap, swap: *s})
	return err
}

// Founders asks for the founders. The client asks these from then on. The machine that answers
// may not know the latest.
func (c *Client) Founders() (f Founders, err error) {
	b, err := c.ask(call{operation: operationFounders, swap: swap{id: c.newID()}})
	if err != nil {
		return f, err
	}
	if err := json.Unmarshal(b, &f); err != nil || len(f.Machines) == 0 {
		return f, &unanswered{"cluster: a machine of the configuration store does not say which machines it consists of"}
	}
	if err := c.Learn(f); err != nil {
		return Founders{}, err
	}
	return c.known(), nil
}

// Forget is as Store.Forget.
func (c *Client) Forget(m rdma.MachineID) error {
	_, err := c.ask(call{operation: operationChange, change: change{kind: changeForget, id: c.newID(), changeText: changeText{Successor: Successor{For: m}}}})
	return err
}

// Replace is as Store.Replace.
func (c *Client) Replace(by Successor) error {
	_, err := c.ask(call{operation: operationChange, change: change{kind: changeReplace, id: c.newID(), changeText: changeText{Successor: by}}})
	return err
}

// Want is as Store.Want.
func (c *Client) Want(n int) error {
	_, err := c.ask(call{operation: operationChange, change: change{kind: changeWant, id: c.newID(), changeText: changeText{Wanted: n}}})
	return err
}

// Learn makes the client ask founders from now on, unless it knows later ones. It fails with
// ErrSplit if they are of another line.
func (c *Client) Learn(f Founders) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := CheckLine(c.mu.founders.Line, f.Line); err != nil {
		return err
	}
	if f.Version > c.mu.founders.Version && len(f.Machines) > 0 {
		c.mu.founders, c.mu.machines = f.clone(), slices.Sorted(maps.Keys(f.Machines))
	}
	return nil
}

// known returns the newest founders that the client knows.
func (c *Client) known() Founders {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.founders.clone()
}

// address returns the address of a founder.
func (c *Client) address(m rdma.MachineID) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.founders.Machines[m]
}

// newID returns an identifier that no request had.
func (c *Client) newID() (id requestID) {
	copy(id[:], c.life[:])
	binary.LittleEndian.PutUint64(id[8:], c.counter.Add(1))
	return id
}

// ask asks the machines, by one or several at a time, until one has carried out the call.
//
// A call whose answer is lost, or late, is made again elsewhere. A Load changes nothing, so
// that is safe. So is a swap: all copies have one identifier and replace one revision, and
// revisions only grow, so that at most one copy takes effect. Only its answer needs care. A
// machine says "done" to a late copy if the swap is still the last one. It says "moved" if the
// revision shows that the swap cannot have been carried out, and otherwise "moved on". If all
// copies get "moved on", the result is ErrMoved: had a copy taken effect, the machine that sent
// it to the leader would have said "done". If an answer was lost, or is late, the result is not
// known.
func (c *Client) ask(k call) ([]byte, error) {
	ctx, cancel := context.WithTimeout(c.ctx, c.cfg.Patience)
	defer cancel()
	q := inquiry{client: c, call: k, reasons: make(map[rdma.MachineID]error)}
	for ctx.Err() == nil {
		if r := q.round(ctx); r != nil {
			return r.content, r.err(q.isLost)
		}
		pause(ctx, time.Duration(redialTicks)*c.cfg.tick)
	}
	if c.ctx.Err() != nil {
		return nil, ErrClosed
	}
	return nil, c.unanswered(q.reasons, q.isLost)
}

// err returns the error of a result that is not a failure. isLost says that the answer to a copy of the
// swap was lost.
func (r *result) err(isLost bool) error {
	switch {
	case r.outcome == outcomeMoved || (r.outcome == outcomeMovedOn && !isLost):
		return cluster.ErrMoved
	case r.outcome == outcomeMovedOn:
		return errMovedUncertain
	case r.outcome == outcomeRefused:
		return fmt.Errorf("%w%s", ErrFounders, strings.TrimPrefix(string(r.content), ErrFounders.Error()))
	}
	return nil
}

// Suspect says that machine m is taken to have failed. The client then asks m last, and its
// calls tell the other machines, which elect another leader if m is the leader: see
// Store.Suspect. The suspicion ends when a call that told of it has been carried out with the
// leader. It ends after ClientConfig.Patience in any case: a machine that seldom calls must not
// tell of it when m is back.
func (c *Client) Suspect(m rdma.MachineID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.suspect, c.mu.forget = &m, time.Now().Add(c.cfg.Patience)
}

// suspect returns the suspect; nil if there is none, or the suspicion is out of date.
func (c *Client) suspect() *rdma.MachineID {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.suspectLocked()
}

func (c *Client) suspectLocked() *rdma.MachineID {
	if c.mu.suspect != nil && time.Now().After(c.mu.forget) {
		c.mu.suspect = nil
	}
	return c.mu.suspect
}

// order returns the machines in the order in which they are asked: from the one that served last upwards, then
// the lower ones, and a suspect at the end.
func (c *Client) order() []rdma.MachineID {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := max(slices.Index(c.mu.machines, c.mu.first), 0)
	order := slices.Concat(c.mu.machines[i:], c.mu.machines[:i])
	suspect := c.suspectLocked()
	if suspect == nil {
		return order
	}
	if k := slices.Index(order, *suspect); k >= 0 {
		order = append(slices.Delete(order, k, k+1), *suspect)
	}
	return order
}

// prefer makes the client ask a machine first from now on, because that has carried out a call.
func (c *Client) prefer(m rdma.MachineID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.first = m
}

// trust ends a suspicion that the machines have been told of: they have a leader. A suspicion
// that has come since then stays.
func (c *Client) trust(suspect *rdma.MachineID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.suspect == suspect {
		c.mu.suspect = nil
	}
}

// unanswered returns the error of a call that no machine has carried out.
func (c *Client) unanswered(reasons map[rdma.MachineID]error, isLost bool) error {
	var all []string
	f := c.known()
	for _, m := range slices.Sorted(maps.Keys(f.Machines)) {
		if reasons[m] == nil {
			reasons[m] = errNeverConnected
		}
		all = append(all, fmt.Sprintf("machine %d at %s %v", m, f.Machines[m], reasons[m]))
	}
	text := fmt.Sprintf("cluster: no machine of the configuration store has done what was asked within %v: %s", c.cfg.Patience, strings.Join(all, "; "))
	if isLost {
		text += "; the change may have been carried out nevertheless"
	}
	return &unanswered{text}
}

// try makes a call at one machine, which gets its share of the patience. If a connection that was idle turns out to have
// ended, since the machine was restarted for example, it makes the call over a new one: otherwise a machine that is well would
// count as failed.
// The reply says if the answer to the first copy was lost.
func (c *Client) try(ctx context.Context, m rdma.MachineID, k call) (r reply) {
	r.machine = m
	share := c.cfg.Patience / time.Duration(len(c.order()))
	ctx, cancel := context.WithTimeout(ctx, share)
	defer cancel()
	if conn, ok := c.takeIdle(m); ok {
		err := c.call(ctx, conn, k, &r)
		if err == nil || isTimeUp(ctx, err) {
			r.err = failureOf(ctx, err)
			return r
		}
		r.isLost = k.changes()
	}
	conn, err := c.connect(ctx, m)
	if err == nil {
		err = c.call(ctx, conn, k, &r)
	}
	r.err = failureOf(ctx, err)
	return r
}

// failureOf returns why a machine has not carried out a call, if err is an error.
func failureOf(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case isTimeUp(ctx, err):
		return errSilent
	default:
		return fmt.Errorf("cannot be reached: %w", err)
	}
}

func isTimeUp(ctx context.Context, err error) bool {
	return errors.Is(err, os.ErrDeadlineExceeded) || ctx.Err() != nil
}

// call makes a call over a connection, and fills in r except for its error. The machine has less time than the client waits, so that it can say why it has failed.
func (c *Client) call(ctx context.Context, conn clientConn, k call, r *reply) (err error) {
	deadline, _ := ctx.Deadline()
	k.patience, k.suspect = max(time.Until(deadline)*3/4, time.Millisecond), c.suspect()
	r.isSent, r.suspect = true, k.suspect
	r.result, err = c.exchange(ctx, conn, deadline, k)
	return err
}

// exchange sends a call and takes its result, within ctx. It keeps the connection if that goes well.
func (c *Client) exchange(ctx context.Context, conn clientConn, deadline time.Time, k call) (r result, err error) {
	stop := context.AfterFunc(ctx, conn.close)
	if err = conn.stream.SetDeadline(deadline); err == nil {
		_, err = conn.stream.Write(k.encode())
	}
	if err == nil {
		r, err = readResult(conn.stream)
	}
	if err == nil && r.id != k.id() {
		err = fmt.Errorf("%w: the result of another call", errGarbage)
	}
	if isOpen := stop(); err != nil || !isOpen {
		conn.close()
		c.closeIdle(func(other clientConn) bool { return other.machine == conn.machine }) // the idle ones to that machine are no better
		return r, err
	}
	c.keep(conn)
	return r, nil
}
