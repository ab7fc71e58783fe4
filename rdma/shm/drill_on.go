//go:build drills

package shm

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/farmsql/farmsql/rdma"
)

// drillEvery is how often a machine looks for drill files.
const drillEvery = 5 * time.Millisecond

// DrillFile returns the name of a file in the folder of all machines. While the file exists, there is
// no connection between machines a and b; a must be the lower number. Only programs built with the
// tag drills look for the file.
func DrillFile(a, b rdma.MachineID) string { return fmt.Sprintf("cut-%d-%d", a, b) }

// drill takes out the cables that have drill files, and puts them back when the files are gone,
// until the NIC is closed.
func (nic *NIC) drill() {
	cut := make(map[rdma.MachineID]bool)
	for !nic.isClosed() {
		for other := range rdma.MachineID(16) { // drills use no higher numbers
			file := DrillFile(min(nic.machine, other), max(nic.machine, other))
			_, err := os.Stat(filepath.Join(filepath.Dir(nic.file("state")), file))
			switch exists := !errors.Is(err, fs.ErrNotExist); {
			case exists && !cut[other]:
				nic.Cut(other)
			case !exists && cut[other]:
				nic.Mend(other)
			default:
				continue
			}
			cut[other] = !cut[other]
		}
		time.Sleep(drillEvery)
	}
}

func (nic *NIC) isClosed() bool {
	nic.mu.Lock()
	defer nic.mu.Unlock()
	return nic.mu.closed
}
