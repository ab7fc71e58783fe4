package txn

import (
	"errors"
	"fmt"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
)

// A route is what this machine knows of one region: where its replicas are, and
// the local one if there is one.
type route struct {
	cluster.Placement
	local   *region.Region
	primary bool
	state   regionState
	// since is when the region was blocked first, if it is; zero if that is not known.
	since time.Time
}

// A regionState says what a machine may do in a region (SOSP'15 section 5.3
// steps 1 and 4).
type regionState uint8

const (
	// regionActive: everything.
	regionActive regionState = iota
	// regionReadable: read. The primary is the one that it was, and what
	// recovering transactions have locked there is locked still.
	regionReadable
	// regionBlocked: wait.
	regionBlocked
)

// routes is indexed by region. It is replaced, never changed.
type routes []*route

// AddRegion tells the machine where a region lives; local is its replica here,
// or nil. The mapping of a region does not change within a configuration; Freeze
// takes the machine to the next.
func (m *Machine) AddRegion(p cluster.Placement, local *region.Region) {
	m.mu.Lock()
	defer m.mu.Unlock()
	old := *m.routes.Load()
	next := make(routes, max(len(old), int(p.Region)+1))
	copy(next, old)
	next[p.Region] = &route{Placement: p, local: local, primary: local != nil && p.IsPrimary(m.cfg.ID)}
	m.routes.Store(&next)
}

func (m *Machine) route(id region.ID) *route { return m.routes.Load().of(id) }

// of returns the route of a region, or nil.
func (rs *routes) of(id region.ID) *route {
	if int(id) >= len(*rs) {
		return nil
	}
	return (*rs)[id]
}

func (m *Machine) noRegion(a region.Addr) error {
	if err := m.gone(); err != nil {
		return err
	}
	return fmt.Errorf("%w: region %d of address %v", ErrNoRegion, a.Region(), a)
}

// locate finds out where the region of an address lives, which this machine does
// not know: it was allocated after the machine heard of the configuration.
func (m *Machine) locate(a region.Addr) error {
	if m.cfg.Locate == nil || m.gone() != nil {
		return m.noRegion(a)
	}
	p, err := m.cfg.Locate(a.Region())
	if errors.Is(err, ErrConflict) || errors.Is(err, ErrUnavailable) {
		return err // the configuration is changing
	}
	if err != nil {
		return fmt.Errorf("%w (%w)", m.noRegion(a), err)
	}
	m.mu.Lock()
	isKnown := m.routes.Load().of(p.Region) != nil
	m.mu.Unlock()
	if !isKnown {
		m.AddRegion(p, nil)
	}
	return nil
}

// IsPrimary says whether this machine is the primary of a's region.
func (m *Machine) IsPrimary(a region.Addr) bool {
	r := m.route(a.Region())
	return r != nil && r.primary
}

// Primary returns the machine that is the primary of a's region.
func (m *Machine) Primary(a region.Addr) (rdma.MachineID, error) {
	r := m.route(a.Region())
	if r == nil {
		if err := m.locate(a); err != nil {
			return 0, err
		}
		if r = m.route(a.Region()); r == nil {
			return 0, m.noRegion(a)
		}
	}
	return r.Primary, nil
}

// Keys under which a machine's memory is registered with its NIC.
const (
	keyRegion = iota + 1
	keyLog
	keyMessages
	keyCredit
	keyRecalled
	keyBlocks
	keyParked
	keyNotes
	keyAnnex
)

// RegionKey names a region's replica at any machine that has one.
func RegionKey(id region.ID) rdma.Key { return rdma.Key(keyRegion<<56 | uint64(id)) }

// blocksKey names a backup of p's region for block headers, which primaries write
// by one-sided WRITE. What a machine writes that was the primary before, and does
// not know yet that it is not, or what has been on its way for long, finds nothing.
func blocksKey(p cluster.Placement) rdma.Key {
	return rdma.Key(keyBlocks<<56 | uint64(p.LastPrimaryChange&lifeMask)<<32 | uint64(p.Region))
}

// ReceiveBlocks has this machine's replica of p's region take block headers from
// the primary that p says, and from none before. was is what the last call for the
// replica returned, 0 at first. It comes before NEW-CONFIG is acknowledged.
func ReceiveBlocks(nic rdma.NIC, p cluster.Placement, r *region.Region, was rdma.Key) (rdma.Key, error) {
	key := blocksKey(p)
	if key == was {
		return was, nil
	}
	if was != 0 {
		nic.Deregister(was)
	}
	return key, nic.Register(key, r.Memory())
}

// A log or message queue that is made anew for another life of a sender, or after
// its connection broke, has another key: what was written to the old one and
// comes late finds nothing.
func logKey(sender rdma.MachineID, worker uint16, life uint32) rdma.Key {
	return rdma.Key(keyLog<<56 | uint64(life&lifeMask)<<32 | uint64(sender)<<16 | uint64(worker))
}

func messagesKey(sender rdma.MachineID, worker uint16, life uint32) rdma.Key {
	return rdma.Key(keyMessages<<56 | uint64(life&lifeMask)<<32 | uint64(sender)<<16 | uint64(worker))
}

func recalledKey(i int) rdma.Key { return rdma.Key(keyRecalled<<56 | uint64(i)) }

func parkedKey(in cluster.ID, n int) rdma.Key {
	return rdma.Key(keyParked<<56 | uint64(in&lifeMask)<<32 | uint64(n))
}

func notesKey(in cluster.ID, n int) rdma.Key {
	return rdma.Key(keyNotes<<56 | uint64(in&lifeMask)<<32 | uint64(n))
}

const lifeMask = 1<<24 - 1

// A worker's peers write into its credit memory, two words each, how much of
// what it wrote to their log and message queue they have freed.
const (
	creditLog = iota
	creditMessages
	creditWords
)

func creditKey(worker uint16) rdma.Key { return rdma.Key(keyCredit<<56 | uint64(worker)) }

func creditOffset(peer rdma.MachineID, word int) uint64 {
	return (uint64(peer)*creditWords + uint64(word)) * 8
}
