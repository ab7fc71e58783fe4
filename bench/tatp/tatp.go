package tatp

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"

	"github.com/farmsql/farmsql/bench"
	"golang.org/x/sync/errgroup"
)

// A Config describes the data.
type Config struct {
	// Subscribers is the number of subscribers; 100,000 by default, the
	// description's smallest.
	Subscribers int
	// Seed determines the data.
	Seed uint64
	// Drop makes Load drop an existing database named tatp, over SQL.
	Drop bool
}

const (
	defaultSubscribers = 100_000
	subscribersMax     = 1 << 30
)

// A Workload is TATP on one target. A target has at most one.
type Workload struct {
	target *bench.Target
	cfg    Config
	store  store
	// The number of call forwardings is not a field: the target counts the inserted ones, minus the deleted ones.
}

var _ bench.Workload = (*Workload)(nil)

// A store holds the tables, behind one of the APIs.
type store interface {
	// create creates the tables or finds them; all processes call it at the same
	// time.
	create(ctx context.Context) error
	// newLoader returns a loader, for use by one goroutine.
	newLoader(ctx context.Context) (loader, error)
	newExecutor(ctx context.Context, th *bench.Thread) (executor, error)
	// check compares the tables with the loaded data, and checks that the number of
	// call forwardings is possible.
	check(ctx context.Context, loaded *totals, forwards span) error
}

// A loader puts subscribers into the tables in batches.
type loader interface {
	// load puts subscribers first to last, both included.
	load(ctx context.Context, first, last uint32) error
	close() error
}

// New returns TATP on a target, whose database is empty.
func New(target *bench.Target, cfg Config) (*Workload, error) {
	if cfg.Subscribers == 0 {
		cfg.Subscribers = defaultSubscribers
	}
	if cfg.Subscribers < 1 || cfg.Subscribers > subscribersMax {
		return nil, fmt.Errorf("tatp: %d subscribers, must be 1 to %d", cfg.Subscribers, subscribersMax)
	}
	w := &Workload{target: target, cfg: cfg}
	if target.API() == bench.SQL {
		w.store = &sqlStore{w: w, db: target.SQL()}
	} else {
		w.store = newNativeStore(w)
	}
	return w, nil
}

// Name implements bench.Workload.
func (w *Workload) Name() string { return "TATP" }

// Scale implements bench.Workload.
func (w *Workload) Scale() bench.Scale { return bench.Scale{N: w.cfg.Subscribers, Unit: "subscribers"} }

// Kinds implements bench.Workload.
func (w *Workload) Kinds() []string { return kindNames[:] }

// The number of subscribers loaded in one transaction. Native transactions that put
// many rows into few buckets conflict; SQL statements are faster if they are long.
const (
	loadBatchNative = 4
	loadBatchSQL    = 20
)

// Load implements bench.Workload.
func (w *Workload) Load(ctx context.Context, p *bench.Progress) error {
	if err := w.store.create(ctx); err != nil {
		return fmt.Errorf("tatp: %w", err)
	}
	if err := w.target.Barrier(ctx); err != nil {
		return err
	}
	if err := w.loadSubscribers(ctx, p); err != nil {
		return fmt.Errorf("tatp: loading: %w", err)
	}
	return nil
}

// Attach implements bench.Workload.
func (w *Workload) Attach(ctx context.Context) error { return w.store.create(ctx) }

// loadSubscribers loads this process's share of the batches.
func (w *Workload) loadSubscribers(ctx context.Context, p *bench.Progress) error {
	stage := p.Stage("loading subscribers", w.cfg.Subscribers)
	defer stage.Done()
	var next atomic.Uint32
	batch := loadBatchNative
	if w.target.API() == bench.SQL {
		batch = loadBatchSQL
	}
	loaders, ctx := errgroup.WithContext(ctx)
	for range runtime.GOMAXPROCS(0) {
		loaders.Go(func() error {
			l, err := w.store.newLoader(ctx)
			if err != nil {
				return err
			}
			for err == nil {
				n := int(next.Add(1)) - 1
				before := n * batch // subscribers in the batches before
				if before >= w.cfg.Subscribers {
					break
				}
				last := min(before+batch, w.cfg.Subscribers)
				if w.target.IsMine(n) {
					err = l.load(ctx, uint32(before+1), uint32(last))
				}
				stage.Add(last - before)
			}
			if closed := l.close(); err == nil {
				err = closed
			}
			return err
		})
	}
	return loaders.Wait()
}

// NewClient implements bench.Workload.
func (w *Workload) NewClient(ctx context.Context, th *bench.Thread) (bench.Client, error) {
	e, err := w.store.newExecutor(ctx, th)
	if err != nil {
		return nil, err
	}
	return &client{w: w, mix: newMix(th.Seed, w.cfg.Subscribers), executor: e}, nil
}

// A span is from least to most, both included.
type span struct{ least, most int64 }

func exactly[T int | uint64](n T) span { return span{int64(n), int64(n)} }

func (s span) has(n int64) bool { return s.least <= n && n <= s.most }

func (s span) String() string {
	if s.least == s.most {
		return fmt.Sprint(s.least)
	}
	return fmt.Sprintf("%d to %d", s.least, s.most)
}

// Check implements bench.Workload.
func (w *Workload) Check(ctx context.Context) error {
	counted, uncertain, err := w.target.Counted()
	if err != nil {
		return err
	}
	g, loaded := newGenerator(w.cfg.Seed), new(totals)
	for id := range uint32(w.cfg.Subscribers) {
		loaded.add(g.person(id + 1))
	}
	n := int64(loaded.forwards) + counted
	if err := w.store.check(ctx, loaded, span{n - uncertain, n + uncertain}); err != nil {
		return fmt.Errorf("tatp: %w", err)
	}
	return nil
}

// broken returns an error of a check.
func broken(format string, args ...any) error {
	return fmt.Errorf("%w: %s", bench.ErrInconsistent, fmt.Sprintf(format, args...))
}
