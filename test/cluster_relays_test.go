package test

import (
	"testing"
	"time"

	"github.com/farmsql/farmsql/cluster/zookeepertest"
)

// TestRelayedHosts: three hosts reach each other through relays that pass bytes on late and in pieces, and
// datagrams, those of leases among them, late, out of order, twice or not at all. Clients change rows at all
// machines. A machine is killed, and another is cut off; the others go on, and it comes back. Nothing that was
// acknowledged is lost.
func TestRelayedHosts(t *testing.T) {
	const n = 3
	rounds := 1
	if nightly {
		rounds = 20
	}
	h := newHosts(t, n)
	f := newFleet(t, n, n, "zk://"+zookeepertest.StartAt(t, h.here()).Address+"/farmsql/relays")
	f.hosts, f.peers = h, newPeersAt(t, h.net)
	h.relay(f.peers, n)
	f.start()
	f.awaitWhole()
	f.letIn()
	l := &fleetLoad{t: t, fleet: f, seed: seedOf(t), regionsWait: true}
	l.prepare()
	l.begin(l.transfer, l.replace, l.lookup)
	for round := range rounds {
		for i, fault := range []hostFault{hostKilled, hostCutOff} {
			victim := f.machines[(round+i)%n]
			before := f.configuration().ID
			begin := time.Now()
			end := fault.begin(h, victim)
			f.wait("the others to go on without a machine", func() bool { return f.configuration().ID > before })
			without := time.Since(begin)
			end()
			f.awaitWhole()
			t.Logf("machine %d %s: without it after %v, whole after %v", victim.id, fault.name, ms(without), ms(time.Since(begin)))
		}
	}
	l.end()
	for _, m := range f.machines {
		l.verify(m)
	}
	t.Log(l)
}
