package main

import (
	"log/slog"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/farmsql/farmsql"
)

// limitMemory sets the limit of the process's ordinary memory, GOMEMLIMIT, unless the
// environment does: it is what regions and logs leave of four fifths of the computer's. They
// take more as they fill, so it is set again from time to time, until stop is called.
func limitMemory(log *slog.Logger) (stop func()) {
	computer := farmsql.ComputerMemory()
	if os.Getenv("GOMEMLIMIT") != "" || computer == 0 {
		return func() {}
	}
	before := debug.SetMemoryLimit(int64(memoryLimit(computer, farmsql.MappedMemory())))
	log.Info("memory limit", "bytes", debug.SetMemoryLimit(-1), "computer", int64(computer))
	done := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		for again := time.NewTicker(memoryLimitInterval); ; {
			select {
			case <-done:
				again.Stop()
				return
			case <-again.C:
				debug.SetMemoryLimit(int64(memoryLimit(computer, farmsql.MappedMemory())))
			}
		}
	})
	return sync.OnceFunc(func() {
		close(done)
		all.Wait()
		debug.SetMemoryLimit(before)
	})
}

const memoryLimitInterval = 10 * time.Second

// memoryLimit is what the process may take besides what it has mapped. The rest of the
// computer's memory is for others, and for what the limit does not count: it is no hard one.
// Where regions leave hardly anything it is an eighth, so that the server is not busy
// collecting garbage only.
func memoryLimit(computer, mapped farmsql.Size) farmsql.Size {
	return max(computer/5*4-mapped, computer/8)
}
