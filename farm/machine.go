package farm

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// A machine holds the parts of a Member: its memory, its NIC, its replicas and its transactions.
type machine struct {
	id        rdma.MachineID
	memory    memories
	nic       rdma.NIC
	allocator *region.Allocator
	txn       *txn.Machine
	regions   map[region.ID]*region.Region
}

const regionPrefix = "region-"

// RegionFiles is the pattern of the names of replicas' files in a machine's nvram.Folder.
const RegionFiles = regionPrefix + "*.mem"

func regionName(id region.ID) string { return fmt.Sprintf("%s%d", regionPrefix, id) }

// regionOf returns the region whose replica is in the memory of this name.
func regionOf(name string) (region.ID, bool) { return replicaOf(regionPrefix, name) }

// replicaOf returns the region whose number follows prefix in a name; false for other names.
func replicaOf(prefix, name string) (region.ID, bool) {
	digits, ok := strings.CutPrefix(name, prefix)
	id, err := strconv.ParseUint(digits, 10, 32)
	return region.ID(id), ok && err == nil
}

// mapRegion maps an existing replica.
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

// removeStrays removes replicas that c does not give to the machine, except those that it spares.
func (m *machine) removeStrays(c *cluster.Configuration, spares func(region.ID) bool) error {
	names, err := m.memory.Names()
	if err != nil {
		return err
	}
	for _, name := range names {
		if id, ok := regionOf(name); ok && !c.Keeps(m.id, id) && !spares(id) {
			if err := m.memory.Remove(name); err != nil {
				return fmt.Errorf("farm: remove %s of machine %d, which no configuration has: %w", name, m.id, err)
			}
		}
	}
	return nil
}

// makeRegion makes a new, empty replica: the first phase of the allocation of a region. It replaces
// a replica that a failed attempt has left.
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
