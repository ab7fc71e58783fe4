package clock

// A Trouble is something that the code has to be able to meet at any time, and meets
// so seldom that tests would not see it: a simulator has it come by chance.
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
	// GiveWay: somebody else comes before the next slice of what is done in slices.
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
