package farm

import (
	"context"
	"slices"
	"time"

	"github.com/farmsql/farmsql/cluster"
)

// wholePoll is the interval at which awaitWhole checks.
const wholePoll = 5 * time.Millisecond

// HoldMoves keeps the members of an instance from moving replicas, and from handing over
// primaries, until release is called. All members hold them, since any may become the CM. Moves
// that have begun do not end meanwhile. But a change of the configuration that is in progress
// goes on, even if it begins or ends a move.
func HoldMoves(members []*Member) (release func()) {
	var releases []func()
	for _, m := range members {
		releases = append(releases, m.membership.HoldMoves())
	}
	return func() {
		for _, f := range releases {
			f()
		}
	}
}

// awaitWhole waits until all members of the instance have nothing left to recover and every
// backup has all of its region. It returns their configuration, which stays as it is as long as
// all members live and the moves are held (HoldMoves).
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

// wholeConfiguration returns the newest revision of the configuration that all members are in, or nil
// if they are in several, or something is left to recover or to fill.
func wholeConfiguration(members []*Member) *cluster.Configuration {
	newest := members[0].membership.Configuration()
	for _, m := range members {
		c := m.membership.Configuration()
		isSettled := m.settledFor.Load() >= uint32(c.ID) && !m.txn.Recovery().IsGoing()
		if c.ID != newest.ID || !isSettled || m.membership.IsChanging() { // a CM that changes the configuration may be ending a move
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
