package tcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
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
	life      uint64
	door      net.Listener
	mail      *mail
	line      *Line // nil without Config.Line
	security  hosts.Security
	addresses *hosts.Addresses
	memories  *hosts.Memories
	sockets   hosts.Sockets
	counts    rdma.CountersOf
	ctx       context.Context // ends with the NIC
	cancel    context.CancelFunc
	dials     atomic.Uint32  // numbers connections
	ended     chan struct{}  // closed when Close has ended
	running   sync.WaitGroup // the goroutines of the door, of accepted connections and of the mail

	mu struct {
		lockrank.Mutex[lockrank.Leaf]
		queues map[int]*Queue
		agents hosts.Agents[*agent]
		lives  map[rdma.MachineID]uint64 // the newest known life of each machine
		cut    map[rdma.MachineID]bool
		closed bool
	}
}

var _ rdma.NIC = (*NIC)(nil)

// Join makes this process a machine of the network.
//
// Errors: rdma.ErrMachineTaken if another socket has the address; a Config.TLS that would let in
// strangers; an address that is too long to be advertised; and the system's. Join does not notice if a
// process of another host has the machine's name: the other machines then refuse the process that has
// joined before.
func Join(cfg Config) (*NIC, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	cfg.silence = cmp.Or(cfg.silence, silenceMax)
	cfg.silent = cmp.Or(cfg.silent, silentAfter)
	nic := &NIC{cfg: cfg, life: newLife(), security: cfg.security(), addresses: hosts.NewAddresses(cfg.Resolve), memories: hosts.NewMemories(), ended: make(chan struct{})}
	nic.mu.queues = make(map[int]*Queue)
	nic.mu.agents = make(hosts.Agents[*agent])
	nic.mu.lives = make(map[rdma.MachineID]uint64)
	nic.mu.cut = make(map[rdma.MachineID]bool)
	if err := nic.listen(); err != nil {
		return nil, err
	}
	nic.cfg.Advertise = cmp.Or(cfg.Advertise, nic.Address())
	nic.ctx, nic.cancel = context.WithCancel(context.Background())
	nic.running.Go(func() { hosts.Accept(nic.door, nic.running.Go, nic.welcome) })
	nic.running.Go(nic.mail.receive)
	return nic, nil
}

// newLife returns the number of a life that begins now. Later lives have higher numbers, as long as
// the clock of the machine's host is not set back by more than it was down.
func newLife() uint64 { return uint64(time.Now().UnixNano()) }

// listen opens the sockets, of TCP and UDP, at one address.
func (nic *NIC) listen() (err error) {
	nic.door = nic.cfg.Listener
	if nic.door == nil {
		var config net.ListenConfig
		if nic.door, err = config.Listen(context.Background(), "tcp", nic.cfg.Listen); err != nil {
			return nic.taken(err)
		}
	}
	at := nic.door.Addr().(*net.TCPAddr)
	if nic.mail, err = openMail(nic, at); err != nil {
		return errors.Join(nic.taken(withoutUDP(at, err)), nic.door.Close())
	}
	if nic.cfg.Line {
		if nic.line, err = openLine(nic, at); err != nil {
			return errors.Join(nic.taken(withoutUDP(at, err)), nic.mail.close(), nic.door.Close())
		}
	}
	return nil
}

// withoutUDP says what a port of UDP is needed for.
func withoutUDP(at *net.TCPAddr, err error) error {
	return fmt.Errorf("the port %d of UDP, over which leases and configurations go, cannot be used as that of TCP can: %w", at.Port, err)
}

// taken wraps an error of opening a socket, in rdma.ErrMachineTaken if the address is in use.
func (nic *NIC) taken(err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("tcp: %w: %w", rdma.ErrMachineTaken, err)
	}
	return fmt.Errorf("tcp: %w", err)
}

// Address returns the address at which the machine accepts connections and datagrams.
func (nic *NIC) Address() string { return nic.door.Addr().String() }

// Machine returns the name with which the machine joined.
func (nic *NIC) Machine() rdma.MachineID { return nic.cfg.Machine }

// costs were measured by the package's benchmark on one host. READs that are posted together
// share a batch, and so do their answers: of 16 READs, each takes 1 us at each end. A message
// and its reply each enter the kernel at both ends. So do a READ that shares its batch with no
// other and its answer, but no worker takes part at the other end: that costs half.
var costs = rdma.Costs{Read: 2 * time.Microsecond, Wait: 8 * time.Microsecond, Message: 20 * time.Microsecond}

// Costs implements rdma.NIC.
func (nic *NIC) Costs() rdma.Costs { return costs }

// Register implements rdma.NIC.
func (nic *NIC) Register(k rdma.Key, m *nvram.Memory) error {
	nic.mu.Lock()
	isClosed := nic.mu.closed
	nic.mu.Unlock()
	if isClosed {
		return rdma.ErrClosed
	}
	if err := nic.memories.Register(k, m); err != nil {
		return fmt.Errorf("tcp: machine %d: %w", nic.cfg.Machine, err)
	}
	return nil
}

// Deregister implements rdma.NIC.
func (nic *NIC) Deregister(k rdma.Key) { nic.memories.Deregister(k) }

// Open implements rdma.NIC.
func (nic *NIC) Open(worker int, bell func()) (rdma.Queue, error) {
	own := nic.memories.Copier()
	q, err := nic.open(worker, own, bell)
	if err != nil {
		own.End()
		return nil, err
	}
	return q, nil
}

func (nic *NIC) open(worker int, own *hosts.Copier, bell func()) (*Queue, error) {
	nic.mu.Lock()
	defer nic.mu.Unlock()
	switch {
	case nic.mu.closed:
		return nil, rdma.ErrClosed
	case worker < 0 || worker >= workersMax:
		return nil, fmt.Errorf("tcp: worker %d is not one of %d", worker, workersMax)
	case nic.mu.queues[worker] != nil:
		return nil, fmt.Errorf("%w: %d at machine %d", rdma.ErrWorkerTaken, worker, nic.cfg.Machine)
	}
	q := newQueue(nic, worker, own, bell)
	nic.mu.queues[worker] = q
	return q, nil
}

// Gone implements rdma.NIC: nothing proves that a machine on another host is gone.
func (nic *NIC) Gone(rdma.MachineID) bool { return false }

// Deaths implements rdma.NIC: none is ever known.
func (nic *NIC) Deaths(func(m rdma.MachineID)) {}

// Cut simulates, at this end, that there is no cable to another machine: connections in both
// directions break, and no datagram passes. When Cut has returned, no operation of that machine
// takes effect here. It is for tests and drills, which cut at both ends. Datagrams over the line pass.
func (nic *NIC) Cut(m rdma.MachineID) {
	nic.mu.Lock()
	nic.mu.cut[m] = true
	agents := nic.mu.agents.Remove(func(id hosts.AgentID, _ *agent) bool { return id.From == m })
	queues := slices.Collect(maps.Values(nic.mu.queues))
	nic.mu.Unlock()
	hosts.StopAll(agents)
	for _, q := range queues {
		q.disconnect(m)
	}
}

// Mend puts the cable back.
func (nic *NIC) Mend(m rdma.MachineID) {
	nic.mu.Lock()
	defer nic.mu.Unlock()
	delete(nic.mu.cut, m)
}

func (nic *NIC) isCut(m rdma.MachineID) bool {
	nic.mu.Lock()
	defer nic.mu.Unlock()
	return nic.mu.cut[m]
}

// Close implements rdma.NIC. Neither the receiver of datagrams nor Config.Refused may call it:
// Close waits for them.
func (nic *NIC) Close() error {
	nic.mu.Lock()
	if nic.mu.closed {
		nic.mu.Unlock()
		<-nic.ended
		return nil
	}
	defer close(nic.ended)
	nic.mu.closed = true
	queues := slices.Collect(maps.Values(nic.mu.queues))
	agents := nic.mu.agents.Remove(func(hosts.AgentID, *agent) bool { return true })
	nic.mu.Unlock()
	nic.sockets.Close() // ends the goroutines of accepted connections
	nic.cancel()
	err := errors.Join(nic.door.Close(), nic.mail.close(), nic.line.close())
	hosts.StopAll(agents)
	var closing sync.WaitGroup
	for _, q := range queues {
		closing.Go(func() { _ = q.Close() }) // never fails
	}
	closing.Wait()
	nic.running.Wait()
	nic.memories.Close()
	return err
}
