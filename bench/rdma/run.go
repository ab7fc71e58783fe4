package rdma

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/farmsql/farmsql/bench"
)

// Config selects the measurements.
type Config struct {
	Providers   []string      // names of Providers; all if empty
	Experiments []string      // names of Experiments; all if empty
	MaxX        int           // leaves out larger values of x, for small machines; 0 leaves out none
	Turn        time.Duration // measured time of each row
	Progress    *bench.Progress
}

// Experiments returns the names of all experiments.
func Experiments() (names []string) {
	for _, e := range experiments {
		names = append(names, e.name)
	}
	return names
}

// Run measures. It fails with ErrConfig, with ctx's error, or if an operation fails.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	if len(cfg.Providers) == 0 {
		cfg.Providers = Providers()
	}
	if cfg.Turn <= 0 {
		return nil, fmt.Errorf("%w: %v for each row", ErrConfig, cfg.Turn)
	}
	for _, name := range cfg.Experiments {
		if !slices.Contains(Experiments(), name) {
			return nil, fmt.Errorf("%w: experiment %s; there are %s", ErrConfig, name, strings.Join(Experiments(), ", "))
		}
	}
	res := &Result{Seconds: cfg.Turn.Seconds()}
	watch := bench.StartWatch()
	for _, name := range cfg.Providers {
		p, err := providerOf(name)
		if err != nil {
			return nil, err
		}
		res.IsSoft = res.IsSoft || (name == "verbs" && isSoft())
		for i := range experiments {
			if e := &experiments[i]; len(cfg.Experiments) == 0 || slices.Contains(cfg.Experiments, e.name) {
				if err := res.measure(ctx, cfg, p, e); err != nil {
					return nil, err
				}
			}
		}
	}
	res.Conditions = watch.Conditions()
	res.Conditions.Workload, res.Conditions.Durability = "rdma", bench.Volatile
	return res, nil
}

// measure measures an experiment.
func (res *Result) measure(ctx context.Context, cfg Config, p provider, e *experiment) error {
	stage := cfg.Progress.Stage(p.name+" "+e.name, len(e.series)*len(e.xs))
	defer stage.Done()
	for _, series := range e.series {
		for _, x := range e.xs {
			stage.Add(1)
			if err := ctx.Err(); err != nil {
				return err
			}
			if cfg.MaxX > 0 && x > cfg.MaxX {
				continue
			}
			row := Row{Experiment: e.name, Provider: p.name, Series: series, X: x}
			err := e.measure(&bed{p, cfg.Turn, &row}, series, x)
			if errors.Is(err, errNone) {
				continue
			}
			if err != nil {
				return fmt.Errorf("%s, %s, %s, %d: %w", p.name, e.name, series, x, err)
			}
			res.Rows = append(res.Rows, row)
		}
	}
	return nil
}
