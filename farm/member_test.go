package farm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/cluster/lease"
	"github.com/farmsql/farmsql/internal/protocol"
	"github.com/farmsql/farmsql/internal/sim"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
	"github.com/farmsql/farmsql/recovery"
	"github.com/farmsql/farmsql/recovery/data"
	"github.com/farmsql/farmsql/recovery/membership"
	"github.com/farmsql/farmsql/txn"
)

// members are the machines of an instance, each a machine of a simulated world.
type members struct {
	*testing.T
	world    *sim.World
	store    cluster.MemoryStore
	settings Config
	pace     data.Pace
	logBytes int64                      // 0: few
	up       map[rdma.MachineID]*Member // the latest life of each that is up
	ended    map[rdma.MachineID]error
	// recovering, if not nil, is told of each step of recovery.
	recovering func(rdma.MachineID, recovery.Step)
	// aside keeps leases beside the machine's other routines, so that it can hang but for them.
	aside bool
	// wrapKeeper, if not nil, is put around the keepers of machines that boot.
	wrapKeeper func(rdma.MachineID, lease.Keeper) lease.Keeper
	// storing, if not nil, is called by a machine that is about to change the
	// configuration.
	storing func(*cluster.Configuration)
	// memory, if not nil, is put around the memories of machines that boot.
	memory func(rdma.MachineID, Memories) Memories
	// speaks are the versions of the protocol of machines that do not speak this program's.
	speaks map[rdma.MachineID]protocol.Range
	// full says that machines may fail to open for want of memory: they have ended then.
	full bool
	// isNeeded says that machines may be refused because other memory of theirs is needed.
	isNeeded bool
	// isOld says that machines may share no version of the protocol with the others.
	isOld bool
	// restarts says that machines may end while they are being opened, to begin another life.
	restarts bool
}

// A memberStore is a member's way to the store.
type memberStore struct {
	*cluster.MemoryStore
	g *members
}

func (s memberStore) CompareAndSwap(old uint64, next *cluster.Configuration) error {
	if s.g.storing != nil {
		s.g.storing(next)
	}
	return s.MemoryStore.CompareAndSwap(old, next)
}

// aFewMembers runs f with n machines that are up.
func aFewMembers(t *testing.T, seed uint64, n, replicas int, f func(g *members)) {
	t.Helper()
	membersAtPace(t, data.Pace{}, seed, n, replicas, f)
}

// membersAtPace is aFewMembers with machines that fill replicas at a pace.
func membersAtPace(t *testing.T, pace data.Pace, seed uint64, n, replicas int, f func(g *members)) {
	t.Helper()
	g := &members{T: t, pace: pace, world: sim.New(sim.Options{Seed: seed})}
	g.run(n, replicas, f)
}

// run runs f with n machines that are up.
func (g *members) run(n, replicas int, f func(g *members)) {
	g.Helper()
	g.begin(replicas)
	err := g.world.Run(func() {
		for i := range n {
			g.boot(rdma.MachineID(i))
		}
		g.until(fmt.Sprintf("%d machines are up", n), func() bool { return len(g.up) == n })
		f(g)
	})
	if err != nil {
		g.Fatal(err)
	}
}

// begin sets what machines that boot are to have, before any does.
func (g *members) begin(replicas int) {
	g.up, g.ended = make(map[rdma.MachineID]*Member), make(map[rdma.MachineID]error)
	g.settings = Config{Replicas: replicas, Workers: 2, RegionBytes: 1 << 20, LogBytes: cmp.Or(g.logBytes, 512<<10), MessageBytes: 64 << 10}
}

// boot begins a life of a machine.
func (g *members) boot(id rdma.MachineID) {
	p := g.world.Machine(id).Boot()
	delete(g.up, id)
	delete(g.ended, id)
	settings := g.settings
	p.Go(func() {
		nic, err := p.Join()
		if err != nil {
			g.Error(err)
			return
		}
		var memory Memories = g.world.Machine(id).Memory()
		if g.memory != nil {
			memory = g.memory(id, memory)
		}
		settings.Clock = p
		if testing.Verbose() {
			settings.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil)).With("at", id)
		}
		m, err := OpenMember(context.Background(), MemberConfig{
			Self: cluster.Member{Machine: id, FailureDomain: int(id), Protocol: g.speaks[id]}, Settings: settings,
			Memory: memory, Store: memberStore{&g.store, g}, NIC: nic, Pace: g.pace,
			Keeper: func(e *call.Endpoint, expired func(rdma.MachineID)) (lease.Keeper, error) {
				if g.aside {
					a := sim.Aside{Process: p}
					return lease.NewCalls(call.New(a.NIC(), a, e.Self().Incarnation), KindLease, lease.Config{Length: 10 * time.Millisecond, Clock: a, Expired: expired}), nil
				}
				k := lease.NewCalls(e, KindLease, lease.Config{Length: 10 * time.Millisecond, Clock: p, Expired: expired})
				if g.wrapKeeper != nil {
					k = g.wrapKeeper(id, k)
				}
				return k, nil
			},
			Ended: func(reason error) { g.ended[id] = reason },
			Recovering: func(s recovery.Step) {
				if g.recovering != nil {
					g.recovering(id, s)
				}
			},
			Events: membership.Events{
				Failed: func(what string, err error) {
					if testing.Verbose() {
						g.Logf("%v machine %d: %s: %v", g.world.Now(), id, what, err)
					}
				},
				Reconfigured: func(t membership.Timeline) { g.Logf("%v machine %d: %v", g.world.Now(), id, t) },
			},
		})
		switch {
		case err == nil:
			g.up[id] = m
		case g.full && errors.Is(err, nvram.ErrNoSpace), g.isNeeded && errors.Is(err, membership.ErrNeeded), g.restarts && errors.Is(err, membership.ErrRestart),
			g.isOld && errors.Is(err, protocol.ErrRange):
			g.ended[id] = err
		default:
			g.Errorf("machine %d: %v", id, err)
		}
	})
}

// kill ends a machine's life.
func (g *members) kill(id rdma.MachineID) {
	g.world.Machine(id).Kill()
	delete(g.up, id)
}

func (g *members) until(what string, f func() bool) {
	g.Helper()
	for begin := g.world.Now(); !f(); g.world.Outside().Sleep(100 * time.Microsecond) {
		if g.world.Now() > begin+20*time.Second {
			g.Fatalf("not within twenty seconds: %s", what)
		}
	}
}

// at runs f on a routine of a machine and waits for it.
func (g *members) at(id rdma.MachineID, f func(m *Member)) {
	g.Helper()
	done := false
	m := g.up[id]
	g.world.Machine(id).Process().Go(func() {
		f(m)
		done = true
	})
	g.until("the routine has ended", func() bool { return done })
}

// add adds one to a byte of the root object, at a machine.
func (g *members) add(id rdma.MachineID, at int) {
	g.Helper()
	g.at(id, func(m *Member) {
		err := m.Transactions().Run(context.Background(), func(t *txn.Tx) error {
			b, err := t.Write(m.Root())
			if err == nil {
				b[at]++
			}
			return err
		})
		if err != nil {
			g.Errorf("machine %d: %v", id, err)
		}
	})
}

// sees checks a byte of the root object, at every machine that is up.
func (g *members) sees(at int, want byte) {
	g.Helper()
	for id := range g.up {
		g.at(id, func(m *Member) {
			b := make([]byte, m.Root().Capacity())
			if _, err := m.Transactions().Read(m.Root(), b); err != nil || b[at] != want {
				g.Errorf("machine %d sees %d, want %d: %v", id, b[at], want, err)
			}
		})
	}
}

func (g *members) whole() bool {
	c, _ := g.store.Load()
	if len(c.Machines) != len(g.up) {
		return false
	}
	for _, p := range c.Regions {
		if len(p.Filling) > 0 || len(p.Backups)+1 < min(c.Replicas, len(c.Machines)) {
			return false
		}
	}
	return true
}

func TestMembersCommit(t *testing.T) {
	aFewMembers(t, 1, 3, 3, func(g *members) {
		for i := range 3 {
			g.add(rdma.MachineID(i), 7)
		}
		g.sees(7, 3)
	})
}

func TestMemberFails(t *testing.T) {
	for seed := range uint64(3) {
		aFewMembers(t, seed, 4, 3, func(g *members) {
			g.add(0, 7)
			c, _ := g.store.Load()
			for _, dead := range []rdma.MachineID{c.Regions[0].Primary, c.CM} {
				if g.up[dead] == nil {
					continue
				}
				g.kill(dead)
				for id := range g.up {
					g.add(id, 7)
					break
				}
				g.boot(dead)
				g.until("the machine is back and everything is whole", func() bool { return g.up[dead] != nil && g.whole() })
			}
			c, _ = g.store.Load()
			t.Log(c.ID, c.Machines, c.Regions)
		})
	}
}
