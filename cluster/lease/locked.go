//go:build linux

package lease

import (
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
	"golang.org/x/sys/unix"
)

// locked keeps leases with a goroutine that has a thread to itself and waits in system calls: the
// simple alternative to a thread of C. It is only for measuring (bench/lease).
type locked struct {
	cfg   Config
	self  call.Peer
	name  string // the beginning of the sockets' names; the machine follows
	fd    int
	begin time.Time
	valid atomic.Int64
	beat  atomic.Int64
	stop  atomic.Bool
	ended clock.Event

	mu    lockrank.Mutex[lockrank.Leaf]
	core  core
	peers map[rdma.MachineID]call.Peer // lives of the members: messages name only the machine
}

// NewLocked returns a keeper that is a goroutine locked to its thread. All machines
// are in one process; Config.Length must be given. It fails with ErrMachineTaken if the machine has a keeper
// already.
func NewLocked(cluster uint64, self call.Peer, cfg Config) (Keeper, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("lease: %w", err)
	}
	k := &locked{cfg: cfg, self: self, name: fmt.Sprintf("@farmsql/%016x/locked/", cluster), fd: fd, begin: cfg.Clock.Now(), ended: cfg.Clock.NewEvent()}
	k.core = core{self: self.Machine, length: int64(cfg.Length)}
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: fmt.Sprint(k.name, self.Machine)}); err != nil {
		_ = unix.Close(fd)
		if err == syscall.EADDRINUSE {
			err = rdma.ErrMachineTaken
		}
		return nil, fmt.Errorf("lease: machine %d: %w", self.Machine, err)
	}
	cfg.Clock.Go(k.run)
	return k, nil
}

func (k *locked) now() int64 { return int64(k.cfg.Clock.Now().Sub(k.begin)) + 1 }

func (k *locked) Configure(cm rdma.MachineID, members []call.Peer) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.core.configure(k.now(), cm, members)
	k.peers = make(map[rdma.MachineID]call.Peer)
	for _, p := range members {
		k.peers[p.Machine] = p
	}
	k.valid.Store(k.core.valid)
}

func (k *locked) Valid() bool { return k.now() < k.valid.Load() }

func (k *locked) Beat() { k.beat.Store(k.now()) }

func (k *locked) Remind(func()) {}

func (k *locked) Outstanding() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.core.left(k.now())
}

func (k *locked) Leases() []Lease {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.core.leases(k.now())
}

func (k *locked) Length() time.Duration   { return k.cfg.Length }
func (k *locked) Shortest() time.Duration { return k.cfg.Length }
func (k *locked) Variant() string         { return "goroutine locked to a thread" }

func (k *locked) Close() error {
	if k.stop.Swap(true) {
		return nil
	}
	k.ended.Wait()
	k.valid.Store(0)
	return unix.Close(k.fd)
}

// run is the loop of the thread. After each step it sleeps until the next deadline or the next
// message.
func (k *locked) run() {
	defer k.ended.Set()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for !k.stop.Load() {
		expired, wait := k.step()
		for _, x := range expired {
			k.cfg.Expired(x)
		}
		ts := unix.NsecToTimespec(max(0, wait))
		_, _ = unix.Ppoll([]unix.PollFd{{Fd: int32(k.fd), Events: unix.POLLIN}}, &ts, nil)
	}
}

// step processes the messages that have come, and sends messages that are due. It returns the
// machines whose lease has expired, and the nanoseconds after which to call it again.
func (k *locked) step() (expired []rdma.MachineID, wait int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.core.beat = k.beat.Load()
	k.receiveLocked()
	isDue, expired := k.core.tick(k.now(), nil)
	for i := range k.core.relations {
		if isDue {
			k.send(k.core.relations[i].peer.Machine, k.core.message(k.now(), i))
		}
	}
	k.valid.Store(k.core.valid)
	now := k.now()
	return expired, k.core.next(now) - now
}

// receiveLocked handles all messages that are waiting at the socket. Each sender's address ends
// with its machine number.
func (k *locked) receiveLocked() {
	var b [messageBytes + 1]byte
	for {
		n, from, err := unix.Recvfrom(k.fd, b[:], 0)
		if err != nil {
			return
		}
		address, ok := from.(*unix.SockaddrUnix)
		if !ok {
			continue
		}
		var who rdma.MachineID
		_, _ = fmt.Sscan(strings.TrimPrefix(address.Name, k.name), &who)
		m, ok := decode(b[:n])
		if !ok {
			continue
		}
		if reply, ok := k.core.receive(k.now(), k.peers[who], m); ok {
			k.send(who, reply)
		}
	}
}

// send drops messages that cannot be sent.
func (k *locked) send(to rdma.MachineID, m message) {
	_ = unix.Sendto(k.fd, m.encode(), 0, &unix.SockaddrUnix{Name: fmt.Sprint(k.name, to)})
}
