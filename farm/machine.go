package farm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/recovery"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// A machine is one FaRM machine of the process: its memory, its NIC, its
// replicas and its transactions.
type machine struct {
	id        rdma.MachineID
	memory    memories
	nic       rdma.NIC
	allocator *region.Allocator
	txn       *txn.Machine
	regions   map[region.ID]*region.Region
	// logs are by sender and, within that, by its worker.
	logs [][]*nvram.Memory
	// annexes are those of earlier lives, by number, until these are recovered.
	annexes map[uint64]*nvram.Memory
}

const regionPrefix = "region-"

func regionName(id region.ID) string { return fmt.Sprintf("%s%d", regionPrefix, id) }

// regionOf returns the region that a memory of this name is a replica of.
func regionOf(name string) (region.ID, bool) { return replicaOf(regionPrefix, name) }

// replicaOf returns the region in a name with a prefix.
func replicaOf(prefix, name string) (region.ID, bool) {
	digits, ok := strings.CutPrefix(name, prefix)
	id, err := strconv.ParseUint(digits, 10, 32)
	return region.ID(id), ok && err == nil
}

func logName(sender rdma.MachineID, worker int) string {
	return fmt.Sprintf("log-%d-%d", sender, worker)
}

// openRegions maps the replicas that c gives to the machine, and removes what
// was being made when the configuration that would have had it did not come.
func (m *machine) openRegions(c *cluster.Configuration, size int64) error {
	if err := m.removeStrays(c); err != nil {
		return err
	}
	for _, p := range c.Regions {
		if !c.Keeps(m.id, p.Region) {
			continue
		}
		r, err := m.mapRegion(p.Region, size)
		if err != nil {
			return err
		}
		m.regions[p.Region] = r
	}
	return nil
}

// mapRegion maps a replica that is there.
func (m *machine) mapRegion(id region.ID, size int64) (*region.Region, error) {
	mem, err := m.memory.Map(regionName(id), size)
	if err != nil {
		return nil, fmt.Errorf("farm: machine %d: %w", m.id, err)
	}
	r, err := region.Open(id, mem)
	if err != nil {
		return nil, fmt.Errorf("farm: region %d of machine %d: %w", id, m.id, err)
	}
	return r, nil
}

// removeStrays removes replicas that c does not give to the machine.
func (m *machine) removeStrays(c *cluster.Configuration) error {
	names, err := m.memory.Names()
	if err != nil {
		return err
	}
	for _, name := range names {
		if id, ok := regionOf(name); ok && !c.Keeps(m.id, id) {
			if err := m.memory.Remove(name); err != nil {
				return fmt.Errorf("farm: remove %s of machine %d, which no configuration has: %w", name, m.id, err)
			}
		}
	}
	return nil
}

// makeRegion makes room for a new replica: the first phase of the allocation of
// a region. One that is there is left from an attempt that came to nothing.
func (m *machine) makeRegion(id region.ID, size int64) (*region.Region, error) {
	name := regionName(id)
	if err := m.memory.Remove(name); err != nil {
		return nil, fmt.Errorf("farm: region %d of machine %d: %w", id, m.id, err)
	}
	mem, err := m.memory.Map(name, size)
	if err != nil {
		return nil, fmt.Errorf("farm: region %d of machine %d: %w", id, m.id, err)
	}
	return region.Format(id, mem)
}

// remains is what recovery needs of the machine.
func (m *machine) remains() recovery.Machine {
	return recovery.Machine{ID: m.id, Regions: m.regions, Logs: slices.Concat(m.logs...), Annexes: m.annexes}
}

// openLogs maps the machine's logs, one from each worker of each machine, and what does
// not fit them.
func (m *machine) openLogs(cfg Config) (err error) {
	if m.annexes, err = openAnnexes(m.memory); err != nil {
		return err
	}
	m.logs = make([][]*nvram.Memory, cfg.Machines)
	for sender := range m.logs {
		for worker := range cfg.Workers {
			mem, err := m.memory.Map(logName(rdma.MachineID(sender), worker), cfg.LogBytes)
			if err != nil {
				return fmt.Errorf("farm: machine %d: %w", m.id, err)
			}
			// A store to a log must never find the file system full.
			if err := mem.Reserve(0, mem.Size()); err != nil {
				return fmt.Errorf("farm: machine %d: log of %d bytes: %w", m.id, cfg.LogBytes, err)
			}
			m.logs[sender] = append(m.logs[sender], mem)
		}
	}
	return nil
}
