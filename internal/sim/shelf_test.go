package sim

import (
	"errors"
	"testing"

	"github.com/farmsql/farmsql/nvram"
)

// The simulator refuses the names that a folder refuses.
func TestNamesOnTheShelf(t *testing.T) {
	s := newShelf()
	if _, err := s.Map("log-1.2", 4096); !errors.Is(err, nvram.ErrName) {
		t.Errorf("a name with a dot: %v", err)
	}
}
