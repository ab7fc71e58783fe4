package bench

import (
	"math"
	"math/rand/v2"
)

// A Zipf draws numbers from 0 to n-1 with the Zipf distribution of YCSB (Gray et al., "Quickly
// Generating Billion-Record Synthetic Databases", SIGMOD'94). The probability of k is proportional
// to 1/(k+1)^theta, with theta below 1. rand.Zipf supports only exponents above 1.
type Zipf struct {
	rnd                      *rand.Rand
	n                        float64
	theta, alpha, zetan, eta float64 // as in the paper
}

// NewZipf returns a Zipf of n numbers, with 0 < theta < 1. It takes time proportional to n; copies
// made by For are cheap.
func NewZipf(n int, theta float64) *Zipf {
	z := &Zipf{n: float64(n), theta: theta, alpha: 1 / (1 - theta)}
	for i := 1; i <= n; i++ {
		z.zetan += math.Pow(float64(i), -theta)
	}
	zeta2 := 1 + math.Pow(2, -theta) // the paper's zeta(2), as zetan is zeta(n)
	z.eta = (1 - math.Pow(2/z.n, 1-theta)) / (1 - zeta2/z.zetan)
	return z
}

// For returns a copy that draws with rnd.
func (z *Zipf) For(rnd *rand.Rand) *Zipf {
	copied := *z
	copied.rnd = rnd
	return &copied
}

// Next draws a number.
func (z *Zipf) Next() int {
	u := z.rnd.Float64()
	uz := u * z.zetan
	switch {
	case uz < 1:
		return 0
	case uz < 1+math.Pow(0.5, z.theta):
		return min(1, int(z.n)-1)
	}
	return min(int(z.n)-1, int(z.n*math.Pow(z.eta*u-z.eta+1, z.alpha)))
}
