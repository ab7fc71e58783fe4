package lookup

import (
	"fmt"
	"math"

	"github.com/farmsql/farmsql/rdma"
)

// A Way says how many READs a lookup at another machine may take before it sends a message to
// the owner.
type Way uint8

const (
	// Measured allows as many READs, one after the other, as together cost as much processor
	// time as one message on this network.
	Measured Way = iota
	// OneSided allows READs only.
	OneSided
	// OneTwoSided allows one READ, then sends the message.
	OneTwoSided
	// TwoSided sends the message at once.
	TwoSided
)

var wayNames = [...]string{"measured", "one-sided", "one-two-sided", "two-sided"}

func (w Way) String() string { return wayNames[w] }

// ParseWay returns the way of this name.
func ParseWay(name string) (Way, error) {
	for i, n := range wayNames {
		if n == name {
			return Way(i), nil
		}
	}
	return 0, fmt.Errorf("lookup: no way is called %q", name)
}

// unbounded is the number of READs of a lookup without a message.
const unbounded = math.MaxInt

// reads returns how many READs a lookup may take before the message, where operations have the given costs.
func (w Way) reads(c rdma.Costs) int {
	switch w {
	case OneSided:
		return unbounded
	case OneTwoSided:
		return 1
	case TwoSided:
		return 0
	}
	return c.StepsPerMessage()
}
