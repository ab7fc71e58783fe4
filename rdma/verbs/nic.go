package verbs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/hosts"
)

// A NIC is one machine's access to the network. It implements rdma.NIC.
type NIC struct {
	cfg       Config
	card      card
	limits    limits
	life      uint64
	door      net.Listener
	mail      *mail
	security  hosts.Security
	addresses *hosts.Addresses
	memories  *hosts.Memories // for operations of this machine on itself
	sockets   hosts.Sockets
	counts    rdma.CountersOf
	ctx       context.Context // ends with the NIC
	cancel    context.CancelFunc
	dials     atomic.Uint32  // numbers connections
	ended     chan struct{}  // closed when Close has ended
	running   sync.WaitGroup // all goroutines except those of connections
	using     sync.WaitGroup // calls that use the card, and have begun before Close

	mu struct {
		lockrank.Mutex[lockrank.Leaf]
		queues  map[int]*Queue             // nil for a place that is taken by Open, which has not made the queue yet
		regions map[rdma.Key]*registration // nil for a key whose memory is being registered or deregistered
		agents  hosts.Agents[*agent]
		lives   map[rdma.MachineID]uint64 // the newest known life of each machine
		cut     map[rdma.MachineID]bool
		leak    error // what the card has refused to free
		dead    error // why no connection can be made at all: the card has failed
		down    bool  // the port is down
		closed  bool
	}
}

var _ rdma.NIC = (*NIC)(nil)

// join makes this process a machine of the network, with a card, which the NIC closes.
func join(cfg Config, c card) (_ *NIC, err error) {
	cfg.receives = cmp.Or(cfg.receives, receiveDepth)
	cfg.stall = cmp.Or(cfg.stall, stallTime)
	nic := &NIC{cfg: cfg, card: c, limits: c.limits(), life: uint64(time.Now().UnixNano()), ended: make(chan struct{})}
	nic.security, nic.addresses, nic.memories = cfg.security(), hosts.NewAddresses(cfg.Resolve), hosts.NewMemories()
	nic.mu.queues = make(map[int]*Queue)
	nic.mu.regions = make(map[rdma.Key]*registration)
	nic.mu.agents = make(hosts.Agents[*agent])
	nic.mu.lives = make(map[rdma.MachineID]uint64)
	nic.mu.cut = make(map[rdma.MachineID]bool)
	nic.ctx, nic.cancel = context.WithCancel(context.Background())
	if err := nic.listen(); err != nil {
		return nil, errors.Join(err, c.close())
	}
	if nic.mail, err = openMail(nic); err != nil {
		return nil, errors.Join(fmt.Errorf("verbs: datagrams: %w", err), nic.door.Close(), c.close())
	}
	nic.running.Go(func() { hosts.Accept(nic.door, nic.running.Go, nic.welcome) })
	nic.running.Go(nic.mail.receive)
	go nic.events() // ends with the card
	return nic, nil
}

// listen opens the door.
func (nic *NIC) listen() (err error) {
	nic.door = nic.cfg.Listener
	if nic.door == nil {
		var config net.ListenConfig
		if nic.door, err = config.Listen(nic.ctx, "tcp", nic.cfg.Listen); errors.Is(err, syscall.EADDRINUSE) {
			return fmt.Errorf("verbs: %w: %w", rdma.ErrMachineTaken, err)
		} else if err != nil {
			return fmt.Errorf("verbs: %w", err)
		}
	}
	nic.cfg.Advertise = cmp.Or(nic.cfg.Advertise, nic.Address())
	return nil
}

// Address returns the address at which the machine accepts connections.
func (nic *NIC) Address() string { return nic.door.Addr().String() }

// Machine returns the name with which the machine joined.
func (nic *NIC) Machine() rdma.MachineID { return nic.cfg.Machine }

// costs are from Storm's figures: a post and its completion take some 100 ns; a READ takes no
// processor time at the other end. A message is posted, found, carried out and answered. There
// are 2.2 times as many lookups by READs, one after the other, as by messages (figure 4).
var costs = rdma.Costs{Read: 200 * time.Nanosecond, Wait: 700 * time.Nanosecond, Message: 2 * time.Microsecond}

// Costs implements rdma.NIC.
func (nic *NIC) Costs() rdma.Costs { return costs }

// registerMemory makes memory known to the card. Memory on the Go heap cannot be registered:
// cgo forbids that C keeps its address.
func (nic *NIC) registerMemory(m *nvram.Memory) (region, error) {
	return nic.registerPart(m, 0, m.Size())
}

// registerPart makes a part of memory known to the card.
func (nic *NIC) registerPart(m *nvram.Memory, off, n uint64) (region, error) {
	if !m.IsMapped() {
		return nil, fmt.Errorf("verbs: %w: in a build with the race detector memory is on the Go heap, where no card may reach it", rdma.ErrPrivate)
	}
	r, err := nic.card.register(m.Pointer(off, n), n)
	if err != nil {
		return nil, fmt.Errorf("verbs: registering %d bytes with device %s: %w", n, nic.limits.device, err)
	}
	return r, nil
}

// Register implements rdma.NIC. The card pins the first piece of the memory, and the others when they are first used.
func (nic *NIC) Register(k rdma.Key, m *nvram.Memory) error {
	nic.mu.Lock()
	err := nic.mayRegisterLocked(k)
	if err == nil {
		nic.mu.regions[k] = nil // takes the key
		nic.using.Add(1)
	}
	nic.mu.Unlock()
	if err != nil {
		return err
	}
	defer nic.using.Done()
	r, err := nic.newRegistration(m) // without the lock: this takes long
	if err == nil {
		err = nic.memories.Register(k, m) // cannot fail: the key is taken, and Close waits
	}
	nic.mu.Lock()
	defer nic.mu.Unlock()
	if err != nil {
		delete(nic.mu.regions, k)
		return err
	}
	nic.mu.regions[k] = r
	return nil
}

func (nic *NIC) mayRegisterLocked(k rdma.Key) error {
	if nic.mu.closed {
		return rdma.ErrClosed
	}
	if _, isTaken := nic.mu.regions[k]; isTaken {
		return fmt.Errorf("%w: %#x at machine %d", rdma.ErrKeyTaken, uint64(k), nic.cfg.Machine)
	}
	return nil
}

// Deregister implements rdma.NIC. Machines that have been told the key are told that its
// registration has ended. Operations that they have pending on it break their connections.
func (nic *NIC) Deregister(k rdma.Key) {
	nic.mu.Lock()
	r := nic.mu.regions[k]
	if nic.mu.closed {
		nic.mu.Unlock()
		<-nic.ended // Close ends all registrations
		return
	}
	if r == nil {
		nic.mu.Unlock()
		return
	}
	nic.using.Add(1)
	defer nic.using.Done()
	nic.mu.regions[k] = nil // taken until the end
	var told []*agent
	for _, a := range nic.mu.agents {
		if a.told[k] {
			delete(a.told, k)
			told = append(told, a)
		}
	}
	nic.mu.Unlock()
	nic.leaked(r.end())
	nic.memories.Deregister(k)
	nic.mu.Lock()
	delete(nic.mu.regions, k)
	nic.mu.Unlock()
	for _, a := range told {
		a.tellEnded(k)
	}
}

// leaked notes that the card has not freed something; Close returns it.
func (nic *NIC) leaked(err error) {
	if err == nil {
		return
	}
	nic.mu.Lock()
	defer nic.mu.Unlock()
	if nic.mu.dead == nil { // a card that is gone holds nothing
		nic.mu.leak = cmp.Or(nic.mu.leak, err)
	}
}

// Open implements rdma.NIC.
func (nic *NIC) Open(worker int, bell func()) (rdma.Queue, error) {
	if err := nic.takePlace(worker); err != nil {
		return nil, err
	}
	defer nic.using.Done()
	q, err := newQueue(nic, worker, bell)
	nic.mu.Lock()
	defer nic.mu.Unlock()
	if err != nil {
		delete(nic.mu.queues, worker)
		return nil, fmt.Errorf("verbs: queue of worker %d on device %s: %w", worker, nic.limits.device, err)
	}
	nic.mu.queues[worker] = q
	return q, nil
}

// workersMax bounds the numbers of workers, which greetings have 16 bits for.
const workersMax = 1 << 16

// takePlace takes the place of a worker. If it succeeds, the caller must call using.Done.
func (nic *NIC) takePlace(worker int) error {
	nic.mu.Lock()
	defer nic.mu.Unlock()
	_, isTaken := nic.mu.queues[worker]
	switch {
	case nic.mu.closed:
		return rdma.ErrClosed
	case worker < 0 || worker >= workersMax:
		return fmt.Errorf("verbs: worker %d is not one of %d", worker, workersMax)
	case isTaken:
		return fmt.Errorf("%w: %d at machine %d", rdma.ErrWorkerTaken, worker, nic.cfg.Machine)
	}
	nic.mu.queues[worker] = nil
	nic.using.Add(1)
	return nil
}

// removeQueue frees the place of a worker, and stops the agents that ring its bell.
func (nic *NIC) removeQueue(q *Queue) {
	nic.mu.Lock()
	delete(nic.mu.queues, q.worker)
	agents := nic.mu.agents.Remove(func(id hosts.AgentID, _ *agent) bool { return id.Worker == q.worker })
	nic.mu.Unlock()
	hosts.StopAll(agents)
}

// Gone implements rdma.NIC: nothing proves that a machine on another host is gone.
func (nic *NIC) Gone(rdma.MachineID) bool { return false }

// Deaths implements rdma.NIC: none is ever known.
func (nic *NIC) Deaths(func(m rdma.MachineID)) {}

// Cut simulates, at this end, that there is no cable to another machine: connections in both
// directions break, and no datagram passes. When Cut has returned, no operation of that machine
// takes effect here. It is for tests and drills, which cut at both ends.
func (nic *NIC) Cut(m rdma.MachineID) {
	nic.mu.Lock()
	nic.mu.cut[m] = true
	agents := nic.mu.agents.Remove(func(id hosts.AgentID, _ *agent) bool { return id.From == m })
	queues := nic.queuesLocked()
	nic.mu.Unlock()
	nic.sockets.End(m) // ends the goroutines of the connections
	hosts.StopAll(agents)
	nic.mail.forget(m)
	for _, q := range queues {
		q.disconnect(m, errCut)
	}
}

// queuesLocked returns the queues that are open.
func (nic *NIC) queuesLocked() (open []*Queue) {
	for _, q := range nic.mu.queues {
		if q != nil {
			open = append(open, q)
		}
	}
	return open
}

// Mend puts the cable back.
func (nic *NIC) Mend(m rdma.MachineID) {
	nic.mu.Lock()
	defer nic.mu.Unlock()
	delete(nic.mu.cut, m)
}

// mayConnect returns why no connection to a machine can be made, or nil.
func (nic *NIC) mayConnect(m rdma.MachineID) error {
	nic.mu.Lock()
	defer nic.mu.Unlock()
	switch {
	case nic.mu.cut[m]:
		return errCut
	case nic.mu.dead != nil:
		return nic.mu.dead
	case nic.mu.down:
		return errPortDown
	}
	return nil
}

// linkError says where a connection is broken, and why.
func (nic *NIC) linkError(m rdma.MachineID, reason error) error {
	return &LinkError{Device: nic.limits.device, Port: nic.limits.port, Peer: m, Reason: reason}
}

// Close implements rdma.NIC. The receiver of datagrams must not call it, because Close waits
// for the receiver.
func (nic *NIC) Close() error {
	nic.mu.Lock()
	if nic.mu.closed {
		nic.mu.Unlock()
		<-nic.ended
		return nil
	}
	defer close(nic.ended)
	nic.mu.closed = true
	nic.mu.Unlock()
	nic.using.Wait() // from here on nothing new begins
	nic.mu.Lock()
	queues := nic.queuesLocked()
	agents := nic.mu.agents.Remove(func(hosts.AgentID, *agent) bool { return true })
	nic.mu.Unlock()
	nic.sockets.Close() // ends the goroutines of accepted connections
	nic.cancel()
	err := nic.door.Close()
	hosts.StopAll(agents)
	errs := make([]error, len(queues))
	var closing sync.WaitGroup
	for i, q := range queues {
		closing.Go(func() { errs[i] = q.Close() })
	}
	closing.Wait()
	err = errors.Join(err, errors.Join(errs...), nic.mail.close())
	nic.running.Wait()
	return errors.Join(err, nic.closeCard())
}

// closeCard ends the registrations and closes the card.
func (nic *NIC) closeCard() error {
	nic.mu.Lock()
	regions := nic.mu.regions
	nic.mu.regions = nil
	nic.mu.Unlock()
	nic.memories.Close()
	for _, r := range regions {
		if r != nil {
			nic.leaked(r.end())
		}
	}
	err := nic.card.close()
	nic.mu.Lock()
	defer nic.mu.Unlock()
	if nic.mu.dead != nil {
		return nil // the card has failed, and cannot free what it had
	}
	return cmp.Or(nic.mu.leak, err)
}
