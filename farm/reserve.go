package farm

import (
	"errors"
	"fmt"
	"strings"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/recovery"
	"github.com/farmsql/farmsql/txn"
)

// A life of a machine has logs of its own, next to those of the life before, until the
// transactions of that are recovered. A machine whose file system is full must be able to
// start again nevertheless. So the former logs give back what no record is in, which is
// nearly all of them, and for the rest there is a reserve, which is given back before the
// new logs are made. What is left of it is taken again before the machine serves, for it
// may be killed before its transactions are recovered, and all of it once the former logs
// are gone. Logs come first: for one that is made later it is given back.
//
// A member without room for a log that another one is to write would keep everybody
// waiting: no configuration's regions are active before its members are connected. So it
// begins another life, which gives back what the logs of this one do not need; and that
// does not ask to be let in before it has room for the logs of all members.

const (
	reserveName = "reserve"
	// reserveForLog is how much of a former log is kept at the same time as the new
	// one, for which the reserve makes up: its control line, ledger, and records.
	reserveForLog = 64 << 10
)

// makeRoom gives back what the logs of earlier lives do not need, and the reserve.
func (m *Member) makeRoom(logs []*nvram.Memory) error {
	for _, log := range logs {
		rx, err := txn.OpenLog(log)
		if err == nil && rx != nil {
			err = rx.Spare(log.Discard)
		}
		if err != nil {
			return fmt.Errorf("farm: a log of an earlier life: %w", err)
		}
	}
	return m.giveBackReserve()
}

func (m *Member) giveBackReserve() error {
	m.reserve.Lock()
	defer m.reserve.Unlock()
	m.reserve.logs = 0
	if err := m.memory.Remove(reserveName); err != nil {
		return fmt.Errorf("farm: give back the reserve: %w", err)
	}
	return nil
}

// mapReserved maps memory of the size of a log, and if there is no room for it otherwise
// in place of the reserve. If there is none at all, this life of a member is over.
func (m *Member) mapReserved(name string) (*nvram.Memory, error) {
	mem, err := m.tryMapReserved(name)
	if !errors.Is(err, nvram.ErrNoSpace) {
		return mem, err
	}
	if err := m.giveBackReserve(); err != nil {
		return nil, err
	}
	if mem, err = m.tryMapReserved(name); errors.Is(err, nvram.ErrNoSpace) && m.membership != nil {
		m.identity.Store(identityCramped, 1)
		reason := fmt.Errorf("%w, to make room for %s: %w", recovery.ErrRestart, name, err)
		m.background.run(func() { m.membership.Restart(reason) }) // the caller holds locks
	}
	return mem, err
}

// holdRoom takes room for the logs of all members of c, if there was none for one in the
// life before. Once it is asked for a log the reserve that this makes is given back.
func (m *Member) holdRoom(c *cluster.Configuration) error {
	if c == nil || m.identity.Load(identityCramped) == 0 {
		return nil
	}
	s := &m.cfg.Settings
	if err := m.takeBytes(int64(len(c.Machines)*s.Workers) * s.LogBytes); err != nil {
		return fmt.Errorf("farm: room for the logs of %d machines: %w", len(c.Machines), err)
	}
	m.reserve.Lock()
	defer m.reserve.Unlock()
	m.reserve.logs = len(c.Machines) * s.Workers
	return nil
}

// tryMapReserved maps new memory with storage for all of it, or leaves nothing.
func (m *Member) tryMapReserved(name string) (*nvram.Memory, error) {
	mem, err := m.memory.Map(name, m.cfg.Settings.LogBytes)
	if err != nil {
		return nil, err
	}
	if err := mem.Reserve(0, mem.Size()); err != nil {
		return nil, errors.Join(err, m.memory.Remove(name))
	}
	return mem, nil
}

// keepSomeRoom takes what there is of a reserve, unless there is one.
func (m *Member) keepSomeRoom() {
	m.reserve.Lock()
	has := m.reserve.logs > 0
	m.reserve.Unlock()
	if !has {
		m.keepRoom()
	}
}

// keepRoom takes the reserve of this life, for the logs that it has by now. Without it the
// machine works as well, but may not be able to start again if no room comes.
func (m *Member) keepRoom() {
	names, err := m.memory.Names()
	if err == nil {
		err = m.takeReserve(names)
	}
	if err != nil {
		m.log.Warn("no room to start again with: make some before the machine is stopped", "machine", m.id, "error", err)
	}
}

func (m *Member) takeReserve(names []string) error {
	logs := 0
	for _, name := range names {
		if strings.HasPrefix(name, logPrefix) {
			logs++
		}
	}
	m.reserve.Lock()
	defer m.reserve.Unlock()
	if m.reserve.logs == logs {
		return nil
	}
	m.reserve.logs = 0
	for size := reserveForLog * int64(logs+1); ; size /= 2 {
		err := m.takeBytes(size)
		if err == nil {
			m.reserve.logs = logs
			return nil
		}
		if !errors.Is(err, nvram.ErrNoSpace) || size < 2*reserveForLog {
			return err
		}
	}
}

// takeBytes makes a reserve of a size in place of the one that there is.
func (m *Member) takeBytes(size int64) error {
	if err := m.memory.Remove(reserveName); err != nil {
		return err
	}
	mem, err := m.memory.Map(reserveName, size)
	if err == nil {
		if err = mem.Reserve(0, mem.Size()); err != nil {
			err = errors.Join(err, m.memory.Remove(reserveName))
		}
	}
	return err
}
