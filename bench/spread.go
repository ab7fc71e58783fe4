package bench

import (
	"cmp"
	"fmt"
	"slices"
)

// A Spread is how far runs of the same are apart, by all transactions a second.
type Spread struct {
	Runs   int     `json:"runs"`
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	// Each is every run's, in their order.
	Each []float64 `json:"each"`
}

// Median returns the median run of some on the same data, one at least, with the spread of
// all of them. Of an even number it is the slower one of the two in the middle.
func Median(runs []*Result) *Result {
	s := Spread{Runs: len(runs)}
	for _, r := range runs {
		s.Each = append(s.Each, r.Total.PerSecond)
	}
	sorted := slices.SortedStableFunc(slices.Values(runs), func(a, b *Result) int { return cmp.Compare(a.Total.PerSecond, b.Total.PerSecond) })
	median := *sorted[(len(sorted)-1)/2]
	s.Median, s.Min, s.Max = median.Total.PerSecond, sorted[0].Total.PerSecond, sorted[len(sorted)-1].Total.PerSecond
	median.Spread = s
	return &median
}

// String says how many runs there were, and how far they were apart.
func (s *Spread) String() string {
	if s.Runs == 1 {
		return "1 run, so that nothing is known of the spread"
	}
	return fmt.Sprintf("%d runs, the median one is shown: %s a second, lowest %s, highest %s", s.Runs, count(s.Median), count(s.Min), count(s.Max))
}
