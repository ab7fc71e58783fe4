package main

import (
	"log/slog"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/farmsql/farmsql"
)

// tendMemory sets the limit of the process's ordinary memory, GOMEMLIMIT, unless the
// environment does: it is what regions and logs leave of four fifths of the computer's. They
// take more as they fill, so it is set again from time to time. Then it is also seen to that
// a process that has become idle gives back what it needs no more. Both end when stop is
// called.
func tendMemory(log *slog.Logger) (stop func()) {
	computer := farmsql.ComputerMemory()
	limit := func() {
		if os.Getenv("GOMEMLIMIT") == "" && computer != 0 {
			debug.SetMemoryLimit(int64(memoryLimit(computer, farmsql.MappedMemory())))
		}
	}
	before := debug.SetMemoryLimit(-1)
	limit()
	log.Info("memory limit", "bytes", debug.SetMemoryLimit(-1), "computer", int64(computer))
	done := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		var spare spareMemory
		for again := time.NewTicker(memoryInterval); ; {
			select {
			case <-done:
				again.Stop()
				return
			case <-again.C:
				limit()
				spare.giveBack(log)
			}
		}
	})
	return sync.OnceFunc(func() {
		close(done)
		all.Wait()
		debug.SetMemoryLimit(before)
	})
}

const memoryInterval = 10 * time.Second

// memoryLimit is what the process may take besides what it has mapped. The rest of the
// computer's memory is for others, and for what the limit does not count: it is no hard one.
// Where regions leave hardly anything it is an eighth, so that the server is not busy
// collecting garbage only.
func memoryLimit(computer, mapped farmsql.Size) farmsql.Size {
	return max(computer/5*4-mapped, computer/8)
}
