package simtest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/index/hash"
	"github.com/farmsql/farmsql/internal/sim"
	"github.com/farmsql/farmsql/recovery"
	"github.com/farmsql/farmsql/recovery/membership"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/lookup"
	"github.com/farmsql/farmsql/txn/step"
)

// The hardware of NSDI'14, section 4.1: 20 machines with 32 hardware threads and a ConnectX-3 of 40 Gb/s each. No cost is
// chosen so that lookups at other machines, which are measured, come out as in the paper:
//
//   - a READ takes 2 us if nobody else does anything (Design Guidelines, section 2): 1.4 us to the other card and back;
//     the rest are packets, and the time until the thread notices.
//   - a thread takes 100 ns to post an operation and to take its completion.
//   - a thread looks up a key of its own machine in 1.23 us: a machine does 26 million a second (NSDI'14, section 4.2).
//   - a ConnectX-3 sends 34.0 million messages without data a second, and takes 32.1 million (Design Guidelines,
//     Table 5): 30 ns for a packet.
//   - a machine has 256 lookups under way, 8 for each thread: so many are 7.3 million a second of 35 us each
//     (Little's law).
const (
	hardwareThreads = 32
	lookupsOfThread = 8

	hardwareLatency   = 700 * time.Nanosecond
	hardwarePost      = 100 * time.Nanosecond
	hardwareLookup    = 1230 * time.Nanosecond
	hardwarePacket    = 30 * time.Nanosecond
	hardwareBandwidth = 40e9 / 8
)

// hardwareOptions returns the options for this number of machines of NSDI'14. All threads of a
// machine share one worker, since turns of the simulator do not wait for its lock.
func hardwareOptions(seed uint64, machines int) Options {
	return Options{
		Seed: seed,
		World: sim.Options{
			Seed: 2 * seed, Latency: hardwareLatency, Steady: true,
			Processors: hardwareThreads, Packet: hardwarePacket, Bandwidth: hardwareBandwidth, Costs: sim.Costs{Operation: hardwarePost},
		},
		Farm:    farm.Config{Machines: machines, Replicas: 1, Workers: 1, RegionBytes: 1 << 20, LogBytes: 64 << 10, MessageBytes: 256 << 10},
		Domains: machines, Clients: hardwareThreads * lookupsOfThread, Objects: machines, Keys: machines, LeafBytes: 400, Buckets: 32,
	}
}

// A Throughput describes the lookups of all machines together, in virtual time.
type Throughput struct {
	PerMachine float64       // lookups a second
	Latency    time.Duration // the mean of a lookup
	Reads      float64       // READs of a lookup
	Messages   float64       // messages of a lookup, requests and replies
}

// The table is as in NSDI'14: keys of 16 bytes, values of 32, a neighbourhood of 6, and up to 90 % of the slots taken.
const (
	pairsOfMachine = 400
	pairKeyBytes   = 16
	pairValueBytes = 32
)

// LookUp measures lookups of uniform keys.
func LookUp(o Options, w lookup.Way) (Throughput, error) {
	r := newRun(o)
	m := &throughput{run: r, way: w}
	r.work, r.think = m.lookUp, func(*client) {}
	r.cluster = NewMembers(r.world, o.Farm, Hooks{
		Prepare: r.prepare, Serving: r.serving,
		Step: func(int, step.Step) {}, Recovering: func(int, recovery.Step) {}, Reconfigured: func(int, membership.Timeline) {},
	})
	if err := r.world.Run(func() { r.fail(m.phases()) }); err != nil {
		r.fail(err)
	}
	return m.result, r.failure
}

// throughput is a run that measures lookups.
type throughput struct {
	*run
	way    lookup.Way
	pairs  region.Ptr    // the table's anchor
	tables []*hash.Table // handles by machine
	done   int
	busy   time.Duration // the sum of the latencies
	result Throughput
}

func (m *throughput) phases() error {
	if err := m.start(m.all()); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	if err := m.setUp(); err != nil {
		return fmt.Errorf("set up: %w", err)
	}
	if err := m.load(); err != nil {
		return fmt.Errorf("load: %w", err)
	}
	for _, n := range m.nodes {
		m.startClients(n)
	}
	m.outside.Sleep(lookupWarmUp)
	before := m.stats()
	m.done, m.busy = 0, 0
	m.outside.Sleep(lookupMeasured)
	m.evaluate(m.stats().Sub(before))
	return m.stop()
}

const (
	lookupWarmUp   = 200 * time.Microsecond
	lookupMeasured = 500 * time.Microsecond
)

// load makes the table, with shards at all machines, and a handle for each machine that knows all shards.
func (m *throughput) load() (err error) {
	n := m.nodes[0]
	if !n.process.Do(func() { err = m.insert(n) }) {
		return errDied
	}
	for _, n := range m.nodes {
		if err != nil {
			return err
		}
		tb := hash.OpenWith(n.m, m.pairs, hash.Options{Lookups: m.way})
		m.tables = append(m.tables, tb)
		if !n.process.Do(func() { err = tb.LookupMany(m.keys(), func(int, []byte, bool) {}) }) {
			return errDied
		}
	}
	return err
}

func (m *throughput) keys() (all [][]byte) {
	for i := range pairsOfMachine * len(m.nodes) {
		all = append(all, pairKey(i))
	}
	return all
}

func pairKey(i int) []byte {
	return binary.BigEndian.AppendUint64(make([]byte, 8, pairKeyBytes), uint64(i))
}

// insert makes the table and its pairs.
func (m *throughput) insert(n *node) error {
	var places []region.Addr
	for _, p := range m.store.objects {
		places = append(places, p.Addr)
	}
	err := n.m.Run(ctx, func(t *txn.Tx) (err error) {
		m.pairs, err = hash.Create(t, hash.Config{
			KeyBytes: pairKeyBytes, ValueBytes: pairValueBytes, Neighbourhood: 6, Buckets: 16, MaxLoad: 90, Seed: m.options.Seed, Places: places,
		}, 0)
		return err
	})
	if err != nil {
		return err
	}
	tb := n.server.Open(m.pairs)
	for _, key := range m.keys() {
		if err := n.m.Run(ctx, func(t *txn.Tx) error { return tb.Put(t, key, make([]byte, pairValueBytes)) }); err != nil {
			return err
		}
	}
	return nil
}

var errNotThere = errors.New("simtest: a pair is not there")

// lookUp looks up one key.
func (m *throughput) lookUp(c *client) error {
	begin := m.world.Now()
	c.process.Work(hardwareLookup)
	_, ok, err := m.tables[c.id].Lookup(pairKey(c.rng.IntN(pairsOfMachine*len(m.nodes))), nil)
	if err != nil || !ok {
		return errors.Join(err, errNotThere)
	}
	c.process.Yield() // to the thread's other lookups
	m.done++
	m.busy += m.world.Now() - begin
	return nil
}

// stats returns the counts of all machines.
func (m *throughput) stats() (s txn.Stats) {
	for _, n := range m.nodes {
		t := n.m.Stats()
		s.RemoteReads += t.RemoteReads
		s.Messages += t.Messages
	}
	return s
}

func (m *throughput) evaluate(s txn.Stats) {
	done := float64(m.done)
	m.result = Throughput{
		PerMachine: done / float64(len(m.nodes)) / lookupMeasured.Seconds(), Latency: m.busy / time.Duration(max(m.done, 1)),
		Reads: float64(s.RemoteReads) / done, Messages: float64(s.Messages) / done,
	}
}
