package farm

import (
	"testing"

	"github.com/farmsql/farmsql/rdma/shm"
)

// A machine that is a process has a queue for each worker, and one for probes.
func TestWorkersFitAProcess(t *testing.T) {
	if WorkersMax+1 > shm.WorkersMax {
		t.Errorf("%d workers, and a process has %d queues", WorkersMax, shm.WorkersMax)
	}
}
