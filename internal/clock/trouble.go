package clock

// A Trouble is a condition that the code must handle at any time, but that tests would
// hardly ever meet: a simulator makes it happen at random.
type Trouble uint8

const (
	// LogFull: a participant's log appears to have no room for a transaction's records.
	LogFull Trouble = iota
	// NoStorage: a replica has no storage for a block.
	NoStorage
	// StaleCache: an update of a cache is lost, so that the wrong entry stays.
	StaleCache
	// SmallLog: a log behaves as if it were small. A transaction that is allowed to be large is treated
	// as large whatever its size, or its records are processed in the smallest slices.
	SmallLog
	// GiveWay: another operation runs before the next slice of work that is done in slices.
	GiveWay
	troubles
)

// Troubles is the number of kinds.
const Troubles = int(troubles)

// A Troubled clock decides when troubles happen.
type Troubled interface {
	// Meets draws whether a trouble happens now.
	Meets(Trouble) bool
}

// TroublesOf returns the Troubled of a clock; nil in production, which has no troubles.
func TroublesOf(c Clock) Troubled {
	t, _ := c.(Troubled)
	return t
}
