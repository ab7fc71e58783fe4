package farm

import "time"

// beatEvery returns the time between two beats, which tell a machine's keeper that the machine's
// workers work. The keeper renews leases until the last beat is most of a lease old, and a lease
// renewed then lasts for most of another lease time: so a beat may be a lease late before anybody
// notices. That is longer than goroutines are delayed on busy processors. Beats should be rare,
// because they are most of what wakes an idle machine.
func beatEvery(length time.Duration) time.Duration { return length * 2 / 3 }

// beat repeatedly tells the keeper that this machine works, until the machine is closed. Its
// goroutine goes through each worker and the membership, as all work here does. So a fault that
// stops any of these also ends the lease, although the keeper itself goes on.
func (m *Member) beat() {
	for m.ctx.Err() == nil {
		m.txn.Beat()
		m.membership.Configuration()
		m.keeper.Beat()
		m.closing.WaitFor(beatEvery(m.keeper.Length()))
	}
}
