package membership

import (
	"fmt"
	"slices"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/recovery"
)

// Events are functions that are called when a machine's membership changes. Each may be nil. They are
// called on any goroutine, and must not wait.
type Events struct {
	// Suspected: the machine's lease has run out, it has died, it cannot be reached, or it has
	// answered as another life.
	Suspected func(machine rdma.MachineID)
	// Stored: this machine has stored c as the configuration; r says how the regions changed.
	Stored func(c *cluster.Configuration, r cluster.Remapped)
	// Applying: this machine begins to apply c. It has not connected to the machines that are new in c.
	Applying func(c *cluster.Configuration)
	// Applied: this machine has applied c.
	Applied func(c *cluster.Configuration)
	// Reconfigured: all regions of the configuration are active; at the CM.
	Reconfigured func(t Timeline)
	// Slow: the recovery of transactions for c takes unusually long at this machine; progress says
	// what it waits for.
	Slow func(c *cluster.Configuration, since time.Duration, progress string)
	// Waiting is called when fewer than a majority of the machines answer, and again when the
	// missing machines change. Resumed is called when a majority answers again.
	Waiting func(missing []rdma.MachineID)
	Resumed func()
	// Evicted is called when this machine has stopped being a member.
	Evicted func(reason error)
	// Failed: an action failed and will be tried again.
	Failed func(what string, err error)
}

// A Timeline has the times at which the CM finished the steps of a reconfiguration.
type Timeline struct {
	ID   cluster.ID
	Dead []rdma.MachineID
	// Joined is the machine that is new, if IsJoin.
	Joined rdma.MachineID
	IsJoin bool

	Suspect   time.Time // the first machine has been suspected, or a machine has asked to join
	Probed    time.Time // a majority has answered
	Stored    time.Time // the configuration is the current one
	Acked     time.Time // all machines have applied the configuration
	Committed time.Time // old leases have run out, NEW-CONFIG-COMMIT is sent
	AllActive time.Time // all regions are active
}

func (t Timeline) String() string {
	after := func(x time.Time) time.Duration { return x.Sub(t.Suspect).Round(10 * time.Microsecond) }
	return fmt.Sprintf("configuration %d: probed after %v, stored %v, acknowledged %v, committed %v, all regions active %v",
		t.ID, after(t.Probed), after(t.Stored), after(t.Acked), after(t.Committed), after(t.AllActive))
}

func (m *Machine) reached(s recovery.Step) {
	if m.cfg.Step != nil {
		m.cfg.Step(s)
	}
}

func (e *Events) suspected(machine rdma.MachineID) {
	if e.Suspected != nil {
		e.Suspected(machine)
	}
}

func (e *Events) stored(c *cluster.Configuration, r cluster.Remapped) {
	if e.Stored != nil {
		e.Stored(c, r)
	}
}

func (e *Events) applying(c *cluster.Configuration) {
	if e.Applying != nil {
		e.Applying(c)
	}
}

func (e *Events) applied(c *cluster.Configuration) {
	if e.Applied != nil {
		e.Applied(c)
	}
}

func (e *Events) reconfigured(t Timeline) {
	if e.Reconfigured != nil {
		e.Reconfigured(t)
	}
}

// waiting records which machines are missing for a majority, and reports a change. missing is empty
// if a majority answers.
func (m *Machine) waiting(missing []rdma.MachineID) {
	m.mu.Lock()
	same := slices.Equal(m.mu.missing, missing)
	m.mu.missing = missing
	m.mu.Unlock()
	switch e := &m.cfg.Events; {
	case same:
	case len(missing) > 0 && e.Waiting != nil:
		e.Waiting(missing)
	case len(missing) == 0 && e.Resumed != nil:
		e.Resumed()
	}
}

func (e *Events) evicted(reason error) {
	if e.Evicted != nil {
		e.Evicted(reason)
	}
}

func (e *Events) failed(what string, err error) {
	if e.Failed != nil && err != nil {
		e.Failed(what, err)
	}
}
