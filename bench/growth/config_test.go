package growth

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/farmsql/farmsql/bench"
	"github.com/farmsql/farmsql/internal/invariant"
)

func TestValidate(t *testing.T) {
	for _, c := range []Config{{}, {Replicas: 3}, {Replicas: 2, Machines: 4}, {Machines: 2, Back: 1}, {Resize: 3}} {
		if err := c.Validate(); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
	for want, c := range map[string]Config{
		"-1 replicas":           {Replicas: -1},
		"begins with 5":         {Replicas: 5},
		"begins with 3":         {Replicas: 2, Machines: 3},
		"from 5 machines":       {Back: 5},
		"at least the 3 that":   {Replicas: 3, Back: 2},
		"to 4 (--resize) with":  {Resize: 4},
		"to -1 (--resize)":      {Resize: -1},
		"-3 clients":            {Clients: -3},
		"a warm-up of -1s":      {WarmUp: -time.Second},
		"-2s between the steps": {Between: -2 * time.Second},
		"leases of -1s":         {Lease: -time.Second},
		"-4 workers":            {Workers: -4},
	} {
		if err := c.Validate(); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", c, err, want)
		}
		if _, err := Measure(t.Context(), c, nil); !errors.Is(err, ErrConfig) {
			t.Errorf("measured: %v", err)
		}
	}
	if invariant.Enabled {
		if _, err := Measure(t.Context(), Config{}, nil); !errors.Is(err, bench.ErrBuild) {
			t.Error(err)
		}
	}
}
