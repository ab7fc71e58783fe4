package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/farmsql/farmsql/internal/invariant"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/outcome"
)

// A toy is a workload whose clients call do.
type toy struct {
	do     func(ctx context.Context, th *Thread, n int) (int, error)
	check  error
	open   error // of the second client
	opened atomic.Int64
	closed atomic.Int64
	calls  atomic.Int64
}

func (*toy) Name() string                          { return "toy" }
func (*toy) Scale() Scale                          { return Scale{1234, "things"} }
func (*toy) Kinds() []string                       { return []string{"odd", "even"} }
func (*toy) Load(context.Context, *Progress) error { return nil }
func (*toy) Attach(context.Context) error          { return nil }
func (w *toy) Check(context.Context) error         { return w.check }

func (w *toy) NewClient(_ context.Context, th *Thread) (Client, error) {
	if w.opened.Add(1) == 2 && w.open != nil {
		return nil, w.open
	}
	return &toyClient{toy: w, thread: th}, nil
}

type toyClient struct {
	toy    *toy
	thread *Thread
	n      int
}

func (c *toyClient) Do(ctx context.Context) (int, error) {
	c.n++
	c.toy.calls.Add(1)
	return c.toy.do(ctx, c.thread, c.n)
}

func (c *toyClient) Close() error {
	c.toy.closed.Add(1)
	return nil
}

// alternate does nothing of either kind in turn.
func alternate(_ context.Context, _ *Thread, n int) (int, error) { return 1 - n%2, nil }

// virtual makes a run with a virtual clock. The clock advances by a microsecond whenever it is
// read, and by the time that the test adds. A sleep ends at its virtual time.
func virtual(w Workload, o Options) (*run, *atomic.Int64) {
	now := new(atomic.Int64)
	if o.Threads == 0 {
		o.Threads = 1
	}
	r := &run{target: &Target{}, workload: w, options: o}
	r.now = func() time.Duration { return time.Duration(now.Add(int64(time.Microsecond))) }
	r.sleep = func(d time.Duration) { now.Add(int64(d)) }
	return r, now
}

func TestClosedLoop(t *testing.T) {
	w := &toy{do: func(ctx context.Context, th *Thread, n int) (int, error) {
		attempts := 0
		err := th.Retry(ctx, func() error {
			if attempts++; attempts == 1 && n%10 == 0 {
				return &mysql.MySQLError{Number: mysqlDeadlock}
			}
			return nil
		})
		if err == nil && n%4 == 0 {
			err = ErrMiss
		}
		return 1 - n%2, err
	}}
	res, err := Run(t.Context(), &Target{}, w, Options{Threads: 2, Transactions: 1000, Seed: 7, AnyBuild: true})
	if err != nil {
		t.Fatal(err)
	}
	if res.Total.Count != 2000 || res.Kinds[0].Count != 1000 || res.Kinds[1].Count != 1000 || res.Kinds[0].Name != "odd" {
		t.Errorf("%+v", res.Kinds)
	}
	if res.Kinds[1].MissedPart != 0.5 || res.Kinds[0].MissedPart != 0 || res.Total.MissedPart != 0.25 {
		t.Errorf("missed: %v, %v", res.Kinds[1].MissedPart, res.Total.MissedPart)
	}
	if res.Aborts["deadlock (1213)"] != 200 || len(res.Aborts) != 1 {
		t.Errorf("aborts %v", res.Aborts)
	}
	if w.closed.Load() != 2 || res.Conditions.Threads != 2 || res.Conditions.Seed != 7 {
		t.Errorf("%d clients closed, %+v", w.closed.Load(), res.Conditions)
	}
}

// Transactions that end during the warm-up do not count, and neither do conflicts during that time.
func TestWarmUpIsLeftOut(t *testing.T) {
	w := &toy{do: func(ctx context.Context, th *Thread, n int) (int, error) {
		first := n%2 == 0
		return 0, th.Retry(ctx, func() error {
			if first {
				first = false
				return outcome.ErrConflict
			}
			return nil
		})
	}}
	// A transaction reads the clock once, and so takes a microsecond.
	r, _ := virtual(w, Options{WarmUp: 300 * time.Microsecond, Duration: 100 * time.Microsecond})
	res, err := r.do(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n := res.Total.Count; n != 100 || w.calls.Load() != 399 {
		t.Errorf("%d of %d transactions measured", n, w.calls.Load())
	}
	if n := res.Aborts["conflict"]; n != 50 {
		t.Errorf("%d conflicts", n)
	}
	if res.Total.PerSecond != 1e6 || res.Total.P50 != 1 || res.Total.Max != 1 {
		t.Errorf("%+v", res.Total)
	}
}

// In the open loop, transactions that arrived while the database stood still have waited, too.
func TestOpenLoopCountsFromArrival(t *testing.T) {
	var now *atomic.Int64
	w := &toy{do: func(_ context.Context, _ *Thread, n int) (int, error) {
		if n == 100 {
			now.Add(int64(10 * time.Millisecond))
		}
		return 0, nil
	}}
	var r *run
	r, now = virtual(w, Options{Duration: 40 * time.Millisecond, Rate: 20_000, Seed: 3})
	res, err := r.do(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// 800 transactions arrive. About 200 of them arrive while the database stands still, and wait 5
	// ms on average. In the closed loop only one would wait.
	if n := res.Total.Count; n < 650 || n > 950 {
		t.Errorf("%d transactions, want about 800", n)
	}
	if res.Total.Mean < 700 || res.Total.P99 < 8000 || res.Total.Max < 9900 || res.Total.P50 > 100 {
		t.Errorf("%+v", res.Total)
	}
	late, _ := virtual(&toy{do: func(context.Context, *Thread, int) (int, error) {
		now.Add(int64(time.Millisecond))
		return 0, nil
	}}, Options{Duration: 40 * time.Millisecond, Rate: 20_000})
	late.now = func() time.Duration { return time.Duration(now.Add(1)) }
	now.Store(0)
	res, err = late.do(t.Context())
	if err != nil || res.Total.Count != 39 || !strings.Contains(res.remarks(), "NOT KEPT UP: 975 of 20,000") {
		t.Errorf("%v, %+v", err, res)
	}
}

func TestRunFails(t *testing.T) {
	broken := errors.New("broken")
	fine := Options{Threads: 2, Transactions: 10, AnyBuild: true}
	stuck := &toy{do: func(ctx context.Context, th *Thread, _ int) (int, error) {
		if th.Index == 1 {
			return 0, broken
		}
		<-ctx.Done() // until the other's failure ends the run
		return 0, ctx.Err()
	}}
	for name, c := range map[string]struct {
		w    *toy
		o    Options
		want error
	}{
		"check":     {&toy{do: alternate, check: fmt.Errorf("%w: too few", ErrInconsistent)}, fine, ErrInconsistent},
		"client":    {&toy{do: alternate, open: broken}, fine, broken},
		"do":        {stuck, fine, broken},
		"threads":   {&toy{do: alternate}, Options{Threads: -1, Transactions: 1, AnyBuild: true}, nil},
		"no length": {&toy{do: alternate}, Options{AnyBuild: true}, nil},
		"two ends":  {&toy{do: alternate}, Options{Transactions: 1, Duration: 1, AnyBuild: true}, nil},
		"rate":      {&toy{do: alternate}, Options{Transactions: 1, Rate: -1, AnyBuild: true}, nil},
	} {
		res, err := Run(t.Context(), &Target{}, c.w, c.o)
		if err == nil || res != nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v, %v", name, res, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, &Target{}, &toy{do: alternate}, fine); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	r, _ := virtual(&toy{do: alternate}, Options{WarmUp: 1500 * time.Nanosecond, Duration: time.Nanosecond})
	if _, err := r.do(t.Context()); err == nil || !strings.Contains(err.Error(), "no transaction ended") {
		t.Errorf("nothing measured: %v", err)
	}
}

// A build with additional checks is refused.
func TestRefuse(t *testing.T) {
	_, err := Run(t.Context(), &Target{}, &toy{do: alternate}, Options{Transactions: 1})
	if errors.Is(err, ErrBuild) != invariant.Enabled || errors.Is(Refuse(), ErrBuild) != invariant.Enabled {
		t.Errorf("%v with invariants: %v", err, invariant.Enabled)
	}
}

func TestConflict(t *testing.T) {
	for err, want := range map[error]string{
		nil:                                     "",
		errors.New("other"):                     "",
		&mysql.MySQLError{Number: 1062}:         "",
		&mysql.MySQLError{Number: 1205}:         "lock wait (1205)",
		&mysql.MySQLError{Number: 1213}:         "deadlock (1213)",
		&pgconn.PgError{Code: "23505"}:          "",
		&pgconn.PgError{Code: "40001"}:          "not serializable (40001)",
		&pgconn.PgError{Code: "40P01"}:          "deadlock (40P01)",
		&pgconn.PgError{Code: "55P03"}:          "lock wait (55P03)",
		fmt.Errorf("x: %w", outcome.ErrLost):    "conflict",
		&txn.AbortError{Reason: txn.ReasonLock}: "lock",
	} {
		if reason, again := Conflict(err); reason != want || again != (want != "") {
			t.Errorf("%v: %q, %v", err, reason, again)
		}
	}
}

func TestViolatesKey(t *testing.T) {
	for err, want := range map[error]bool{
		nil: false, errors.New("other"): false, &mysql.MySQLError{Number: 1213}: false, &pgconn.PgError{Code: "40001"}: false,
		&mysql.MySQLError{Number: 1062}: true, &mysql.MySQLError{Number: 1452}: true,
		&pgconn.PgError{Code: "23505"}: true, fmt.Errorf("x: %w", &pgconn.PgError{Code: "23503"}): true,
	} {
		if ViolatesKey(err) != want {
			t.Errorf("%v: want %v", err, want)
		}
	}
}

// Every transaction asks.
func TestConflictOfNothingIsFree(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { Conflict(nil) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestRetryEnds(t *testing.T) {
	th := &Thread{aborts: map[string]uint64{}}
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	err := th.Retry(ctx, func() error {
		if n++; n == 5 {
			cancel()
		}
		return outcome.ErrConflict
	})
	if !errors.Is(err, context.Canceled) || n < 5 {
		t.Errorf("%v after %d attempts", err, n)
	}
}
