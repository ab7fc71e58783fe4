package farm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
)

// relogOf makes the n'th log, from 1, for a worker of another machine in this life of this machine.
// The new log replaces the previous one, whose memory stays because its ledger is still needed.
func (m *Member) relogOf(sender rdma.MachineID, worker, n int) (*nvram.Memory, error) {
	mem, err := m.mapLog(m.relogName(sender, worker, n))
	if err != nil {
		return nil, fmt.Errorf("farm: log of machine %d: %w", sender, err)
	}
	m.replicas.Lock()
	defer m.replicas.Unlock()
	m.relogged = append(m.relogged, m.relogName(sender, worker, n-1))
	return mem, nil
}

func (m *Member) relogName(sender rdma.MachineID, worker, n int) string {
	if n == 0 {
		return m.lifeLogName(sender, worker)
	}
	return fmt.Sprintf("%s%d-%d-%d-%016x", logPrefix, sender, worker, n, m.cfg.Self.Incarnation)
}

const parkedPrefix = "parked-"

// Transactions parked in a configuration are in memories whose names begin with parkedIn; the n'th is
// called parkedName.
func parkedIn(in cluster.ID) string          { return fmt.Sprintf("%s%d-", parkedPrefix, in) }
func parkedName(in cluster.ID, n int) string { return fmt.Sprint(parkedIn(in), n) }

// parkIn makes the n'th memory for transactions parked in a configuration.
func (m *Member) parkIn(in cluster.ID, n int, bytes int64) (*nvram.Memory, error) {
	if err := m.memory.Remove(parkedName(in, n)); err != nil { // left by an attempt that failed
		return nil, err
	}
	return m.mapReserved(parkedName(in, n), bytes)
}

// noteIn creates the n'th memory for the notes that recovery in a configuration writes. After a
// restart, this machine reads it like a log.
func (m *Member) noteIn(in cluster.ID, n int, bytes int64) (*nvram.Memory, error) {
	if err := m.memory.Remove(m.noteName(in, n)); err != nil { // left by an attempt that failed
		return nil, err
	}
	return m.mapReserved(m.noteName(in, n), bytes)
}

const notePrefix = logPrefix + "notes-"

func (m *Member) noteName(in cluster.ID, n int) string {
	return fmt.Sprintf("%s%d-%d-%016x", notePrefix, in, n, m.cfg.Self.Incarnation)
}

// isUpTo reports whether a memory's name begins with prefix and the number of a configuration up to
// last.
func isUpTo(last cluster.ID, prefix, name string) bool {
	rest, found := strings.CutPrefix(name, prefix)
	id, _, _ := strings.Cut(rest, "-")
	number, err := strconv.ParseUint(id, 10, 64)
	return found && err == nil && cluster.ID(number) <= last
}

// removeSettled removes memory that recovery no longer needs: notes, and transactions parked
// earlier. If no region is unavailable, it also removes the logs of this machine's earlier lives
// and logs that have been replaced.
func (m *Member) removeSettled(c *cluster.Configuration) {
	if cluster.ID(m.settledFor.Load()) >= c.ID {
		return // this call is late: a later recovery is settled already
	}
	names, err := m.memory.Names()
	unavailable := c.Unavailable()
	allDecided := len(unavailable) == 0 // no transaction is parked
	relogged := m.takeRelogged(allDecided)
	isOver := func(name string) bool {
		if allDecided && m.isOldLog(name) {
			return true
		}
		return isUpTo(c.ID-1, parkedPrefix, name) || isUpTo(c.ID, notePrefix, name) || slices.Contains(relogged, name)
	}
	for _, name := range names {
		if err == nil && isOver(name) {
			err = m.memory.Remove(name)
		}
	}
	if err == nil {
		err = dropAnnexes(m.memory, m.takeOldAnnexes(allDecided))
	}
	if err != nil {
		m.log.Warn("old logs not removed", "machine", m.id, "error", err)
	}
	m.identity.Store(identityCramped, 0)
	m.keepRoom()
	m.settledFor.Store(uint32(c.ID))
	if allDecided {
		m.log.Info("transactions recovered", "machine", m.id, "configuration", c.ID)
	} else {
		m.log.Warn("transactions recovered but for those that wait for unavailable regions", "machine", m.id, "configuration", c.ID, "regions", unavailable)
	}
}

// takeRelogged returns the names of replaced logs for the caller to remove, and forgets them.
// isOver says that recovery needs these logs no more; otherwise takeRelogged returns none.
func (m *Member) takeRelogged(isOver bool) (names []string) {
	m.replicas.Lock()
	defer m.replicas.Unlock()
	if isOver {
		names, m.relogged = m.relogged, nil
	}
	return names
}
