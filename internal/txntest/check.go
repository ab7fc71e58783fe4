package txntest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
)

// Check waits until everything is truncated, and then returns the faults. Given every
// pointer in use, it finds leaks, orphans and overlaps. It also finds differences between
// the allocators and the object headers, backups that differ from their primaries, and
// annexes that have not been freed. No transaction may run.
func (x *Instance) Check(reachable iter.Seq[region.Ptr]) error {
	if err := x.quiesce(); err != nil {
		return err
	}
	var errs []error
	for _, m := range x.machines {
		errs = append(errs, x.awaitNoAnnexes(m), faulty(m.id, m.allocator.Check()))
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, p := range x.mu.configuration.Regions {
		primary := x.machines[p.Primary].regions[p.Region]
		errs = append(errs, faulty(p.Primary, primary.Check(reachable)))
		for _, id := range p.Backups {
			backup := x.machines[id].regions[p.Region]
			unsound, _ := backup.Sound(context.Background()) // no error: the context never ends
			errs = append(errs, faulty(id, unsound), faulty(id, primary.Compare(backup)))
		}
	}
	return errors.Join(errs...)
}

// faulty returns the faults of a machine's memory as an error, nil if there are none.
func faulty(id rdma.MachineID, faults []region.Fault) error {
	var errs []error
	for _, f := range faults {
		errs = append(errs, fmt.Errorf("machine %d: %v", id, f))
	}
	return errors.Join(errs...)
}

// awaitNoAnnexes waits until a machine has freed all annexes, which it does in the background. It
// returns an error if some remain.
func (x *Instance) awaitNoAnnexes(m *machine) error {
	for end := x.cfg.Clock.Now().Add(patience); ; x.cfg.Clock.Sleep(time.Millisecond) {
		if m.annexes.Load() == 0 && m.txn.Annexes() == 0 {
			return nil
		}
		if x.cfg.Clock.Now().After(end) {
			return fmt.Errorf("machine %d has memory of %d annexes, and knows %d, though nothing is under way", m.id, m.annexes.Load(), m.txn.Annexes())
		}
	}
}
