package simtest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/internal/sim"
)

// Options describe one run.
type Options struct {
	Seed  uint64
	World sim.Options
	// Farm has the numbers of machines, replicas and workers, and the sizes.
	Farm farm.Config
	// New makes the cluster under test.
	New func(*sim.World, farm.Config, Hooks) Cluster
	// Domains is into how many failure domains the machines are dealt out. At
	// least three, so that the failure of one leaves a majority, and one for each
	// replica.
	Domains int
	// Clients is how many each machine has, Readers how many more that only read
	// its own objects, and Duration for how long they and the faults go on.
	Clients, Readers int
	Duration         time.Duration
	// Objects and Keys are on how many of each kind the workload is.
	Objects, Keys int
	// LeafBytes and Buckets make indexes of few keys deep.
	LeafBytes, Buckets int
	// Faults are injected one after the other, about Calm apart.
	Faults []Fault
	Calm   time.Duration
}

// With returns the options with so many machines, and work for all of them.
func (o Options) With(machines int) Options {
	o.Farm.Machines = machines
	o.Farm.Replicas = min(o.Farm.Replicas, machines)
	o.Objects += machines
	o.Keys += machines
	return o
}

// Draw draws options from a seed. Some kinds of fault are left out of each run,
// and all of them of one run in eight.
func Draw(seed uint64) Options {
	rng := rand.New(rand.NewPCG(seed, 0xd4a3))
	machines := 3 + rng.IntN(5)
	o := Options{
		Seed: seed,
		World: sim.Options{
			Seed: seed, Drift: rng.IntN(300), Loss: rng.IntN(100),
			Latency: time.Duration(1+rng.IntN(5)) * time.Microsecond,
			TimeMax: 10 * time.Minute, EventsMax: 200e6,
		},
		Farm: farm.Config{
			Machines: machines, Replicas: 1 + rng.IntN(min(3, machines)), Workers: 1 + rng.IntN(3),
			RegionBytes: 1 << 20, LogBytes: 64 << 10 << rng.IntN(3), MessageBytes: 16 << 10 << rng.IntN(3),
		},
		New:      NewWhole,
		Domains:  3 + rng.IntN(machines-2),
		Clients:  1 + rng.IntN(4),
		Duration: time.Duration(2+rng.IntN(10)) * time.Millisecond,
		Objects:  4 + rng.IntN(12), Keys: 4 + rng.IntN(40),
		LeafBytes: 200 + rng.IntN(400), Buckets: 4 << rng.IntN(3),
		Calm: time.Duration(200+rng.IntN(3000)) * time.Microsecond,
	}
	if rng.IntN(2) > 0 {
		o.Readers = 1
	}
	if rng.IntN(8) > 0 {
		for f := range Fault(faults) {
			if rng.IntN(3) > 0 {
				o.Faults = append(o.Faults, f)
			}
		}
	}
	return o
}

func (o Options) String() string {
	var names []string
	for _, f := range o.Faults {
		names = append(names, f.String())
	}
	slices.Sort(names)
	return fmt.Sprintf("seed %d: %d machines, %d replicas, %d workers, logs of %d KB, %d clients each, %d objects, %d keys, %v, latency %v, faults: %s",
		o.Seed, o.Farm.Machines, o.Farm.Replicas, o.Farm.Workers, o.Farm.LogBytes>>10, o.Clients, o.Objects, o.Keys,
		o.Duration, o.World.Latency, strings.Join(names, ", "))
}
