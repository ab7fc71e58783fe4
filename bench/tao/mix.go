package tao

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/farmsql/farmsql/bench"
)

// A kind is one of the operations.
type kind int

const (
	objGet kind = iota
	assocRange
	assocCount
	assocGet
	objAdd
	objUpdate
	objDelete
	assocAdd
	assocDelete
	kinds
)

var kindNames = [kinds]string{
	"obj_get", "assoc_range", "assoc_count", "assoc_get", "obj_add", "obj_update", "obj_delete", "assoc_add", "assoc_delete",
}

// share is how many of a million operations are of a kind. The shares of TAO's updates
// have a sum of 100.9 %.
var share = [kinds]float64{
	objGet: 28.9 * reads, assocRange: (40.9 + 2.8) * reads, assocCount: 11.7 * reads, assocGet: 15.7 * reads,
	objAdd: 16.5 * updates, objUpdate: 20.7 * updates, objDelete: 2.0 * updates, assocAdd: (52.5 + 0.9) * updates, assocDelete: 8.3 * updates,
}

const (
	million = 1_000_000
	reads   = 0.998 * million / 100
	updates = 0.002 * million / 100.9
)

// lockFree reports whether operations of a kind take one lock-free read each.
func (k kind) lockFree() bool { return k < assocGet }

// Exponents of LinkBench's distributions.
const (
	thetaObjGet    = 0.625
	thetaObjUpdate = 0.606
	thetaEdgeRead  = 0.8
	thetaEdgeWrite = 0.741
)

// chooser draws nodes for each kind of operation.
type chooser [kinds]*bench.Zipf

// newChooser makes the distributions of nodes. Kinds without one draw their nodes uniformly.
func newChooser(nodes int) (c chooser) {
	c[objGet], c[objUpdate] = bench.NewZipf(nodes, thetaObjGet), bench.NewZipf(nodes, thetaObjUpdate)
	c[assocRange], c[assocAdd] = bench.NewZipf(nodes, thetaEdgeRead), bench.NewZipf(nodes, thetaEdgeWrite)
	c[assocCount], c[assocGet], c[assocDelete] = c[assocRange], c[assocRange], c[assocAdd]
	return c
}

const (
	// rangeEdges bounds the edges that an assoc_range asks for.
	rangeEdges = 10
	// multiGet and multiGetMax are LinkBench's parameters of assoc_get: after each requested node
	// another one follows with the probability 1 - multiGet, up to multiGetMax nodes.
	multiGet    = 0.382
	multiGetMax = 128
	// existing is the share of the requested edges that exist.
	existing = 0.5
)

// A request is one operation with its parameters.
type request struct {
	kind kind
	node *ref  // nil for obj_add
	edge uint8 // the type of the edges
	// targets are those of assoc_get.
	targets []*ref
	// assoc_add and assoc_delete use targets[0] and time; obj_add uses id, length and machine.
	time    uint64
	id      uint64
	length  int
	machine int
}

// A mix draws requests.
type mix struct {
	w      *Workload
	rnd    *rand.Rand
	choose chooser
	thread uint32
	added  uint32 // number of obj_adds drawn
	// own has the nodes that the client has added; other clients do not know them.
	own  []*ref
	upTo [kinds]float64 // sums of the shares up to each kind
}

// newMix returns the mix of a client. upTo[k] is the sum of the shares of the kinds up to k.
func newMix(w *Workload, th *bench.Thread) *mix {
	m := &mix{w: w, rnd: rand.New(rand.NewPCG(th.Seed, 0x7a0)), thread: th.Number}
	sum := 0.0
	for k := range kinds {
		if !w.cfg.LockFree || k.lockFree() {
			sum += share[k]
		}
		m.upTo[k] = sum
	}
	for k, z := range w.choose {
		if z != nil {
			m.choose[k] = z.For(m.rnd)
		}
	}
	return m
}

// kind draws a kind of operation by the shares.
func (m *mix) kind() kind {
	x := m.rnd.Float64() * m.upTo[kinds-1]
	k := objGet
	for x >= m.upTo[k] {
		k++
	}
	return k
}

// next draws the next request.
func (m *mix) next(r *request) {
	r.kind, r.node, r.targets = m.kind(), nil, r.targets[:0]
	if r.kind == objAdd {
		m.added++
		r.id = (uint64(m.thread) << 32) | uint64(m.added)
		r.length, r.machine = dataLength(m.rnd.Uint64(), m.rnd.Uint64()), m.rnd.IntN(m.w.target.Machines())
		return
	}
	r.node, r.edge = m.node(r.kind), uint8(m.rnd.UintN(types))
	switch r.kind {
	case assocGet:
		r.targets = append(r.targets, m.drawTarget(r))
		for len(r.targets) < multiGetMax && m.rnd.Float64() >= multiGet {
			r.targets = append(r.targets, m.drawTarget(r))
		}
	case assocAdd:
		r.targets, r.time = append(r.targets, m.uniform()), uint64(time.Now().UnixMicro())
	case assocDelete:
		r.targets = append(r.targets, m.drawTarget(r))
	}
}

// node draws a node; nodes that the client has added are as likely as the average.
func (m *mix) node(k kind) *ref {
	if n := m.rnd.IntN(len(m.w.refs) + len(m.own)); n < len(m.own) {
		return m.own[n]
	}
	if m.choose[k] == nil {
		return m.uniform()
	}
	// Popular nodes are spread: they were not loaded side by side.
	return &m.w.refs[(uint64(m.choose[k].Next())*stride)%uint64(len(m.w.refs))]
}

func (m *mix) uniform() *ref { return &m.w.refs[m.rnd.IntN(len(m.w.refs))] }

// drawTarget draws the target of an edge of the request. If the request's node was loaded with such
// edges, it is the target of one of them with the probability existing; otherwise it is any loaded node.
func (m *mix) drawTarget(r *request) *ref {
	if r.node.id <= uint64(len(m.w.refs)) && m.rnd.Float64() < existing {
		if n := m.w.gen.count(r.node.id, r.edge); n > 0 {
			return &m.w.refs[m.w.gen.target(r.node.id, r.edge, m.rnd.IntN(n))-1]
		}
	}
	return m.uniform()
}

// forget drops a node that is deleted, if it is the client's own.
func (m *mix) forget(n *ref) {
	for i := range m.own {
		if m.own[i] == n {
			m.own[i] = m.own[len(m.own)-1]
			m.own = m.own[:len(m.own)-1]
			return
		}
	}
}

// A client draws requests and executes them.
type client struct {
	mix     *mix
	request request
	*executor
}

// Do implements bench.Client.
func (c *client) Do(ctx context.Context) (int, error) {
	r := &c.request
	c.mix.next(r)
	err := c.execute(ctx, r)
	if err == nil {
		switch r.kind {
		case objAdd:
			c.mix.own = append(c.mix.own, &ref{id: r.id, ptr: c.added})
		case objDelete:
			c.mix.forget(r.node)
		}
		if r.kind > assocGet { // the kinds after assocGet change the graph
			err = c.s.w.target.Count(c.delta)
		}
	}
	return int(r.kind), err
}

// Close implements bench.Client.
func (c *client) Close() error { return nil }
