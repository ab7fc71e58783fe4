package farm

import (
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/lockrank"
)

// A member that has no room for a replica refuses it, and is given no other one as long as it
// lives (membership.Machine, HasRoom): the region may have fewer replicas than it should. So it
// looks from time to time whether its file system has room again, and says so. What it finds is
// no more than a guess, for a region may have more in it; then it refuses the replica once more,
// and waits for longer.

const (
	// roomPoll is the time to the first look, roomPollMax between the last: a file system may
	// be full for days.
	roomPoll    = 20 * time.Millisecond
	roomPollMax = 5 * time.Second
	// roomPart is the part of a region for which there has to be room.
	roomPart = 64
)

// awaiting is what a member knows of its waiting for room.
type awaiting struct {
	over clock.Event // ends the wait between two looks
	lockrank.Mutex[lockrank.Room]
	isAwaiting bool
	next       time.Duration // until the next look; longer after each
}

// awaitRoom starts to look for room if c bounds the replicas of this member, which has refused
// some. It stops with the first configuration that does not.
func (m *Member) awaitRoom(c *cluster.Configuration) {
	if !m.membership.IsBounded(c) {
		return
	}
	m.room.Lock()
	defer m.room.Unlock()
	if m.room.isAwaiting {
		return
	}
	m.room.isAwaiting = true
	m.background.run(m.lookForRoom)
}

func (m *Member) lookForRoom() {
	for m.awaitsRoom() {
		m.room.over.WaitFor(m.nextLook())
		if m.ctx.Err() != nil {
			return
		}
		if !m.hasRoom() {
			continue
		}
		if err := m.membership.HasRoom(m.ctx); err != nil {
			m.log.Debug("the CM does not know yet that there is room for replicas again", "machine", m.id, "error", err)
		}
	}
}

// awaitsRoom reports whether the current configuration bounds the member's replicas. If not,
// waiting is over.
func (m *Member) awaitsRoom() bool {
	m.room.Lock()
	defer m.room.Unlock()
	c := m.membership.Configuration()
	m.room.isAwaiting = c != nil && m.membership.IsBounded(c)
	return m.room.isAwaiting
}

func (m *Member) nextLook() time.Duration {
	m.room.Lock()
	defer m.room.Unlock()
	d := max(m.room.next, roomPoll)
	m.room.next = min(2*d, roomPollMax)
	return d
}

// hasRoom says whether there is room for the reserve, which comes first, and for a replica to
// begin with.
func (m *Member) hasRoom() bool {
	m.reserve.Lock()
	defer m.reserve.Unlock()
	replica := max(m.cfg.Settings.RegionBytes/roomPart, reserveForLog)
	if m.keepRoomLocked() != nil || m.addPieceLocked(replica) != nil {
		return false
	}
	return m.shrinkReserveLocked(replica) == nil
}
