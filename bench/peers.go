package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
)

// peers are the other processes of a cluster, from the view of one machine's process.
type peers struct {
	machine int
	folder  string
	// say sends a report to the process that has started the machine; pass receives a value
	// whenever all have reached a barrier.
	say  func(report) error
	pass <-chan struct{}
	// isLate is set if the machine joins after the others have loaded the data.
	isLate bool
	// uncertain is the number of killed machines' transactions whose outcome is not known.
	uncertain int64
}

// Leads reports whether this process does the work that is to be done once for all processes.
// A machine that joins later (Workload.Attach) does not lead.
func (t *Target) Leads() bool { return t.peers == nil || (t.peers.machine == 0 && !t.peers.isLate) }

// IsMine divides pieces of work, numbered from 0, among the processes in turn.
func (t *Target) IsMine(piece int) bool {
	return t.peers == nil || piece%t.Machines() == t.peers.machine
}

// Barrier waits until all processes have called it equally often. A machine that joins later
// does not wait.
func (t *Target) Barrier(ctx context.Context) error {
	if t.peers == nil || t.peers.isLate {
		return nil
	}
	if err := t.peers.say(report{Barrier: true}); err != nil {
		return err
	}
	select {
	case <-t.peers.pass:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A counter is a number that survives the process if it has a file.
type counter struct {
	mu   sync.Mutex
	n    int64
	file *os.File
}

const (
	counterFiles = "count-"
	counterBytes = 8
)

// openCounter continues the counter of an earlier process of the machine; without one it begins at 0.
func (t *Target) openCounter() (err error) {
	t.count.file, err = os.OpenFile(filepath.Join(t.peers.folder, fmt.Sprint(counterFiles, t.peers.machine)), os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	var b [counterBytes]byte
	if _, err := t.count.file.ReadAt(b[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("bench: %w", err)
	}
	t.count.n = int64(binary.LittleEndian.Uint64(b[:]))
	return nil
}

func (c *counter) close() error {
	if c.file == nil {
		return nil
	}
	return c.file.Close()
}

// Count adds to a counter of the clients' work. The workload's check compares it with the
// data.
func (t *Target) Count(delta int64) error {
	c := &t.count
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n += delta
	if c.file == nil {
		return nil
	}
	// A store to a file in memory survives the process's being killed.
	var b [counterBytes]byte
	binary.LittleEndian.PutUint64(b[:], uint64(c.n))
	if _, err := c.file.WriteAt(b[:], 0); err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	return nil
}

// Counted returns the sum of the counters of all processes. uncertain is the number of threads
// of killed machines: each may have done one more transaction that it did not count.
func (t *Target) Counted() (n, uncertain int64, err error) {
	if t.peers == nil {
		t.count.mu.Lock()
		defer t.count.mu.Unlock()
		return t.count.n, 0, nil
	}
	files, err := filepath.Glob(filepath.Join(t.peers.folder, counterFiles+"*"))
	if err != nil {
		return 0, 0, fmt.Errorf("bench: %w", err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return 0, 0, fmt.Errorf("bench: %w", err)
		}
		if len(b) == counterBytes { // an empty file is of a process that has counted nothing
			n += int64(binary.LittleEndian.Uint64(b))
		}
	}
	return n, t.peers.uncertain, nil
}
