package txn

import (
	"sync"
	"sync/atomic"

	"github.com/farmsql/farmsql/region"
)

// lent are the slots of this machine's regions that it has reserved for objects
// of other machines' transactions. They come back by a message, which is input:
// what was not lent, or is an object by now, is not given back to the allocator.
type lent struct {
	count atomic.Int64 // len(slots), so that most commits need not lock
	mu    sync.Mutex
	slots map[region.Ptr]struct{}
}

func (l *lent) add(p region.Ptr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.slots == nil {
		l.slots = make(map[region.Ptr]struct{})
	}
	l.slots[p] = struct{}{}
	l.count.Store(int64(len(l.slots)))
}

// take forgets p and reports whether it was lent: it has come back, or become an
// object.
func (l *lent) take(p region.Ptr) bool {
	if l.count.Load() == 0 {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.slots[p]
	delete(l.slots, p)
	l.count.Store(int64(len(l.slots)))
	return ok
}
