package sim

import "time"

// slowness delays every turn of a process by up to extra, until a time.
type slowness struct{ until, extra time.Duration }

// Slow delays each turn of the process's routines by up to extra, for d, as if its processors
// were shared with others. Routines that run aside are not delayed, nor are the READs and
// WRITEs of other machines.
func (m *Machine) Slow(d, extra time.Duration) {
	if p := m.process; p != nil {
		m.note("slow")
		p.slow = slowness{m.world.now + d, extra}
	}
}

// takeLate takes a turn after the delay of a slow process.
func (p *Process) takeLate(t turn) {
	p.world.after(p.world.upTo(p.slow.extra), func() {
		switch {
		case p.dead:
		case p.Paused():
			p.held = append(p.held, t)
		default:
			p.take(t)
		}
	})
}
