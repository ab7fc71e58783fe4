package simtest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/internal/sim"
	"github.com/farmsql/farmsql/recovery"
)

// Options describe one run.
type Options struct {
	Seed uint64
	// World says how the machines' surroundings are. Its datagrams are lost only
	// while there are faults.
	World sim.Options
	// Farm has the numbers of machines, replicas and workers, and the sizes.
	Farm farm.Config
	// New makes the cluster under test.
	New func(*sim.World, farm.Config, Hooks) Cluster
	// Domains is into how many failure domains the machines are dealt out: so many
	// that the failure of one leaves a majority, and one for each replica.
	Domains int
	// Clients is how many each machine has, Readers how many more that only read
	// its own objects, and Duration for how long they and the faults go on.
	Clients, Readers int
	Duration         time.Duration
	// Tables are how many tables there are names for; 0: there is no catalog. Otherwise
	// each machine has one more client, which defines them.
	Tables int
	// Workload, if not nil, gives each machine so many more clients, Sessions of it.
	Workload Workload
	Sessions int
	// Errands gives each machine another client, which runs them.
	Errands bool
	// Trouble is how many of a thousand chances for trouble (clock.Trouble) are taken
	// as long as there are faults.
	Trouble int
	// Stale is how many of a thousand refreshes of a cache are lost as long as there are
	// faults.
	Stale int
	// Small is how many of a thousand transactions are taken for large ones, and of these
	// do their work in the smallest pieces, as long as there are faults.
	Small int
	// Patience is how long operations wait for what only the rest of the instance can
	// bring; 0: farm.MemberConfig's default.
	Patience time.Duration
	// Objects and Keys are on how many of each kind the workload is.
	Objects, Keys int
	// LeafBytes and Buckets make indexes of few keys deep.
	LeafBytes, Buckets int
	// Faults are injected one after the other, about Calm apart.
	Faults []Fault
	// Second are the steps of recovery at which second faults come; nil: all.
	Second []recovery.Step
	Calm   time.Duration
	// Overlap, if not nil, has other faults come at any time, in place of Faults.
	Overlap *Overlap
}

// With returns the options with so many machines, and work for all of them.
func (o Options) With(machines int) Options {
	o.Farm.Machines = machines
	o.Farm.Replicas = min(o.Farm.Replicas, machines)
	o.Objects += machines
	o.Keys += machines
	return o
}

// lossMax is how many of a thousand datagrams are lost, at most. Leases of 10 ms
// are renewed four times in that time, by three datagrams each: with a loss of one
// in twenty, as many machines would be suspected by accident as are by intention,
// and no number of replicas would be enough.
const lossMax = 6

// Draw draws options from a seed. Some kinds of fault are left out of each run,
// and all of them of one run in eight.
func Draw(seed uint64) Options {
	rng := rand.New(rand.NewPCG(seed, 0xd4a3))
	machines := 3 + rng.IntN(5)
	o := Options{
		Seed: seed,
		World: sim.Options{
			Seed: seed, Drift: rng.IntN(300), Loss: rng.IntN(lossMax),
			Latency: time.Duration(1+rng.IntN(5)) * time.Microsecond,
			TimeMax: 10 * time.Minute, EventsMax: 200e6,
		},
		Farm: farm.Config{
			Machines: machines, Replicas: 1 + rng.IntN(min(3, machines)), Workers: 1 + rng.IntN(3),
			RegionBytes: 1 << 20, LogBytes: 64 << 10 << rng.IntN(3), MessageBytes: 16 << 10 << rng.IntN(3),
		},
		New:      NewMembers,
		Domains:  3 + rng.IntN(machines-2),
		Clients:  1 + rng.IntN(4),
		Duration: time.Duration(2+rng.IntN(10)) * time.Millisecond,
		Objects:  4 + rng.IntN(12), Keys: 4 + rng.IntN(40),
		LeafBytes: 200 + rng.IntN(400), Buckets: 4 << rng.IntN(3),
		Calm: time.Duration(200+rng.IntN(3000)) * time.Microsecond,
	}
	if perDomain := (machines + o.Domains - 1) / o.Domains; 2*perDomain >= machines {
		o.Domains = machines // the failure of one leaves a majority
	}
	if rng.IntN(2) > 0 {
		o.Readers = 1
	}
	if rng.IntN(8) > 0 {
		for f := range single {
			if rng.IntN(3) > 0 {
				o.Faults = append(o.Faults, f)
			}
		}
	}
	large := rand.New(rand.NewPCG(seed, 0x1a49e)) // of its own: what seeds drew before stays
	if large.IntN(2) == 0 {
		o.Small = 1 + large.IntN(smallMax)
	}
	return o
}

// smallMax is how many of a thousand transactions are large, at most.
const smallMax = 800

func (o Options) String() string {
	var names []string
	kinds, mode := o.Faults, ""
	if v := o.Overlap; v != nil {
		kinds, mode = v.Kinds, fmt.Sprintf(" up to %d at once, each for up to %v, memory lost in %d of 100,", v.Open, v.Hold, v.Lost)
		if v.Spare {
			mode += " a majority with all regions is spared,"
		}
		if v.Early {
			mode += " from the start on,"
		}
		if v.Core {
			mode += " some for good in the end,"
		}
	}
	if o.Stale > 0 {
		mode += fmt.Sprintf(" %d of 1,000 refreshes of caches are lost,", o.Stale)
	}
	if o.Small > 0 {
		mode += fmt.Sprintf(" %d of 1,000 transactions are large,", o.Small)
	}
	if o.Patience > 0 {
		mode += fmt.Sprintf(" patience of %v,", o.Patience)
	}
	if o.Workload != nil {
		mode += fmt.Sprintf(" %d sessions each,", o.Sessions)
	}
	for _, f := range kinds {
		names = append(names, f.String())
	}
	slices.Sort(names)
	return fmt.Sprintf("seed %d: %d machines, %d replicas, %d workers, logs of %d KB, %d clients each, %d objects, %d keys, %d tables, %v, latency %v, clocks off by up to %d ppm, faults:%s %s",
		o.Seed, o.Farm.Machines, o.Farm.Replicas, o.Farm.Workers, o.Farm.LogBytes>>10, o.Clients, o.Objects, o.Keys, o.Tables,
		o.Duration, o.World.Latency, o.World.Drift, mode, strings.Join(names, ", "))
}

// Overlapping returns the options with faults that overlap, drawn from the seed:
// several at once, or in every tenth run twenty, over a longer time.
func (o Options) Overlapping() Options {
	rng := rand.New(rand.NewPCG(o.Seed, 0x0e71a9))
	o.Faults, o.Overlap = nil, &Overlap{
		Open: 1 + rng.IntN(4), Hold: time.Duration(5+rng.IntN(40)) * time.Millisecond, Lost: rng.IntN(60), Spare: rng.IntN(3) == 0,
	}
	for _, f := range overlapping {
		if rng.IntN(3) > 0 {
			o.Overlap.Kinds = append(o.Overlap.Kinds, f)
		}
	}
	if len(o.Overlap.Kinds) == 0 {
		o.Overlap.Kinds = []Fault{Rolling}
	}
	o.Duration = time.Duration(10+rng.IntN(40)) * time.Millisecond
	o.Clients, o.Calm = 1+rng.IntN(2), time.Duration(200+rng.IntN(3000))*time.Microsecond
	if o.Seed%10 == 0 {
		o.Duration, o.Clients, o.Readers = 200*time.Millisecond, 1, 0
		o.Overlap.Max, o.Overlap.Open, o.Calm = 20, 4, 4*time.Millisecond
	}
	if rng.IntN(4) == 0 {
		o.World.Drift = rng.IntN(driftMax)
	}
	o.Overlap.Early = rng.IntN(4) == 0
	o.Errands = rng.IntN(2) == 0
	if rng.IntN(2) == 0 {
		o.Trouble = rng.IntN(30)
	}
	later := rand.New(rand.NewPCG(o.Seed, 0x3ed9e)) // what seeds drew before there were wedges stays
	if later.IntN(2) == 0 {
		o.Overlap.Kinds = append(o.Overlap.Kinds, Wedge)
	}
	defined := rand.New(rand.NewPCG(o.Seed, 0xddcafe)) // nor before there were tables
	if defined.IntN(2) == 0 {
		o.Tables = 1 + defined.IntN(4)
	}
	aged := rand.New(rand.NewPCG(o.Seed, 0x01dc0b)) // nor before there were old copies
	if aged.IntN(3) == 0 {
		o.Overlap.Kinds = append(o.Overlap.Kinds, OldCopy)
	}
	return o.scarce()
}

// scarce returns the options with limits drawn from the seed: on memory, on patience, and on
// what machines remember.
func (o Options) scarce() Options {
	rng := rand.New(rand.NewPCG(o.Seed, 0xf011)) // of its own: what seeds drew before stays
	if rng.IntN(3) == 0 {
		o.Overlap.Kinds = append(o.Overlap.Kinds, FullMemory)
	}
	if rng.IntN(3) == 0 {
		o.Patience = time.Duration(1+rng.IntN(50)) * 2 * time.Millisecond
	}
	if rng.IntN(3) == 0 {
		o.Stale = 1 + rng.IntN(staleMax)
	}
	return o
}

// plentiful returns the options without what scarce has drawn.
func (o Options) plentiful() Options {
	o.Patience, o.Stale, o.Small = 0, 0, 0
	o.Overlap.Kinds = slices.DeleteFunc(o.Overlap.Kinds, func(f Fault) bool { return f == FullMemory || f == OldCopy })
	return o
}

// staleMax is how many of a thousand refreshes of a cache are lost, at most: a search that
// goes astray tries 64 times.
const staleMax = 900

// wedges says whether machines may do nothing but keep their leases.
func (o Options) wedges() bool {
	return o.Overlap != nil && slices.Contains(o.Overlap.Kinds, Wedge)
}

// driftMax is by how much clocks may be off, in millionths: as much as leases allow
// for, a 64th.
const driftMax = 1e6 / 64
