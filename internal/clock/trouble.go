package clock

// A Trouble is a condition that the code must handle at any time, but that is so rare that
// tests would not see it: a simulator makes it happen at random.
type Trouble uint8

const (
	// LogFull: a participant's log seems to have no room for what a transaction may
	// write to it.
	LogFull Trouble = iota
	// NoStorage: a replica has no storage for a block.
	NoStorage
	// StaleCache: what a machine has learned does not get into a cache of it, so that
	// the entry that led astray stays.
	StaleCache
	// SmallLog: a transaction that may be large is taken for one, or does what it does in
	// pieces in the smallest.
	SmallLog
	// GiveWay: another operation runs before the next slice of work that is done in slices.
	GiveWay
	troubles
)

// Troubles is how many there are.
const Troubles = int(troubles)

// A Troubled clock is one whose code meets troubles.
type Troubled interface {
	// Meets draws whether a trouble comes now.
	Meets(Trouble) bool
}

// TroublesOf returns what draws the troubles of code that runs by c, or nil: in
// production there are none.
func TroublesOf(c Clock) Troubled {
	t, _ := c.(Troubled)
	return t
}
