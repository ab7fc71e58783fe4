package farm

import "time"

// beatEvery returns the time between two beats. A beat tells the machine's keeper that its workers
// still work; the keeper renews leases until the last beat is most of a lease time old, and the lease
// renewed then lasts for most of another. So a beat that is up to a lease time late goes unnoticed;
// even on busy processors goroutines are delayed for less. More frequent beats would cost processor
// time: most wake-ups of an idle machine are beats. length is the shortest lease time, because the present one
// may become shorter before the next beat.
func beatEvery(length time.Duration) time.Duration { return length * 2 / 3 }

// beat tells the keeper at intervals that this machine works, until the machine is closed. Before
// each beat it goes through every worker and the membership, as all work here does: a fault that
// stops one of them stops the beats, too, and the lease runs out although the keeper itself goes
// on.
func (m *Member) beat() {
	for m.ctx.Err() == nil {
		m.txn.Beat()
		m.membership.Configuration()
		m.keeper.Beat()
		m.closing.WaitFor(beatEvery(m.keeper.Shortest()))
	}
}
