package transactions

import (
	"testing"

	"github.com/farmsql/farmsql/internal/invariant"
)

// A run cannot leave a state out, nor go back, where invariants are checked.
func TestStatesComeInOrder(t *testing.T) {
	for from := frozen; from <= settled; from++ {
		for to := frozen; to <= settled; to++ {
			r := new(run)
			r.mu.state = from
			isRefused := func() (is bool) {
				defer func() { is = recover() != nil }()
				r.enter(to)
				return
			}()
			if want := invariant.Enabled && to != from+1; isRefused != want {
				t.Errorf("from %v to %v: refused %v, want %v", from, to, isRefused, want)
			}
			if !isRefused && !r.has(to) {
				t.Errorf("%v has not been entered", to)
			}
		}
	}
}
