package farm

import (
	"time"

	"github.com/farmsql/farmsql/internal/lockrank"
)

// beatEvery returns the time between two beats. A beat tells the machine's keeper that its workers
// still work; the keeper renews leases until the last beat is most of a lease time old, and the lease
// renewed then lasts for most of another. So a beat that is up to a lease time late goes unnoticed;
// even on busy processors goroutines are delayed for less. More frequent beats would cost processor
// time: most wake-ups of an idle machine are beats. length is the shortest lease time, because the present one
// may become shorter before the next beat.
func beatEvery(length time.Duration) time.Duration { return length * 2 / 3 }

// remindedLeases is how many lease times beat sleeps at most while the keeper reminds the
// machine of its beats. If the processors become busy meanwhile, the next beat is late by that
// much. The machine keeps its lease: the keeper gives a machine that waits for a processor
// eight lease times more.
const remindedLeases = 4

// beats records when the machine last beat. An idle machine beats when the keeper reminds it,
// which wakes one or two threads; a timer wakes six. While goroutines keep all processors busy,
// a reminded goroutine waits behind all of them, and a goroutine that a timer wakes does not:
// so the timer takes over when reminders are late.
type beats struct {
	lockrank.Mutex[lockrank.Leaf] // guards the fields, but is not held during a beat: two beats may overlap, and neither waits for the other
	last                          time.Time
	isReminded                    bool // last was a beat for a reminder
}

// beat tells the keeper at intervals that this machine works, until the machine is closed.
func (m *Member) beat() {
	m.beatNow(false)
	m.keeper.Remind(m.beatReminded)
	every := beatEvery(m.keeper.Shortest())
	for wait := every; ; {
		m.closing.WaitFor(wait)
		switch {
		case m.ctx.Err() != nil:
			return
		case m.isReminded(every):
			wait = min(2*wait, remindedLeases*m.keeper.Shortest())
		default:
			m.beatNow(false)
			wait = every
		}
	}
}

// beatNow beats. Before that it goes through every worker and the membership, as all work here does: a
// fault that stops one of them stops the beats, too, and the lease runs out although the keeper itself
// goes on.
func (m *Member) beatNow(isReminded bool) {
	m.txn.Beat()
	m.membership.Configuration()
	m.keeper.Beat()
	m.beats.Lock()
	defer m.beats.Unlock()
	m.beats.last, m.beats.isReminded = m.clock.Now(), isReminded
}

// beatReminded beats for a reminder, unless the reminder comes so late that a timer has overtaken it.
func (m *Member) beatReminded() {
	if age, _ := m.beats.age(m.clock.Now()); age >= beatEvery(m.keeper.Shortest())/2 && m.ctx.Err() == nil {
		m.beatNow(true)
	}
}

// isReminded reports whether a reminder has come in time for the last beat.
func (m *Member) isReminded(every time.Duration) bool {
	age, isReminded := m.beats.age(m.clock.Now())
	return isReminded && age < every
}

// age returns how old the last beat is, and whether it was for a reminder.
func (b *beats) age(now time.Time) (age time.Duration, isReminded bool) {
	b.Lock()
	defer b.Unlock()
	return now.Sub(b.last), b.isReminded
}
