package farm

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/outcome"
	"github.com/farmsql/farmsql/txn/worker"
)

// If a function was shipped to a machine that dies meanwhile, or is dead, it may have run or not:
// the caller is told so once other machines have its regions. A request for a slot there ends with
// a conflict instead: the transaction runs again, elsewhere.
func TestShipToALostMachine(t *testing.T) {
	const sleeper worker.HandlerID = 0x7001
	// Nobody is told of deaths in this world, so others get the regions late.
	aFewMembers(t, 4, 3, 2, func(g *members) {
		var object region.Ptr
		g.at(2, func(m *Member) {
			clock := m.Transactions().Clock()
			m.Transactions().Handle(sleeper, func(context.Context, []byte) ([]byte, error) {
				clock.Sleep(time.Hour)
				return nil, nil
			})
			tx := m.Transactions().Begin()
			defer tx.Abort()
			p, _, err := tx.Alloc(100, 0)
			if err == nil {
				err = tx.Commit(context.Background())
			}
			if err != nil {
				t.Error(err)
			}
			object = p
		})
		g.at(1, func(m *Member) { // which learns where the region is
			if _, err := m.Transactions().Read(object, make([]byte, object.Capacity())); err != nil {
				t.Error(err)
			}
		})
		done := 0
		ship := func(want error, f func(m *txn.Machine) error) {
			m := g.up[1].Transactions()
			m.Clock().Go(func() {
				if err := f(m); !errors.Is(err, want) {
					t.Errorf("got %v, want %v", err, want)
				}
				done++
			})
		}
		call := func(m *txn.Machine) error {
			_, err := m.ShipTo(context.Background(), 2, sleeper, nil)
			return err
		}
		alloc := func(m *txn.Machine) error {
			tx := m.Begin()
			defer tx.Abort()
			_, _, err := tx.Alloc(100, object.Addr)
			return err
		}
		ship(outcome.ErrInDoubt, call)
		g.world.Outside().Sleep(time.Millisecond)
		g.kill(rdma.MachineID(2))
		g.world.Outside().Sleep(time.Millisecond)
		ship(outcome.ErrInDoubt, call)
		ship(outcome.ErrConflict, alloc)
		g.until("all are told", func() bool { return done == 3 })
	})
}

// A connection that breaks takes with it the slots that were lent over it: those of
// which the borrower never heard, those that it has not given back, and those in
// which it was about to make objects.
func TestLoansEndWithTheConnection(t *testing.T) {
	aFewMembers(t, 9, 4, 2, func(g *members) {
		c, _ := g.store.Load()
		var others []rdma.MachineID // than the CM
		for _, x := range c.Machines {
			if x != c.CM {
				others = append(others, x)
			}
		}
		borrower, lender := others[0], others[1]
		var object region.Ptr
		g.at(lender, func(m *Member) {
			err := m.Transactions().Run(context.Background(), func(t *txn.Tx) (err error) {
				object, _, err = t.Alloc(100, 0)
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
		g.at(borrower, func(m *Member) { // which learns where the region is
			if _, err := m.Transactions().Read(object, make([]byte, object.Capacity())); err != nil {
				t.Error(err)
			}
		})
		used, lost := []region.Ptr{object}, 0
		stop, ended := false, 0
		const workers = 4
		for range workers {
			m := g.up[borrower].Transactions()
			m.Clock().Go(func() {
				defer func() { ended++ }()
				for n := 0; !stop; n++ {
					var p region.Ptr
					tx := m.Begin()
					p, _, err := tx.Alloc(100, object.Addr)
					if err == nil && n%2 == 0 {
						err = tx.Commit(context.Background())
					} else if err == nil {
						err = outcome.ErrConflict
					}
					tx.Abort()
					switch {
					case err == nil:
						used = append(used, p)
					case errors.Is(err, outcome.ErrInDoubt):
						lost++
					case !errors.Is(err, outcome.ErrConflict):
						t.Error(err)
					}
					m.Clock().Sleep(10 * time.Microsecond)
				}
			})
		}
		const breaks = 5
		for range breaks {
			before := g.up[lender].Membership().Configuration().ID
			g.world.Outside().Sleep(time.Millisecond)
			g.world.Cut(lender, borrower)
			g.until("the next configuration", func() bool { return g.up[lender].Membership().Configuration().ID > before || g.mend(lender, borrower) })
			g.world.Mend(lender, borrower) // or the next ones wait for what cannot arrive
			g.until("all have settled", func() bool {
				for _, m := range g.up {
					if m.Transactions().Recovery().IsGoing() || m.Membership().Status().Recovering {
						return false
					}
				}
				return true
			})
		}
		stop = true
		g.until("all have ended", func() bool { return ended == workers })
		if lost > 0 {
			t.Errorf("%d are in doubt at a machine that nobody has given up", lost)
		}
		now, _ := g.store.Load()
		if len(now.Machines) != 4 {
			t.Errorf("machines %v", now.Machines)
		}
		var all []*Member
		for id := range rdma.MachineID(4) {
			all = append(all, g.up[id])
		}
		g.at(lender, func(*Member) {
			faults, err := CheckMembers(now, all, slices.Values(used))
			if err != nil {
				t.Error(err)
			}
			for _, f := range faults {
				t.Error(f)
			}
		})
	})
}

// A slot goes back to its lender even if it is in a region that the borrower does not know: the
// region of the hint was full, so the lender took the slot from another.
func TestLoanInAnUnknownRegion(t *testing.T) {
	const size = 8000
	aFewMembers(t, 11, 2, 1, func(g *members) {
		const lender, borrower = rdma.MachineID(0), rdma.MachineID(1)
		var used []region.Ptr
		g.at(lender, func(m *Member) { // until its region is full
			for len(used) == 0 || used[len(used)-1].Addr.Region() == used[0].Addr.Region() {
				err := m.Transactions().Run(context.Background(), func(tx *txn.Tx) error {
					p, _, err := tx.Alloc(size, 0)
					used = append(used, p)
					return err
				})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
		g.at(borrower, func(m *Member) {
			if _, err := m.Transactions().Read(used[0], make([]byte, used[0].Capacity())); err != nil { // which learns where it is
				t.Error(err)
			}
			tx := m.Transactions().Begin()
			p, _, err := tx.Alloc(size, used[0].Addr)
			if err != nil || p.Addr.Region() == used[0].Addr.Region() || m.Transactions().IsPrimary(p.Addr) {
				t.Errorf("allocated %v: %v, want a slot of another region of machine %d", p, err, lender)
			}
			tx.Abort()
			if err := m.Transactions().Quiesce(time.Second); err != nil {
				t.Error(err)
			}
		})
		g.at(lender, func(m *Member) {
			faults, err := CheckMembers(m.Membership().Configuration(), []*Member{g.up[lender], g.up[borrower]}, slices.Values(used))
			if err != nil || len(faults) > 0 {
				t.Error(faults, err)
			}
		})
	})
}

// A machine whose READ fails because the connection breaks does not wait for a
// replacement that nobody has reason to make: it tells the CM.
func TestReadOverABrokenConnection(t *testing.T) {
	aFewMembers(t, 9, 4, 2, func(g *members) {
		c, _ := g.store.Load()
		others := slices.DeleteFunc(slices.Clone(c.Machines), func(x rdma.MachineID) bool { return x == c.CM })
		reader, primary := others[0], others[1]
		var object region.Ptr
		g.at(primary, func(m *Member) {
			err := m.Transactions().Run(context.Background(), func(t *txn.Tx) (err error) {
				object, _, err = t.Alloc(100, 0)
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
		reads, stop := 0, false
		m := g.up[reader].Transactions()
		m.Clock().Go(func() {
			for ; !stop; reads++ {
				if _, err := m.Read(object, make([]byte, object.Capacity())); err != nil {
					t.Error(err)
					return
				}
			}
		})
		g.until("it reads", func() bool { return reads > 10 })
		g.world.Cut(primary, reader)
		g.mend(primary, reader)
		g.until("the next configuration", func() bool { return g.up[reader].Membership().Configuration().ID > c.ID })
		before := reads
		g.until("it reads again", func() bool { return reads > before+10 })
		stop = true
	})
}

// mend mends a link after a moment, and is false.
func (g *members) mend(from, to rdma.MachineID) bool {
	g.world.Outside().Sleep(200 * time.Microsecond)
	g.world.Mend(from, to)
	return false
}
