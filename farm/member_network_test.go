package farm

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/cluster/lease"
	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/testnet"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
	"github.com/farmsql/farmsql/rdma/rdmatest"
	"github.com/farmsql/farmsql/recovery/membership"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/outcome"
	"github.com/farmsql/farmsql/txn/wait"
)

const (
	// networkLease is the lease of machines over a network. On a busy computer goroutines may be late for longer:
	// a machine is then evicted, and its next life goes on.
	networkLease = 500 * time.Millisecond
	// networkPatience bounds a test of machines over a network, which takes some seconds on a computer
	// that is not busy.
	networkPatience = 3 * time.Minute
)

// overNetwork are machines of this process that talk over a network, with leases. Each lives one life after the
// other, as the process of a machine does: whichever is evicted, or has to restart to meet another one, comes back.
type overNetwork struct {
	t        *testing.T
	ctx      context.Context // ends when the test's patience does
	network  rdmatest.Fabric
	settings Config
	founders []rdma.MachineID
	ptrs     []region.Ptr // accounts
	isLeaky  bool         // there may be accounts that are not in ptrs
	keeper   func(*call.Endpoint, func(rdma.MachineID)) (lease.Keeper, error)

	mu      sync.Mutex
	v       *Volatile
	members []*Member // nil between two lives
	lives   int       // how many have begun
}

// live has a machine live until ctx ends.
func (o *overNetwork) live(ctx context.Context, m rdma.MachineID) {
	for ctx.Err() == nil {
		nic, err := o.network.Join(m)
		if err != nil {
			o.t.Errorf("machine %d: %v", m, err)
			return
		}
		err = errors.Join(o.liveOnce(ctx, nic), nic.Close())
		switch {
		case errors.Is(err, membership.ErrEvicted), errors.Is(err, membership.ErrRestart):
			o.t.Logf("machine %d begins another life: %v", m, err)
		case err != nil && !errors.Is(err, context.Canceled):
			o.t.Errorf("machine %d: %v", m, err)
			return
		}
	}
}

// liveOnce is one life of a machine. It returns why that has ended.
func (o *overNetwork) liveOnce(ctx context.Context, nic rdma.NIC) error {
	m := nic.Machine()
	o.mu.Lock()
	o.lives++
	memory := o.v.shelf(int(m))
	o.mu.Unlock()
	ended := make(chan error, 1)
	member, err := OpenMember(ctx, MemberConfig{
		Self: cluster.Member{Machine: m, FailureDomain: int(m)}, Settings: o.settings, Memory: memory, Store: &o.v.store, NIC: nic, Founders: o.founders,
		Keeper:    o.keeper,
		HoldMoves: true, // check compares what the machines of one configuration have
		Ended: func(reason error) {
			select {
			case ended <- reason:
			default: // the first reason counts
			}
		},
	})
	if err != nil {
		return err
	}
	o.set(m, member)
	defer o.set(m, nil)
	select {
	case err = <-ended:
	case <-ctx.Done():
	}
	return errors.Join(err, member.Close())
}

func (o *overNetwork) set(m rdma.MachineID, member *Member) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.members[m] = member
}

// present returns the members, nil for each machine that is not one now, and how many lives have begun.
func (o *overNetwork) present() (members []*Member, lives int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.members), o.lives
}

// await returns when f does true of the present members, or false if it takes too long.
func (o *overNetwork) await(what string, f func(members []*Member) bool) bool {
	o.t.Helper()
	for o.ctx.Err() == nil {
		if members, _ := o.present(); f(members) {
			return true
		}
		time.Sleep(wholePoll)
	}
	o.t.Errorf("not within %v: %s\n%s", networkPatience, what, o.status())
	return false
}

// isWhole reports whether all machines are members, and have nothing left to recover.
func isWhole(members []*Member) bool {
	if slices.Contains(members, nil) {
		return false
	}
	c := wholeConfiguration(members)
	return c != nil && len(c.Machines) == len(members)
}

// do has machine m, in whatever life, do f until that succeeds. It reports false if that takes too long, or f fails for
// another reason than that a life has ended.
func (o *overNetwork) do(m rdma.MachineID, f func(*txn.Machine) error) bool {
	for o.ctx.Err() == nil {
		members, _ := o.present()
		if members[m] == nil {
			time.Sleep(wholePoll)
			continue
		}
		err := f(members[m].Transactions())
		switch {
		case err == nil:
			return true
		case !isOfALife(err) && o.ctx.Err() == nil:
			o.t.Errorf("machine %d: %v", m, err)
			return false
		}
	}
	o.t.Errorf("machine %d is not done within %v\n%s", m, networkPatience, o.status())
	return false
}

// isOfALife reports whether err may come of a life that has ended, or of others that have.
func isOfALife(err error) bool {
	return slices.ContainsFunc([]error{outcome.ErrEvicted, outcome.ErrInDoubt, outcome.ErrClosed, wait.ErrUnavailable},
		func(e error) bool { return errors.Is(err, e) })
}

// makeAccounts makes n accounts at each machine.
func (o *overNetwork) makeAccounts(n int, balance uint64) {
	for i := range o.members {
		for range n {
			o.do(rdma.MachineID(i), func(m *txn.Machine) error {
				p, err := account(m, balance)
				if err == nil {
					o.ptrs = append(o.ptrs, p)
				}
				o.isLeaky = o.isLeaky || errors.Is(err, outcome.ErrInDoubt)
				return err
			})
		}
	}
}

// transferAll has machines make transfers at the same time.
func (o *overNetwork) transferAll(machines []rdma.MachineID, rounds int) {
	var group sync.WaitGroup
	for _, m := range machines {
		group.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(m), 1))
			for range rounds {
				if !o.do(m, func(at *txn.Machine) error { return transfer(o.ctx, at, o.ptrs, rng) }) {
					return
				}
			}
		})
	}
	group.Wait()
}

// checkTotals has each machine read all accounts.
func (o *overNetwork) checkTotals(want uint64) {
	for _, m := range o.founders {
		o.do(m, func(at *txn.Machine) error { return checkTotal(at, o.ptrs, want) })
	}
}

// check compares all replicas, and looks for leaks. If a life ends meanwhile, it begins again.
func (o *overNetwork) check() {
	if o.isLeaky {
		o.t.Log("not checked: it is not known which accounts were made")
		return
	}
	for o.await("everything is recovered", isWhole) {
		members, lives := o.present()
		faults, err := o.checkMembers(members)
		if _, now := o.present(); now != lives {
			continue
		}
		if err != nil {
			o.t.Error(err)
		}
		for _, f := range faults {
			o.t.Error(f)
		}
		return
	}
}

func (o *overNetwork) checkMembers(members []*Member) ([]Fault, error) {
	if slices.Contains(members, nil) {
		return nil, membership.ErrEvicted
	}
	c, err := awaitWhole(o.ctx, members)
	if err != nil {
		return nil, err
	}
	return CheckMembers(c, members, slices.Values(o.ptrs))
}

// status says how far each machine has come.
func (o *overNetwork) status() string {
	var s strings.Builder
	members, lives := o.present()
	fmt.Fprintf(&s, "%d lives have begun", lives)
	for i, m := range members {
		if m == nil {
			fmt.Fprintf(&s, "\nmachine %d is no member", i)
			continue
		}
		is := m.Membership().Status()
		fmt.Fprintf(&s, "\nmachine %d: configuration %d of %v, settled for %d; suspects %v, joining %v, apart %v, missing %v; recovering %v, changing %v, %v",
			i, is.Configuration.ID, is.Configuration.Machines, m.settledFor.Load(), is.Suspects, is.Joining, is.Apart, is.Missing, is.Recovering, is.Changing, is.Err)
	}
	return s.String()
}

// Machines commit over a network; when one is cut off from the others, those go on without it, and it
// comes back. In the end all replicas are the same.
func TestMembersOverNetworks(t *testing.T) {
	ways := []testnet.Way{testnet.TCP, testnet.BadTLS}
	if testnet.RunsBad(t) {
		ways = append(ways, testnet.TLS, testnet.BadTCP)
	}
	if testnet.HasCard(t) {
		ways = append(ways, testnet.Verbs)
	}
	for _, way := range ways {
		t.Run(string(way), func(t *testing.T) { membersOver(t, way) })
	}
}

// newOverNetwork returns n machines that do not live yet.
func newOverNetwork(t *testing.T, way testnet.Way, n int) *overNetwork {
	t.Helper()
	o := &overNetwork{t: t, network: testnet.New(t, way), v: NewVolatile(), settings: small(n, 2), members: make([]*Member, n), keeper: callsKeeper}
	var cancel func()
	o.ctx, cancel = context.WithTimeout(t.Context(), networkPatience)
	t.Cleanup(cancel)
	for i := range n {
		o.founders = append(o.founders, rdma.MachineID(i))
	}
	return o
}

func callsKeeper(e *call.Endpoint, expired func(rdma.MachineID)) (lease.Keeper, error) {
	return lease.NewCalls(e, KindLease, lease.Config{Length: networkLease, Clock: clock.System{}, Expired: expired}), nil
}

// begin lets all machines live until the function that it returns is called.
func (o *overNetwork) begin() (end func()) {
	living, cancel := context.WithCancel(o.t.Context())
	var lives sync.WaitGroup
	for _, m := range o.founders {
		lives.Go(func() { o.live(living, m) })
	}
	return func() {
		cancel()
		lives.Wait()
	}
}

func membersOver(t *testing.T, way testnet.Way) {
	const n = 3
	o := newOverNetwork(t, way, n)
	end := o.begin()
	defer end()

	o.makeAccounts(4, 100)
	o.transferAll(o.founders, 50)
	o.checkTotals(4 * n * 100)

	o.network.Cut(2, 0)
	o.network.Cut(2, 1)
	o.await("machines 0 and 1 go on without machine 2", func(members []*Member) bool {
		return members[0] != nil && !slices.Contains(members[0].Membership().Configuration().Machines, 2)
	})
	o.transferAll(o.founders[:2], 50)
	o.network.Mend(2, 0)
	o.network.Mend(2, 1)
	o.await("machine 2 is back", isWhole)
	o.transferAll(o.founders, 50)
	o.checkTotals(4 * n * 100)
	o.check()
}
