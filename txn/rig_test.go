package txn_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/farmsql/farmsql/internal/testnet"
	"github.com/farmsql/farmsql/internal/txntest"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/outcome"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ctx = context.Background()

// A rig is an instance under test. What it does with objects is what tests have
// in common: each object holds a number.
type rig struct {
	*txntest.Instance
	t    testing.TB
	ptrs []region.Ptr
	// lost says that a machine is lost: nothing can be expected of Close.
	lost bool
}

// shapes are the instances that tests of behaviour run on.
var shapes = []struct {
	machines, replicas int
	way                testnet.Way
}{
	{1, 1, testnet.Local},
	{2, 1, testnet.Local},
	{3, 3, testnet.Local},
	{3, 2, testnet.LocalAsync},
	{3, 2, testnet.TCP},
	{3, 3, testnet.BadTCP},
	{3, 3, testnet.Verbs},
}

func eachShape(t *testing.T, f func(t *testing.T, cfg txntest.Config)) {
	for _, s := range shapes {
		if s.way == testnet.BadTCP && !testnet.RunsBad(t) || s.way == testnet.Verbs && !testnet.HasCard(t) {
			continue
		}
		t.Run(fmt.Sprintf("machines=%d,replicas=%d,%s", s.machines, s.replicas, s.way), func(t *testing.T) {
			f(t, txntest.Config{Machines: s.machines, Replicas: s.replicas, NewNetwork: over(t, s.way)})
		})
	}
}

// over returns what makes networks for txntest.Config.
func over(t testing.TB, way testnet.Way) func() txntest.Network {
	return func() txntest.Network { return testnet.New(t, way) }
}

// open opens an instance and makes n objects, number i at machine i modulo their
// number. When the test ends nothing may be left over.
func open(t testing.TB, cfg txntest.Config, n int) *rig {
	t.Helper()
	x, err := txntest.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{Instance: x, t: t}
	t.Cleanup(func() {
		if err := x.Close(); err != nil && !r.lost {
			t.Error(err)
		}
	})
	for i := range n {
		r.ptrs = append(r.ptrs, r.make(i%x.Machines(), 0))
	}
	return r
}

// quiet checks that nothing is left over, and all replicas agree; it is the end of
// a test in which no machine was lost.
func (r *rig) quiet() {
	r.t.Helper()
	if err := r.Check(slices.Values(r.ptrs)); err != nil {
		r.t.Error(err)
	}
	for i := range r.Machines() {
		if err := r.idle(i); err != nil {
			r.t.Error(err)
		}
	}
}

// idle waits a little for machine i to be idle: a peer may have freed its log and
// not yet said so.
func (r *rig) idle(i int) (err error) {
	for range 200 {
		if err = r.Machine(i).Quiesce(time.Second); err == nil {
			err = r.Machine(i).Idle()
		}
		if err == nil {
			return nil
		}
		time.Sleep(time.Millisecond)
	}
	return err
}

// make makes an object with a number at a machine.
func (r *rig) make(machine int, number uint64) (p region.Ptr) {
	r.t.Helper()
	r.run(machine, func(t *txn.Tx) error {
		var b []byte
		var err error
		if p, b, err = t.Alloc(100, 0); err == nil {
			put(b, number)
		}
		return err
	})
	return p
}

// bigObjects makes n objects of some size at a machine.
func (r *rig) bigObjects(machine, bytes, n int) (ptrs []region.Ptr) {
	r.t.Helper()
	for range n {
		r.run(machine, func(t *txn.Tx) error {
			p, _, err := t.Alloc(bytes, 0)
			ptrs = append(ptrs, p)
			return err
		})
	}
	r.ptrs = append(r.ptrs, ptrs...)
	return ptrs
}

func writeAll(t *txn.Tx, ptrs []region.Ptr, number uint64) error {
	for _, p := range ptrs {
		if err := write(t, p, number); err != nil {
			return err
		}
	}
	return nil
}

// deaf keeps a machine from looking at what it gets, until hear is called.
func (r *rig) deaf(machine int) (hear func()) {
	until := make(chan struct{})
	m := r.Machine(machine)
	var held sync.WaitGroup
	for w := range m.Workers() {
		held.Add(1)
		go m.Locked(w, func() {
			held.Done()
			<-until
		})
	}
	held.Wait()
	return func() { close(until) }
}

func (r *rig) run(machine int, fn func(*txn.Tx) error) {
	r.t.Helper()
	if err := r.Machine(machine).Run(ctx, fn); err != nil {
		r.t.Fatal(err)
	}
}

// set sets object i from a machine.
func (r *rig) set(machine, i int, number uint64) {
	r.t.Helper()
	r.run(machine, func(t *txn.Tx) error { return write(t, r.ptrs[i], number) })
}

// get reads object i without a transaction.
func (r *rig) get(machine, i int) uint64 {
	r.t.Helper()
	b := make([]byte, r.ptrs[i].Capacity())
	if _, err := r.Machine(machine).Read(r.ptrs[i], b); err != nil {
		r.t.Fatal(err)
	}
	return number(b)
}

func put(b []byte, number uint64) { binary.LittleEndian.PutUint64(b, number) }

func number(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }

func write(t *txn.Tx, p region.Ptr, number uint64) error {
	b, err := t.Write(p)
	if err == nil {
		put(b, number)
	}
	return err
}

func read(t *txn.Tx, p region.Ptr) (uint64, error) {
	b, err := t.Read(p)
	if err != nil {
		return 0, err
	}
	return number(b), nil
}

// must fails the test on an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantReason checks why a transaction aborted.
func wantReason(t testing.TB, err error, reason txn.Reason) {
	t.Helper()
	var a *txn.AbortError
	if !errors.Is(err, outcome.ErrConflict) || !errors.As(err, &a) || a.Reason != reason {
		t.Errorf("got %v, want an abort for reason %v", err, reason)
	}
}
