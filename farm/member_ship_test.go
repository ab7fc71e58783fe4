package farm

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// A function that was shipped to a machine that dies meanwhile, or is dead, may
// have run or not: the caller is told so once others have its regions. A slot to
// be reserved there is a conflict: the transaction runs again, elsewhere.
func TestShipToALostMachine(t *testing.T) {
	const sleeper txn.HandlerID = 0x7001
	aFewMembers(t, 5, 3, 2, func(g *members) {
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
		ship(txn.ErrInDoubt, call)
		g.world.Outside().Sleep(time.Millisecond)
		g.kill(rdma.MachineID(2))
		g.world.Outside().Sleep(time.Millisecond)
		ship(txn.ErrInDoubt, call)
		ship(txn.ErrConflict, alloc)
		g.until("all are told", func() bool { return done == 3 })
	})
}
