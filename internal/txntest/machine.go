package txntest

import (
	"sync/atomic"

	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/message"
	"github.com/farmsql/farmsql/txn/worker"
)

// A machine has a NIC, replicas of regions, and transactions.
type machine struct {
	id        rdma.MachineID
	nic       rdma.NIC
	allocator *region.Allocator
	txn       *txn.Machine
	// regions are the replicas, under the instance's mu.
	regions map[region.ID]*region.Region
	// logs[sender][w] is the log that worker w of machine sender writes.
	logs [][]*nvram.Memory
	// greetings[i] is the greeting to machine i.
	greetings []message.Greeting
	// annexes is the number of annexes at this machine, and isFull says that it has no room for more.
	annexes atomic.Int64
	isFull  atomic.Bool
}

func newMachine(id rdma.MachineID, cfg Config) *machine {
	m := &machine{id: id, regions: make(map[region.ID]*region.Region), logs: make([][]*nvram.Memory, cfg.Machines)}
	for sender := range m.logs {
		for range cfg.Workers {
			m.logs[sender] = append(m.logs[sender], nvram.NewMemory(cfg.LogBytes))
		}
	}
	return m
}

// start brings the machine up, connected to nobody.
func (m *machine) start(x *Instance) (err error) {
	nic, err := x.network.Join(m.id)
	if err != nil {
		return err
	}
	m.nic = nic
	if x.cfg.Wrap != nil {
		m.nic = x.cfg.Wrap(nic)
	}
	m.allocator = region.NewAllocator(region.AllocatorConfig{
		Workers: x.cfg.Workers,
		Clock:   x.cfg.Clock,
		Config:  func() uint32 { return uint32(m.txn.Config()) },
		Replicate: func(t *region.Tenure, off uint64, data []byte, in uint32) error {
			return m.txn.WriteBackups(t, off, data, in)
		},
		Reserve:   func(t *region.Tenure, off, n uint64) (uint32, error) { return m.txn.ReserveBackups(t, off, n) },
		Grow:      func(near region.ID) (*region.Region, error) { return x.grow(m, near) },
		Colocated: x.colocated,
	})
	m.txn, err = txn.New(worker.Config{
		ID:           m.id,
		Config:       uint32(x.Configuration().ID),
		Workers:      x.cfg.Workers,
		NIC:          m.nic,
		Log:          func(sender rdma.MachineID, worker int) (*nvram.Memory, error) { return m.logs[sender][worker], nil },
		Annex:        m.makeAnnex,
		DropAnnex:    m.dropAnnex,
		LogBytes:     int(x.cfg.LogBytes),
		MessageBytes: int(x.cfg.MessageBytes),
		Allocator:    m.allocator,
		Clock:        x.cfg.Clock,
	})
	return err
}

func (m *machine) makeAnnex(_ uint64, bytes int64) (*nvram.Memory, error) {
	if m.isFull.Load() {
		return nil, nvram.ErrNoSpace
	}
	m.annexes.Add(1)
	return nvram.NewMemory(bytes), nil
}

// dropAnnex frees the storage of an annex. Peers may keep the memory's key for
// longer.
func (m *machine) dropAnnex(_ uint64, memory *nvram.Memory) error {
	memory.Discard(0, memory.Size())
	m.annexes.Add(-1)
	return nil
}
