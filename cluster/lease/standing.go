package lease

import (
	"slices"

	"github.com/farmsql/farmsql/internal/invariant"
)

// A standing is this machine's judgement of a peer.
//
//	trusted -> spared -> expired
//	   ^ +--------|---------^ |
//	   +----------+-----------+  the peer was heard
//
//	trusted  The peer was heard, and no lease has been found to have run out since. Lasts until
//	         core.ends.
//	spared   A lease has run out, but this machine was held up itself: it has not asked, or not
//	         listened. The peer gets more time, once: the constant again, in renewals.
//	expired  The peer has been reported, once. Lasts until the peer is heard or a configuration
//	         makes a new relation.
type standing uint8

const (
	trusted standing = iota
	spared
	expired
)

var standingNames = [...]string{"trusted", "spared", "expired"}

func (s standing) String() string { return standingNames[s] }

// standingsBefore lists, for each standing, those that it may follow.
var standingsBefore = [...][]standing{
	trusted: {trusted, spared, expired},
	spared:  {trusted},
	expired: {trusted, spared},
}

// become changes the standing of r's peer.
func (r *relation) become(next standing) {
	if invariant.Enabled && !slices.Contains(standingsBefore[next], r.standing) {
		invariant.Violated("the standing of a machine that was "+r.standing.String(), next, standingsBefore[next])
	}
	r.standing = next
}
