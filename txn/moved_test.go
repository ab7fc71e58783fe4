package txn_test

import (
	"slices"
	"testing"

	"github.com/farmsql/farmsql/internal/txntest"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// A meddler is a part of an object that is always the same, and does something when it
// is asked about.
type meddler struct{ meddle func() }

// Same implements txn.Part.
func (m meddler) Same(_, _ []byte) bool {
	m.meddle()
	return true
}

// After a question had to be asked again, everything is checked again: objects checked before may
// have changed while it was asked, so nothing would show that all of them were valid at one moment.
func TestAskedAgainAllIsLookedAtAgain(t *testing.T) {
	r := open(t, txntest.Config{Machines: 2, Replicas: 1}, 3)
	asked := 0
	tx := r.Machine(0).Begin()
	_, err := read(tx, r.ptrs[1])
	must(t, err)
	_, err = tx.ReadPart(r.ptrs[0], meddler{func() {
		if asked++; asked == 1 {
			r.set(1, 1, 9)
		}
	}})
	must(t, err)
	r.set(1, 0, 8) // so that the question is asked again
	wantReason(t, tx.Commit(ctx), txn.ReasonValidate)
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	r.quiet()
}

// A readHook is a queue that tells of each READ of a region before it is posted.
type readHook struct {
	rdma.Queue
	reads *int
	f     func()
}

func (q readHook) Read(to rdma.MachineID, k rdma.Key, off uint64, dst []byte, tag uint64) (bool, error) {
	if txn.IsRegion(k) {
		*q.reads++
		q.f()
	}
	return q.Queue.Read(to, k, off, dst, tag)
}

// What was read from a machine that may not be the primary any more when the READ has
// come back is read again, from whoever is: a READ, the versions that validation reads,
// and pairs.
func TestReadsOfAChangedRouteAreRepeated(t *testing.T) {
	for name, look := range map[string]func(m *txn.Machine, tx *txn.Tx, p region.Ptr) error{
		"a read": func(m *txn.Machine, _ *txn.Tx, p region.Ptr) error {
			_, err := m.Read(p, make([]byte, p.Capacity()))
			return err
		},
		"a validation": func(_ *txn.Machine, tx *txn.Tx, _ region.Ptr) error { return tx.Validate() },
	} {
		r := open(t, txntest.Config{Machines: 2, Replicas: 1, Workers: 1}, 2)
		r.lost = true // the routes are not the instance's in the end
		m := r.Machine(0)
		i := slices.IndexFunc(r.ptrs, func(p region.Ptr) bool { return m.ReplicasOf(p)[0] == 1 })
		p, reads := r.ptrs[i], 0
		tx := m.Begin()
		_, err := tx.Read(p)
		must(t, err)
		c := r.Configuration()
		m.WrapQueue(0, func(q rdma.Queue) rdma.Queue {
			return readHook{q, &reads, func() {
				if reads == 1 {
					m.Remap(c, func(region.ID) *region.Region { return nil })
				}
			}}
		})
		if err := look(m, tx, p); err != nil || reads != 2 {
			t.Errorf("%s: %v, %d READs", name, err, reads)
		}
		tx.Abort()
	}
}

// IsBlocked tells whether a region waits for its recovery: not before, and not of a region that nobody knows.
func TestIsBlocked(t *testing.T) {
	r := open(t, txntest.Config{Machines: 2, Replicas: 1, Workers: 1}, 2)
	r.lost = true // the routes are not the instance's in the end
	m := r.Machine(0)
	a := r.ptrs[0].Addr
	if m.IsBlocked(a) || m.IsBlocked(region.MakeAddr(1000, 64)) {
		t.Error("a region is blocked before a configuration changes, or one that there is not")
	}
	c := *r.Configuration()
	c.Regions = slices.Clone(c.Regions)
	for i := range c.Regions { // another primary
		c.Regions[i].Primary = 1 - c.Regions[i].Primary
	}
	m.Remap(&c, func(region.ID) *region.Region { return nil })
	if !m.IsBlocked(a) {
		t.Error("a region whose primary is new is not blocked")
	}
}
