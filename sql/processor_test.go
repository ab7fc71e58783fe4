package sql

import (
	"testing"
	"time"

	"github.com/farmsql/farmsql/internal/cputime"
)

// wantSoon fails if more processor time than a bound has been used since start.
func wantSoon(t *testing.T, start, bound time.Duration, what string) {
	t.Helper()
	if used := cputime.Now(t) - start; used > bound {
		t.Errorf("%.120s used the processor for %v", what, used)
	}
}
