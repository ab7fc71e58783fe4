package verbs

import (
	"testing"
	"time"

	"github.com/farmsql/farmsql/rdma/hosts"
)

// A queue keeps its lane for the queue pairs of agents that somebody else ends, such as Cut. A lane that is closed before
// is a use of freed memory in C.
func TestLaneOutlivesAgents(t *testing.T) {
	needsMapping(t)
	_, b := two(t, newFabric(t), 1<<12)
	b.NIC.mu.Lock()
	removed := b.NIC.mu.agents.Remove(func(hosts.AgentID, *agent) bool { return true })
	b.NIC.mu.Unlock()
	if len(removed) != 1 {
		t.Fatalf("%d agents, want 1", len(removed))
	}
	closed := make(chan error, 1)
	go func() { closed <- b.q.Close() }()
	eventually(t, "the queue leaves the table", func() bool {
		b.NIC.mu.Lock()
		defer b.NIC.mu.Unlock()
		return b.NIC.mu.queues[0] == nil
	})
	time.Sleep(10 * time.Millisecond) // a lane that is closed too early is closed by now
	hosts.StopAll(removed)
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

// The route to a machine that is forgotten is there until the datagrams to it are sent: by then, or when the NIC is closed.
func TestRouteOutlivesSends(t *testing.T) {
	needsMapping(t)
	for name, isClosedFirst := range map[string]bool{"sent": false, "closed": true} {
		t.Run(name, func(t *testing.T) {
			f := newFabric(t)
			a, _ := two(t, f, 1<<12)
			peer := func() *mailPeer {
				a.mail.mu.Lock()
				defer a.mail.mu.Unlock()
				return a.mail.mu.peers[2]
			}
			send := func() {
				if err := a.Datagram(2, make([]byte, 5000)); err != nil {
					t.Fatal(err)
				}
			}
			eventually(t, "the address", func() bool { send(); return peer() != nil })
			f.wire.mu.Lock()
			f.wire.isSlow = true
			f.wire.mu.Unlock()
			by := peer().route.(*fakeRoute)
			send()
			isClosed := func() bool {
				f.wire.mu.Lock()
				defer f.wire.mu.Unlock()
				return by.isClosed
			}
			a.mail.forget(2)
			if isClosed() {
				t.Error("closed while a send is under way")
			}
			if isClosedFirst {
				if err := a.NIC.Close(); err != nil {
					t.Error(err)
				}
			}
			f.wire.release()
			eventually(t, "the route is freed", isClosed)
		})
	}
}
