//go:build cgo && linux && (amd64 || arm64)

package lease

/*
#cgo CFLAGS: -O2 -Wall
#cgo LDFLAGS: -lpthread
#include <stdlib.h>
#include "thread.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/internal/protocol"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
)

// HaveThread reports whether this build has the thread of C.
const HaveThread = true

// thread keeps leases with a thread of C (SOSP'15 section 5.1: a dedicated thread
// at the highest priority, whose memory and code are pinned). All of the exchange
// happens there, on a socket of its own. Go learns through an eventfd which leases have run out,
// and reads from memory when this machine's own lease ends.
//
// The machines are processes of one host. They find each other by abstract socket addresses, made
// of the cluster's and the machine's identifiers.
type thread struct {
	clock    clock.Clock
	length   time.Duration
	expired  func(rdma.MachineID)
	realtime bool
	unpinned error // why code and memory are not pinned, or nil
	// begin and raw are the same moment by Go's clock and by the thread's. raw was read second, so
	// now() is never early.
	begin time.Time
	raw   int64
	// valid is when this machine's own lease ends. The thread stores it; it is pinned until the
	// thread has ended.
	valid *atomic.Int64
	// beat is when the machine's workers last worked. The thread reads it; it is pinned, too.
	beat *atomic.Int64
	pin  runtime.Pinner

	events   *os.File    // the thread's eventfd
	ended    clock.Event // listen has returned
	reminder *os.File    // the thread's eventfd for beats
	reminded clock.Event // the reminders have ended; nil if there are none

	// event, if not nil, is called when the thread has told something.
	event func()

	mu lockrank.RWMutex[lockrank.Leaf] // c is freed under it
	c  *C.struct_lease_thread
}

// NewThread returns a keeper that is a thread of C. It has real-time priority if
// that is permitted. It fails with ErrMachineTaken if the machine of this name
// has a thread already.
func NewThread(cluster uint64, self call.Peer, cfg Config) (Keeper, error) {
	if cfg.Length == 0 {
		// Before the thread runs it is not known whether it may have its priority.
		cfg.Length = LengthThread
		if cfg.NormalPriority || !MayRealtime() {
			cfg.Length = LengthThreadNormal
		}
	}
	name := C.CString(fmt.Sprintf("farmsql/%016x/lease", cluster))
	defer C.free(unsafe.Pointer(name))
	k := newThread(cfg)
	err := k.start(func(realtime C.int, lowest, highest C.uint8_t, valid, beat *C.int64_t) (*C.struct_lease_thread, error) {
		c, err := C.lease_thread_start(name, C.uint16_t(self.Machine), C.uint64_t(self.Incarnation), lowest, highest, C.int64_t(cfg.Length), realtime, valid, beat)
		return c, err
	}, cfg)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("lease: machine %d of this cluster runs already: %w", self.Machine, rdma.ErrMachineTaken)
	}
	if err != nil {
		return nil, err
	}
	k.clock.Go(k.listen)
	return k, nil
}

func newThread(cfg Config) *thread {
	return &thread{clock: cfg.Clock, length: cfg.Length, expired: cfg.Expired, ended: cfg.Clock.NewEvent(), valid: new(atomic.Int64), beat: new(atomic.Int64)}
}

// start starts the thread of C, which create creates: with real-time priority, if that is permitted and realtime
// is 1.
func (k *thread) start(create func(realtime C.int, lowest, highest C.uint8_t, valid, beat *C.int64_t) (*C.struct_lease_thread, error), cfg Config) error {
	realtime := C.int(1)
	if cfg.NormalPriority {
		realtime = 0
	}
	k.pin.Pin(k.valid)
	k.pin.Pin(k.beat)
	if cfg.Speaks == (protocol.Range{}) {
		cfg.Speaks = protocol.Own
	}
	c, err := create(realtime, C.uint8_t(cfg.Speaks.Min), C.uint8_t(cfg.Speaks.Max),
		(*C.int64_t)(unsafe.Pointer(k.valid)), (*C.int64_t)(unsafe.Pointer(k.beat)))
	if c == nil {
		k.pin.Unpin()
		return fmt.Errorf("lease: start the thread: %w", err)
	}
	k.c, k.realtime = c, C.lease_thread_realtime(c) == 1
	if errno := C.lease_thread_unpinned(c); errno != 0 {
		k.unpinned = syscall.Errno(errno)
	}
	k.begin = k.clock.Now()
	k.raw = int64(C.lease_now())
	if err := k.openEvents(); err != nil {
		C.lease_thread_stop(c)
		k.pin.Unpin()
		return fmt.Errorf("lease: %w", err)
	}
	return nil
}

// openEvents opens the keeper's own descriptors of the thread's eventfds.
func (k *thread) openEvents() error {
	events, err := duplicate(C.lease_thread_eventfd(k.c), "lease events")
	if err != nil {
		return err
	}
	if k.reminder, err = duplicate(C.lease_thread_reminder(k.c), "lease reminders"); err != nil {
		_ = events.Close()
		return err
	}
	k.events = events
	return nil
}

func duplicate(fd C.int, name string) (*os.File, error) {
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(own), name), nil
}

// The header and Go name the same priority.
var _ = [1]struct{}{}[RealtimePriority-C.LEASE_PRIORITY]

// MayRealtime reports whether a thread of this process may have RealtimePriority. It starts a thread
// that tries it, and ends.
func MayRealtime() bool { return C.lease_may_realtime() == 1 }

// listen reports machines whose lease has run out, until Close.
func (k *thread) listen() {
	defer k.ended.Set()
	var counter [8]byte
	for {
		if _, err := k.events.Read(counter[:]); err != nil {
			return
		}
		for _, m := range k.taken() {
			k.expired(m)
		}
		if k.event != nil {
			k.event()
		}
	}
}

// Remind implements Keeper. The eventfd is never read: the poller tells of each write, and a system call in between
// would wake Go's monitor thread.
func (k *thread) Remind(due func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.c == nil || k.reminded != nil {
		return
	}
	conn, err := k.reminder.SyscallConn()
	if err != nil {
		return // the eventfd is closed
	}
	k.reminded = k.clock.NewEvent()
	k.clock.Go(func() {
		defer k.reminded.Set()
		isWritten := false // conn.Read calls the function once before the first write
		_ = conn.Read(func(uintptr) bool {
			if isWritten {
				due()
			}
			isWritten = true
			return false // call again after the next write
		})
	})
}

// taken removes the expired members from the C thread, and returns them.
func (k *thread) taken() []rdma.MachineID {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if k.c == nil {
		return nil
	}
	var machines [C.LEASE_MEMBERS_MAX]C.uint16_t
	n := C.lease_thread_expired(k.c, &machines[0], C.LEASE_MEMBERS_MAX)
	ids := make([]rdma.MachineID, n)
	for i := range ids {
		ids[i] = rdma.MachineID(machines[i])
	}
	return ids
}

func (k *thread) Configure(cm rdma.MachineID, members []call.Peer) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if k.c == nil {
		return
	}
	if len(members) > C.LEASE_MEMBERS_MAX {
		panic(fmt.Sprintf("lease: %d members", len(members)))
	}
	C.lease_thread_configure(k.c, C.uint16_t(cm), &cPeers(members)[0], C.int(len(members)))
}

// now returns the time by the thread's clock, or a little later: see begin.
func (k *thread) now() int64 { return k.raw + int64(k.clock.Now().Sub(k.begin)) }

func (k *thread) Valid() bool { return k.now() < k.valid.Load() }

func (k *thread) Beat() { k.beat.Store(k.now()) }

func (k *thread) Outstanding() time.Duration {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if k.c == nil {
		return 0
	}
	c := core{outstanding: int64(C.lease_thread_outstanding(k.c))}
	return c.left(int64(C.lease_now()))
}

func (k *thread) Leases() []Lease {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if k.c == nil {
		return nil
	}
	list := make([]C.struct_lease_relation, C.LEASE_MEMBERS_MAX)
	n := C.lease_thread_relations(k.c, &list[0], C.LEASE_MEMBERS_MAX)
	var c core
	for _, r := range list[:n] {
		p := call.Peer{Machine: rdma.MachineID(r.peer.machine), Incarnation: uint64(r.peer.incarnation)}
		c.relations = append(c.relations, relation{peer: p, granted: int64(r.granted), held: int64(r.held)})
	}
	return c.leases(int64(C.lease_now()))
}

func (k *thread) Length() time.Duration   { return k.length }
func (k *thread) Shortest() time.Duration { return k.length }

func (k *thread) Variant() string {
	v := "thread with real-time priority"
	if !k.realtime {
		v = "thread with normal priority (real-time priority is not permitted)"
	}
	if k.unpinned != nil {
		v += fmt.Sprintf(", its memory not pinned (%v: see ulimit -l)", k.unpinned)
	}
	return v
}

func (k *thread) Close() error {
	k.mu.Lock()
	c, reminded := k.c, k.reminded
	k.c = nil
	k.mu.Unlock()
	if c == nil {
		return nil
	}
	err := errors.Join(k.events.Close(), k.reminder.Close())
	k.ended.Wait()
	if reminded != nil {
		reminded.Wait()
	}
	C.lease_thread_stop(c)
	k.pin.Unpin()
	k.valid.Store(0)
	return err
}
