package farm

import (
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/lockrank"
)

// A member that has no room for a replica refuses the replica. The CM then gives the member no further
// replicas in this life, unless the member calls HasRoom (membership.Machine). So regions may have fewer
// replicas than they should. Therefore the member looks from time to time whether its file system has
// room again, and tells the CM. That is only a guess: if the next replica turns out to need more room,
// the member refuses it, too, and waits longer before its next look.

const (
	// roomPoll is the time before the first look. The time between looks grows up to roomPollMax,
	// because a file system may be full for days.
	roomPoll    = 20 * time.Millisecond
	roomPollMax = 5 * time.Second
	// roomPart says how much room a look must find: 1/roomPart of a region's size.
	roomPart = 64
)

// awaiting is the state of a member that waits for room for replicas.
type awaiting struct {
	over clock.Event // ends the wait between two looks
	lockrank.Mutex[lockrank.Room]
	isAwaiting bool
	next       time.Duration // the time until the next look; it grows after each look
	forAll     bool          // see needRoomForAll
}

// awaitRoom starts to look for room if this member is bounded in c: it gets no further replicas, since
// it has refused one for lack of room. The looks end when a configuration no longer bounds it.
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

// lookForRoom looks for room from time to time, until the member is no longer bounded.
func (m *Member) lookForRoom() {
	for m.awaitsRoom() {
		m.room.over.WaitFor(m.nextLook())
		if m.ctx.Err() != nil {
			return
		}
		if !m.hasRoom() {
			m.reclaimWaiting() // what has moved away takes room until it is freed
			continue
		}
		if err := m.membership.HasRoom(m.ctx); err != nil {
			m.log.Debug("the CM does not know yet that there is room for replicas again", "machine", m.id, "error", err)
		}
	}
}

// awaitsRoom reports whether the current configuration bounds the member's replicas. If it does
// not, the member stops waiting.
func (m *Member) awaitsRoom() bool {
	m.room.Lock()
	defer m.room.Unlock()
	c := m.membership.Configuration()
	m.room.isAwaiting = c != nil && m.membership.IsBounded(c)
	return m.room.isAwaiting
}

// nextLook returns the time until the next look, and doubles the time for the look after that.
func (m *Member) nextLook() time.Duration {
	m.room.Lock()
	defer m.room.Unlock()
	d := max(m.room.next, roomPoll)
	m.room.next = min(2*d, roomPollMax)
	return d
}

// hasRoom reports whether there is room for the reserve, which comes first, and then for a part of a
// replica, which it takes as a piece of the reserve and gives back.
func (m *Member) hasRoom() bool {
	replica := max(m.cfg.Settings.RegionBytes/roomPart, reserveForLog)
	if m.needsRoomForAll() { // before reserve is locked, which comes later in the order of locks
		replica = max(m.cfg.Settings.RegionBytes, reserveForLog)
	}
	m.reserve.Lock()
	defer m.reserve.Unlock()
	if m.keepRoomLocked() != nil || m.addPieceLocked(replica) != nil {
		return false
	}
	return m.shrinkReserveLocked(replica) == nil
}

// needRoomForAll makes each further look require room for a whole replica: a replica that had
// been begun has run out of room, after much was copied.
func (m *Member) needRoomForAll() {
	m.room.Lock()
	defer m.room.Unlock()
	m.room.forAll = true
}

func (m *Member) needsRoomForAll() bool {
	m.room.Lock()
	defer m.room.Unlock()
	return m.room.forAll
}
