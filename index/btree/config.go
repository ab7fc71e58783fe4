package btree

import (
	"fmt"

	"github.com/farmsql/farmsql/region"
)

const (
	// MaxKeyBytes is the longest key, the limit that InnoDB has.
	MaxKeyBytes = 3072

	// minSplit is the smallest number of entries at which a node splits. A node
	// with fewer gets an object as large as its entries need. So a split always
	// leaves at least one entry on both sides, whatever the keys' lengths.
	minSplit = 4

	defaultLeafBytes  = 978  // an object of 1 KB
	defaultInnerBytes = 1970 // an object of 2 KB
	minNodeBytes      = 200
	maxBudgetBytes    = 32 << 10
)

// Config is a tree's shape, fixed when it is created.
type Config struct {
	// LeafBytes and InnerBytes are the payload sizes at which a leaf or an
	// inner node splits; each is rounded up to the capacity of its size class. Zero
	// means objects of 1 KB and 2 KB. Leaves are smaller because a commit logs every
	// changed leaf as a whole; inner nodes change rarely and are read from the cache.
	LeafBytes, InnerBytes int
}

// normalize fills in defaults and rounds up to whole size classes.
func (c Config) normalize() (Config, error) {
	if c.LeafBytes == 0 {
		c.LeafBytes = defaultLeafBytes
	}
	if c.InnerBytes == 0 {
		c.InnerBytes = defaultInnerBytes
	}
	for _, f := range []struct {
		name string
		size *int
	}{{"LeafBytes", &c.LeafBytes}, {"InnerBytes", &c.InnerBytes}} {
		if *f.size < minNodeBytes || *f.size > maxBudgetBytes {
			return c, fmt.Errorf("%w: %s is %d, not within [%d,%d]", ErrConfig, f.name, *f.size, minNodeBytes, maxBudgetBytes)
		}
		class, ok := region.ClassFor(*f.size)
		if !ok {
			return c, fmt.Errorf("%w: no size class for %s = %d", ErrConfig, f.name, *f.size)
		}
		*f.size = class.Capacity()
	}
	return c, nil
}

// budget is the size at which a node of the level splits.
func (c Config) budget(level int) int {
	if level == 0 {
		return c.LeafBytes
	}
	return c.InnerBytes
}
