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
	// World has the options of the machines' environment. It loses datagrams only while there are
	// faults.
	World sim.Options
	// Farm has the numbers of machines, replicas and workers, and the sizes of regions and logs.
	Farm farm.Config
	// New makes the cluster under test.
	New func(*sim.World, farm.Config, Hooks) Cluster
	// Domains is the number of failure domains to which the machines are assigned. There are enough
	// of them that the failure of one leaves a majority, and at least one for each replica.
	Domains int
	// Each machine has Clients clients, and Readers more that only read its own objects. Duration
	// is how long clients and faults go on.
	Clients, Readers int
	Duration         time.Duration
	// Tables is the number of table names; with 0 there is no catalog. Otherwise each machine has
	// one more client, which defines the tables.
	Tables int
	// Workload, if not nil, gives each machine Sessions more clients, which run the Workload.
	Workload Workload
	Sessions int
	// Errands gives each machine one more client, which runs errands.
	Errands bool
	// Trouble is how many of a thousand chances for trouble (clock.Trouble) are taken while there
	// are faults.
	Trouble int
	// Stale is how many of a thousand refreshes of a cache are lost while there are faults.
	Stale int
	// Small is how many of a thousand transactions are treated as large ones while there are
	// faults. The same share of the large ones work in the smallest pieces.
	Small int
	// Patience is how long operations wait for an event that only the rest of the instance can
	// cause; 0 means farm.MemberConfig's default.
	Patience time.Duration
	// Balance is farm.MemberConfig.BalanceDelay: if it is short, machines that have come back get
	// their share of the primaries while there are still faults. 0 means farm.MemberConfig's default.
	Balance time.Duration
	// Objects and Keys are the numbers of objects and of keys that the workload uses.
	Objects, Keys int
	// LeafBytes and Buckets are so small that indexes of few keys are deep.
	LeafBytes, Buckets int
	// Faults are injected one after the other, with a pause of about Calm.
	Faults []Fault
	// Second are the steps of recovery at which second faults are injected; nil means all steps.
	Second []recovery.Step
	Calm   time.Duration
	// Overlap, if not nil, describes faults that may come at any time, in place of Faults.
	Overlap *Overlap
}

// With returns the options with this number of machines, and one more object and key for each.
func (o Options) With(machines int) Options {
	o.Farm.Machines = machines
	o.Farm.Replicas = min(o.Farm.Replicas, machines)
	o.Objects += machines
	o.Keys += machines
	return o
}

// lossMax bounds how many of a thousand datagrams are lost. Leases of 10 ms are renewed four times
// in that time, by three datagrams each. If one datagram in twenty were lost, accidents would cause
// as many suspicions as faults do, and no number of replicas would be enough.
const lossMax = 6

// Draw draws options from a seed. Each run leaves out some kinds of fault; one run in eight leaves
// out all.
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
		o.Domains = machines // so many domains that the failure of one leaves a majority
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
	large := rand.New(rand.NewPCG(seed, 0x1a49e)) // separate, so that the draws above stay the same for each seed
	if large.IntN(2) == 0 {
		o.Small = 1 + large.IntN(smallMax)
	}
	return o
}

// smallMax bounds how many of a thousand transactions are large.
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
	if o.Balance > 0 {
		mode += fmt.Sprintf(" balance after %v,", o.Balance)
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

// Overlapping returns the options with overlapping faults, drawn from the seed: several at once,
// or, in every tenth run, twenty over a longer time.
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
	// Separate random numbers, so that the draws above stay the same as before there were wedges.
	later := rand.New(rand.NewPCG(o.Seed, 0x3ed9e))
	if later.IntN(2) == 0 {
		o.Overlap.Kinds = append(o.Overlap.Kinds, Wedge)
	}
	defined := rand.New(rand.NewPCG(o.Seed, 0xddcafe)) // separate, as above: from before there were tables
	if defined.IntN(2) == 0 {
		o.Tables = 1 + defined.IntN(4)
	}
	aged := rand.New(rand.NewPCG(o.Seed, 0x01dc0b)) // separate, as above: from before there were old copies
	if aged.IntN(3) == 0 {
		o.Overlap.Kinds = append(o.Overlap.Kinds, OldCopy)
	}
	moved := rand.New(rand.NewPCG(o.Seed, 0xd7a1)) // separate, as above: from before machines could be drained
	if o.Farm.Machines > o.Farm.Replicas && moved.IntN(3) == 0 {
		o.Overlap.Kinds = append(o.Overlap.Kinds, Drain)
	}
	struck := rand.New(rand.NewPCG(o.Seed, 0xd7a15)) // separate, as above: from before machines were killed at moves
	if o.Farm.Machines > o.Farm.Replicas && struck.IntN(4) == 0 {
		o.Overlap.Kinds = append(o.Overlap.Kinds, KillAtMove)
	}
	even := rand.New(rand.NewPCG(o.Seed, 0xba1a)) // separate, as above: from before primaries were handed over
	if o.Farm.Replicas > 1 && even.IntN(3) == 0 {
		o.Balance = time.Duration(1+even.IntN(4)) * leaseTime
		if even.IntN(2) == 0 {
			o.Overlap.Kinds = append(o.Overlap.Kinds, KillAtHandover)
		}
	}
	resized := rand.New(rand.NewPCG(o.Seed, 0x5e512e)) // separate, as above: from before the number of replicas could change
	for _, f := range []Fault{Resize, KillAtResize} {
		if resized.IntN(4) == 0 {
			o.Overlap.Kinds = append(o.Overlap.Kinds, f)
		}
	}
	return o.scarce()
}

// scarce returns the options with limits, drawn from the seed, on memory, on patience, and on the
// refreshes of caches.
func (o Options) scarce() Options {
	rng := rand.New(rand.NewPCG(o.Seed, 0xf011)) // separate, so that the draws of Draw and Overlapping stay the same
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

// plentiful returns the options without the limits that scarce has drawn.
func (o Options) plentiful() Options {
	o.Patience, o.Stale, o.Small, o.Balance = 0, 0, 0, 0
	o.Overlap.Kinds = slices.DeleteFunc(o.Overlap.Kinds, func(f Fault) bool {
		return slices.Contains([]Fault{FullMemory, OldCopy, Drain, KillAtMove, Order, KillAtHandover, Resize, KillAtResize, ShrinkAtHandover}, f)
	})
	return o
}

// staleMax bounds how many of a thousand refreshes of a cache are lost. A search with a stale cache
// tries 64 times.
const staleMax = 900

// wedges reports whether machines may do nothing except keep their leases.
func (o Options) wedges() bool {
	return o.Overlap != nil && slices.Contains(o.Overlap.Kinds, Wedge)
}

// driftMax bounds the error of clocks, in millionths: a 64th, as much as leases allow for.
const driftMax = 1e6 / 64
