package farm

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/outcome"
	"github.com/farmsql/farmsql/txn/wait"
)

// eachLink cuts every link between three machines, or mends them.
func (g *members) eachLink(f func(from, to rdma.MachineID)) {
	for a := range rdma.MachineID(3) {
		for b := range rdma.MachineID(3) {
			if a != b {
				f(a, b)
			}
		}
	}
}

// timed runs f on a routine of a machine and returns how long it took, and its error.
func (g *members) timed(id rdma.MachineID, f func(m *Member) error) (took time.Duration, err error) {
	g.Helper()
	g.at(id, func(m *Member) {
		begin := g.world.Now()
		err = f(m)
		took = g.world.Now() - begin
	})
	return took, err
}

// waits are the ways in which operations wait at a machine that reaches no other.
var waits = map[string]func(m *Member) error{
	"read": func(m *Member) error {
		_, err := m.Transactions().Read(m.Root(), make([]byte, m.Root().Capacity()))
		return err
	},
	"read in a transaction": func(m *Member) error {
		return m.Transactions().Run(context.Background(), func(t *txn.Tx) error {
			_, err := t.Read(m.Root())
			return err
		})
	},
	"write":    func(m *Member) error { return increment(m, 7) },
	"allocate": func(m *Member) error { return allocate(m) },
	"confirm":  func(m *Member) error { return m.Transactions().Confirm() },
	"available": func(m *Member) error {
		return m.Transactions().Available(context.Background(), m.Root().Addr)
	},
	"locate a region": func(m *Member) error {
		if m.membership.Configuration().CM == m.id {
			return m.Transactions().Confirm() // it knows all there are
		}
		_, err := m.Transactions().Primary(region.MakeAddr(999, 0))
		return err
	},
	"allocate a region": func(m *Member) error {
		_, err := m.grow(0)
		for errors.Is(err, outcome.ErrConflict) { // its lease lasts still
			m.clock.Sleep(time.Millisecond)
			_, err = m.grow(0)
		}
		return err
	},
	"reserve at backups": func(m *Member) error {
		rt := m.Transactions().Route(m.Root().Addr.Region())
		if !rt.PrimaryHere {
			return m.Transactions().Confirm() // only the primary reserves
		}
		_, err := m.Transactions().ReserveBackups(&region.Tenure{Region: rt.Local}, 0, 64)
		return err
	},
	"function at another": func(m *Member) error {
		_, err := m.Transactions().ShipTo(context.Background(), (m.id+1)%3, 7, nil)
		return err
	},
}

func allocate(m *Member) error {
	return m.Transactions().Run(context.Background(), func(t *txn.Tx) error {
		_, _, err := t.Alloc(100, m.Root().Addr)
		return err
	})
}

// TestMinorityEndsEveryWait: at a machine that reaches no other, every operation fails with
// ErrUnavailable, which names the missing machines: once it has waited for as long as operations
// wait, and at once if that time has passed already. When the others are back, the same machine
// goes on.
func TestMinorityEndsEveryWait(t *testing.T) {
	for name, f := range waits {
		t.Run(name, func(t *testing.T) {
			aFewMembers(t, 11, 3, 3, func(g *members) {
				g.add(0, 7)
				for id := range rdma.MachineID(3) {
					if _, err := g.timed(id, waits["confirm"]); err != nil {
						t.Fatal(err)
					}
				}
				g.eachLink(g.world.Cut)
				if !strings.Contains(name, "write") { // those that have begun do not need one
					g.until("leases are over", func() bool { return !g.up[0].keeper.Valid() && !g.up[1].keeper.Valid() && !g.up[2].keeper.Valid() })
				}
				for id := range rdma.MachineID(3) {
					took, err := g.timed(id, f)
					if !errors.Is(err, wait.ErrUnavailable) && !errors.Is(err, outcome.ErrInDoubt) {
						t.Errorf("machine %d: %v", id, err)
					}
					// Several waits may follow each other: that for an answer, and then for the lease.
					if took > 3*patienceMin {
						t.Errorf("machine %d: %v after %v", id, err, took)
					}
				}
				for id := range rdma.MachineID(3) {
					_, _ = g.timed(id, waits["confirm"]) // what it has waited for may have been something else
					took, err := g.timed(id, waits["confirm"])
					if !errors.Is(err, wait.ErrUnavailable) || took > time.Millisecond {
						t.Errorf("machine %d, which has waited already: %v after %v", id, err, took)
					}
					if err == nil || !strings.Contains(err.Error(), "and without a majority of the 3 machines") {
						t.Errorf("machine %d does not say who is missing: %v", id, err)
					}
				}
				g.eachLink(g.world.Mend)
				g.goOn()
			})
		})
	}
}

// goOn waits until a majority serves again by itself, and returns a machine of it. The last machine
// that comes back may be left out.
func (g *members) goOn() rdma.MachineID {
	g.Helper()
	last, n := rdma.MachineID(0), 0
	for id := range rdma.MachineID(3) {
		served := false
		g.until("the machine goes on, or is left out", func() bool {
			_, err := g.timed(id, waits["write"])
			served = err == nil
			return served || g.ended[id] != nil
		})
		if served {
			last, n = id, n+1
		}
	}
	if n < 2 {
		g.Errorf("%d machines go on: %v", n, g.ended)
	}
	return last
}

// TestMinorityInDoubt: writes are in progress when a machine loses the others. Their errors turn out to
// be true when the others are back: a transaction that failed without ErrInDoubt has had no effect.
func TestMinorityInDoubt(t *testing.T) {
	doubts, failures := 0, 0
	for seed := range uint64(12) {
		aFewMembers(t, seed, 3, 3, func(g *members) {
			committed, unknown, running := 0, 0, 0
			isOver := false
			for id := range rdma.MachineID(3) {
				m := g.up[id]
				for range 4 {
					running++
					g.world.Machine(id).Process().Go(func() {
						defer func() { running-- }()
						for !isOver {
							switch err := increment(m, 9); {
							case err == nil:
								committed++
							case errors.Is(err, outcome.ErrInDoubt):
								unknown++
							case errors.Is(err, wait.ErrUnavailable):
								failures++
								m.clock.Sleep(time.Millisecond) // what has been missing for long is an error at once
							case !errors.Is(err, outcome.ErrConflict):
								g.Errorf("machine %d: %v", id, err)
								return
							}
						}
					})
				}
			}
			g.until("some have committed", func() bool { return committed >= 20 })
			g.eachLink(g.world.Cut)
			g.world.Outside().Sleep(2 * patienceMin)
			isOver = true
			g.until("nobody waits any more", func() bool { return running == 0 })
			g.eachLink(g.world.Mend)
			value := int(g.value(g.goOn(), 9))
			if more := (value - committed) & 0xff; more > unknown { // it is a byte
				t.Errorf("seed %d: %d after %d acknowledged and %d in doubt", seed, value, committed, unknown)
			}
			doubts += unknown
		})
	}
	if doubts == 0 || failures == 0 {
		t.Errorf("%d in doubt, %d failed: nothing was tested", doubts, failures)
	}
}

// TestWaitEndsWithItsContext: a wait for what a minority cannot have ends with the
// context of the transaction.
func TestWaitEndsWithItsContext(t *testing.T) {
	aFewMembers(t, 11, 3, 3, func(g *members) {
		g.add(0, 7)
		g.eachLink(g.world.Cut)
		g.until("there is no lease", func() bool { return !g.up[0].keeper.Valid() })
		ctx, cancel := context.WithCancel(context.Background())
		g.world.Machine(0).Process().AfterFunc(50*time.Millisecond, cancel)
		took, err := g.timed(0, func(m *Member) error {
			return m.Transactions().Run(ctx, func(t *txn.Tx) error {
				_, err := t.Read(m.Root())
				return err
			})
		})
		if !errors.Is(err, context.Canceled) || took > 200*time.Millisecond {
			t.Errorf("%v after %v", err, took)
		}
		g.eachLink(g.world.Mend)
		g.goOn()
	})
}

// TestReplacedWhileReserving: the backups are asked for storage one after the other. If one is lost
// and replaced while another is asked, the machine does not wait for a replacement: nobody would
// replace it again.
func TestReplacedWhileReserving(t *testing.T) {
	for _, seed := range []uint64{2, 3, 11} {
		aFewMembers(t, seed, 4, 3, func(g *members) {
			g.add(0, 7)
			c := g.configuration()
			p, ok := c.Placement(g.up[0].Root().Addr.Region())
			if !ok {
				t.Fatal("no region")
			}
			primary, lost := g.up[p.Primary], p.Backups[1]
			begin, left := g.world.Now(), 40
			for range left {
				g.world.Machine(p.Primary).Process().Go(func() {
					defer func() { left-- }()
					for g.world.Now() < begin+50*time.Millisecond {
						before := g.world.Now()
						if _, err := primary.Transactions().ReserveBackups(&region.Tenure{Region: primary.replica(p.Region)}, 0, 64); err != nil {
							t.Errorf("seed %d: after %v: %v", seed, g.world.Now()-before, err)
							return
						}
					}
				})
			}
			g.kill(lost)
			g.until("all have ended", func() bool { return left == 0 })
			if g.world.Now() > begin+time.Second {
				t.Errorf("seed %d: they end after %v", seed, g.world.Now()-begin)
			}
		})
	}
}
