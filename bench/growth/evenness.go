package growth

import (
	"fmt"
	"slices"

	"github.com/farmsql/farmsql"
)

// An Evenness says how the data are distributed over the machines at one moment.
type Evenness struct {
	When     string  `json:"when"`
	Seconds  float64 `json:"seconds"` // since the clients began
	Regions  int     `json:"regions"`
	Machines []Share `json:"machines"`
	// Each spread is the difference between the machine with the most and the machine with the
	// fewest, as a part of the mean.
	BytesSpread     float64 `json:"bytesSpread"`
	PrimariesSpread float64 `json:"primariesSpread"`
}

// A Share is the part of the data that one machine has.
type Share struct {
	Machine   int   `json:"machine"`
	Replicas  int   `json:"replicas"`
	Bytes     int64 `json:"bytes"` // of the files of its regions
	Primaries int   `json:"primaries"`
}

// newEvenness compares the shares of the machines.
func newEvenness(when string, seconds float64, regions int, shares []Share) Evenness {
	e := Evenness{When: when, Seconds: seconds, Regions: regions, Machines: shares}
	e.BytesSpread = spread(shares, func(s Share) float64 { return float64(s.Bytes) })
	e.PrimariesSpread = spread(shares, func(s Share) float64 { return float64(s.Primaries) })
	return e
}

// spread returns the difference between the highest and the lowest figure, as a part of their mean; 0
// if all are 0.
func spread(shares []Share, figure func(Share) float64) float64 {
	low, high, sum := figure(shares[0]), figure(shares[0]), 0.0
	for _, s := range shares {
		low, high, sum = min(low, figure(s)), max(high, figure(s)), sum+figure(s)
	}
	if sum == 0 {
		return 0
	}
	return (high - low) * float64(len(shares)) / sum
}

// isEven reports whether neither spread exceeds SpreadMost.
func (e *Evenness) isEven() bool {
	return e.BytesSpread <= SpreadMost && e.PrimariesSpread <= SpreadMost
}

func (e *Evenness) String() string {
	s := fmt.Sprintf("%s: %d regions; bytes within %.1f %%, primaries within %.1f %%:", e.When, e.Regions, 100*e.BytesSpread, 100*e.PrimariesSpread)
	for i, m := range e.Machines {
		if i > 0 {
			s += ","
		}
		s += fmt.Sprintf(" machine %d %.1f MB in %d replicas, %d primaries", m.Machine, float64(m.Bytes)/1e6, m.Replicas, m.Primaries)
	}
	return s
}

// primariesAt returns the number of regions whose primary is the machine.
func primariesAt(s *farmsql.Status, machine int) (n int) {
	for i := range s.Regions {
		if s.Regions[i].Primary == machine {
			n++
		}
	}
	return n
}

// isSettled reports whether the CM sees this number of machines, all replicas of all regions, and
// nothing that moves or is to move.
func isSettled(s *farmsql.Status, machines int) bool {
	if len(s.Machines) != machines || len(s.Joining) > 0 || s.Recovery.IsGoing || s.BalanceInMS > 0 || s.MovesAwait != "" {
		return false
	}
	return !slices.ContainsFunc(s.Regions, func(r farmsql.RegionStatus) bool {
		return r.Primary < 0 || len(r.Filling) > 0 || r.Move != nil || 1+len(r.Backups) != s.Replicas
	})
}

// unsettled describes the CM's last view, for the error after a wait in vain; s is nil if no machine has answered.
func unsettled(s *farmsql.Status) string {
	if s == nil {
		return "no machine has said its status"
	}
	moving, filling := 0, 0
	for _, r := range s.Regions {
		if r.Move != nil {
			moving++
		}
		filling += len(r.Filling)
	}
	return fmt.Sprintf("the last that the CM said: %d machines, %d regions, %d of them move, %d replicas are filled, others move in %.0f ms",
		len(s.Machines), len(s.Regions), moving, filling, s.BalanceInMS)
}
