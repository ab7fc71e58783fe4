package catalog

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/farmsql/farmsql/internal/sim"
)

// A sweeper that fails rests, although its own attempts wake it: each attempt to commit an entry of
// the list of dropped structures does. While a region is unavailable, attempts fail at once. The
// sweeper still ends promptly.
func TestSweeperRests(t *testing.T) {
	world := sim.New(sim.Options{Seed: 1})
	err := world.Run(func() {
		clock := world.Outside()
		var s sweeper
		s.init(clock)
		s.stopping = clock.NewEvent()
		ctx, stop := context.WithCancel(context.Background())
		s.stop = stop
		tries := 0
		clock.Go(func() {
			s.loop(ctx, func(context.Context) error {
				s.wake.Set()
				if tries++; tries == 1000 {
					stop()
				}
				return errors.New("unavailable")
			})
			s.ended.Set()
		})
		clock.Sleep(time.Second)
		begin := world.Now()
		s.stopLocked()
		if took := world.Now() - begin; tries < 8 || tries > 11 || took > time.Millisecond {
			t.Errorf("%d attempts in a second, ended after %v", tries, took)
		}
	})
	if err != nil {
		t.Error(err)
	}
}
