package verbs

import (
	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
)

// A copier carries out operations in the memory of this machine, one at a time. The NIC has a table of
// the copiers that may be copying: code that takes memory away waits for the copy in progress of each.
type copier struct {
	nic   *NIC
	mu    lockrank.Mutex[lockrank.Leaf]
	ended bool // the copier copies nothing more
}

// targetLocked returns the memory of an operation.
func (c *copier) targetLocked(k rdma.Key, off uint64, n int) (*nvram.Memory, error) {
	if c.ended {
		return nil, rdma.ErrClosed
	}
	m := (*c.nic.registered.Load())[k]
	if m == nil {
		return nil, rdma.ErrKey
	}
	if size := m.Size(); !rdma.Aligned(off, n) || off > size || uint64(n) > size-off {
		return nil, rdma.ErrRange
	}
	return m, nil
}

func (c *copier) write(k rdma.Key, off uint64, src []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	m, err := c.targetLocked(k, off, len(src))
	if err == nil {
		rdma.StoreLines(m, off, src)
	}
	return err
}

func (c *copier) read(k rdma.Key, off uint64, dst []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	m, err := c.targetLocked(k, off, len(dst))
	if err == nil {
		m.CopyOutBare(dst, off)
	}
	return err
}

// end waits for the copy in progress, if there is one. After that the copier copies nothing more.
func (c *copier) end() {
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()
	c.nic.mu.Lock()
	defer c.nic.mu.Unlock()
	delete(c.nic.mu.copiers, c)
}

// settle waits for the copy in progress, if there is one.
func (c *copier) settle() {
	c.mu.Lock()
	defer c.mu.Unlock()
}
