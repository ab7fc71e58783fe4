//go:build drills

package farmsql

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// Machines of one process fail one by one: the others go on and have everything that was committed,
// and the machine is back when the database is opened again.
func TestKill(t *testing.T) {
	cfg := small(t.TempDir())
	cfg.Machines, cfg.Replicas = 3, 2
	for round, dead := range []int{1, 2, 0} {
		db := mustOpen(t, cfg)
		var p region.Ptr
		alloc := func(m *txn.Machine) error {
			return m.Run(t.Context(), func(tx *txn.Tx) (err error) {
				p, _, err = tx.Alloc(100, 0)
				return err
			})
		}
		if err := alloc(db.Machine(dead)); err != nil {
			t.Fatal(err)
		}
		if err := db.Kill(dead); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		for _, i := range []int{(dead + 1) % 3, (dead + 2) % 3} {
			err := db.Machine(i).Run(ctx, func(tx *txn.Tx) error {
				b, err := tx.Write(p)
				if err == nil {
					b[0]++
				}
				return err
			})
			if err != nil {
				t.Errorf("round %d: machine %d: %v", round, i, err)
			}
		}
		cancel()
		if n := len(db.Status().Machines); n != 2 {
			t.Errorf("round %d: %d machines are left", round, n)
		}
		err := db.Machine((dead+1)%3).Run(t.Context(), func(tx *txn.Tx) error { return tx.Free(p) })
		if err != nil {
			t.Error(err)
		}
		if err := db.Close(); err != nil {
			t.Errorf("round %d: close: %v", round, err)
		}
	}
	db := mustOpen(t, cfg)
	if n := len(db.Status().Machines); n != 3 {
		t.Errorf("%d machines are back", n)
	}
	r, err := db.Check(t.Context())
	if err != nil || !r.OK() {
		t.Error(fmt.Sprint(r), err)
	}
}
