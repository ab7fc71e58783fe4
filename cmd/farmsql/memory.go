package main

import (
	"log/slog"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/farmsql/farmsql"
)

// limitMemory sets the limit of the Go heap (GOMEMLIMIT), unless the environment sets it. The limit
// is four fifths of the computer's memory, minus the memory of regions and logs. That memory grows,
// so limitMemory sets the limit again every memoryInterval. At the same interval it gives an idle
// process's free memory back to the system, and sets the pace of garbage collections. stop ends all of it, and sets the
// limit and the pace that were set before.
func limitMemory(log *slog.Logger) (stop func()) {
	computer := farmsql.ComputerMemory()
	setLimit := func() {
		if os.Getenv("GOMEMLIMIT") == "" && computer != 0 {
			debug.SetMemoryLimit(int64(memoryLimit(computer, farmsql.MappedMemory())))
		}
	}
	before, percent := debug.SetMemoryLimit(-1), debug.SetGCPercent(percentDefault)
	debug.SetGCPercent(percent)
	pace := collectionPace{percent}
	setLimit()
	pace.set()
	log.Info("memory limit", "bytes", debug.SetMemoryLimit(-1), "computer", int64(computer))
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		var spare spareMemory
		for ticker := time.NewTicker(memoryInterval); ; {
			select {
			case <-done:
				ticker.Stop()
				return
			case <-ticker.C:
				setLimit()
				pace.set()
				spare.giveBack(log)
			}
		}
	})
	return sync.OnceFunc(func() {
		close(done)
		running.Wait()
		debug.SetMemoryLimit(before)
		debug.SetGCPercent(percent)
	})
}

// heapLimit returns the limit that limitMemory sets, or that of the environment.
func heapLimit(computer, mapped farmsql.Size) farmsql.Size {
	if os.Getenv("GOMEMLIMIT") != "" {
		return farmsql.Size(debug.SetMemoryLimit(-1)) // the runtime has read it at its start
	}
	return memoryLimit(computer, mapped)
}

const memoryInterval = 10 * time.Second

// memoryLimit returns the limit for memory beyond what the process has mapped. It leaves a
// fifth of the computer's memory for other processes, and for memory that the limit, a soft
// one, does not count. If regions leave hardly any memory, the limit is an eighth of the
// computer's, so that the server does not spend its time on garbage collection.
func memoryLimit(computer, mapped farmsql.Size) farmsql.Size {
	return max((computer/5)*4-mapped, computer/8)
}
