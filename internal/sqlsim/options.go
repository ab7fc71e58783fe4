package sqlsim

import (
	"math/rand/v2"

	"github.com/farmsql/farmsql/internal/simtest"
)

// WithSQL returns the options of a run with sessions. The seed determines the numbers of
// sessions and rows. There are fewer other clients, which saves time.
func WithSQL(o simtest.Options) simtest.Options {
	rng := rand.New(rand.NewPCG(o.Seed, 0x591))
	o.Workload, o.Sessions = New(8+rng.IntN(40)), 1+rng.IntN(3)
	o.Clients, o.Readers, o.Errands = 1, 0, false
	return o
}
