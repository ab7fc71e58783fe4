package farm

import (
	"context"
	"slices"
	"time"

	"github.com/farmsql/farmsql/cluster"
)

// wholePoll is how often awaitWhole checks.
const wholePoll = 5 * time.Millisecond

// awaitWhole waits until members, which are all members, have nothing left to recover, and every
// backup has all of its region. It returns the configuration, in which nothing changes any more as
// long as all of them live.
func awaitWhole(ctx context.Context, members []*Member) (*cluster.Configuration, error) {
	for {
		c := wholeConfiguration(members)
		if c != nil {
			return c, nil
		}
		for _, m := range members {
			if err := m.membership.Err(); err != nil {
				return nil, err
			}
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		members[0].clock.Sleep(wholePoll)
	}
}

// wholeConfiguration returns the configuration of all members, or nil.
func wholeConfiguration(members []*Member) *cluster.Configuration {
	newest := members[0].membership.Configuration()
	for _, m := range members {
		c := m.membership.Configuration()
		if c.ID != members[0].membership.Configuration().ID || m.settledFor.Load() < uint32(c.ID) || m.txn.Recovery().IsGoing() {
			return nil
		}
		if c.Revision > newest.Revision {
			newest = c
		}
	}
	if slices.ContainsFunc(newest.Regions, func(p cluster.Placement) bool { return len(p.Filling) > 0 || !p.IsAvailable() }) {
		return nil
	}
	return newest
}
