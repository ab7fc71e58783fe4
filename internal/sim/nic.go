package sim

import (
	"fmt"
	"time"

	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
)

// nic is a machine's network card, for one process.
type nic struct {
	process *Process
	id      rdma.MachineID
	memory  map[rdma.Key]*nvram.Memory
	queues  []*queue // queues by worker; nil where there is none
	closed  bool
	// until is the time up to which the card sends operations that the process has posted
	// before its death.
	until  time.Duration
	ports  [2]port // indexed by processPort and asidePort
	deaths func(rdma.MachineID)
	// sending and working are the times until which the card is busy with bytes and with packets.
	sending, working time.Duration
}

// A port is where datagrams arrive.
type port struct {
	receive  func(from rdma.MachineID, b []byte)
	arriving int // number of datagrams on their way to the port
}

// Each card has a port for the process, and one for its Aside.
const (
	processPort = 0
	asidePort   = 1
)

var _ rdma.NIC = (*nic)(nil)

// A death is usually reported within deathSpan; one in 16 takes up to 16 times as long.
const deathSpan = time.Millisecond

// deadNICSpan bounds how long a card sends after its process's death.
const deadNICSpan = 5 * time.Microsecond

// Join puts the process's machine on the network. The NIC of a dead process is not reachable.
func (p *Process) Join() (rdma.NIC, error) {
	id := p.machine.id
	if p.dead {
		return &nic{process: p, id: id, closed: true}, nil
	}
	if p.world.network.nics[id] != nil {
		return nil, fmt.Errorf("%w: %d", rdma.ErrMachineTaken, id)
	}
	n := &nic{process: p, id: id, memory: make(map[rdma.Key]*nvram.Memory)}
	p.nic = n
	p.world.network.nics[id] = n
	return n, nil
}

// Machine implements rdma.NIC.
func (n *nic) Machine() rdma.MachineID { return n.id }

// costs are a network's: SOSP'15 sends a message instead of more than four READs.
var costs = rdma.Costs{Read: time.Microsecond, Message: 4 * time.Microsecond}

// Costs implements rdma.NIC.
func (n *nic) Costs() rdma.Costs { return costs }

// Register implements rdma.NIC.
func (n *nic) Register(k rdma.Key, m *nvram.Memory) error {
	if n.closed {
		return rdma.ErrClosed
	}
	if n.memory[k] != nil {
		return fmt.Errorf("%w: %#x at machine %d", rdma.ErrKeyTaken, uint64(k), n.id)
	}
	n.memory[k] = m
	return nil
}

// Deregister implements rdma.NIC.
func (n *nic) Deregister(k rdma.Key) { delete(n.memory, k) }

// Open implements rdma.NIC.
func (n *nic) Open(worker int, bell func()) (rdma.Queue, error) {
	if n.closed {
		return nil, rdma.ErrClosed
	}
	for len(n.queues) <= worker {
		n.queues = append(n.queues, nil)
	}
	if n.queues[worker] != nil {
		return nil, fmt.Errorf("%w: %d at machine %d", rdma.ErrWorkerTaken, worker, n.id)
	}
	if bell == nil {
		bell = func() {}
	}
	q := &queue{nic: n, worker: worker, bell: bell}
	n.queues[worker] = q
	return q, nil
}

// Gone implements rdma.NIC. In half of all worlds machines learn of deaths, as on one host;
// in the others they do not, as between hosts.
func (n *nic) Gone(m rdma.MachineID) bool {
	w := n.process.world
	return w.knowsDeaths() && int(m) < len(w.machines) && w.machines[m].lives > 0 && w.network.nics[m] == nil
}

// knowsDeaths reports whether NICs report the death of a peer: in half of all seeds.
func (w *World) knowsDeaths() bool { return w.options.Seed%2 == 1 }

// Deaths implements rdma.NIC.
func (n *nic) Deaths(f func(rdma.MachineID)) { n.deaths = f }

// tellDeath tells all other cards that this card's process has died.
func (n *nic) tellDeath() {
	w := n.process.world
	if !w.knowsDeaths() {
		return
	}
	for _, m := range w.machines {
		if m.process == nil || m.process.nic == nil {
			continue
		}
		d := w.upTo(deathSpan)
		if w.rng.IntN(16) == 0 {
			d = w.upTo(16 * deathSpan)
		}
		other := m.process.nic
		w.start(other.process, d, func() {
			if !other.closed && other.deaths != nil && other.Gone(n.id) {
				other.deaths(n.id)
			}
		}, false)
	}
}

// Close implements rdma.NIC.
func (n *nic) Close() error {
	if n.closed || n.process.dead {
		n.closed = true
		return nil
	}
	for _, q := range n.queues {
		if q != nil {
			q.close()
		}
	}
	n.leave()
	return nil
}

// leave takes the card off the network. Connections of its peers break.
func (n *nic) leave() {
	n.closed, n.ports, n.memory, n.deaths = true, [2]port{}, nil, nil
	delete(n.process.world.network.nics, n.id)
	for _, q := range n.queues {
		if q != nil {
			q.breakPeers()
		}
	}
}

// die ends the card with its process. Operations on their way may still arrive.
func (n *nic) die() {
	if n.closed {
		return
	}
	w := n.process.world
	n.until = w.now + w.upTo(deadNICSpan)
	n.leave()
	n.tellDeath()
}

// silent reports whether the card sends nothing more.
func (n *nic) silent() bool { return n.process.dead && n.process.world.now > n.until }

// target returns the memory that an operation accesses.
func (n *nic) target(k rdma.Key, off uint64, bytes int) (*nvram.Memory, error) {
	m := n.memory[k]
	if m == nil {
		return nil, rdma.ErrKey
	}
	if !rdma.Aligned(off, bytes) || off > m.Size() || uint64(bytes) > m.Size()-off {
		return nil, rdma.ErrRange
	}
	return m, nil
}
