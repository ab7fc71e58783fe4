package tatp

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/farmsql/farmsql/bench"
	"github.com/farmsql/farmsql/index/hash"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/outcome"
	"github.com/farmsql/farmsql/txn/worker"
)

// handlerUpdateLocation is the function that is shipped to a subscriber's primary.
const handlerUpdateLocation worker.HandlerID = 0x7400

// tables are one machine's handles.
type tables struct{ subscribers, numbers, access, facilities, forwards *hash.Table }

// nativeStore keeps the tables in hash tables.
type nativeStore struct {
	w      *Workload
	here   []int    // the machines of this process
	tables []tables // handles of the tables, by machine
	// nextMachine spreads loaders over the machines.
	nextMachine atomic.Uint32
}

func newNativeStore(w *Workload) *nativeStore {
	s := &nativeStore{w: w, here: w.target.Here()}
	for _, m := range s.here {
		w.target.Machine(m).Handle(handlerUpdateLocation, func(ctx context.Context, arg []byte) ([]byte, error) {
			if len(arg) != 8 {
				return nil, fmt.Errorf("tatp: an update of a location has %d bytes", len(arg))
			}
			u := s.newUpdater(m)
			return nil, u.run(ctx, binary.LittleEndian.Uint32(arg), binary.LittleEndian.Uint32(arg[4:]))
		})
	}
	return s
}

// Averages for a subscriber.
const (
	accessMean   = 2.5
	facilityMean = 2.5
	forwardMean  = 3.75
)

// create opens the hash tables on all machines of this process. The leader also reserves their slots.
func (s *nativeStore) create(ctx context.Context) error {
	target := s.w.target
	places, err := target.Places(ctx)
	if err != nil {
		return err
	}
	s.tables = make([]tables, target.Machines())
	for _, t := range []struct {
		name       string
		key, value int
		perPerson  float64
		field      func(t *tables) **hash.Table
	}{
		{"subscribers", idBytes, subscriberBytes, 1, func(t *tables) **hash.Table { return &t.subscribers }},
		{"numbers", numberDigits, idBytes, 1, func(t *tables) **hash.Table { return &t.numbers }},
		{"access information", kindKeyBytes, accessBytes, accessMean, func(t *tables) **hash.Table { return &t.access }},
		{"facilities", kindKeyBytes, facilityBytes, facilityMean, func(t *tables) **hash.Table { return &t.facilities }},
		{"call forwarding", forwardKeyBytes, forwardBytes, forwardMean, func(t *tables) **hash.Table { return &t.forwards }},
	} {
		handles, err := target.Hash(ctx, "tatp "+t.name, hash.Config{KeyBytes: t.key, ValueBytes: t.value, Seed: s.w.cfg.Seed}, places)
		if err != nil {
			return err
		}
		for m, tb := range handles {
			*t.field(&s.tables[m]) = tb
		}
		if !target.Leads() {
			continue
		}
		if err := handles[0].Reserve(ctx, int(t.perPerson*float64(s.w.cfg.Subscribers))); err != nil {
			return fmt.Errorf("table of %s: %w", t.name, err)
		}
	}
	return nil
}

// machine returns the next machine of this process in turn.
func (s *nativeStore) machine() int {
	return s.here[int(s.nextMachine.Add(1)-1)%len(s.here)]
}

type nativeLoader struct {
	s *nativeStore
	m int
	g *generator
}

func (s *nativeStore) newLoader(context.Context) (loader, error) {
	return &nativeLoader{s, s.machine(), newGenerator(s.w.cfg.Seed)}, nil
}

func (l *nativeLoader) close() error { return nil }

func (l *nativeLoader) load(ctx context.Context, first, last uint32) error {
	return l.s.w.target.Machine(l.m).Run(ctx, func(t *txn.Tx) error {
		for id := first; id <= last; id++ {
			if err := l.s.tables[l.m].put(t, l.g.person(id)); err != nil {
				return err
			}
		}
		return nil
	})
}

// put adds all rows of a subscriber.
func (tb *tables) put(t *txn.Tx, p *person) error {
	var k key
	number := numberOf(p.id)
	if err := tb.subscribers.Put(t, k.id(p.id), p.subscriber.encode(nil)); err != nil {
		return err
	}
	if err := tb.numbers.Put(t, number[:], k.id(p.id)); err != nil {
		return err
	}
	for i := range p.access {
		if err := tb.access.Put(t, k.kind(p.id, p.access[i].kind), p.access[i].encode(nil)); err != nil {
			return err
		}
	}
	for i := range p.facilities {
		f := &p.facilities[i]
		if err := tb.facilities.Put(t, k.kind(p.id, f.kind), f.encode(nil)); err != nil {
			return err
		}
		for _, w := range f.forwards {
			if err := tb.forwards.Put(t, k.forward(p.id, f.kind, w.start), w.encode(nil)); err != nil {
				return err
			}
		}
	}
	return nil
}

// nativeClient executes requests at one machine.
type nativeClient struct {
	th      *bench.Thread
	m       *txn.Machine
	tb      *tables
	updater *updater
	r       *request
	ship    [8]byte
	key     key
	buf     [64]byte
	// Method values, created once to avoid allocations.
	getNewDestination, updateSubscriberData, insertForward, deleteForward func(*txn.Tx) error

	updateLocation func() error
	ctx            context.Context // context of updateLocation
	// found is the result of the last query; a client would use it.
	found []byte
}

func (s *nativeStore) newExecutor(_ context.Context, th *bench.Thread) (executor, error) {
	m := th.Machine
	c := &nativeClient{th: th, m: s.w.target.Machine(m), tb: &s.tables[m], updater: s.newUpdater(m)}
	c.getNewDestination, c.updateSubscriberData = c.doGetNewDestination, c.doUpdateSubscriberData
	c.insertForward, c.deleteForward = c.doInsertForward, c.doDeleteForward
	c.updateLocation = c.doUpdateLocation
	return c, nil
}

func (c *nativeClient) close() error { return nil }

func (c *nativeClient) execute(ctx context.Context, r *request) error {
	c.r = r
	switch r.kind {
	case getSubscriberData:
		return c.lookup(c.tb.subscribers, c.key.id(r.id))
	case getAccessData:
		return c.lookup(c.tb.access, c.key.kind(r.id, r.which))
	case getNewDestination:
		return c.m.Run(ctx, c.getNewDestination)
	case updateSubscriberData:
		return c.m.Run(ctx, c.updateSubscriberData)
	case updateLocation:
		c.ctx = ctx
		return c.th.Retry(ctx, c.updateLocation)
	case insertCallForwarding:
		return c.m.Run(ctx, c.insertForward)
	default:
		return c.m.Run(ctx, c.deleteForward)
	}
}

// lookup executes a query of one row.
func (c *nativeClient) lookup(tb *hash.Table, key []byte) error {
	v, ok, err := tb.Lookup(key, c.buf[:])
	if err == nil && !ok {
		err = bench.ErrMiss
	}
	c.found = v
	return err
}

// doGetNewDestination finds the active call forwardings that include the requested time.
func (c *nativeClient) doGetNewDestination(t *txn.Tx) error {
	r := c.r
	// Prefetch all rows that may be needed, so that their misses overlap.
	c.tb.facilities.Fetch(t, c.key.kind(r.id, r.which))
	for start := uint8(0); start <= r.start; start += startStep {
		c.tb.forwards.Fetch(t, c.key.forward(r.id, r.which, start))
	}
	f, ok, err := c.tb.facilities.Get(t, c.key.kind(r.id, r.which))
	if err != nil {
		return err
	}
	if !ok || !facilityActive(f) {
		return bench.ErrMiss
	}
	c.found = c.found[:0]
	for start := uint8(0); start <= r.start; start += startStep {
		v, ok, err := c.tb.forwards.Get(t, c.key.forward(r.id, r.which, start))
		if err != nil {
			return err
		}
		if ok && forwardEnd(v) > r.end {
			c.found = append(c.found, v[1:]...) // the number, which follows the end
		}
	}
	if len(c.found) == 0 {
		return bench.ErrMiss
	}
	return nil
}

// doUpdateSubscriberData changes a bit of the subscriber and a byte of one facility, or neither if
// there is no such facility.
func (c *nativeClient) doUpdateSubscriberData(t *txn.Tx) error {
	r := c.r
	c.tb.subscribers.Fetch(t, c.key.id(r.id))
	key := c.key.kind(r.id, r.which)
	c.tb.facilities.Fetch(t, key)
	f, ok, err := c.tb.facilities.Get(t, key)
	if err != nil {
		return err
	}
	if !ok {
		return bench.ErrMiss // the transaction commits nothing: the subscriber keeps its bit
	}
	next := append(c.buf[:0], f...)
	next[facilityDataA] = r.data
	if err := c.tb.facilities.Put(t, key, next); err != nil {
		return err
	}
	key = c.key.id(r.id)
	s, err := mustGet(t, c.tb.subscribers, key)
	if err != nil {
		return err
	}
	next = append(c.buf[:0], s...)
	next[subscriberBits] = (next[subscriberBits] &^ 1) | r.bit
	return c.tb.subscribers.Put(t, key, next)
}

// mustGet is like Get, for a key that must exist.
func mustGet(t *txn.Tx, tb *hash.Table, key []byte) ([]byte, error) {
	v, ok, err := tb.Get(t, key)
	if err == nil && !ok {
		err = broken("key %x is gone", key)
	}
	return v, err
}

// doUpdateLocation finds the subscriber by the number, and changes the row at its
// primary.
func (c *nativeClient) doUpdateLocation() error {
	number := numberOf(c.r.id)
	v, ok, err := c.tb.numbers.Lookup(number[:], c.buf[:])
	if err != nil {
		return err
	}
	if !ok {
		return broken("number %s is gone", number)
	}
	id := binary.LittleEndian.Uint32(v)
	home, err := c.tb.subscribers.Home(c.key.id(id))
	if err != nil {
		return err
	}
	if c.m.IsPrimary(home) {
		return c.updater.run(c.ctx, id, c.r.vlr)
	}
	binary.LittleEndian.PutUint32(c.ship[:], id)
	binary.LittleEndian.PutUint32(c.ship[4:], c.r.vlr)
	_, err = c.m.Ship(c.ctx, home, handlerUpdateLocation, c.ship[:])
	if errors.Is(err, outcome.ErrInDoubt) {
		// The primary was lost. The update is idempotent, so retry it.
		err = fmt.Errorf("%w: %w", outcome.ErrConflict, err)
	}
	return err
}

// An updater changes subscribers' locations at one machine.
type updater struct {
	m       *txn.Machine
	tb      *hash.Table
	id, vlr uint32
	key     key
	buf     [subscriberBytes]byte
	update  func(*txn.Tx) error // doUpdate, a value that is created once
}

func (s *nativeStore) newUpdater(m int) *updater {
	u := &updater{m: s.w.target.Machine(m), tb: s.tables[m].subscribers}
	u.update = u.doUpdate
	return u
}

func (u *updater) run(ctx context.Context, id, vlr uint32) error {
	u.id, u.vlr = id, vlr
	return u.m.Run(ctx, u.update)
}

// doUpdate changes the location in a copy of the row.
func (u *updater) doUpdate(t *txn.Tx) error {
	key := u.key.id(u.id)
	s, err := mustGet(t, u.tb, key)
	if err != nil {
		return err
	}
	copy(u.buf[:], s)
	binary.LittleEndian.PutUint32(u.buf[subscriberVLR:], u.vlr)
	return u.tb.Put(t, key, u.buf[:])
}

// byNumber returns the identifier of the subscriber with the request's number.
func (c *nativeClient) byNumber(t *txn.Tx) (uint32, error) {
	number := numberOf(c.r.id)
	v, err := mustGet(t, c.tb.numbers, number[:])
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint32(v), nil
}

// doInsertForward inserts a call forwarding, if the facility exists and the forwarding does not.
func (c *nativeClient) doInsertForward(t *txn.Tx) error {
	r := c.r
	id, err := c.byNumber(t)
	if err != nil {
		return err
	}
	for kind := uint8(1); kind <= facilityMax; kind++ {
		c.tb.facilities.Fetch(t, c.key.kind(id, kind))
	}
	c.tb.forwards.Fetch(t, c.key.forward(id, r.which, r.start))
	isKnown := false
	for kind := uint8(1); kind <= facilityMax; kind++ { // the description's query reads all facilities
		ok, err := c.tb.facilities.Has(t, c.key.kind(id, kind))
		if err != nil {
			return err
		}
		isKnown = isKnown || (ok && kind == r.which)
	}
	if !isKnown {
		return bench.ErrMiss
	}
	key := c.key.forward(id, r.which, r.start)
	exists, err := c.tb.forwards.Has(t, key)
	if err != nil {
		return err
	}
	if exists {
		return bench.ErrMiss
	}
	w := forward{start: r.start, end: r.end, number: r.number}
	return c.tb.forwards.Insert(t, key, w.encode(c.buf[:0]))
}

func (c *nativeClient) doDeleteForward(t *txn.Tx) error {
	id, err := c.byNumber(t)
	if err != nil {
		return err
	}
	found, err := c.tb.forwards.Delete(t, c.key.forward(id, c.r.which, c.r.start))
	if err == nil && !found {
		err = bench.ErrMiss
	}
	return err
}

// sameBut reports whether two rows differ at most in the bytes [begin, end).
func sameBut(a, b []byte, begin, end int) bool {
	return len(a) == len(b) && bytes.Equal(a[:begin], b[:begin]) && bytes.Equal(a[end:], b[end:])
}
