package farm

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/outcome"
	"github.com/farmsql/farmsql/txn/wait"
)

// missing describes in words why a region cannot be used, or, for region 0, why the machine as a whole
// cannot work.
func (m *Member) missing(id region.ID) string {
	if m.membership == nil {
		return ""
	}
	s := m.membership.Status()
	c := s.Configuration
	switch {
	case c == nil:
		return ""
	case len(s.Missing) > 0:
		return noMajority(c, s.Missing)
	case len(awaited(c, id)) > 0:
		return fmt.Sprintf("no machine that is there has all of it: it is back when %s is, with its memory", oneOf(awaited(c, id)))
	case len(s.Suspects) > 0:
		return fmt.Sprintf("%s suspected to have failed", are(s.Suspects))
	}
	if p, ok := c.Placement(id); ok && p.Primary != m.id {
		return fmt.Sprintf("its primary is machine %d", p.Primary)
	}
	if id == 0 && c.CM != m.id {
		return fmt.Sprintf("leases come from machine %d, the configuration manager", c.CM)
	}
	return ""
}

// awaited returns the machines that have everything of an unavailable region: it becomes available
// when any of them comes back.
func awaited(c *cluster.Configuration, id region.ID) (machines []rdma.MachineID) {
	p, _ := c.Placement(id)
	for _, a := range p.Away {
		machines = append(machines, a.Machine)
	}
	return machines
}

// noMajority says in words which machines are missing for a majority of c.
func noMajority(c *cluster.Configuration, missing []rdma.MachineID) string {
	verb := "do not answer"
	if len(missing) == 1 {
		verb = "does not answer"
	}
	return fmt.Sprintf("%s %s, and without a majority of the %d machines nothing can be done", names(missing), verb, len(c.Machines))
}

func are(machines []rdma.MachineID) string {
	if len(machines) == 1 {
		return names(machines) + " is"
	}
	return names(machines) + " are"
}

// names lists machines in words.
func names(machines []rdma.MachineID) string { return list(machines, "and") }

// oneOf lists alternative machines in words, with "or" before the last.
func oneOf(machines []rdma.MachineID) string { return list(machines, "or") }

func list(machines []rdma.MachineID, conjunction string) string {
	machines = slices.Sorted(slices.Values(machines))
	all := make([]string, len(machines))
	for i, x := range machines {
		all[i] = fmt.Sprint(x)
	}
	n := len(all)
	if n == 1 {
		return "machine " + all[0]
	}
	return fmt.Sprintf("machines %s %s %s", strings.Join(all[:n-1], ", "), conjunction, all[n-1])
}

// A patientContext is a configurationContext that also ends when operations stop waiting.
type patientContext struct {
	configurationContext
	since, until time.Time
}

func (m *Member) patientContext() patientContext {
	now := m.clock.Now()
	return patientContext{configurationContext{m.ctx, m, m.txn.Config()}, now, now.Add(m.txn.Patience())}
}

// Deadline implements context.Context.
func (c patientContext) Deadline() (time.Time, bool) { return c.until, true }

// passing returns the error for an operation that failed with err because the CM could not be asked
// while the configuration changes. It is outcome.ErrLost, which lets the operation be run again,
// unless this machine cannot confirm its lease or patience has ended.
func (c patientContext) passing(err error) error {
	if lapsed := c.m.txn.ConfirmWithin(c); errors.Is(lapsed, wait.ErrUnavailable) {
		return lapsed
	}
	if !c.m.clock.Now().Before(c.until) {
		return c.m.txn.Missed("an answer of the configuration manager", c.since)
	}
	return fmt.Errorf("%w: %w", outcome.ErrLost, err)
}
