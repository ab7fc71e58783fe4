package farmsql

import (
	"strings"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/recovery/membership"
)

// An addressBook takes the addresses of a cluster's machines from the configurations that it
// loads, as the Store of its machine, and from those that the machine applies. It is safe for
// concurrent use.
type addressBook struct {
	cluster.Store
	applied   func(c *cluster.Configuration) // gets the configurations that the machine applies; may be nil
	suspected func(m rdma.MachineID)         // gets the machines that the machine suspects; may be nil
	mu        struct {
		lockrank.Mutex[lockrank.Leaf]
		addresses map[rdma.MachineID]string
		revision  uint64 // the revision of the newest configuration seen
	}
}

func newAddressBook(s cluster.Store) *addressBook {
	b := &addressBook{Store: s}
	b.mu.addresses = make(map[rdma.MachineID]string)
	return b
}

// Load implements cluster.Store.
func (b *addressBook) Load() (*cluster.Configuration, error) {
	c, err := b.Store.Load()
	if err == nil && c != nil {
		b.note(c)
	}
	return c, err
}

// listen returns events that also note the configurations that the machine applies, and tell who is suspected.
func (b *addressBook) listen(e membership.Events) membership.Events {
	next, suspected := e.Applying, e.Suspected
	e.Suspected = func(m rdma.MachineID) {
		if b.suspected != nil {
			b.suspected(m)
		}
		if suspected != nil {
			suspected(m)
		}
	}
	e.Applying = func(c *cluster.Configuration) {
		b.note(c)
		if b.applied != nil {
			b.applied(c)
		}
		if next != nil {
			next(c)
		}
	}
	return e
}

// note stores the addresses of the machines of c, unless it has seen a newer configuration. It keeps the addresses of machines that are no
// longer members: they may come back there.
func (b *addressBook) note(c *cluster.Configuration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c.Revision < b.mu.revision {
		return
	}
	b.mu.revision = c.Revision
	for i, m := range c.Machines {
		if a, ok := hostPortOf(c.Address[i]); ok {
			b.mu.addresses[m] = a
		}
	}
}

// resolve is Config.Resolve of the packages tcp and verbs.
func (b *addressBook) resolve(m rdma.MachineID) (address string, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	address, ok = b.mu.addresses[m]
	return address, ok
}

// hostAddress returns the address of a machine as configurations store it.
func hostAddress(t Transport, hostPort string) string { return string(t) + ":" + hostPort }

// hostPortOf returns the HOST:PORT of an address that hostAddress has returned; ok is false if it is another one.
func hostPortOf(address string) (hostPort string, ok bool) {
	t, hostPort, _ := strings.Cut(address, ":")
	return hostPort, Transport(t).isBetweenHosts()
}
