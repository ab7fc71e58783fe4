package farm

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
	"github.com/farmsql/farmsql/recovery"
	"github.com/farmsql/farmsql/recovery/data"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// A new backup does not count as filled before it has settled the transactions of earlier
// configurations, however long that takes: the filling may not have copied their writes.
func TestFilledAfterSettled(t *testing.T) {
	aFewMembers(t, 3, 4, 3, func(g *members) {
		g.add(0, 7)
		c, _ := g.store.Load()
		dead := c.Regions[0].Backups[0]
		held, filling := rdma.MachineID(0), false
		for _, x := range c.Machines {
			if !c.Regions[0].Has(x) {
				held = x // will be the new backup
			}
		}
		g.recovering = func(id rdma.MachineID, s recovery.Step) {
			if id != held || s != recovery.StepSettled {
				return
			}
			g.world.Machine(id).Process().Sleep(time.Second)
			c, _ := g.store.Load()
			filling = slices.Contains(c.Regions[0].Filling, held)
		}
		g.kill(dead)
		g.until("the region is whole", func() bool { return g.whole() })
		if !filling {
			t.Error("filled before it was settled")
		}
	})
}

// Regions with only one replica left are filled first: they would be lost with the next machine, so
// they do not wait for regions that are filled slowly.
func TestLastReplicasAreFilledFirst(t *testing.T) {
	placement := func(id region.ID, backups, filling []rdma.MachineID) cluster.Placement {
		return cluster.Placement{Region: id, Primary: 0, Backups: backups, Filling: filling}
	}
	type ids = []rdma.MachineID
	c := &cluster.Configuration{Regions: []cluster.Placement{
		placement(1, ids{1, 2}, ids{2}),
		placement(2, ids{1, 2}, ids{1, 2}),
		placement(3, ids{1, 2}, nil),
		placement(4, ids{1, 2}, ids{2}),
		placement(5, ids{2}, ids{2}),
		placement(6, ids{1, 3}, ids{1, 3}),
	}}
	for id, want := range map[rdma.MachineID][]region.ID{0: nil, 1: {2, 6}, 2: {2, 5, 1, 4}} {
		var got []region.ID
		for _, p := range fillOrder(c, id) {
			got = append(got, p.Region)
		}
		if !slices.Equal(got, want) {
			t.Errorf("machine %d fills %v, want %v", id, got, want)
		}
	}
}

// allocateLarge makes objects at machine 0 that take several pieces of 8 KB.
func (g *members) allocateLarge() {
	g.Helper()
	for range 15 {
		g.at(0, func(m *Member) {
			err := m.Transactions().Run(context.Background(), func(t *txn.Tx) error {
				_, _, err := t.Alloc(7<<10, 0)
				return err
			})
			if err != nil {
				g.Errorf("machine 0: %v", err)
			}
		})
	}
}

// Replicas are filled at the machine's pace, slowly by default; where one replica is
// left, as fast as it can be done.
func TestFilledAtItsPace(t *testing.T) {
	const replicas = 3
	took := func(pace data.Pace, deaths int) (d time.Duration) {
		membersAtPace(t, pace, 5, 5, replicas, func(g *members) {
			g.allocateLarge()
			c, _ := g.store.Load()
			large := c.Regions[slices.IndexFunc(c.Regions, func(p cluster.Placement) bool { return p.Primary == 0 })]
			for _, id := range large.Backups[:deaths] {
				g.kill(id)
			}
			begin := g.world.Now()
			g.until("the regions are whole", func() bool { return g.whole() })
			d = g.world.Now() - begin
		})
		return d
	}
	slow, hurried, last := took(data.Pace{}, 1), took(data.Aggressive, 1), took(data.Pace{}, replicas-1)
	t.Logf("slow %v, aggressive %v, of the last replica %v", slow, hurried, last)
	if slow < hurried+10*time.Millisecond || slow < last+10*time.Millisecond {
		t.Errorf("whole after %v slowly, %v aggressively, and %v when one replica is left", slow, hurried, last)
	}
}

// The bytes read by an attempt that a new configuration has interrupted count, too.
func TestBytesOfInterruptedFills(t *testing.T) {
	m := &Member{read: make(map[region.ID]int)}
	m.addRead(1, 5)
	m.addRead(2, 1)
	m.addRead(1, 6)
	if n, again := m.takeRead(1), m.takeRead(1); n != 11 || again != 0 {
		t.Errorf("%d bytes read, and %d for the next time", n, again)
	}
}

// Filling that fails is tried again, at times that grow from fillRetry to fillRetryMax and no
// further, and goes on where it was as soon as it can.
func TestFillIsTriedAgain(t *testing.T) {
	keepReplicas(t, 5, func(k *keeping) {
		k.kill(2)
		k.awaitMembers(2)
		k.change(0, 10)
		asked := make(map[byte][]time.Duration) // by region
		for _, m := range k.up {                // any order
			m.endpoint.Handle(kindMarked, func(_ call.Peer, arg []byte) ([]byte, error) {
				asked[arg[4]] = append(asked[arg[4]], k.world.Now())
				return nil, errBadRequest
			})
		}
		k.boot(2)
		k.until("it was tried for seconds", func() bool {
			for _, at := range asked { // any order
				if len(at) > 12 {
					return true
				}
			}
			return false
		})
		for id, at := range asked { // any order
			if len(at) < 12 {
				continue // its turn has not come: it was asked about once
			}
			want := fillRetry
			for i := 2; i < len(at); i++ { // the first is asked before it is the region's turn
				if pause := at[i] - at[i-1]; pause < want || pause > want+fillRetry {
					t.Errorf("region %d is tried again after %v, want %v", id, pause, want)
				}
				want = min(2*want, fillRetryMax)
			}
		}
		for _, m := range k.up { // any order
			m.endpoint.Handle(kindMarked, m.onMarked)
		}
		k.pieces[2] = 0
		begin := k.world.Now()
		k.until("it is filled", k.filled)
		if took := k.world.Now() - begin; took > 2*fillRetryMax || k.pieces[2] > all/2 {
			t.Errorf("filled %v after it could be, with %d pieces", took, k.pieces[2])
		}
	})
}

// A region is in a hurry if one replica is left of several, not if it moves and has all that it should
// have, which may be one.
func TestPaceOf(t *testing.T) {
	move := &cluster.Move{From: 0, To: 1}
	one, two := []rdma.MachineID{1}, []rdma.MachineID{1, 2}
	for name, c := range map[string]struct {
		replicas int
		p        cluster.Placement
		want     data.Pace
	}{
		"one left":                       {3, cluster.Placement{Backups: two, Filling: two}, data.Aggressive},
		"two left":                       {3, cluster.Placement{Backups: two, Filling: two[1:]}, data.Slow},
		"moves, with all":                {2, cluster.Placement{Backups: two, Filling: one, Move: move}, data.Slow},
		"moves, and has but one":         {1, cluster.Placement{Backups: one, Filling: one, Move: move}, data.Slow},
		"grows from one":                 {2, cluster.Placement{Backups: one, Filling: one, Had: 1}, data.Slow},
		"grows from one, and taken back": {1, cluster.Placement{Backups: one, Filling: one, Had: 2}, data.Slow},
		"grows from two, one left":       {4, cluster.Placement{Backups: two, Filling: two, Had: 2}, data.Aggressive},
	} {
		if got := new(Member).paceOf(&cluster.Configuration{Replicas: c.replicas}, c.p); got != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
