package sim

import (
	"testing"
	"time"

	"github.com/farmsql/farmsql/internal/clock"
)

// Code of machines meets trouble as often as the test asks for, and otherwise never. Bounded waits
// end early.
func TestTrouble(t *testing.T) {
	for _, chance := range []int{0, 500} {
		w := New(Options{Seed: 1, Trouble: chance, Stale: chance / 5})
		var met, early, stale int
		err := w.Run(func() {
			p := w.Machine(1).Boot()
			p.Do(func() {
				e := p.NewEvent()
				for range 1000 {
					if clock.TroublesOf(p).Meets(clock.LogFull) {
						met++
					}
					if clock.TroublesOf(p).Meets(clock.StaleCache) {
						stale++
					}
					begin := w.Now()
					if e.WaitFor(time.Millisecond) {
						t.Error("an event was set by nobody")
					}
					if w.Now()-begin < time.Millisecond {
						early++
					}
				}
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		if has := chance > 0; has != (met > 300) || has != (early > 300) || !has && met+early > 0 || met != w.Troubles()[clock.LogFull] ||
			has != (stale > 50 && stale < 200) || stale != w.Troubles()[clock.StaleCache] {
			t.Errorf("with a chance of %d: met %d, %d waits were ended early; %v", chance, met, early, w.Troubles())
		}
	}
	if clock.TroublesOf(clock.System{}) != nil {
		t.Error("the clock of production has troubles")
	}
}
