package bench

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Each of the first numbers comes as often as the distribution says, and so do all the others
// together.
func TestZipf(t *testing.T) {
	const n, draws, theta = 1000, 400_000, 0.99
	z := NewZipf(n, theta).For(rand.New(rand.NewPCG(1, 2)))
	var counts [n]int
	for range draws {
		counts[z.Next()]++
	}
	sum := 0.0
	for k := range n {
		sum += math.Pow(float64(k+1), -theta)
	}
	// The first two numbers are drawn exactly, the others by an approximation.
	rest := 1.0
	for k := range 2 {
		want := math.Pow(float64(k+1), -theta) / sum
		rest -= want
		if got := float64(counts[k]) / draws; math.Abs(got-want) > 0.003 {
			t.Errorf("%d: %.4f, want %.4f", k, got, want)
		}
	}
	tail := 0
	for k := 100; k < n; k++ {
		tail += counts[k]
	}
	want := 0.0
	for k := 100; k < n; k++ {
		want += math.Pow(float64(k+1), -theta) / sum
	}
	if got := float64(tail) / draws; math.Abs(got-want) > 0.02 {
		t.Errorf("from 100 on: %.4f, want %.4f", got, want)
	}
	one := NewZipf(1, theta).For(rand.New(rand.NewPCG(1, 2)))
	for range 100 {
		if k := one.Next(); k != 0 {
			t.Fatalf("%d of one", k)
		}
	}
}
