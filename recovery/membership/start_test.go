package membership

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/sim"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
	"github.com/farmsql/farmsql/recovery"
)

// Founders begin an instance in one configuration, whoever comes first; without one of them
// there is none.
func TestFoundersBeginTogether(t *testing.T) {
	g := newGroup(t, sim.Options{Seed: 24})
	g.change = func(cfg *Config) { cfg.Founders = []rdma.MachineID{0, 1, 2} }
	first := &cluster.Configuration{Replicas: 2, Workers: 1, RegionBytes: 1 << 20, LogBytes: 1 << 16}
	err := g.world.Run(func() {
		for _, id := range []rdma.MachineID{2, 0} {
			g.boot(id, first)
		}
		g.until("the first waits for the one that is missing", func() bool {
			m := g.nodes[0].Machine
			return m != nil && slices.Equal(m.Status().Missing, []rdma.MachineID{1})
		})
		if c := g.cmConfig(); c != nil {
			t.Errorf("configuration %d of machines %v", c.ID, c.Machines)
		}
		g.boot(1, first)
		c := g.settled(3)
		if c.ID != 1 || c.CM != 0 || !slices.Equal(g.stored, []rdma.MachineID{0}) {
			t.Errorf("configuration %d with CM %d, stored by %v", c.ID, c.CM, g.stored)
		}
		for id, n := range g.nodes {
			if n.started != nil || c.Memory[id] != n.cfg.Self.Memory {
				t.Errorf("machine %d: %v, memory %d", id, n.started, c.Memory[id])
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

// If two machines have one identifier, the second gets an error, and the first goes on.
func TestTwoMachinesWithOneID(t *testing.T) {
	simulate(t, sim.Options{Seed: 22}, 3, 2, func(g *group) {
		c := g.settled(3)
		n := g.nodes[g.others()[0]]
		g.at(c.CM, func(cm *node) {
			other := n.self
			other.Incarnation++
			_, err := cm.onJoin(other, fmt.Appendf(nil, `{"Member": {"Machine": %d, "Incarnation": %d}}`, other.Machine, other.Incarnation))
			if !errors.Is(err, ErrTaken) || !strings.Contains(err.Error(), fmt.Sprintf("machine %d", other.Machine)) {
				t.Errorf("%v", err)
			}
			for _, arg := range []string{"", "{}", fmt.Sprintf(`{"Member": {"Machine": %d, "Incarnation": 5}}`, other.Machine)} {
				if _, err := cm.onJoin(other, []byte(arg)); err == nil || errors.Is(err, ErrTaken) {
					t.Errorf("%s is a JOIN: %v", arg, err)
				}
			}
		})
		if now := g.settled(3); now.ID != c.ID {
			t.Error("the first machine was evicted")
		}
	})
}

// A machine whose memory belongs to another instance learns that from the configuration or from the
// CM, and keeps its memory.
func TestOtherCluster(t *testing.T) {
	simulate(t, sim.Options{Seed: 23}, 3, 2, func(g *group) {
		c := g.settled(3)
		g.change = func(cfg *Config) { cfg.Cluster = c.Cluster + 1 }
		n := g.boot(7, nil)
		g.until("it has given up", func() bool { return n.isUp })
		if !errors.Is(n.started, ErrOtherCluster) || !strings.Contains(n.started.Error(), fmt.Sprintf("%016x", c.Cluster)) {
			t.Errorf("%v", n.started)
		}
		g.at(c.CM, func(cm *node) {
			_, err := cm.onJoin(n.self, fmt.Appendf(nil, `{"Cluster": 5, "Member": {"Machine": 7, "Incarnation": %d}}`, n.self.Incarnation))
			if !errors.Is(err, ErrOtherCluster) {
				t.Errorf("%v", err)
			}
			if _, err := n.onNewConfig(cm.self, split(c)[0]); !errors.Is(err, ErrOtherCluster) {
				t.Errorf("%v", err)
			}
		})
		if g.settled(3).ID != c.ID {
			t.Error("the configuration has moved on")
		}
	})
}

// Two machines begin an instance with different settings, and neither knows of the other. The one
// whose configuration is not stored ends that life; its next one, with the settings that are stored,
// is let in.
func TestFoundersOfOtherSettings(t *testing.T) {
	g := newGroup(t, sim.Options{Seed: 24})
	err := g.world.Run(func() {
		of := func(workers int) *cluster.Configuration {
			return &cluster.Configuration{Replicas: 2, Workers: workers, RegionBytes: 1 << 20, LogBytes: 1 << 16}
		}
		g.boot(0, of(1))
		g.boot(1, of(2))
		g.until("there is an instance, and one of them ends", func() bool { return g.cmConfig() != nil && g.nodes[1-g.cm()].isUp })
		c, second := g.cmConfig(), 1-g.cm()
		text := fmt.Sprintf("workers is %d in configuration 1 and %d at machine %d", c.Workers, 3-c.Workers, second)
		if err := g.nodes[second].started; !errors.Is(err, ErrRestart) || !errors.Is(err, cluster.ErrSettings) || !strings.Contains(err.Error(), text) {
			t.Errorf("it ends with %v", err)
		}
		g.world.Machine(second).Kill()
		g.boot(second, of(c.Workers))
		g.settled(2)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A machine with other settings than the instance's is not let in, whichever of the two notices: the
// CM when it asks, or it when the CM, which may be of a program that does not look, sends it a
// configuration.
func TestOtherSettings(t *testing.T) {
	simulate(t, sim.Options{Seed: 23}, 3, 2, func(g *group) {
		c := g.settled(3)
		g.at(c.CM, func(cm *node) {
			from := call.Peer{Machine: 7, Incarnation: 9}
			arg, err := json.Marshal(joinRequest{
				Cluster: c.Cluster, Member: cluster.Member{Machine: 7, Incarnation: 9},
				Settings: cluster.Settings{Replicas: c.Replicas, Workers: 5, RegionBytes: c.RegionBytes, LogBytes: c.LogBytes},
			})
			if err != nil {
				t.Fatal(err)
			}
			_, err = cm.onJoin(from, arg)
			if !errors.Is(err, cluster.ErrSettings) || !strings.Contains(err.Error(), "workers is 1 in configuration 3 and 5 at machine 7: start machine 7 again") || IsPassing(err) {
				t.Errorf("%v", err)
			}
			other := c.Succeed()
			other.LogBytes *= 2
			n := g.nodes[g.others()[0]]
			_, err = n.onNewConfig(cm.self, split(other)[0])
			if !errors.Is(err, cluster.ErrSettings) || !strings.Contains(err.Error(), "log size is 131072 in configuration 4 and 65536 at machine") {
				t.Errorf("%v", err)
			}
		})
		if g.settled(3).ID != c.ID {
			t.Error("the configuration has moved on")
		}
	})
}

// There is no instance, and none may be made.
func TestNothingToStart(t *testing.T) {
	g := &group{T: t, world: sim.New(sim.Options{}), nodes: map[rdma.MachineID]*node{}, seen: map[cluster.ID]string{}, events: map[string]int{}, steps: map[rdma.MachineID][]recovery.Step{}}
	g.store, g.violated = &slowStore{g: g}, t.Errorf
	err := g.world.Run(func() {
		n := g.boot(0, nil)
		g.until("it has given up", func() bool { return n.isUp })
		if n.started == nil || !strings.Contains(n.started.Error(), "no configuration") {
			t.Error(n.started)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A machine that cannot apply or commit a configuration leaves it.
func TestFatalErrors(t *testing.T) {
	broken := errors.New("broken")
	for _, where := range []string{"apply", "commit"} {
		simulate(t, sim.Options{Seed: 30}, 5, 2, func(g *group) {
			n := g.nodes[g.others()[1]]
			if where == "apply" {
				n.host.applyErr = broken
			} else {
				n.host.commit = func(context.Context) error { return broken }
			}
			g.world.Machine(g.others()[0]).Kill()
			g.settled(3)
			if !n.host.isEvicted || !errors.Is(n.Err(), broken) {
				t.Errorf("%s: %v", where, n.Err())
			}
		})
	}
}
