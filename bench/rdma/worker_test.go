package rdma

import (
	"errors"
	"testing"
	"time"
)

// A worker that waits in vain says whether the operation is lost, or only the bell. What comes with a bell is neither.
func TestWhyNothingComes(t *testing.T) {
	errBroken := errors.New("broken")
	for name, c := range map[string]struct {
		after  int // how often is looked in vain
		broken error
		rings  bool
		want   error
	}{
		"lost":                {after: 1 << 30, want: errSilent},
		"unrung":              {after: looks + 1, want: errUnrung},
		"unrung, and broken":  {after: looks + 1, broken: errBroken, want: errUnrung},
		"rung":                {after: looks + 1, rings: true},
		"it comes meanwhile":  {after: looks - 1},
		"it breaks meanwhile": {after: 1, broken: errBroken, want: errBroken},
	} {
		w := &worker{bell: make(chan struct{}, 1), patience: time.Millisecond}
		if c.rings {
			w.patience = time.Hour
			w.ring()
		}
		looked := 0
		err := w.await(func() (bool, error) {
			looked++
			return looked > c.after && c.broken == nil, map[bool]error{true: c.broken}[looked > c.after]
		})
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v after %d looks", name, err, looked)
		}
	}
}
