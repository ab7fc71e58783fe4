package main

import (
	"log/slog"
	"math"
	"runtime/debug"
	"testing"

	"github.com/farmsql/farmsql"
)

// The limit of ordinary memory is the part of the computer's memory that regions leave, unless the
// environment sets another limit.
func TestMemoryLimit(t *testing.T) {
	for _, c := range []struct{ computer, mapped, want farmsql.Size }{
		{10 * farmsql.GiB, 0, 8 * farmsql.GiB},
		{10 * farmsql.GiB, 3 * farmsql.GiB, 5 * farmsql.GiB},
		{8 * farmsql.GiB, 8 * farmsql.GiB, farmsql.GiB},
	} {
		if got := memoryLimit(c.computer, c.mapped); got != c.want {
			t.Errorf("of %d with %d mapped: %d, want %d", c.computer, c.mapped, got, c.want)
		}
	}
	log := slog.New(slog.DiscardHandler)
	before := debug.SetMemoryLimit(-1)
	stop := limitMemory(log)
	if n := debug.SetMemoryLimit(-1); n == math.MaxInt64 || n > int64(farmsql.ComputerMemory()) {
		t.Errorf("the limit is %d", n)
	}
	stop()
	if n := debug.SetMemoryLimit(-1); n != before {
		t.Errorf("the limit is %d afterwards, want %d", n, before)
	}
	t.Setenv("GOMEMLIMIT", "1GiB")
	if n := heapLimit(10*farmsql.GiB, 0); n != farmsql.Size(before) {
		t.Errorf("with GOMEMLIMIT the limit is to be %d", n)
	}
	stop = limitMemory(log)
	if n := debug.SetMemoryLimit(-1); n != before { // the runtime has read it at its start
		t.Errorf("the limit is %d in spite of GOMEMLIMIT", n)
	}
	stop()
}
