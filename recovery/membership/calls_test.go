package membership

import (
	"fmt"
	"testing"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/protocol"
	"github.com/farmsql/farmsql/internal/sim"
	"github.com/farmsql/farmsql/rdma/call"
)

// Whatever arrives, nothing panics, and nothing but an error comes of it.
func FuzzCalls(f *testing.F) {
	c := &cluster.Configuration{Cluster: 1, ID: 1, Revision: 1, Replicas: 1, NextRegion: 1}
	c.AddMember(cluster.Member{Machine: 0, Incarnation: 5})
	f.Add(uint8(kindNewConfig), split(c)[0])
	f.Add(uint8(kindNewConfig), []byte("\x01\x00\x00\x00\xff\xff\xff\x7f\xff\xff\xff\xff"))
	f.Add(uint8(kindJoin), []byte(`{"Cluster": 1, "Member": {"Machine": 7, "Incarnation": 9}}`))
	for _, r := range []string{`{"Min": 1, "Max": 2}`, `{"Min": 3, "Max": 9}`, `{"Min": 9, "Max": 2}`, `{"Min": 0, "Max": 255}`, `{"Min": 256}`} {
		f.Add(uint8(kindJoin), fmt.Appendf(nil, `{"Cluster": 1, "Member": {"Machine": 7, "Incarnation": 9, "Address": "a:1", "Zone": "b/c", "Protocol": %s}, "Holds": [1], "Apart": [0]}`, r))
	}
	speaking := c.Clone()
	speaking.Describe(cluster.Member{Machine: 0, Incarnation: 5, Address: "a:1", Zone: "b/c", Protocol: protocol.Own})
	if err := speaking.Agree(); err != nil {
		f.Fatal(err)
	}
	f.Add(uint8(kindNewConfig), split(speaking)[0])
	f.Add(uint8(kindAllocate), []byte(`{"Primary": 3, "Near": 5}`))
	f.Add(uint8(kindFilled), []byte("[1, 2]"))
	f.Add(uint8(kindForget), []byte(`{"Machine": 3, "Lost": [1]}`))
	f.Add(uint8(kindRoot), []byte(`"AAAA"`))
	f.Fuzz(func(t *testing.T, kind uint8, arg []byte) {
		simulate(t, sim.Options{}, 1, 1, func(g *group) {
			n := g.nodes[0]
			stranger := n.self
			stranger.Machine = 7
			stranger.Incarnation = 9
			g.at(0, func(n *node) {
				handlers := []call.Handler{
					n.onNewConfig, n.onNewConfigCommit, n.onRegionsActive, n.onAllRegionsActive, n.onSuspect, n.onJoin,
					n.onHello, n.onPrepare, n.onAnnounce, n.onMapping, n.onFilled, n.onRoot, n.onAllocate, n.onForget,
				}
				_, _ = handlers[int(kind)%len(handlers)](stranger, arg)
			})
			if n.Err() != nil || n.host.isEvicted {
				t.Errorf("the machine has ended: %v", n.Err())
			}
		})
	})
}
