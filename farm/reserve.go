package farm

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/recovery/membership"
	"github.com/farmsql/farmsql/txn/record"
)

// Each life of a machine has logs of its own, and the logs of the life before stay until its
// transactions are recovered. So a start needs room for a second set of logs, and must succeed even
// if the file system is full:
//
//   - First the machine frees the parts of the former logs that hold no record: nearly all of them.
//   - For the rest there is a reserve, which the machine gives back before it makes the new logs.
//   - Before it waits for others to recover with it, it takes as much of the reserve again as there
//     is room for: the wait may be long, and parking transactions needs room.
//   - Once the former logs are gone it takes the whole reserve again.
//
// Logs come first: if there is no room for a log later, the machine gives back reserve for it.
//
// A member without room for a log that another member is to write would keep all members waiting:
// the regions of a configuration become active only after its members are connected. So the member
// ends its life and begins another, which can free most of this life's logs. The new life does not
// ask to join before it has room for the logs of all members. It holds that room as a large reserve
// and gives it back one log at a time, so that nothing else can take the rest. Parked transactions
// and notes keep nobody waiting: without room for them, recovery tries again, and the member serves
// the other regions meanwhile.

const (
	reserveName = "reserve"
	// reserveForLog is the part of the reserve for one log: as much as the former log keeps (control
	// line, ledger and records) while the new one exists.
	reserveForLog = 64 << 10
	// pieceMin is the smallest piece of storage that is reserved: a page.
	pieceMin = 4 << 10
)

// makeRoom frees the parts of earlier lives' logs that hold no record, and the reserve.
func (m *Member) makeRoom(logs []*nvram.Memory) error {
	for _, log := range logs {
		rx, err := record.OpenLog(log)
		if err == nil && rx != nil {
			err = rx.Spare(log.Discard)
		}
		if err != nil {
			return fmt.Errorf("farm: a log of an earlier life: %w", err)
		}
	}
	return m.giveBackReserve()
}

// A reserve is room for logs: pieces of memory whose storage is allocated. It grows by adding pieces.
// It never replaces a piece by a larger one, since another program might take the room in between.
type reserve struct {
	lockrank.Mutex[lockrank.Reserve]
	// waits delays the reserve: the machine begins together with others of its process, which may be
	// on the same file system and do not have their logs yet.
	waits  bool
	pieces []piece
}

// piece is memory with storage for its first size bytes.
type piece struct {
	name   string
	memory *nvram.Memory
	size   int64
}

func (r *reserve) sizeLocked() (n int64) {
	for _, p := range r.pieces {
		n += p.size
	}
	return n
}

func (m *Member) giveBackReserve() error {
	m.reserve.Lock()
	defer m.reserve.Unlock()
	return m.removeReserveLocked()
}

// removeReserveLocked gives back all pieces, including those of an earlier life.
func (m *Member) removeReserveLocked() error {
	m.reserve.pieces = nil
	names, err := m.memory.Names()
	for _, name := range names {
		if err == nil && isOfReserve(name) {
			err = m.memory.Remove(name)
		}
	}
	if err != nil {
		return fmt.Errorf("farm: give back the reserve: %w", err)
	}
	return nil
}

// giveBackForLog gives back as much of the reserve as one log takes. It returns false if there was
// no reserve.
func (m *Member) giveBackForLog() (hadReserve bool, err error) {
	m.reserve.Lock()
	defer m.reserve.Unlock()
	hadReserve = len(m.reserve.pieces) > 0
	return hadReserve, m.shrinkReserveLocked(m.cfg.Settings.LogBytes)
}

// shrinkReserveLocked gives back n bytes of the reserve, or all of it if it has fewer.
func (m *Member) shrinkReserveLocked(n int64) error {
	for n > 0 && len(m.reserve.pieces) > 0 {
		last := len(m.reserve.pieces) - 1
		p := &m.reserve.pieces[last]
		if p.size > n {
			p.size -= n
			p.memory.Discard(uint64(p.size), uint64(n))
			return nil
		}
		if err := m.memory.Remove(p.name); err != nil {
			return fmt.Errorf("farm: give back a part of the reserve: %w", err)
		}
		n -= p.size
		m.reserve.pieces = m.reserve.pieces[:last]
	}
	return nil
}

// growReserveLocked takes n more bytes, in smaller pieces if there is no room for a large one. If
// there is less room altogether, it takes what there is and returns an error.
func (m *Member) growReserveLocked(n int64) error {
	for size := n; n > 0; {
		err := m.addPieceLocked(min(size, n))
		switch {
		case err == nil:
			n -= min(size, n)
		case errors.Is(err, nvram.ErrNoSpace) && size >= 2*pieceMin:
			size = (size / 2) &^ (pieceMin - 1) // a multiple of pieceMin
		default:
			return err
		}
	}
	return nil
}

// addPieceLocked takes n more bytes in one piece. If it fails, it takes nothing.
func (m *Member) addPieceLocked(n int64) error {
	name := pieceName(len(m.reserve.pieces))
	mem, err := m.tryMapReserved(name, n)
	if err == nil {
		m.reserve.pieces = append(m.reserve.pieces, piece{name, mem, n})
	}
	return err
}

// pieceName returns the name of piece i, from 0.
func pieceName(i int) string {
	if i == 0 {
		return reserveName // the only name in earlier versions
	}
	return fmt.Sprintf("%s-%d", reserveName, i)
}

func isOfReserve(name string) bool {
	return name == reserveName || strings.HasPrefix(name, reserveName+"-")
}

// mapLog is like mapReserved, for a log that another member is to write. If there is no room, it ends
// this life of the member.
func (m *Member) mapLog(name string) (*nvram.Memory, error) {
	mem, err := m.mapReserved(name, m.cfg.Settings.LogBytes)
	if errors.Is(err, nvram.ErrNoSpace) && m.membership != nil {
		m.identity.Store(identityCramped, 1)
		reason := fmt.Errorf("%w, to make room for %s: %w", membership.ErrRestart, name, err)
		m.background.run(func() { m.membership.Restart(reason) }) // the caller holds locks
	}
	return mem, err
}

// mapReserved maps new memory with storage for all of it. If there is no room, it gives back reserve
// until there is.
func (m *Member) mapReserved(name string, bytes int64) (*nvram.Memory, error) {
	for {
		mem, err := m.tryMapReserved(name, bytes)
		if !errors.Is(err, nvram.ErrNoSpace) {
			return mem, err
		}
		if more, backErr := m.giveBackForLog(); backErr != nil || !more {
			return nil, errors.Join(err, backErr)
		}
	}
}

// holdRoom takes a reserve for the logs of all members of c and of this machine, if the previous life
// lacked room for a log. c may not have this machine as a member, since the others have usually gone
// on without it.
func (m *Member) holdRoom(c *cluster.Configuration) error {
	if c == nil || m.identity.Load(identityCramped) == 0 {
		return nil
	}
	s, machines := &m.cfg.Settings, len(c.Machines)
	if _, isMember := c.Member(m.id); !isMember {
		machines++
	}
	m.reserve.Lock()
	defer m.reserve.Unlock()
	err := cmp.Or(m.removeReserveLocked(), m.addPieceLocked(int64(machines*s.Workers)*s.LogBytes))
	if err != nil {
		return fmt.Errorf("farm: room for the logs of %d machines: %w", machines, err)
	}
	return nil
}

// tryMapReserved makes one attempt of mapReserved. If it fails, it leaves nothing behind.
func (m *Member) tryMapReserved(name string, bytes int64) (*nvram.Memory, error) {
	mem, err := m.memory.Map(name, bytes)
	if err != nil {
		return nil, err
	}
	if err := mem.Reserve(0, mem.Size()); err != nil {
		return nil, errors.Join(err, m.memory.Remove(name))
	}
	return mem, nil
}

// keepSomeRoom calls keepRoom if the member has no reserve at all.
func (m *Member) keepSomeRoom() {
	m.reserve.Lock()
	hasReserve := len(m.reserve.pieces) > 0
	m.reserve.Unlock()
	if !hasReserve {
		m.keepRoom()
	}
}

// keepRoom takes the reserve for the logs that exist by now, or as much of it as there is room for.
// Without a reserve the machine works as well, but may be unable to start again, so keepRoom warns.
func (m *Member) keepRoom() {
	m.reserve.Lock()
	defer m.reserve.Unlock()
	if m.reserve.waits {
		return
	}
	err := m.keepRoomLocked()
	if wanted, _ := m.reserveWanted(); err != nil && m.reserve.sizeLocked() < wanted/2 {
		m.log.Warn("no room to start again with: make some before the machine is stopped", "machine", m.id, "error", err)
		m.background.run(m.reclaimWaiting)
	}
}

// keepRoomLocked sets the reserve to the wanted size. If there is no room for all of it, it takes
// what there is and returns an error.
func (m *Member) keepRoomLocked() error {
	wanted, err := m.reserveWanted()
	if err != nil {
		return err
	}
	size := m.reserve.sizeLocked()
	return cmp.Or(m.shrinkReserveLocked(size-wanted), m.growReserveLocked(wanted-size)) // a negative number does nothing
}

// delayReserve makes keepRoom and keepSomeRoom do nothing until takeDelayedReserve is called.
func (m *Member) delayReserve() {
	m.reserve.Lock()
	defer m.reserve.Unlock()
	m.reserve.waits = true
}

// takeDelayedReserve takes the reserve, once all machines of the process have their logs.
func (m *Member) takeDelayedReserve() {
	m.reserve.Lock()
	m.reserve.waits = false
	m.reserve.Unlock()
	m.keepRoom()
}

// reserveWanted returns the size of the reserve for the logs that exist.
func (m *Member) reserveWanted() (int64, error) {
	names, err := m.memory.Names()
	logs := 0
	for _, name := range names {
		if strings.HasPrefix(name, logPrefix) {
			logs++
		}
	}
	return reserveForLog * int64(logs+1), err
}
