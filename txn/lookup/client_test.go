package lookup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/farmsql/farmsql/internal/txntest"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/outcome"
)

var ctx = context.Background()

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A chain is a search through objects that all have to be read, the last of which decides. steps says what was called.
type chain struct {
	ptrs  []region.Ptr
	at    int
	pair  bool
	steps []string
	fails error // what Learn returns
}

func (c *chain) Start(walk bool) (Place, bool) {
	c.steps = append(c.steps, fmt.Sprintf("start %v", walk))
	return Place{Ptr: c.ptrs[c.at], Pair: c.pair}, c.at < len(c.ptrs)
}

func (c *chain) End(got []Object, failed error) (bool, error) {
	c.steps = append(c.steps, fmt.Sprintf("end %d", len(got)))
	if failed != nil {
		return false, failed
	}
	c.at++
	return c.at == len(c.ptrs), nil
}

func (c *chain) Owner() region.Addr      { return c.ptrs[0].Addr }
func (c *chain) Request(b []byte) []byte { return append(b, "request"...) }

func (c *chain) Learn(a Answer) error {
	c.steps = append(c.steps, "learn "+string(a.Value))
	return c.fails
}

// open starts two machines, and makes a chain of objects at the first.
func open(t *testing.T) (x *txntest.Instance, ptrs []region.Ptr) {
	t.Helper()
	x, err := txntest.Open(txntest.Config{Machines: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	err = x.Machine(0).Run(ctx, func(tx *txn.Tx) error {
		first, err := tx.AllocArray(100, 4, 0)
		for i := range 3 {
			ptrs = append(ptrs, first.Element(i))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return x, ptrs
}

// find looks up from the second machine, within an operation.
func find(x *txntest.Instance, machine int, w Way, s Search) error {
	m := x.Machine(machine)
	op := m.Start()
	defer op.End()
	return NewClient(m, Users, w).Find(ctx, Reading(op), s)
}

// serve has the first machine answer with fn.
func serve(x *txntest.Instance, fn func() (Answer, error)) {
	Serve(x.Machine(0), Users, func(_ context.Context, request []byte) (Answer, error) {
		if string(request) != "request" {
			return Answer{}, errors.New("another request")
		}
		return fn()
	})
}

func TestWays(t *testing.T) {
	x, ptrs := open(t)
	serve(x, func() (Answer, error) { return Answer{Value: []byte("all"), Sources: []txn.Source{source(1)}}, nil })
	read, ask := "start false, end 1", "learn all"
	walk := strings.Join([]string{"start true, end 1", "start true, end 1", "start true, end 1"}, ", ")
	for _, c := range []struct {
		machine int
		way     Way
		want    string
	}{
		{1, Measured, strings.Join([]string{read, read, read}, ", ")}, // a message costs more
		{1, OneSided, walk},
		{1, OneTwoSided, read + ", " + ask},
		{1, TwoSided, ask},
		{0, Measured, walk}, // its own memory
		{0, TwoSided, walk},
	} {
		s := &chain{ptrs: ptrs}
		if err := find(x, c.machine, c.way, s); err != nil || strings.Join(s.steps, ", ") != c.want {
			t.Errorf("machine %d, %v: %q, %v, want %q", c.machine, c.way, s.steps, err, c.want)
		}
	}
}

func TestMeasured(t *testing.T) {
	for costs, want := range map[rdma.Costs]int{{Read: 2, Message: 20}: 10, {Read: 2, Wait: 8, Message: 20}: 2, {Read: 5, Message: 4}: 1, {}: 1} {
		if got := Measured.reads(costs); got != want {
			t.Errorf("%v: %d READs, want %d", costs, got, want)
		}
	}
	for _, w := range []Way{Measured, OneSided, OneTwoSided, TwoSided} {
		if got, err := ParseWay(w.String()); got != w || err != nil {
			t.Errorf("%v: %v, %v", w, got, err)
		}
	}
	if _, err := ParseWay("sideways"); err == nil {
		t.Error("sideways is a way")
	}
}

// A pair is two objects, by one READ where the reader can do that.
func TestPairs(t *testing.T) {
	x, ptrs := open(t)
	m := x.Machine(1)
	for name, c := range map[string]struct {
		reader func(tx *txn.Tx) Reader
		reads  uint64
	}{
		"transaction": {func(tx *txn.Tx) Reader { return tx }, 3},
		"singly":      {func(tx *txn.Tx) Reader { return struct{ Reader }{tx} }, 6},
	} {
		tx, before := m.Begin(), m.Stats()
		s := &chain{ptrs: ptrs, pair: true}
		err := Walk(c.reader(tx), s)
		tx.Abort()
		got := m.Stats().Sub(before).RemoteReads
		if err != nil || got != c.reads || !slices.Contains(s.steps, "end 2") {
			t.Errorf("%s: %d READs, want %d; %q, %v", name, got, c.reads, s.steps, err)
		}
	}
}

// An owner that refuses is not needed: the lookup goes on by READs.
func TestRefusals(t *testing.T) {
	for name, err := range map[string]error{
		"an error of its own": errors.New("broken"), "a long answer": outcome.ErrTooLarge, "it closes": outcome.ErrClosed, "it was evicted": outcome.ErrEvicted,
	} {
		t.Run(name, func(t *testing.T) {
			x, ptrs := open(t)
			serve(x, func() (Answer, error) { return Answer{}, err })
			s := &chain{ptrs: ptrs}
			if err := find(x, 1, OneTwoSided, s); err != nil || len(s.steps) != 6 {
				t.Errorf("%q, %v", s.steps, err)
			}
		})
	}
	t.Run("nobody serves", func(t *testing.T) {
		x, ptrs := open(t)
		if err := find(x, 1, TwoSided, &chain{ptrs: ptrs}); err != nil {
			t.Error(err)
		}
		if err := find(x, 1, TwoSided, lost{&chain{ptrs: ptrs}}); !errors.Is(err, ErrUndecided) || !strings.Contains(err.Error(), "nothing is registered") {
			t.Error(err)
		}
		if err := Walk(nil, lost{&chain{ptrs: ptrs}}); !errors.Is(err, ErrUndecided) {
			t.Error(err)
		}
	})
}

// A lost search never knows where to read.
type lost struct{ *chain }

func (lost) Start(bool) (Place, bool) { return Place{}, false }

// Errors that say that the whole is to be tried again, answers that do not decode, and those of Learn, End and READs are the lookup's.
func TestErrors(t *testing.T) {
	x, ptrs := open(t)
	answer, failure := Answer{Sources: []txn.Source{source(1)}}, error(nil)
	serve(x, func() (Answer, error) { return answer, failure })
	wrong := errors.New("wrong")
	if err := find(x, 1, TwoSided, &chain{ptrs: ptrs, fails: wrong}); !errors.Is(err, wrong) {
		t.Error(err)
	}
	failure = outcome.ErrConflict
	if err := find(x, 1, TwoSided, &chain{ptrs: ptrs}); !errors.Is(err, outcome.ErrConflict) {
		t.Error(err)
	}
	failure, answer = nil, Answer{}
	if err := find(x, 1, TwoSided, &chain{ptrs: ptrs}); !errors.Is(err, ErrMessage) {
		t.Error(err)
	}
	if err := x.Machine(0).Run(ctx, func(tx *txn.Tx) error { return tx.Free(ptrs[0]) }); err != nil {
		t.Fatal(err)
	}
	for _, pair := range []bool{false, true} {
		if err := find(x, 1, OneTwoSided, &chain{ptrs: ptrs, pair: pair}); !errors.Is(err, region.ErrFreed) {
			t.Error(err)
		}
	}
}

// The owner is lost again and again: each time another one is asked, up to a bound.
func TestOwnersLost(t *testing.T) {
	x, ptrs := open(t)
	asked, enough := 0, 3
	serve(x, func() (Answer, error) {
		if asked++; asked < enough {
			return Answer{}, outcome.ErrInDoubt
		}
		return Answer{Sources: []txn.Source{source(1)}}, nil
	})
	if err := find(x, 1, TwoSided, &chain{ptrs: ptrs}); err != nil || asked != enough {
		t.Errorf("asked %d times, %v", asked, err)
	}
	asked, enough = 0, ownersMax+1
	if err := find(x, 1, TwoSided, &chain{ptrs: ptrs}); !errors.Is(err, outcome.ErrInDoubt) || asked != ownersMax {
		t.Errorf("asked %d times, %v", asked, err)
	}
}
