package shm

import (
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
)

// WorkersMax bounds the queues of a machine: its state file has room for so many.
const WorkersMax = 128

const (
	// formatVersion counts changes of the folder's files.
	formatVersion = 2

	stateMagic = 0x6d68732d6d726166 ^ (formatVersion << 56) // "farm-shm"

	slotsMax = 1 << 14

	lineBytes   = rdma.LineBytes
	headerBytes = 4096
	workerBytes = 4 * lineBytes
	slotBytes   = 512
	pathMax     = slotBytes - lineBytes

	slotsAt = headerBytes + WorkersMax*workerBytes

	// StateBytes is the size of a machine's state file, which takes storage as it is used.
	StateBytes = slotsAt + slotsMax*slotBytes
)

// Words of the header.
const (
	magicAt   = 0
	machineAt = 8
	lifeAt    = 16
	processAt = 24
	workersAt = 32
	aliveAt   = lineBytes // on a line of its own, because each operation reads it
)

// Words of a worker.
const (
	openAt   = 0             // odd: the worker has a queue; counts openings and closings
	activeAt = lineBytes     // odd: the worker is in an operation; see activity
	rungAt   = 2 * lineBytes // 1: the bell has been rung; the low half is a futex
	parkedAt = rungAt + 8    // 1: the doorbell's goroutine sleeps; 32 bits
)

// state is a mapped state file: one life of a machine, as all machines see it. Other processes
// write to it, so its content is validated.
type state struct {
	memory  *nvram.Memory // keeps the file mapped
	inode   uint64
	machine rdma.MachineID
	life    uint64 // a random number
	alive   *atomic.Uint64
}

// createState makes the state file of a new life, and renames it to path.
func createState(path string, m rdma.MachineID, life uint64) (*state, error) {
	draft := path + ".new"
	if err := os.RemoveAll(draft); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(draft, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if err := file.Truncate(StateBytes); err != nil {
		return nil, err
	}
	memory, inode, err := attachState(draft)
	if err != nil {
		return nil, err
	}
	memory.Store(machineAt, uint64(m))
	memory.Store(lifeAt, life)
	memory.Store(processAt, uint64(os.Getpid()))
	memory.Store(aliveAt, isLiving)
	memory.Store(magicAt, stateMagic)
	return newState(memory, inode, m), os.Rename(draft, path)
}

// openState maps the state of a peer.
func openState(path string, m rdma.MachineID) (*state, error) {
	memory, inode, err := attachState(path)
	if err != nil {
		return nil, err
	}
	if memory.Load(magicAt) != stateMagic || memory.Load(machineAt) != uint64(m) {
		return nil, fmt.Errorf("%w: %s is not the state of machine %d", ErrFormat, path, m)
	}
	return newState(memory, inode, m), nil
}

func attachState(path string) (*nvram.Memory, uint64, error) {
	device, inode, err := identity(path)
	if err != nil {
		return nil, 0, err
	}
	memory, err := nvram.Attach(nvram.Location{Path: path, Device: device, Inode: inode}, StateBytes)
	return memory, inode, err
}

func newState(memory *nvram.Memory, inode uint64, m rdma.MachineID) *state {
	s := &state{memory: memory, inode: inode, machine: m, life: memory.Load(lifeAt)}
	s.alive = s.word(aliveAt)
	return s
}

func (s *state) word(off uint64) *atomic.Uint64 {
	return (*atomic.Uint64)(s.memory.Pointer(off, 8))
}

// Values of the alive word. Operations and connections need isLiving.
const (
	hasDied  = 0 // the process has ended
	isLiving = 1
	hasLeft  = 2 // the NIC was closed first
)

func (s *state) isAlive() bool { return s.alive.Load() == isLiving }

// died records that the process has ended, and reports whether it ended without having closed its
// NIC.
func (s *state) died() bool {
	s.alive.CompareAndSwap(isLiving, hasDied)
	return s.alive.Load() == hasDied
}

func workerAt(worker int) uint64 { return headerBytes + uint64(worker)*workerBytes }

func (s *state) open(worker int) *atomic.Uint64   { return s.word(workerAt(worker) + openAt) }
func (s *state) active(worker int) *atomic.Uint64 { return s.word(workerAt(worker) + activeAt) }
func (s *state) rung(worker int) *atomic.Uint64   { return s.word(workerAt(worker) + rungAt) }

func (s *state) parked(worker int) *atomic.Uint32 {
	return (*atomic.Uint32)(unsafe.Pointer(s.word(workerAt(worker) + parkedAt)))
}

// workers returns the number of worker places that have ever been used.
func (s *state) workers() int { return int(min(s.memory.Load(workersAt), WorkersMax)) }

func (s *state) process() uint64 { return s.memory.Load(processAt) }
