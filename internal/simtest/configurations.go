package simtest

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/sim"
)

// storeDelay is the time that the store of configurations takes to answer; storePatience
// bounds the time after which a machine that cannot reach it gets an error.
const (
	storeDelay    = 300 * time.Microsecond
	storePatience = 5 * time.Millisecond
)

// errStore means that the store of configurations has not answered. It may still have
// carried out the request.
var errStore = fmt.Errorf("simtest: %w", cluster.ErrUnreachable)

// configurations is the store of configurations, which outlives all machines, with its
// faults.
type configurations struct {
	cluster.MemoryStore
	rng *rand.Rand
	// stored, if not nil, is called for each configuration at the moment at which it
	// becomes the current one.
	stored func(now *cluster.Configuration)
	// away counts, by machine, the faults that keep it from the store; failing is how many
	// of a thousand operations of any machine fail.
	away    map[int]int
	failing int
}

func newConfigurations(rng *rand.Rand) *configurations {
	return &configurations{rng: rng, away: make(map[int]int)}
}

// A storeClient is a machine's connection to the store of configurations: as slow as a real
// one, and it can fail.
type storeClient struct {
	*configurations
	machine int
	process *sim.Process
}

// Load implements cluster.Store.
func (s storeClient) Load() (*cluster.Configuration, error) {
	s.process.Sleep(storeDelay)
	if s.isAway() || s.fails() {
		return nil, s.giveUp()
	}
	return s.MemoryStore.Load()
}

// CompareAndSwap implements cluster.Store. Half of its failures come after the swap.
func (s storeClient) CompareAndSwap(old uint64, next *cluster.Configuration) error {
	s.process.Sleep(storeDelay)
	fails := s.fails()
	if s.isAway() || (fails && s.rng.IntN(2) == 0) {
		return s.giveUp()
	}
	err := s.MemoryStore.CompareAndSwap(old, next)
	if err == nil && s.stored != nil {
		s.stored(next)
	}
	if fails {
		return s.giveUp()
	}
	return err
}

// isAway reports whether a fault keeps the machine from the store.
func (s storeClient) isAway() bool { return s.away[s.machine] > 0 }

// fails draws whether an operation fails.
func (s storeClient) fails() bool { return s.failing > 0 && s.rng.IntN(1000) < s.failing }

// giveUp returns errStore, after a wait of less than storePatience.
func (s storeClient) giveUp() error {
	s.process.Sleep(time.Duration(s.rng.Int64N(int64(storePatience))))
	return errStore
}
