package bench

import (
	"cmp"
	"fmt"
	"slices"
)

// A Spread is the spread of repeated runs, in transactions per second.
type Spread struct {
	Runs   int     `json:"runs"`
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	// Each has every run's throughput, in order.
	Each []float64 `json:"each"`
}

// Median returns the median of one or more runs on the same data, with the spread of all
// of them. Of an even number of runs, it is the slower of the middle two.
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

// String describes the number of runs and their spread.
func (s *Spread) String() string {
	if s.Runs == 1 {
		return "1 run, so that nothing is known of the spread"
	}
	return fmt.Sprintf("%d runs, the median one is shown: %s a second, lowest %s, highest %s", s.Runs, count(s.Median), count(s.Min), count(s.Max))
}
