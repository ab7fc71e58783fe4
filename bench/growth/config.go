package growth

import (
	"errors"
	"fmt"
	"time"

	"github.com/farmsql/farmsql"
	"github.com/farmsql/farmsql/bench"
)

// SpreadMost is the largest spread, of the machines' bytes or primaries, that counts as even: a part of the mean.
const SpreadMost = 0.2

// A Config describes a run. The zero value of a field means its default, if it has one.
type Config struct {
	// Program is the farmsql program.
	Program string
	// Data is the folder for the machines' data folders; /dev/shm by default. The run removes
	// everything that it makes there.
	Data string
	// Replicas is the number of replicas of each region, 1 by default. Machines is the number of
	// machines after the last has joined, and Back after the last has left. Resize, if not 0, is the number of
	// replicas of each region after the last machine has joined.
	Replicas, Machines, Back, Resize int
	// Workers, RegionSize, LogSize, Lease and Pace are as in farmsql.Config; the defaults are 1 worker,
	// 4 MiB, 1 MiB, 400 ms and farmsql.PaceSlow.
	Workers             int
	RegionSize, LogSize farmsql.Size
	Lease               time.Duration
	Pace                farmsql.Pace
	// Clients is the number of clients at all machines together; twice Machines by default.
	Clients int
	// WarmUp is not measured. Between is the undisturbed time before, between and after the steps; 1 s by default.
	WarmUp, Between time.Duration
	Seed            uint64
	// Patience bounds the wait for the end of a step; five minutes by default.
	Patience time.Duration
	Progress *bench.Progress
	// AnyBuild is bench.Options.AnyBuild.
	AnyBuild bool
}

// ErrConfig is wrapped by all errors of Validate.
var ErrConfig = errors.New("growth: cannot be measured")

// Validate returns an error if growth cannot be measured with c.
func (c Config) Validate() error {
	c = c.withDefaults()
	switch {
	case c.Replicas < 1:
		return fmt.Errorf("%w: %d replicas (--replicas)", ErrConfig, c.Replicas)
	case c.Machines <= c.first():
		return fmt.Errorf("%w: a cluster of %d replicas (--replicas) begins with %d machines, and cannot grow to %d (--machines)", ErrConfig, c.Replicas, c.first(), c.Machines)
	case c.Back >= c.Machines || c.Back < c.first():
		return fmt.Errorf("%w: from %d machines (--machines) to %d (--back): it must be fewer, and at least the %d that keep the configuration", ErrConfig, c.Machines, c.Back, c.first())
	case c.Resize < 0 || c.Resize > c.Back:
		return fmt.Errorf("%w: from %d replicas (--replicas) to %d (--resize) with %d machines at the end (--back): there must be a machine for each", ErrConfig, c.Replicas, c.Resize, c.Back)
	case c.Clients < 1:
		return fmt.Errorf("%w: %d clients (--clients)", ErrConfig, c.Clients)
	case c.WarmUp < 0 || c.Between < 0:
		return fmt.Errorf("%w: a warm-up of %v (--warm-up), %v between the steps (--between)", ErrConfig, c.WarmUp, c.Between)
	case c.Lease < 0 || c.Workers < 0:
		return fmt.Errorf("%w: leases of %v (--lease), %d workers (--workers)", ErrConfig, c.Lease, c.Workers)
	}
	return nil
}

// first is the number of machines with which the cluster begins. They keep the configuration, so it
// is odd: the number of replicas, or one more.
func (c *Config) first() int { return c.Replicas | 1 }

func (c Config) withDefaults() Config {
	setDefault(&c.Data, "/dev/shm")
	setDefault(&c.Replicas, 1)
	setDefault(&c.Machines, 5)
	setDefault(&c.Back, 3)
	setDefault(&c.Workers, 1)
	setDefault(&c.RegionSize, 4*farmsql.MiB)
	setDefault(&c.LogSize, farmsql.MiB)
	setDefault(&c.Lease, 400*time.Millisecond)
	setDefault(&c.Pace, farmsql.PaceSlow)
	setDefault(&c.Clients, 2*c.Machines)
	setDefault(&c.Between, time.Second)
	setDefault(&c.Patience, 5*time.Minute)
	return c
}

func setDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}
