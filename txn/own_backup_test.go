package txn_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/farmsql/farmsql/internal/txntest"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/outcome"
	"github.com/farmsql/farmsql/txn/step"
)

// The coordinator's own backup applies at once, when all backups have acknowledged
// COMMIT-BACKUP, and not before: as long as one has not, recovery may abort.
func TestOwnBackupAppliesAfterAllAcks(t *testing.T) {
	for _, lost := range []bool{false, true} {
		r := open(t, txntest.Config{Machines: 3, Replicas: 3, Workers: 1, Clock: newHastyClock()}, 3)
		r.settle()
		i := slices.IndexFunc(r.ptrs, func(p region.Ptr) bool { return r.Machine(0).ReplicasOf(p)[0] == 1 })
		p, m := r.ptrs[i], r.Machine(0)
		before, once := m.Header(p), false
		m.OnStep(func(s step.Step) {
			if s == step.Validate && lost && !once {
				once, r.lost = true, true
				must(t, r.Machine(2).NIC().Close())
			}
			if (s == step.CommitBackup || s == step.CommitPrimary) && m.Header(p) != before {
				t.Errorf("at %v the own backup is at %v already", s, m.Header(p))
			}
		})
		err := m.Run(ctx, func(tx *txn.Tx) error { return write(tx, p, 7) })
		switch {
		case !lost && (err != nil || m.Header(p).Version() != before.Version()+1):
			t.Errorf("%v, own backup %v", err, m.Header(p))
		case lost && (!errors.Is(err, outcome.ErrInDoubt) || m.Header(p) != before):
			t.Errorf("with a backup lost: %v, own backup %v", err, m.Header(p))
		}
	}
}
