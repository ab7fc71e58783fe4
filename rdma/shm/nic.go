package shm

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
)

// stuckAfter is how long Join waits for an operation on the former life's memory.
const stuckAfter = 5 * time.Second

// A NIC is one machine's access to the network. It implements rdma.NIC.
type NIC struct {
	folder   *folder
	machine  rdma.MachineID
	lock     *os.File
	state    *state // the state that this machine publishes
	door     *net.UnixListener
	mail     *net.UnixConn
	receiver atomic.Pointer[receiver]
	deaths   atomic.Pointer[func(rdma.MachineID)]
	// running counts the goroutines of sockets. It leaves out the goroutines of doorbells, because
	// a bell may call Close.
	running sync.WaitGroup
	counts  rdma.CountersOf

	mu struct {
		lockrank.Mutex[lockrank.Leaf]
		memories  map[rdma.Key]registered
		queues    map[int]*Queue
		doorbells map[int]*doorbell
		states    map[rdma.MachineID]*state // the newest known life of each machine
		peers     map[rdma.MachineID]*peer
		conns     map[*conn]struct{} // connections that this side has not broken
		cut       map[rdma.MachineID]bool
		watchers  map[net.Conn]struct{} // connections of processes that watch this one
		closed    bool                  // Close has begun
		left      bool                  // peers see that this machine is gone, and watchers are no longer needed
	}
}

var _ rdma.NIC = (*NIC)(nil)

// registered is memory that this machine has registered. The NIC keeps a reference to the memory,
// so that the name by which peers attach it stays valid.
type registered struct {
	slot   uint64
	memory *nvram.Memory
}

// Join makes this process machine m of the network in a folder, which it creates if need be.
// After it has returned, no earlier operation touches the machine's memory any more.
//
// Errors: rdma.ErrMachineTaken if a living process has that name; ErrFormat;
// ErrStuck; and the system's.
func Join(path string, m rdma.MachineID) (*NIC, error) { return join(path, m, stuckAfter) }

// join does the work of Join. It takes the machine's name before it opens anything under that name.
func join(path string, m rdma.MachineID, patience time.Duration) (*NIC, error) {
	f, settled, err := openFolder(path)
	if err != nil {
		return nil, err
	}
	lock, err := f.lock(m)
	settled()
	if err != nil {
		return nil, errors.Join(err, f.dir.Close())
	}
	nic := &NIC{folder: f, machine: m, lock: lock}
	nic.mu.memories = make(map[rdma.Key]registered)
	nic.mu.queues = make(map[int]*Queue)
	nic.mu.doorbells = make(map[int]*doorbell)
	nic.mu.states = make(map[rdma.MachineID]*state)
	nic.mu.peers = make(map[rdma.MachineID]*peer)
	nic.mu.conns = make(map[*conn]struct{})
	nic.mu.cut = make(map[rdma.MachineID]bool)
	nic.mu.watchers = make(map[net.Conn]struct{})
	if err := nic.enter(patience); err != nil {
		return nil, errors.Join(err, nic.leave())
	}
	return nic, nil
}

// enter ends the former life, opens the sockets, and creates the new state file last: a peer
// that finds the state file finds all the rest, too.
func (nic *NIC) enter(patience time.Duration) error {
	if err := nic.fence(patience); err != nil {
		return err
	}
	if err := nic.listen(); err != nil {
		return fmt.Errorf("shm: %w", err)
	}
	var life [8]byte
	_, _ = rand.Read(life[:]) // never fails
	var err error
	if nic.state, err = createState(nic.file("state"), nic.machine, binary.NativeEndian.Uint64(life[:])); err != nil {
		return fmt.Errorf("shm: %w", err)
	}
	nic.mu.states[nic.machine] = nic.state
	nic.running.Go(nic.acceptWatchers)
	nic.running.Go(nic.receive)
	nic.running.Go(nic.drill)
	return nil
}

// fence ends the other machines' access to the memory of the former life. If that life has no valid
// state file, no machine can have connected to it.
func (nic *NIC) fence(patience time.Duration) error {
	former, err := openState(nic.file("state"), nic.machine)
	switch {
	case isShortage(err):
		return err
	case err != nil:
		return nil
	}
	former.died()
	return nic.settle(patience, onMachine(nic.machine))
}

func (nic *NIC) file(kind string) string { return nic.folder.file(nic.machine, kind) }

// listen opens the sockets, and replaces sockets that a killed process left.
func (nic *NIC) listen() error {
	for _, kind := range []string{"alive", "datagram"} {
		if err := os.RemoveAll(nic.file(kind)); err != nil {
			return err
		}
	}
	config := nvram.ListenPrivately()
	mail, err := config.ListenPacket(context.Background(), "unixgram", nic.folder.socket(nic.machine, "datagram"))
	if err != nil {
		return err
	}
	nic.mail = mail.(*net.UnixConn)
	door, err := config.Listen(context.Background(), "unix", nic.folder.socket(nic.machine, "alive"))
	if err != nil {
		return err
	}
	nic.door = door.(*net.UnixListener)
	nic.door.SetUnlinkOnClose(false) // leave removes the file, by its full name
	return nil
}

// acceptWatchers accepts connections of other processes that watch this one. They carry no data: when
// a connection ends, the other process knows that this process has ended.
func (nic *NIC) acceptWatchers() {
	for {
		conn, err := nic.door.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // out of descriptors: pending connections are accepted later
			time.Sleep(retryAfter)
			continue
		}
		nic.running.Go(func() { nic.keepConnection(conn) })
	}
}

// keepConnection keeps a connection open until the peer ends or this NIC has left: a connection that
// ended earlier would say that this process has died. Then it rings all doorbells, because the peer
// may have died between setting a rung word and waking the sleeper.
func (nic *NIC) keepConnection(conn net.Conn) {
	nic.mu.Lock()
	nic.mu.watchers[conn] = struct{}{}
	left := nic.mu.left
	nic.mu.Unlock()
	if !left {
		_, _ = conn.Read(make([]byte, 1)) // nobody sends anything: it returns when the peer ends
	}
	nic.mu.Lock()
	delete(nic.mu.watchers, conn)
	for _, d := range nic.mu.doorbells {
		ringBell(d.rung, d.parked)
	}
	nic.mu.Unlock()
	_ = conn.Close()
}

// Machine returns the name with which the machine joined.
func (nic *NIC) Machine() rdma.MachineID { return nic.machine }

// costs were measured by the package's benchmarks on a processor of 2020: READs of memory that is in
// no cache here, and a message between processes that are both awake.
var costs = rdma.Costs{Read: 150 * time.Nanosecond, Wait: 50 * time.Nanosecond, Message: 3 * time.Microsecond}

// Costs implements rdma.NIC.
func (nic *NIC) Costs() rdma.Costs { return costs }

// Register implements rdma.NIC.
func (nic *NIC) Register(k rdma.Key, m *nvram.Memory) error {
	nic.mu.Lock()
	defer nic.mu.Unlock()
	if nic.mu.closed {
		return rdma.ErrClosed
	}
	if _, taken := nic.mu.memories[k]; taken {
		return fmt.Errorf("%w: %#x at machine %d", rdma.ErrKeyTaken, uint64(k), nic.machine)
	}
	location, shared := m.Location()
	if !shared {
		return fmt.Errorf("%w: key %#x at machine %d", rdma.ErrPrivate, uint64(k), nic.machine)
	}
	slot, err := nic.state.publish(k, m.Size(), location)
	if err == nil {
		nic.mu.memories[k] = registered{slot, m}
	}
	return err
}

// Deregister implements rdma.NIC.
func (nic *NIC) Deregister(k rdma.Key) {
	nic.mu.Lock()
	r, found := nic.mu.memories[k]
	if found {
		delete(nic.mu.memories, k)
		nic.state.withdraw(r.slot)
	}
	nic.mu.Unlock()
	if found {
		_ = nic.settle(0, onMemory(nic.machine, k))
	}
}

// Open implements rdma.NIC. It fails with ErrTooMany if worker is 128 or more.
func (nic *NIC) Open(worker int, bell func()) (rdma.Queue, error) {
	nic.mu.Lock()
	defer nic.mu.Unlock()
	switch {
	case nic.mu.closed:
		return nil, rdma.ErrClosed
	case worker < 0 || worker >= WorkersMax:
		return nil, fmt.Errorf("%w: worker %d of %d", ErrTooMany, worker, WorkersMax)
	case nic.mu.queues[worker] != nil:
		return nil, fmt.Errorf("%w: %d at machine %d", rdma.ErrWorkerTaken, worker, nic.machine)
	}
	if uint64(worker) >= uint64(nic.state.workers()) {
		nic.state.memory.Store(workersAt, uint64(worker)+1)
	}
	d := nic.mu.doorbells[worker]
	if d == nil {
		d = newDoorbell(nic.state, worker)
		nic.mu.doorbells[worker] = d
		go d.run()
	}
	if bell == nil {
		bell = func() {}
	}
	d.bell.Store(&bell)
	q := newQueue(nic, worker)
	nic.mu.queues[worker] = q
	nic.state.open(worker).Add(1)
	return q, nil
}

// closeQueueLocked closes an open queue and frees the place of its worker.
func (nic *NIC) closeQueueLocked(q *Queue) {
	q.closed.Store(true)
	delete(nic.mu.queues, q.worker)
	nic.state.open(q.worker).Add(1)
	nic.mu.doorbells[q.worker].bell.Store(nil)
	nic.breakLocked(func(c *conn) bool { return c.from == q })
}

// breakLocked breaks the connections that match, on this side only.
func (nic *NIC) breakLocked(match func(*conn) bool) {
	for c := range nic.mu.conns {
		if match(c) {
			c.broken.Store(true)
			delete(nic.mu.conns, c)
		}
	}
}

// Cut simulates, at this end, that there is no cable to another machine: connections to it break,
// no operation of this machine takes effect there when Cut has returned, and no datagram passes in
// either direction. It is for tests and drills, which cut at both ends.
func (nic *NIC) Cut(to rdma.MachineID) {
	nic.mu.Lock()
	nic.mu.cut[to] = true
	nic.breakLocked(func(c *conn) bool { return c.peer.state.machine == to })
	nic.mu.Unlock()
	_ = nic.settle(0, ofNobodyElse)
}

// Mend puts the cable back.
func (nic *NIC) Mend(to rdma.MachineID) {
	nic.mu.Lock()
	defer nic.mu.Unlock()
	delete(nic.mu.cut, to)
}

func (nic *NIC) isCut(from rdma.MachineID) bool {
	nic.mu.Lock()
	defer nic.mu.Unlock()
	return nic.mu.cut[from]
}

// Gone implements rdma.NIC. It returns true once a machine has seen the end of the process and
// marked that life dead, or the NIC was closed; but false if this machine has cut the cable.
func (nic *NIC) Gone(m rdma.MachineID) bool {
	nic.mu.Lock()
	defer nic.mu.Unlock()
	gone := false
	_ = guard(func() error {
		// If the peer has closed its NIC, its file is gone, and stateOfLocked returns ErrNotExist
		// with the known state.
		s, err := nic.stateOfLocked(m)
		isNewest := err == nil || errors.Is(err, os.ErrNotExist)
		gone = isNewest && s != nil && !s.isAlive() && !nic.mu.cut[m]
		return nil
	})
	return gone
}

// Deaths implements rdma.NIC.
func (nic *NIC) Deaths(f func(m rdma.MachineID)) {
	nic.mu.Lock()
	defer nic.mu.Unlock()
	switch {
	case f == nil:
		nic.deaths.Store(nil)
	case !nic.mu.closed:
		nic.deaths.Store(&f)
	}
}

// Close implements rdma.NIC. It leaves registrations in the state file: no peer uses those of a
// machine that has left. It does not wait for goroutines of doorbells.
func (nic *NIC) Close() error {
	nic.mu.Lock()
	if nic.mu.closed {
		nic.mu.Unlock()
		return nil
	}
	nic.mu.closed = true
	nic.receiver.Store(nil)
	nic.deaths.Store(nil)
	for _, q := range nic.mu.queues {
		nic.closeQueueLocked(q)
	}
	nic.mu.Unlock()
	// First this machine's own operations must end while it is marked alive: a peer that takes memory away
	// waits only for operations of living machines.
	_ = nic.settle(0, onMachine(nic.machine))
	nic.state.alive.Store(hasLeft)
	_ = nic.settle(0, onMachine(nic.machine))
	return nic.leave()
}

// leave closes the sockets and connections and removes the machine's files. The last machine that
// leaves removes the folder.
func (nic *NIC) leave() error {
	var errs []error
	if nic.door != nil {
		errs = append(errs, nic.door.Close())
	}
	if nic.mail != nil {
		errs = append(errs, nic.mail.Close())
	}
	nic.mu.Lock()
	nic.mu.left = true
	for _, d := range nic.mu.doorbells {
		d.stop()
	}
	for _, p := range nic.mu.peers {
		errs = append(errs, p.monitor.Close())
	}
	for conn := range nic.mu.watchers {
		_ = conn.Close() // the goroutine of the connection may have closed it just now
	}
	nic.mu.Unlock()
	nic.running.Wait()
	kinds := []string{"alive", "datagram"}
	if nic.state != nil { // without a state, the file belongs to a former life, whose operations may still be going on
		kinds = append(kinds, "state")
	}
	for _, kind := range kinds {
		errs = append(errs, os.RemoveAll(nic.file(kind)))
	}
	errs = append(errs, nic.lock.Close())
	_, err := removeUnused(nic.folder.path)
	return errors.Join(append(errs, err)...)
}
