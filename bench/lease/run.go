package lease

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/farmsql/farmsql/bench"
	"github.com/farmsql/farmsql/cluster/lease"
	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
)

// machines is the number of machines that exchange leases; machine 0 is the CM.
const machines = 3

// tick is how often the progress is shown.
const tick = 100 * time.Millisecond

// ErrConfig means that a Config cannot be measured.
var ErrConfig = errors.New("bench/lease: not to be measured")

// Config selects the measurements.
type Config struct {
	Leases   []time.Duration // lease times
	Variants []string        // names of Variants; all if empty
	Duration time.Duration   // measured time of each variant
	Progress *bench.Progress // may be nil
}

// A Result has the measurements of Run.
type Result struct {
	Conditions bench.Conditions `json:"conditions"`
	Seconds    float64          `json:"seconds"` // measured time of each variant
	Leases     []string         `json:"leases"`
	Rows       []Row            `json:"rows"`
}

// A Row has, for one variant, the number of expired leases for each lease time.
type Row struct {
	Variant string  `json:"variant"`
	Counts  []int64 `json:"counts"`
}

// Run measures. It fails with ErrConfig, with ctx's error, or if a variant cannot be
// started.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	chosen, err := choose(cfg)
	if err != nil {
		return nil, err
	}
	res := &Result{Seconds: cfg.Duration.Seconds()}
	for _, l := range cfg.Leases {
		res.Leases = append(res.Leases, l.String())
	}
	threads := runtime.GOMAXPROCS(0)
	stop := load(threads)
	defer stop()
	watch := bench.StartWatch()
	for _, v := range chosen {
		counts, err := measure(ctx, v, cfg)
		if err != nil {
			return nil, err
		}
		res.Rows = append(res.Rows, Row{v.name, counts})
	}
	res.Conditions = watch.Conditions()
	c := &res.Conditions
	c.Workload, c.Machines, c.Threads, c.Durability = "leases", machines, threads, bench.Volatile
	return res, nil
}

// choose returns the variants that cfg asks for.
func choose(cfg Config) (chosen []variant, err error) {
	for _, l := range cfg.Leases {
		if l < time.Microsecond {
			return nil, fmt.Errorf("%w: lease time %v", ErrConfig, l)
		}
	}
	if cfg.Duration <= 0 || len(cfg.Leases) == 0 {
		return nil, fmt.Errorf("%w: %d lease times for %v", ErrConfig, len(cfg.Leases), cfg.Duration)
	}
	for _, v := range variants {
		if (len(cfg.Variants) == 0 && v.isHere()) || slices.Contains(cfg.Variants, v.name) {
			chosen = append(chosen, v)
		}
	}
	for _, name := range cfg.Variants {
		i := slices.IndexFunc(variants, func(v variant) bool { return v.name == name })
		if i < 0 || !variants[i].isHere() {
			return nil, fmt.Errorf("%w: variant %s; here there are %s", ErrConfig, name, strings.Join(Variants(), ", "))
		}
	}
	return chosen, nil
}

// measure counts the leases that run out, for each lease time.
func measure(ctx context.Context, v variant, cfg Config) (result []int64, err error) {
	stage := cfg.Progress.Stage(v.name, int(cfg.Duration/tick))
	defer stage.Done()
	counts := make([]atomic.Int64, len(cfg.Leases))
	var keepers []lease.Keeper
	defer func() {
		for _, k := range keepers {
			err = errors.Join(err, k.Close())
		}
	}()
	for i, l := range cfg.Leases {
		three, err := v.startAll(lease.Config{Length: l, Clock: clock.System{}, Expired: func(rdma.MachineID) { counts[i].Add(1) }})
		keepers = append(keepers, three...)
		if err != nil {
			return nil, fmt.Errorf("bench/lease: %s: %w", v.name, err)
		}
	}
	for _, k := range keepers { // the measurement begins only once leases are exchanged
		for !k.Valid() {
			if err := sleep(ctx, time.Millisecond); err != nil {
				return nil, err
			}
		}
	}
	before := read(counts)
	for left := cfg.Duration; left > 0; left -= tick {
		if err := sleep(ctx, min(tick, left)); err != nil {
			return nil, err
		}
		stage.Add(1)
	}
	result = read(counts)
	for i := range result {
		result[i] -= before[i]
	}
	return result, nil
}

func read(counts []atomic.Int64) []int64 {
	ns := make([]int64, len(counts))
	for i := range counts {
		ns[i] = counts[i].Load()
	}
	return ns
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// startAll starts the keepers of all machines of a new cluster. With an error it returns the
// keepers that have been started.
func (v variant) startAll(cfg lease.Config) (keepers []lease.Keeper, err error) {
	var members []call.Peer
	for m := range rdma.MachineID(machines) {
		members = append(members, call.Peer{Machine: m, Incarnation: 1 + uint64(m)})
	}
	start := v.cluster(rand.Uint64())
	for _, p := range members {
		k, err := start(p, cfg)
		if err != nil {
			return keepers, err
		}
		keepers = append(keepers, k)
	}
	for _, k := range keepers {
		k.Configure(0, members)
	}
	return keepers, nil
}

// load keeps n processors and the garbage collector busy.
func load(n int) (stop func()) {
	var done atomic.Bool
	var group sync.WaitGroup
	for range n {
		group.Go(func() {
			keep := make([][]byte, 4096)
			for i := 0; !done.Load(); i++ {
				keep[i%len(keep)] = make([]byte, 64+i%2048)
			}
		})
	}
	return func() {
		done.Store(true)
		group.Wait()
	}
}
