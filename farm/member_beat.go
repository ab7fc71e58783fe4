package farm

import "time"

// beatEvery is how often a machine's keeper is told that its workers work, in a lease
// time. The keeper renews until that is most of a lease ago, and what it has renewed then
// lasts for most of another one: a beat may be a lease late before anybody notices. That is
// more than goroutines are on busy processors; and beats are most of what wakes a machine
// that is idle.
func beatEvery(length time.Duration) time.Duration { return length * 2 / 3 }

// beat tells the keeper that this machine works, again and again, until it is closed: on
// a goroutine, which goes through what all work here goes through, each worker and the
// membership. So whatever stops those ends the lease, though the keeper itself goes on.
func (m *Member) beat() {
	for m.ctx.Err() == nil {
		m.txn.Beat()
		m.membership.Configuration()
		m.keeper.Beat()
		m.closing.WaitFor(beatEvery(m.keeper.Length()))
	}
}
