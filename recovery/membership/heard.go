package membership

import (
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/rdma"
)

// heard records which protocol versions the other machines speak, while this machine starts. Only
// Start uses it.
type heard struct {
	of map[rdma.MachineID]heardOf
	// since is the time from which on no majority is possible with this machine; zero while one is.
	since time.Time
	// isReported is set once it has been reported that some machines share no protocol version.
	isReported bool
}

type heardOf struct {
	member cluster.Member
	last   time.Time
}

// refusalPatience is a number of lease times. If the protocol versions of the other machines
// leave this machine without a majority, it goes on answering for that long before it ends: the
// others must hear of its versions, or they would wait for it. They ask each other within about
// eight lease times, even if messages are lost. For refusalPatience lease times the machine
// also remembers what it has heard from machines that no longer answer: they may have ended for
// the same reason.
const refusalPatience = 16

// understand returns the machines that can restart together with this one, among the machines that it
// has heard from, itself included. The others count as away, and are reported once. understand fails with
// protocol.ErrRange if there can be no majority, whatever versions the silent machines speak.
func (m *Machine) understand(c *cluster.Configuration, lives []life) (with []cluster.Member, err error) {
	patience, now := refusalPatience*m.cfg.Keeper.Length(), m.cfg.Clock.Now()
	some := m.hearFrom(c, lives, now.Add(-patience))
	with = c.Understand(m.self.Machine, some)
	if len(with) < len(some) {
		err = c.NotUnderstood(some)
		m.reportRefusal(err)
	}
	silent := len(c.Machines) - len(some)
	switch isPossible := 2*(len(with)+silent) > len(c.Machines); {
	case isPossible:
		m.heard.since = time.Time{}
	case m.heard.since.IsZero():
		m.heard.since = now
	case now.Sub(m.heard.since) > patience:
		return nil, err // not nil: if all that have answered share a version, a majority is possible
	}
	return with, nil
}

// hearFrom notes the protocol versions of the machines that have answered. It returns the machines of
// c that have answered since the given time, this machine included.
func (m *Machine) hearFrom(c *cluster.Configuration, lives []life, since time.Time) (some []cluster.Member) {
	now := m.cfg.Clock.Now()
	m.heard.of[m.self.Machine] = heardOf{m.cfg.Self, now}
	for _, l := range lives {
		if l.Applied > 0 || l.Meets || l.refused {
			m.heard.of[l.Member.Machine] = heardOf{l.Member, now}
		}
	}
	for _, x := range c.Machines {
		if h, ok := m.heard.of[x]; ok && !h.last.Before(since) {
			some = append(some, h.member)
		}
	}
	return some
}

// reportRefusal reports, once, that some machines share no protocol version. This machine may
// go on all the same: without those machines, or once they have been upgraded.
func (m *Machine) reportRefusal(err error) {
	if !m.heard.isReported {
		m.heard.isReported = true
		m.cfg.Events.failed("start", err)
	}
}
