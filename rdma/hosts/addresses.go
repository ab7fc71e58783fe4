package hosts

import (
	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/rdma"
)

// Addresses knows where the other machines are: where they have told that they are, when they connected, or else where the caller says.
type Addresses struct {
	resolve func(m rdma.MachineID) (address string, ok bool)
	mu      struct {
		lockrank.Mutex[lockrank.Leaf]
		told map[rdma.MachineID]told
	}
}

// told is the address that a machine has told of itself, in a life.
type told struct {
	life    uint64
	address string
}

// NewAddresses returns the addresses that resolve, which must not wait, and machines say.
func NewAddresses(resolve func(m rdma.MachineID) (address string, ok bool)) *Addresses {
	a := &Addresses{resolve: resolve}
	a.mu.told = make(map[rdma.MachineID]told)
	return a
}

// Learn notes the address that a machine tells of itself in a greeting that has been accepted, unless
// a later life of the machine has told one meanwhile.
func (a *Addresses) Learn(g Greeting) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if g.Life >= a.mu.told[g.From].life {
		a.mu.told[g.From] = told{g.Life, g.Address}
	}
}

// Forget drops the address that a machine has told, because it cannot be reached there: then the caller, who may know a later
// one, is asked. The life stays: no earlier one may tell an address.
func (a *Addresses) Forget(m rdma.MachineID, address string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if t, ok := a.mu.told[m]; ok && t.address == address {
		a.mu.told[m] = told{life: t.life}
	}
}

// Of returns the address of another machine.
func (a *Addresses) Of(m rdma.MachineID) (address string, ok bool) {
	a.mu.Lock()
	address = a.mu.told[m].address
	a.mu.Unlock()
	if address != "" {
		return address, true
	}
	return a.resolve(m)
}
