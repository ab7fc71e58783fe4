package tao

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"

	"github.com/farmsql/farmsql/bench"
	"golang.org/x/sync/errgroup"
)

// A Config describes the graph.
type Config struct {
	// Nodes is the initial number of nodes; 100,000 by default.
	Nodes int
	// LockFree leaves out all operations that are not lock-free reads, so that the number of reads
	// in a result is the number that lock-free reads need.
	LockFree bool
	// Seed determines the graph.
	Seed uint64
}

const (
	defaultNodes = 100_000
	nodesMax     = 1 << 30
)

// A Workload is the graph store on one target. A target has at most one.
type Workload struct {
	target *bench.Target
	cfg    Config
	gen    generator
	choose chooser
	store  *store
	// refs has the loaded nodes, by number - 1. Load sets it when it ends.
	refs []ref
}

var _ bench.Workload = (*Workload)(nil)

// New returns the graph store on a target, whose database is empty.
func New(target *bench.Target, cfg Config) (*Workload, error) {
	if cfg.Nodes == 0 {
		cfg.Nodes = defaultNodes
	}
	if cfg.Nodes < 1 || cfg.Nodes > nodesMax {
		return nil, fmt.Errorf("tao: %d nodes, must be 1 to %d", cfg.Nodes, nodesMax)
	}
	if target.API() == bench.SQL {
		return nil, fmt.Errorf("tao: the graph store is for the API %q", bench.Native)
	}
	w := &Workload{target: target, cfg: cfg, gen: generator{cfg.Seed, uint64(cfg.Nodes)}, choose: newChooser(cfg.Nodes)}
	w.store = newStore(w)
	return w, nil
}

// Name implements bench.Workload.
func (w *Workload) Name() string {
	if w.cfg.LockFree {
		return "TAO, lock-free reads only"
	}
	return "TAO"
}

// Scale implements bench.Workload.
func (w *Workload) Scale() bench.Scale { return bench.Scale{N: w.cfg.Nodes, Unit: "nodes"} }

// Kinds implements bench.Workload.
func (w *Workload) Kinds() []string {
	if w.cfg.LockFree {
		return kindNames[:assocGet]
	}
	return kindNames[:]
}

// Load implements bench.Workload.
func (w *Workload) Load(ctx context.Context, p *bench.Progress) error {
	if err := w.store.create(ctx); err != nil {
		return fmt.Errorf("tao: %w", err)
	}
	for _, stage := range []struct {
		name  string
		isAll bool // each process does the work for all nodes
		do    func(ctx context.Context, machine int, first, end uint64) error
	}{
		{"loading nodes", false, w.store.loadNodes},
		{"reading names", true, w.store.readNames},
		{"loading edges", false, w.store.loadEdges},
		{"reading heads", true, w.store.readHeads},
	} {
		err := w.target.Barrier(ctx)
		if err == nil {
			err = w.each(ctx, p.Stage(stage.name, w.cfg.Nodes), stage.isAll, stage.do)
		}
		if err != nil {
			return fmt.Errorf("tao: %s: %w", stage.name, err)
		}
	}
	return nil
}

// Attach implements bench.Workload.
func (w *Workload) Attach(ctx context.Context) error {
	var silent *bench.Progress
	err := w.store.create(ctx)
	for _, read := range []func(context.Context, int, uint64, uint64) error{w.store.readNames, w.store.readHeads} {
		if err == nil {
			err = w.each(ctx, silent.Stage("", 0), true, read)
		}
	}
	if err != nil {
		return fmt.Errorf("tao: %w", err)
	}
	return nil
}

// batch is how many nodes are loaded at a time.
const batch = 16

// each calls do with all nodes, in pieces of consecutive numbers. Each piece belongs to one
// machine. A process does the pieces of its own machines, each at its machine. If isAll is set, it
// also does the pieces of other processes' machines, at its own first machine.
func (w *Workload) each(ctx context.Context, stage *bench.Stage, isAll bool, do func(ctx context.Context, machine int, first, end uint64) error) error {
	defer stage.Done()
	var next atomic.Int64
	workers, ctx := errgroup.WithContext(ctx)
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() error {
			for {
				piece := int(next.Add(1)) - 1
				first := piece * batch
				if first >= w.cfg.Nodes {
					return nil
				}
				end := min(first+batch, w.cfg.Nodes)
				machine := piece % w.target.Machines()
				if isAll && !w.target.Has(machine) {
					machine = w.store.here[0]
				}
				if w.target.Has(machine) {
					if err := do(ctx, machine, uint64(first+1), uint64(end+1)); err != nil {
						return err
					}
				}
				stage.Add(end - first)
			}
		})
	}
	return workers.Wait()
}

// NewClient implements bench.Workload.
func (w *Workload) NewClient(_ context.Context, th *bench.Thread) (bench.Client, error) {
	return &client{mix: newMix(w, th), executor: w.store.newExecutor(th)}, nil
}

// One number counts the nodes and the edges that clients have added, minus those they have deleted:
// the nodes from this bit on, the edges below it.
const nodesShift = 40

// counted packs numbers of nodes and edges into one; either can be negative.
func counted(nodes, edges int) int64 { return (int64(nodes) << nodesShift) + int64(edges) }

// counts is the inverse of counted, or of a sum of its results.
func counts(n int64) (nodes, edges int64) {
	edges = (n << (64 - nodesShift)) >> (64 - nodesShift) // the low bits, with their sign
	return (n - edges) >> nodesShift, edges
}

// Check implements bench.Workload.
func (w *Workload) Check(ctx context.Context) error {
	n, uncertain, err := w.target.Counted()
	if err != nil {
		return err
	}
	nodes, edges := counts(n)
	for id := range uint64(w.cfg.Nodes) {
		edges += int64(w.gen.degree(id + 1))
	}
	nodes += int64(w.cfg.Nodes)
	if err := w.store.check(ctx, total{nodes, edges}, uncertain); err != nil {
		return fmt.Errorf("tao: %w", err)
	}
	return nil
}

// broken returns an error of a check.
func broken(format string, args ...any) error {
	return fmt.Errorf("%w: %s", bench.ErrInconsistent, fmt.Sprintf(format, args...))
}
