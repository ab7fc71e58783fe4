package growth

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/farmsql/farmsql/bench"
)

// errBroken is an error that no machine that stops causes.
var errBroken = errors.New("broken")

// A fakeWorkload is a workload whose transactions do what a function says.
type fakeWorkload struct {
	do        func(ctx context.Context, n int64) error // of transaction n, from 1
	connect   error
	check     error
	committed int
	done      atomic.Int64
}

var _ Counter = (*fakeWorkload)(nil)

func (*fakeWorkload) Name() string                                { return "fake" }
func (*fakeWorkload) Scale() bench.Scale                          { return bench.Scale{N: 3, Unit: "things"} }
func (*fakeWorkload) Kinds() []string                             { return []string{"order"} }
func (*fakeWorkload) Load(context.Context, *bench.Progress) error { return nil }
func (*fakeWorkload) Attach(context.Context) error                { return nil }
func (w *fakeWorkload) Check(context.Context) error               { return w.check }
func (w *fakeWorkload) Committed() (kind, n int)                  { return 0, w.committed }
func (w *fakeWorkload) NewClient(_ context.Context, th *bench.Thread) (bench.Client, error) {
	return &fakeClient{w, th}, w.connect
}

type fakeClient struct {
	*fakeWorkload
	thread *bench.Thread
}

func (c *fakeClient) Do(ctx context.Context) (kind int, err error) {
	n := c.done.Add(1)
	return 0, c.thread.Retry(ctx, func() error { return c.do(ctx, n) })
}

func (*fakeClient) Close() error { return driver.ErrBadConn }

// rest keeps clients without errors from spinning.
func rest(context.Context, int64) error {
	time.Sleep(time.Millisecond)
	return nil
}

func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	if err := bench.Poll(t.Context(), what, func() (bool, error) { return is(), nil }); err != nil {
		t.Fatal(err)
	}
}

// Clients spread over the machines that serve, also over one that comes later. From one that stops, and says so by errors, they go to the
// others.
func TestClientsSpread(t *testing.T) {
	c := newClients(9, 1)
	first, second, third := &fakeWorkload{do: rest}, &fakeWorkload{do: rest}, &fakeWorkload{do: rest}
	endpoints := []*endpoint{{machine: 0, workload: first}, {machine: 1, workload: second}, {machine: 2, workload: third}}
	at := func(want ...int) func() bool {
		return func() bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			for i, n := range want {
				if endpoints[i].clients != n {
					return false
				}
			}
			return true
		}
	}
	c.open(endpoints[0])
	c.begin(t.Context())
	await(t, "all at the first", at(9))
	c.open(endpoints[1])
	var stops atomic.Bool
	third.do = func(ctx context.Context, n int64) error {
		if stops.Load() {
			return &mysql.MySQLError{Number: 1053}
		}
		return rest(ctx, n)
	}
	c.open(endpoints[2])
	await(t, "three at each", at(3, 3, 3))
	c.shut(2)
	stops.Store(true)
	await(t, "none at the last", func() bool { return at(4, 5, 0)() || at(5, 4, 0)() })
	w, err := c.end(time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if len(w.failures) != 3 || w.failures[0].reason != "shutdown (1053)" || w.doubtful[0] != 3 || w.acknowledged[0] != len(w.ends) || len(w.ends) == 0 {
		t.Errorf("%d errors, %d doubtful, %d acknowledged, %d ends", len(w.failures), w.doubtful[0], w.acknowledged[0], len(w.ends))
	}
	if w.longest.length <= 0 {
		t.Error("no longest wait")
	}
}

func TestClientsCount(t *testing.T) {
	c := newClients(1, 1)
	w := &fakeWorkload{do: func(ctx context.Context, n int64) error {
		switch n {
		case 1:
			return bench.ErrMiss
		case 2:
			return io.EOF
		}
		return rest(ctx, n)
	}}
	tries := 0
	w.do = func(inner func(context.Context, int64) error) func(context.Context, int64) error {
		return func(ctx context.Context, n int64) error {
			if tries++; tries <= 2 {
				return &mysql.MySQLError{Number: 1213}
			}
			return inner(ctx, n)
		}
	}(w.do)
	c.open(&endpoint{workload: w})
	c.begin(t.Context())
	await(t, "some transactions", func() bool { return w.done.Load() > 5 })
	got, err := c.end(time.Minute)
	if err != nil || got.aborts["deadlock (1213)"] != 2 || len(got.failures) != 1 || got.failures[0].reason != connectionLost || got.acknowledged[0] != len(got.ends)-1 {
		t.Errorf("%v, %v, %v, %d acknowledged of %d", err, got.aborts, got.failures, got.acknowledged[0], len(got.ends))
	}
}

func TestClientsFail(t *testing.T) {
	for name, w := range map[string]*fakeWorkload{
		"a transaction": {do: func(context.Context, int64) error { return errBroken }},
		"a connection":  {do: rest, connect: &mysql.MySQLError{Number: 1146}},
	} {
		c := newClients(3, 1)
		c.open(&endpoint{machine: 4, workload: w})
		c.begin(t.Context())
		await(t, "the failure", func() bool { return c.failure() != nil })
		if _, err := c.end(time.Minute); err == nil || !strings.Contains(err.Error(), "a client of machine 4") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A client that gets no answer is not waited for without end.
func TestClientsHang(t *testing.T) {
	c := newClients(1, 1)
	w := &fakeWorkload{do: func(ctx context.Context, _ int64) error {
		<-ctx.Done()
		return ctx.Err()
	}}
	c.open(&endpoint{workload: w})
	c.begin(t.Context())
	await(t, "the client to wait", func() bool { return w.done.Load() > 0 })
	if _, err := c.end(time.Millisecond); err == nil || !strings.Contains(err.Error(), "got no answer after 1ms") {
		t.Error(err)
	}
}

// When the connections break, clients try again until the machine answers.
func TestClientsConnectAgain(t *testing.T) {
	c := newClients(1, 1)
	w := &fakeWorkload{do: rest, connect: &net.OpError{Op: "dial", Err: errBroken}}
	c.open(&endpoint{workload: w})
	c.begin(t.Context())
	errorsMet := func() int {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.work.failures)
	}
	await(t, "two errors", func() bool { return errorsMet() > 1 })
	if got, err := c.end(time.Minute); err != nil || len(got.doubtful) > 0 {
		t.Errorf("%v, %v", err, got.doubtful)
	}
}

func TestReasonOf(t *testing.T) {
	for _, c := range []struct {
		err    error
		reason string
	}{
		{&mysql.MySQLError{Number: 1047}, "unavailable (1047)"},
		{fmt.Errorf("commit: %w", &mysql.MySQLError{Number: 1180}), "outcome of the commit unknown (1180)"},
		{errors.Join(&mysql.MySQLError{Number: 1053}, driver.ErrBadConn), "shutdown (1053)"},
		{mysql.ErrInvalidConn, connectionLost},
		{io.ErrUnexpectedEOF, connectionLost},
		{&net.OpError{Op: "read", Err: errBroken}, connectionLost},
		{&mysql.MySQLError{Number: 1064}, ""},
		{errBroken, ""},
	} {
		if reason, ok := reasonOf(c.err); reason != c.reason || ok != (reason != "") {
			t.Errorf("%v: %q, %t", c.err, reason, ok)
		}
	}
}
