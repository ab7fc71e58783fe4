package skiplist

import (
	"sync"

	"github.com/farmsql/farmsql/region"
)

// cachedMax is the number of nodes after which a cache begins anew.
const cachedMax = 1 << 16

// A cache maps keys to the nodes in which this machine has found them in the present epoch.
type cache struct {
	mu struct {
		sync.Mutex
		nodes map[string]region.Ptr
	}
}

func (c *cache) get(key []byte) (region.Ptr, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, ok := c.mu.nodes[string(key)]
	return p, ok
}

// put stores the node of a key. Call it within the operation or transaction that has
// found the node.
func (c *cache) put(key []byte, p region.Ptr) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.nodes == nil || len(c.mu.nodes) == cachedMax {
		c.mu.nodes = make(map[string]region.Ptr)
	}
	c.mu.nodes[string(key)] = p
}

// drop forgets that key is at p.
func (c *cache) drop(key []byte, p region.Ptr) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.nodes[string(key)] == p {
		delete(c.mu.nodes, string(key))
	}
}

// reset empties the cache, at the end of an epoch: objects freed in the epoch may become other
// objects.
func (c *cache) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.mu.nodes)
}
