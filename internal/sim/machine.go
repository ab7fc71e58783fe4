package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/farmsql/farmsql/internal/invariant"
	"github.com/farmsql/farmsql/rdma"
)

// A Machine has memory that outlives its processes.
type Machine struct {
	world   *World
	id      rdma.MachineID
	domain  int
	offset  time.Duration // offset of the machine's clock from the world's time
	drift   float64       // drift of the machine's clock: by how much it runs fast
	shelf   *Shelf
	process *Process // the process that runs; nil while none runs
	lives   int
	past    []*Process // dead processes with routines that may have to be unwound
	// onDeath are called when the process has died and its routines are unwound.
	onDeath []func()
}

// ID returns the machine's identifier.
func (m *Machine) ID() rdma.MachineID { return m.id }

// Process returns the process that runs, or nil.
func (m *Machine) Process() *Process { return m.process }

// Memory returns the machine's non-volatile memory for the present process. The next process
// has another Shelf.
func (m *Machine) Memory() *Shelf { return m.shelf }

// SetDomain puts the machine into a failure domain; at first each has its own.
func (m *Machine) SetDomain(d int) { m.domain = d }

// Domain returns the machine's failure domain.
func (m *Machine) Domain() int { return m.domain }

// Boot starts a process of the machine. It must not be called while one is running.
func (m *Machine) Boot() *Process {
	if m.process != nil {
		invariant.Violated("a machine runs one process", m.process, nil)
	}
	m.lives++
	m.process = &Process{world: m.world, machine: m, life: m.lives}
	clear(m.shelf.mapped) // tests may have mapped memory while the machine was down
	m.note("boot")
	return m.process
}

func (m *Machine) note(what string) { m.world.Note(fmt.Sprintf("machine %d: %s", m.id, what)) }

// Kill ends the process, if there is one; the memory is kept. It may be called
// by the process's own code, which then runs to its next wait.
func (m *Machine) Kill() { m.end(m.shelf.clone) }

// end ends the process, if there is one; shelf returns the machine's memory for the next
// process.
func (m *Machine) end(shelf func() *Shelf) {
	p := m.process
	if p == nil {
		return
	}
	m.note("kill")
	m.shelf = shelf()
	p.dead, p.paused, p.hung, p.held, p.queued = true, false, false, nil, nil
	m.process = nil
	if p.nic != nil {
		p.nic.die()
	}
	m.past = append(m.past, p)
	m.world.after(0, func() { m.unwindDead(p) })
}

// unwindDead unwinds the routines of a dead process, once none of them runs, and calls the
// functions registered by OnDeath.
func (m *Machine) unwindDead(p *Process) {
	m.world.unwind(p)
	m.past = slices.DeleteFunc(m.past, func(other *Process) bool { return other == p })
	onDeath := m.onDeath
	m.onDeath = nil
	for _, f := range onDeath {
		f()
	}
}

// Destroy ends the process and loses the memory.
func (m *Machine) Destroy() {
	m.Kill()
	m.note("memory lost")
	m.shelf = newShelf()
}

// Copy returns a copy of the memory of a machine that is down.
func (m *Machine) Copy() *Shelf { return m.shelf.clone() }

// Restore replaces the memory of a machine that is down by a copy, such as an older one. The
// disk stays as full as it is.
func (m *Machine) Restore(s *Shelf) {
	m.note("another memory")
	now := *m.shelf.disk
	m.shelf = s.clone()
	*m.shelf.disk = now
}

// Pause stops the process's routines for d, if there is a process and it is neither paused nor hung. Its
// memory stays readable and writable by others.
func (m *Machine) Pause(d time.Duration) {
	p := m.process
	if p == nil || p.paused || p.hung {
		return
	}
	m.note("pause")
	p.paused = true
	m.stop(d)
}

// stop holds back the turns that wait for a processor, as the caller has marked the process as paused or hung.
// It makes the process continue after d, unless that pause has been ended before.
func (m *Machine) stop(d time.Duration) {
	p := m.process
	for _, f := range p.queued {
		p.held = append(p.held, turn{f: f})
	}
	p.queued = nil
	p.pauses++
	number := p.pauses
	m.world.after(d, func() {
		if p.pauses == number { // no other pause has begun
			p.resume()
		}
	})
}

// Resume ends a pause early.
func (m *Machine) Resume() {
	if m.process != nil {
		m.process.resume()
	}
}

// resume continues a paused process: the turns that were held back run after it.
func (p *Process) resume() {
	if p.dead || (!p.paused && !p.hung) {
		return
	}
	w := p.world
	p.machine.note("resume")
	held := p.held
	p.paused, p.hung, p.held = false, false, nil
	for _, t := range held {
		w.after(w.upTo(wakeSpan), func() { p.unlessPaused(t) })
	}
}

// Paused reports whether the process is paused or hung.
func (p *Process) Paused() bool { return p.paused || p.hung }

// Hang stops the process's routines as Pause does, except those that run aside: a machine that
// hangs keeps its leases and does nothing else, unless the lease keeper checks that its
// workers work.
func (m *Machine) Hang(d time.Duration) {
	if m.process != nil && !m.process.paused && !m.process.hung {
		m.note("hang")
		m.process.hung = true
		m.stop(d)
	}
}

// PowerCut ends all processes at one moment. Machines for which saved returns false do not
// complete their save, and lose their memory; if saved is nil, all complete it.
func (w *World) PowerCut(saved func(*Machine) bool) {
	for _, m := range w.machines {
		m.Kill()
	}
	for _, m := range w.machines {
		if saved != nil && !saved(m) {
			m.Destroy()
		}
	}
}

// FailDomain ends all processes of a failure domain at one moment. If forGood, their machines lose
// their memory, too.
func (w *World) FailDomain(domain int, forGood bool) {
	for _, m := range w.machines {
		switch {
		case m.domain != domain:
		case forGood:
			m.Destroy()
		default:
			m.Kill()
		}
	}
}
