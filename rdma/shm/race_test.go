//go:build race

package shm

import (
	"errors"
	"testing"

	"github.com/farmsql/farmsql/nvram"
)

// In race builds memory is on the heap, where no other process reaches it.
func TestRaceBuildsCannotJoin(t *testing.T) {
	for range 2 {
		if _, err := Join(t.TempDir(), 1); !errors.Is(err, nvram.ErrPrivate) {
			t.Error(err)
		}
	}
}
