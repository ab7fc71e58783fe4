package farm

import (
	"fmt"

	"github.com/farmsql/farmsql/cluster"
)

// In earlier program versions, machines that ran in one process had memory without an identity, and
// every life used the same logs again. Nothing in such memory is older than the last configuration.
// So, once it has an identity, it equals the memory of a member that was killed in that
// configuration.

// upgrade adds the identity to memory of earlier program versions, and does nothing to other
// memory.
func (m *Member) upgrade(c *cluster.Configuration) error {
	was, isMember := c.Member(m.id)
	if !isMember || was.Memory != 0 || m.identity.Load(identityHolds) != 0 {
		return nil
	}
	if isOld, err := m.hasLogsWithoutLives(); err != nil || !isOld {
		return err
	}
	id := m.identity
	id.Store(identityCluster, c.Cluster)
	id.Store(identityMachine, uint64(m.id)+1)
	id.Store(identityLives+8, was.Incarnation)
	id.Store(identityLives, 1)
	id.Store(identitySettled, 0)
	for _, word := range []uint64{identityCommitted, identityLed, identityApplied} {
		id.Store(word, uint64(c.ID))
	}
	id.Store(identityHolds, 1) // last, so that an interrupted upgrade starts again from the beginning
	m.cluster = c.Cluster
	m.beginLife()
	m.log.Info("memory of an earlier version is taken over", "machine", m.id, "configuration", c.ID)
	return nil
}

// hasLogsWithoutLives reports whether the memory has a log named as in earlier versions, without the
// life that it belongs to.
func (m *Member) hasLogsWithoutLives() (bool, error) {
	names, err := m.memory.Names()
	for _, name := range names {
		var sender, worker int
		n, _ := fmt.Sscanf(name, logPrefix+"%d-%d", &sender, &worker)
		if n == 2 && name == fmt.Sprintf("%s%d-%d", logPrefix, sender, worker) { // nothing follows the two numbers
			return true, err
		}
	}
	return false, err
}
