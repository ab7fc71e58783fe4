package row

import (
	"strings"
	"sync"
	"time"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"
	"gopkg.in/src-d/go-errors.v1"
)

// A TIMESTAMP is stored as an instant, and a statement sees the wall time of its session's time zone,
// as a time.Time in UTC. When clocks are set back, one wall time stands for two instants. The value for the second
// instant has the location second, whose clock is that of UTC, so that encoding a value that was read gives the instant
// from which it was read. Without that location a value stands for the first instant, as in MySQL.

// ErrNoInstant is the error of a wall time that is no TIMESTAMP: clocks skip it, or it is out of range.
var ErrNoInstant = errors.NewKind("Incorrect datetime value: '%s'")

// A Zone is a time zone other than UTC. The nil Zone is UTC.
type Zone struct{ at *time.Location }

// second is the location of wall times that are the second of two instants.
var second = time.FixedZone("", 0)

// zones are the zones by their names; there is one Zone for each name.
var zones sync.Map

// ZoneOf returns the zone that the variable time_zone names; false if there is no such zone.
func ZoneOf(name string) (*Zone, bool) {
	if z, ok := zones.Load(name); ok {
		return z.(*Zone), true
	}
	at, ok := locationOf(name)
	if !ok {
		return nil, false
	}
	var made *Zone
	if !isUTC(at) {
		made = &Zone{at}
	}
	z, _ := zones.LoadOrStore(name, made)
	return z.(*Zone), true
}

func locationOf(name string) (*time.Location, bool) {
	if strings.EqualFold(name, "SYSTEM") {
		return time.Local, true
	}
	if offset, err := gms.MySQLOffsetToDuration(name); err == nil {
		return time.FixedZone("", int(offset/time.Second)), true
	}
	at, err := time.LoadLocation(name)
	return at, err == nil
}

// isUTC reports whether a location has the clock of UTC at all times.
func isUTC(at *time.Location) bool {
	_, offset := time.Unix(0, 0).In(at).Zone()
	start, end := time.Unix(0, 0).In(at).ZoneBounds() // zero if the offset never changes
	return offset == 0 && start.IsZero() && end.IsZero()
}

// wall returns the wall time of a stored instant.
func (z *Zone) wall(us int64) time.Time {
	t := time.UnixMicro(us)
	if z == nil || t.Equal(types.ZeroTime) { // 0000-00-00 is no instant
		return t.UTC()
	}
	t = t.In(z.at)
	_, offset := t.Zone()
	w := t.UTC().Add(seconds(offset))
	change, _ := t.ZoneBounds() // when the clocks were last changed
	if change.IsZero() {
		return w
	}
	back := z.offset(change.Add(-1)) - offset // by how many seconds they were set back
	if back > 0 && t.Before(change.Add(seconds(back))) {
		return w.In(second)
	}
	return w
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

// instants returns the first and the last instant at which the zone's clocks show a wall time: two instants if clocks
// are set back, otherwise the same one twice. If clocks skip the wall time, exists is false, and both are the instant
// at which clocks are set forward.
func (z *Zone) instants(w time.Time) (first, last time.Time, exists bool) {
	if z == nil || w.Equal(types.ZeroTime) {
		return w, w, true
	}
	const around = 36 * time.Hour // more than clocks are ever set forward, and the greatest offset
	before, after := z.offset(w.Add(-around)), z.offset(w.Add(around))
	a, b := w.Add(-seconds(before)), w.Add(-seconds(after))
	switch isA, isB := z.offset(a) == before, z.offset(b) == after; {
	case isA && isB:
		return a, b, true // b is not before a: clocks that are set forward leave one of them out
	case isA:
		return a, a, true
	case isB:
		return b, b, true
	}
	change, _ := a.In(z.at).ZoneBounds()
	return change, change, false
}

// Instant returns the instant of a wall time. If there are two, it returns the one that the location of w names. If
// clocks skip the wall time, it returns the instant at which they are set forward.
func (z *Zone) Instant(w time.Time) time.Time {
	first, last, _ := z.instants(w)
	if w.Location() == second {
		return last
	}
	return first
}

// offset returns how many seconds the zone's clocks are before those of UTC at an instant.
func (z *Zone) offset(at time.Time) int {
	_, offset := at.In(z.at).Zone()
	return offset
}

// The least and the greatest TIMESTAMP.
var (
	leastInstant    = time.Unix(1, 0)
	greatestInstant = time.Unix(1<<31, 0).Add(-time.Microsecond)
)

// micros returns the stored form of a wall time. The error is an ErrNoInstant.
func (z *Zone) micros(w time.Time) (int64, error) {
	if z == nil || w.Equal(types.ZeroTime) {
		return w.UnixMicro(), nil
	}
	_, _, exists := z.instants(w)
	at := z.Instant(w)
	if !exists || at.Before(leastInstant) || at.After(greatestInstant) {
		return 0, ErrNoInstant.New(w.Format("2006-01-02 15:04:05.999999"))
	}
	return at.UnixMicro(), nil
}
