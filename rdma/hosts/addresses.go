package hosts

import (
	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/rdma"
)

// Addresses finds the addresses of the other machines: the address that a machine told in its
// greeting, or, if it has told none, the address that the caller knows.
type Addresses struct {
	resolve func(m rdma.MachineID) (address string, ok bool)
	mu      struct {
		lockrank.Mutex[lockrank.Leaf]
		told map[rdma.MachineID]told
	}
}

// told is the address that a life of a machine has told in its greeting.
type told struct {
	life    uint64
	address string
}

// NewAddresses returns addresses that no machine has told yet. resolve returns the address that
// the caller knows; it must not wait.
func NewAddresses(resolve func(m rdma.MachineID) (address string, ok bool)) *Addresses {
	a := &Addresses{resolve: resolve}
	a.mu.told = make(map[rdma.MachineID]told)
	return a
}

// Learn notes the address in a greeting that was accepted, unless a later life of the sender
// has told one already.
func (a *Addresses) Learn(g Greeting) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if g.Life >= a.mu.told[g.From].life {
		a.mu.told[g.From] = told{g.Life, g.Address}
	}
}

// Forget drops an address that machine m has told, because m cannot be reached there. From then
// on Of asks the caller, who may know a later one. The life stays noted: no earlier life can
// tell an address.
func (a *Addresses) Forget(m rdma.MachineID, address string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if t, ok := a.mu.told[m]; ok && t.address == address {
		a.mu.told[m] = told{life: t.life}
	}
}

// Of returns the address of another machine. ok is false if the machine has told none, and the caller
// knows none.
func (a *Addresses) Of(m rdma.MachineID) (address string, ok bool) {
	a.mu.Lock()
	address = a.mu.told[m].address
	a.mu.Unlock()
	if address != "" {
		return address, true
	}
	return a.resolve(m)
}
