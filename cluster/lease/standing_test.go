package lease

import (
	"slices"
	"testing"

	"github.com/farmsql/farmsql/internal/invariant"
)

// With checks of invariants, no standing follows one that it may not follow.
func TestStandingsFollow(t *testing.T) {
	for from := trusted; from <= expired; from++ {
		for to := trusted; to <= expired; to++ {
			r := relation{standing: from}
			refused := func() (is bool) {
				defer func() { is = recover() != nil }()
				r.become(to)
				return false
			}()
			if want := invariant.Enabled && !slices.Contains(standingsBefore[to], from); refused != want {
				t.Errorf("from %v to %v: refused %v, want %v", from, to, refused, want)
			}
		}
	}
}

// A machine that was held up spares its peer for again renewals and no longer, even if it is held
// up once more. A message of the peer ends that.
func TestSparedForItsTime(t *testing.T) {
	for _, isLate := range []bool{false, true} { // when the time is over
		for _, isCM := range []bool{false, true} {
			cm, m := two()
			handshake(t, cm, m, 1000)
			handshake(t, cm, m, 1100)
			m.tick(1100, nil)
			c, other := m, cm
			if isCM {
				c, other = cm, m
			}
			r := &c.relations[0]
			late := int64(1100 + 10*length)
			end := late + again*length/renewals
			c.tick(late, nil)
			if r.standing != spared || r.patience != end {
				t.Fatalf("CM %v: it is %v until %d, want %d", isCM, r.standing, r.patience, end)
			}
			if !isLate {
				for now := late + 1; now < end; now++ {
					if c.tick(now, nil); r.standing != spared {
						t.Fatalf("CM %v: at %d it is %v, want spared until %d", isCM, now, r.standing, end)
					}
				}
			} else {
				end += length
			}
			if c.tick(end, nil); r.standing != expired {
				t.Errorf("CM %v, late again %v: at the end it is %v", isCM, isLate, r.standing)
			}
			answer := message{kind: grant, sent: end, echo: end, length: length}
			if !isCM {
				answer.kind = grantRequest
			}
			if c.receive(end, peer(other.self), answer); r.standing != trusted {
				t.Errorf("CM %v: it was heard and is %v", isCM, r.standing)
			}
		}
	}
}
