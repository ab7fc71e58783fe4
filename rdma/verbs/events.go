package verbs

import (
	"fmt"

	"github.com/farmsql/farmsql/rdma/hosts"
)

// events carries out what the card's asynchronous events ask for, until the card is closed.
func (nic *NIC) events() {
	for {
		e, err := nic.card.next()
		if err != nil {
			return
		}
		nic.handle(e)
	}
}

// handle carries out what one event asks for.
func (nic *NIC) handle(e event) {
	switch e.kind {
	case cardFailed:
		nic.mu.Lock()
		nic.mu.dead = fmt.Errorf("%w: %s", errCardGone, e.text)
		nic.mu.Unlock()
		nic.breakEverything(nic.deathReason())
	case portDown:
		nic.setDown(true)
		nic.breakEverything(fmt.Errorf("%w: %s", errPortDown, e.text))
	case portUp:
		nic.setDown(false)
	case pairFailed:
		nic.breakPair(e)
	case laneFailed:
		if q := nic.queueOf(e.lane); q != nil {
			q.breakAll(fmt.Errorf("the queue of worker %d has failed: %s", q.worker, e.text))
			nic.mu.Lock()
			agents := nic.mu.agents.Remove(func(id hosts.AgentID, _ *agent) bool { return id.Worker == q.worker })
			nic.mu.Unlock()
			hosts.StopAll(agents)
		}
	case receivesLow:
		if q := nic.queueOf(e.lane); q != nil {
			q.take()
		}
	case otherHappens:
	}
}

func (nic *NIC) deathReason() error {
	nic.mu.Lock()
	defer nic.mu.Unlock()
	return nic.mu.dead
}

func (nic *NIC) setDown(isDown bool) {
	nic.mu.Lock()
	defer nic.mu.Unlock()
	nic.mu.down = isDown
}

// queueOf returns the queue that has a lane, or nil.
func (nic *NIC) queueOf(l lane) *Queue {
	nic.mu.Lock()
	defer nic.mu.Unlock()
	for _, q := range nic.queuesLocked() {
		if q.lane == l {
			return q
		}
	}
	return nil
}

// breakEverything ends all connections, of this machine and to it. Posts connect again, as far as that is possible.
func (nic *NIC) breakEverything(reason error) {
	nic.mu.Lock()
	queues := nic.queuesLocked()
	agents := nic.mu.agents.Remove(func(hosts.AgentID, *agent) bool { return true })
	nic.mu.Unlock()
	for _, q := range queues {
		q.breakAll(reason)
	}
	hosts.StopAll(agents)
}

// breakPair ends the connection whose queue pair has failed.
func (nic *NIC) breakPair(e event) {
	nic.mu.Lock()
	queues := nic.queuesLocked()
	agents := nic.mu.agents.Remove(func(_ hosts.AgentID, a *agent) bool { return a.pair.address().pair == e.pair })
	nic.mu.Unlock()
	hosts.StopAll(agents)
	for _, q := range queues {
		q.mu.Lock()
		for _, c := range q.mu.live {
			if c.mu.pair != nil && c.mu.pair.address().pair == e.pair {
				c.breakLocked(fmt.Errorf("the queue pair has failed: %s", e.text))
			}
		}
		q.mu.Unlock()
	}
}
