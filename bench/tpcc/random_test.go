package tpcc

import (
	"strings"
	"testing"
)

func TestLastName(t *testing.T) {
	// Clause 4.3.2.3: 371 is PRICALLYOUGHT.
	if got := lastName(371); got != "PRICALLYOUGHT" {
		t.Errorf("last name 371 is %s", got)
	}
}

// Clause 2.1.6.1.
func TestConstantsOfRunning(t *testing.T) {
	for seed := range uint64(200) {
		load, run := drawConstants(seed)
		if d := max(load.name-run.name, run.name-load.name); d < 65 || d > 119 || d == 96 || d == 112 {
			t.Fatalf("seed %d: constants for last names differ by %d", seed, d)
		}
	}
}

func TestNURandStaysInRangeAndIsNotUniform(t *testing.T) {
	cfg := Config{}
	if err := cfg.validate(); err != nil {
		t.Fatal(err)
	}
	_, c := drawConstants(1)
	r := newRandom(&cfg, c, 1, 1)
	counts := make([]int, customers+1)
	for range 100_000 {
		counts[r.customer()]++ // panics beyond the range
	}
	if counts[0] > 0 {
		t.Error("drew customer 0")
	}
	most := 0
	for _, n := range counts {
		most = max(most, n)
	}
	// 33 times each if it were uniform.
	if most < 100 {
		t.Errorf("no customer was drawn more than %d times of 100,000", most)
	}
}

func TestDataIsOriginalInATenth(t *testing.T) {
	r := newRandom(&Config{}, constants{}, 1, 1)
	n := 0
	for range 10_000 {
		s := r.data()
		if len(s) < 26 || len(s) > 50 {
			t.Fatalf("data of %d characters", len(s))
		}
		if strings.Contains(s, original) {
			n++
		}
	}
	if n < 800 || n > 1200 {
		t.Errorf("%d of 10,000 are original", n)
	}
}
