package lease

import (
	"slices"
	"time"

	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
)

// Together makes the keepers of machines that are in one process. These machines live and end with
// the process, so none of them has to renew a lease: a lease lasts until its holder's keeper is
// closed, and then the others are told. Together is safe for concurrent use.
type Together struct {
	mu      lockrank.Mutex[lockrank.Leaf] // never held across a call of expired
	isEnded bool
	keepers []*togetherKeeper
}

// TogetherLength is the lease time: how long machines in one process may take to answer, however
// busy the process is.
const TogetherLength = time.Second

// Join returns the keeper of a machine's life. When another machine with which it exchanges leases
// closes its keeper, expired is called with that machine.
func (t *Together) Join(self call.Peer, expired func(rdma.MachineID)) Keeper {
	k := &togetherKeeper{group: t, self: self, expired: expired}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.keepers = append(t.keepers, k)
	return k
}

// End is called when all machines are about to be closed: afterwards no machine is told that another
// has ended.
func (t *Together) End() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.isEnded = true
}

// leave removes a keeper, and returns the keepers that have to be told about it.
func (t *Together) leave(k *togetherKeeper) (told []*togetherKeeper) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.Index(t.keepers, k)
	if i < 0 { // the keeper was closed before
		return nil
	}
	t.keepers = slices.Delete(t.keepers, i, i+1)
	for _, x := range t.keepers {
		if !t.isEnded && slices.Contains(x.members, k.self) {
			told = append(told, x)
		}
	}
	return told
}

type togetherKeeper struct {
	group   *Together
	self    call.Peer
	expired func(rdma.MachineID)
	members []call.Peer // under group.mu
}

var _ Keeper = (*togetherKeeper)(nil)

// Configure implements Keeper.
func (k *togetherKeeper) Configure(_ rdma.MachineID, members []call.Peer) {
	k.group.mu.Lock()
	defer k.group.mu.Unlock()
	k.members = members
}

// Valid implements Keeper.
func (k *togetherKeeper) Valid() bool { return true }

// Beat implements Keeper.
func (k *togetherKeeper) Beat() {}

// Remind implements Keeper.
func (k *togetherKeeper) Remind(func()) {}

// Outstanding implements Keeper.
func (k *togetherKeeper) Outstanding() time.Duration { return 0 }

// Leases implements Keeper.
func (k *togetherKeeper) Leases() []Lease { return nil }

// Length implements Keeper.
func (k *togetherKeeper) Length() time.Duration   { return TogetherLength }
func (k *togetherKeeper) Shortest() time.Duration { return TogetherLength }

// Variant implements Keeper.
func (k *togetherKeeper) Variant() string { return "process" }

// Close implements Keeper.
func (k *togetherKeeper) Close() error {
	for _, x := range k.group.leave(k) {
		x.expired(k.self.Machine)
	}
	return nil
}
