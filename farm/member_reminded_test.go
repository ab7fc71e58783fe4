package farm

import (
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/farmsql/farmsql/cluster/lease"
	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/sim"
	"github.com/farmsql/farmsql/internal/testnet"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
)

// remindedLease is the lease time of machines with threads: long, because all of them share the processors with each
// other and with other tests.
const remindedLease = 400 * time.Millisecond

// A countedKeeper counts the beats.
type countedKeeper struct {
	lease.Keeper
	beats atomic.Int64
}

func (k *countedKeeper) Beat() {
	k.beats.Add(1)
	k.Keeper.Beat()
}

// reminded are machines over a network whose leases are kept by threads.
type reminded struct {
	*overNetwork
	keepers sync.Map // *countedKeeper, of all lives
}

func newReminded(t *testing.T) *reminded {
	t.Helper()
	if !lease.HaveThread {
		t.Skip("this build has no thread that keeps leases")
	}
	r := &reminded{overNetwork: newOverNetwork(t, testnet.TCP, 3)}
	cluster := rand.Uint64()
	r.keeper = func(e *call.Endpoint, expired func(rdma.MachineID)) (lease.Keeper, error) {
		k, err := lease.NewThread(cluster, e.Self(), lease.Config{Length: remindedLease, Clock: clock.System{}, Expired: expired})
		if err != nil {
			return nil, err
		}
		counted := &countedKeeper{Keeper: k}
		r.keepers.Store(counted, true)
		return counted, nil
	}
	return r
}

// awaitReminded waits until the last beat of each machine was for a reminder.
func (r *reminded) awaitReminded() {
	r.t.Helper()
	r.await("all machines beat for reminders", func(members []*Member) bool {
		return isWhole(members) && !slices.ContainsFunc(members, func(m *Member) bool { return !m.isReminded(beatEvery(remindedLease)) })
	})
}

// Idle machines beat for reminders of their keepers: at least as often as by timers, and not twice.
func TestMembersAreReminded(t *testing.T) {
	r := newReminded(t)
	defer r.begin()()
	r.awaitReminded()
	const leases = 6
	begin := time.Now()
	counts := make(map[any]int64)
	r.keepers.Range(func(k, _ any) bool { counts[k] = k.(*countedKeeper).beats.Load(); return true })
	time.Sleep(leases * remindedLease)
	r.awaitReminded()
	most := int64(2*time.Since(begin)/remindedLease) + 1
	for k, before := range counts {
		if n := k.(*countedKeeper).beats.Load() - before; n < leases/2 || n > most {
			t.Errorf("%d beats in %d leases, want %d to %d", n, leases, leases/2, most)
		}
	}
}

// A beatenKeeper notes when its machine beats. It reminds the machine only when the test says so.
type beatenKeeper struct {
	lease.Keeper // which is not told of beats, and so never takes the machine for hung
	now          func() time.Duration
	beats        []time.Duration
	due          func()
}

func (k *beatenKeeper) Beat() { k.beats = append(k.beats, k.now()) }

func (k *beatenKeeper) Remind(due func()) { k.due = due }

// gaps returns the longest pause without a beat from begin on, and how many beats there were.
func (k *beatenKeeper) gaps(begin time.Duration) (longest time.Duration, n int) {
	last := begin
	for _, at := range append(k.beats, k.now()) {
		if at > begin {
			longest, last, n = max(longest, at-last), at, n+1
		}
	}
	return longest, n - 1
}

// While reminders come in time nothing else makes a machine beat. When they come no more it beats after some lease
// times, and from then on in time; also when they have come in time once, by chance.
func TestTimersTakeOverFromReminders(t *testing.T) {
	g := &members{T: t, world: sim.New(sim.Options{Seed: 7})}
	kept := make(map[rdma.MachineID]*beatenKeeper)
	g.wrapKeeper = func(m rdma.MachineID, k lease.Keeper) lease.Keeper {
		kept[m] = &beatenKeeper{Keeper: k, now: g.world.Now}
		return kept[m]
	}
	g.run(3, 3, func(g *members) {
		k, every := kept[0], beatEvery(simulatedLease)
		remind := func(n int) {
			for range n {
				g.world.Outside().Sleep(simulatedLease * 3 / 5)
				g.world.Machine(0).Process().Go(k.due)
			}
			g.world.Outside().Sleep(simulatedLease / 100)
		}
		remind(5)
		begin := g.world.Now()
		remind(40)
		if longest, n := k.gaps(begin); longest >= every || n != 40 {
			t.Errorf("%d beats for 40 reminders, with a pause of %v", n, longest)
		}
		begin = g.world.Now()
		g.world.Outside().Sleep((remindedLeases + 1) * simulatedLease)
		if longest, n := k.gaps(begin); longest > remindedLeases*simulatedLease+every || n == 0 {
			t.Errorf("%d beats after the last reminder, with a pause of %v", n, longest)
		}
		for _, reminders := range []int{0, 1} {
			remind(reminders)
			begin = g.world.Now()
			g.world.Outside().Sleep(20 * simulatedLease)
			if longest, _ := k.gaps(begin); longest > 3*every {
				t.Errorf("a pause of %v without reminders, after %d", longest, reminders)
			}
		}
	})
}
