package cluster

import (
	"errors"
	"strings"
	"testing"
)

// Each setting but the number of replicas, which may change, is compared, and what differs is named with both values.
func TestSuits(t *testing.T) {
	c := &Configuration{ID: 7, Replicas: 3, Workers: 2, RegionBytes: 1 << 20, LogBytes: 1 << 16}
	for text, change := range map[string]func(s *Settings){
		"workers is 2 in configuration 7 and 4 at machine 5":               func(s *Settings) { s.Workers = 4 },
		"region size is 1048576 in configuration 7 and 2097152 at machine": func(s *Settings) { s.RegionBytes *= 2 },
		"log size is 65536 in configuration 7 and 0 at machine 5":          func(s *Settings) { s.LogBytes = 0 },
		"and 4 at machine 5, log size is 65536 in":                         func(s *Settings) { s.Workers, s.LogBytes = 4, 0 },
		"start machine 5 again":                                            func(s *Settings) { s.Workers = 1 },
	} {
		s := c.Settings()
		change(&s)
		if err := c.Suits(5, s); !errors.Is(err, ErrSettings) || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", text, err)
		}
	}
	resized := c.Settings()
	resized.Replicas = 2
	if err := errors.Join(c.Suits(5, c.Settings()), c.Suits(5, Settings{}), c.Suits(5, resized)); err != nil {
		t.Error(err)
	}
}
