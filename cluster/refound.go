package cluster

import (
	"errors"
	"fmt"
	"slices"

	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
)

// A configuration store of which a majority is lost may have had later configurations than the
// one that is left, and machines may come back that know them. So a refounded instance goes on
// with far higher numbers. Numbers of regions rise less, because each takes some bytes of the
// machines' tables.
const (
	idsPerRefounding       = 1_000_000
	revisionsPerRefounding = 1_000_000_000
	regionsPerRefounding   = 1_000

	// Two machines may be refounded apart. So that they do not count from the same numbers,
	// each leaves out up to so many more, at random. Identifiers have 32 bits, which is enough
	// for some 400 refoundings.
	idsLeftOut       = 8_000_000
	revisionsLeftOut = 1_000_000 // in units of revisionsPerRefounding
)

// ErrNobodyLeft means that no machine of a configuration is left.
var ErrNobodyLeft = errors.New("cluster: no machine of the configuration is left")

// Refounded returns the configuration with which an instance goes on after its configuration store was lost, together
// with some machines of c. The lost machines no longer count for a majority. Regions that only they have wait for
// them; they can come back with their memory, as after any failure. self, if it is a member, is the CM.
// random is the number that the refounding adds to the Line.
func (c *Configuration) Refounded(lost []rdma.MachineID, self rdma.MachineID, random uint64) (*Configuration, Remapped, error) {
	var dead, left []rdma.MachineID
	for _, m := range c.Machines {
		if slices.Contains(lost, m) {
			dead = append(dead, m)
		} else {
			left = append(left, m)
		}
	}
	if len(left) == 0 {
		return nil, Remapped{}, fmt.Errorf("%w: configuration %d has machines %d", ErrNobodyLeft, c.ID, c.Machines)
	}
	cm := left[0]
	if slices.Contains(left, self) {
		cm = self
	}
	before := c.Clone()
	before.ID += idsPerRefounding - 1 + ID(random%idsLeftOut)
	before.Revision += revisionsPerRefounding*(1+random%revisionsLeftOut) - 1
	before.NextRegion += regionsPerRefounding
	before.Line = append(before.Line, random)
	next, report := before.Without(dead, cm)
	next.Gaps = append(next.Gaps, Gap{After: c.ID, Before: next.ID})
	// Transactions may have committed in c: nobody can know what the lost machines have done.
	next.Follow(c, func(region.ID) bool { return false })
	return next, report, nil
}
