package txn

import (
	"fmt"

	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
)

// recalled are the logs of this machine's earlier lives. Nobody writes to them any
// more; they are evidence (see evidence.go) until a recovery is over.
type recalled struct {
	logs []*nvram.Memory
	// before is the first configuration of this life.
	before uint32
	// all says that every machine of the last configuration is back.
	all bool
	low map[coordinatorID]uint64
	// named are transactions above the low bound that are known to be truncated.
	named map[ID]bool
}

// A coordinatorID names who numbers transactions.
type coordinatorID struct {
	machine rdma.MachineID
	worker  uint16
}

// Recall gives the machine the logs of its earlier lives, before its first Freeze,
// or takes them back: without any, it comes as a machine without memory. Their
// memory can go once a recovery is over.
func (m *Machine) Recall(logs []*nvram.Memory) error {
	m.recovery.mu.Lock()
	m.recalled.drop(m)
	m.recovery.mu.Unlock()
	for i, log := range logs {
		if err := m.cfg.NIC.Register(recalledKey(i), log); err != nil {
			return fmt.Errorf("txn: a log of an earlier life: %w", err)
		}
	}
	m.recovery.mu.Lock()
	defer m.recovery.mu.Unlock()
	m.recalled.logs = logs
	return nil
}

// AllBack says that every machine of the configuration in which this machine's
// earlier life ended is back with its memory. Then what no log mentions has been
// truncated; otherwise it may never have come.
func (m *Machine) AllBack() {
	m.recovery.mu.Lock()
	defer m.recovery.mu.Unlock()
	m.recalled.all = true
}

// gather takes note of all records, also of transactions that a later one says are
// truncated: it may have landed without being processed, so that a backup has
// not applied them yet. Recovering them once more changes nothing.
func (l *recalled) gather(r *recoveryState) {
	if l.before == 0 {
		l.before = r.m.config.Load()
	}
	l.low, l.named = make(map[coordinatorID]uint64), make(map[ID]bool)
	for _, log := range l.logs {
		r.scan(log, 0, ^uint64(0), func(rec *Record) bool {
			l.learn(rec)
			return false
		})
	}
	for i, log := range l.logs {
		r.scan(log, recalledKey(i), ^uint64(0), func(*Record) bool { return true })
	}
}

// learn takes note of what a record says about truncations.
func (l *recalled) learn(rec *Record) {
	if rec.Kind.isNote() {
		return
	}
	c := coordinatorID{rec.ID.Machine, rec.ID.Worker}
	l.low[c] = max(l.low[c], rec.LowBound)
	for _, seq := range rec.Truncated {
		id := rec.ID
		id.Seq = seq
		l.named[idOfLife(id)] = true
	}
}

// idOfLife leaves the configuration out: a life's numbers go on through several.
func idOfLife(id ID) ID {
	id.Config = 0
	return id
}

// has says whether a transaction is of an earlier life of this machine.
func (l *recalled) has(id ID) bool { return len(l.logs) > 0 && id.Config < l.before }

// known says whether a record tells that the transaction has been truncated.
func (l *recalled) known(id ID) bool {
	return id.Seq < l.low[coordinatorID{id.Machine, id.Worker}] || l.named[idOfLife(id)]
}

func (l *recalled) truncated(id ID) bool { return l.all || l.known(id) }

// drop forgets the logs.
func (l *recalled) drop(m *Machine) {
	for i := range l.logs {
		m.cfg.NIC.Deregister(recalledKey(i))
	}
	l.logs = nil
}
