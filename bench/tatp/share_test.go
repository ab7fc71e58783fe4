package tatp

import (
	"fmt"
	"math"
	"math/bits"
	"os"
	"regexp"
	"strings"
	"testing"
)

// rowChance is the chance that a subscriber has access information or a facility of a drawn kind. A
// subscriber has 1 to 4 of them, each number equally often.
const rowChance = (1 + 4) / 2.0 / 4

// succeeds is the share of each kind's transactions that find their rows in the loaded data. In
// half of the cases a forwarding exists (0 to 3 of 3), both for inserting and for deleting one.
var succeeds = [kinds]float64{
	1, rowChance * activeChance / 100 * destinationChance(loadedForwards), rowChance, rowChance, 1, rowChance / 2, rowChance / 2,
}

// A forwardsChance is the chance that a facility has forwardings for just the times of
// the set, bit i for startStep * i.
type forwardsChance func(set uint) float64

// loadedForwards is for the loaded data: each number of forwardings is equally likely.
func loadedForwards(set uint) float64 {
	ofThatMany := 0
	for other := range uint(1 << forwardMax) {
		if bits.OnesCount(other) == bits.OnesCount(set) {
			ofThatMany++
		}
	}
	return 1.0 / (forwardMax + 1) / float64(ofThatMany)
}

// lastingForwards is for the long run, after many insertions and deletions. Each time then has a
// forwarding in half of the cases: as many are inserted at empty times as are deleted at full ones.
func lastingForwards(uint) float64 { return 1.0 / (1 << forwardMax) }

// destinationChance is the chance that an active facility has a forwarding for the time of a get
// new destination, if forwardings end 1 to 8 hours after their start.
func destinationChance(chance forwardsChance) float64 {
	return destination(chance, func(start, end int) float64 {
		const hoursMax = 8
		return float64(max(0, min(hoursMax, start+hoursMax-end))) / hoursMax
	})
}

// destination is the same for any lengths: after is the chance that a forwarding that begins at
// start ends after end.
func destination(chance forwardsChance, after func(start, end int) float64) (sum float64) {
	for asked := range forwardMax {
		for end := 1; end <= endMax; end++ {
			for set := range uint(1 << forwardMax) {
				none := 1.0
				for i := range asked + 1 {
					if set&(1<<i) != 0 {
						none *= 1 - after(startStep*i, end)
					}
				}
				sum += chance(set) * (1 - none) / forwardMax / endMax
			}
		}
	}
	return sum
}

// The shares in the package's comment follow from its constants.
func TestSharesThatSucceed(t *testing.T) {
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile(`(?m)^//	(\w[\w ]+?) +(\d+) % +([0-9.]+) % `)
	said := row.FindAllStringSubmatch(string(text), -1)
	if len(said) != int(kinds) {
		t.Fatalf("doc.go has %d transactions, want %d", len(said), kinds)
	}
	for i, m := range said {
		want := fmt.Sprintf("%s %d %.1f", kindNames[i], share[i], math.Round(1000*succeeds[i]+1e-9)/10)
		if got := strings.Join(m[1:], " "); got != want {
			t.Errorf("doc.go says %q, want %q", got, want)
		}
	}
	lasting := rowChance * activeChance / 100 * destination(lastingForwards, func(_, end int) float64 { return float64(endMax-end) / endMax })
	if want := fmt.Sprintf("%.1f %% in the long run", 100*lasting); !strings.Contains(string(text), want) {
		t.Errorf("doc.go does not say %q", want)
	}
}
