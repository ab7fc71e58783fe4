package cluster_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/cluster/storetest"
	"github.com/farmsql/farmsql/cluster/zookeepertest"
)

func TestMemoryStore(t *testing.T) {
	storetest.Run(t, func(*testing.T) *storetest.System {
		s := new(cluster.MemoryStore)
		return &storetest.System{Machines: 1, Store: func(int) cluster.Store { return s }}
	})
}

// Machines of one host share the file.
func TestFileStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) *storetest.System {
		path := filepath.Join(t.TempDir(), "c.json")
		return &storetest.System{
			Machines: 3,
			Store:    func(int) cluster.Store { return cluster.NewFileStore(path) }, // nothing outlives a call
			Restart:  func() {},
		}
	})
}

// Each machine reaches one ZooKeeper, over a connection of its own that can be cut.
func TestZooKeeperStore(t *testing.T) {
	t.Parallel() // most of it is waiting for sessions that end
	server := zookeepertest.Start(t)
	tests := 0
	storetest.Run(t, func(t *testing.T) *storetest.System {
		tests++
		var stores []cluster.Store
		var relays []*storetest.Relay
		for range 3 {
			relay := storetest.NewRelay(t, server.Address)
			s, err := cluster.Open(fmt.Sprintf("zk://%s/deep/down/%d", relay.Address(), tests))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			stores, relays = append(stores, s), append(relays, relay)
		}
		return &storetest.System{
			Machines:       3,
			MovedMayBeDone: true,
			Store:          func(m int) cluster.Store { return stores[m] },
			Restart:        func() { server.Kill(); server.Start() },
			Cut:            func(m int) func() { relays[m].Cut(); return relays[m].Heal },
			CutAnswers:     func(m int) func() { relays[m].Drop(storetest.Answers); return relays[m].Heal },
		}
	})
}
