package region

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/nvram"
)

// The blocks of an empty slab may be used for another class, but not immediately: a reader may
// still hold a pointer to an object freed there, and would take bytes of a new object for a header.
// NSDI'14 section 3.5 waits for an epoch to end on every machine.
//
//	in use --> retired: no slot can be taken --> two epochs --> free, dirty
//	   ^----------- revived for its own class ---'

// epochsToWait is the number of epochs that a retired slab waits. One is not enough: another
// machine may already be one epoch ahead of this one. A pointer that it reads now belongs to the
// later epoch.
const epochsToWait = 2

// A retiree is a retired slab: all its slots are taken, so that no worker can allocate there.
type retiree struct {
	slab  *slab
	epoch uint64 // the epoch in which the slab retired
	since time.Time
}

// Advance tells the allocator three things about the epochs before the given one: all their
// operations have ended on every machine, no machine has a pointer from them in a cache, and every
// backup has applied the log records of these operations. Retired slabs that have waited for
// epochsToWait epochs become free blocks, available for any class. In regions with few free blocks,
// or with many bytes in empty slabs, Advance retires empty slabs.
func (a *Allocator) Advance(epoch uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if epoch <= a.mu.epoch {
		return
	}
	if a.mu.epoch == 0 { // the first call: it is unknown in which epoch the present retirees were retired
		for _, sp := range a.dir.Load().list {
			for i := range sp.retired {
				sp.retired[i].epoch = epoch
			}
		}
	}
	a.mu.epoch = epoch
	for _, sp := range a.dir.Load().list {
		sp.retired = slices.DeleteFunc(sp.retired, func(x retiree) bool {
			over := x.epoch+epochsToWait <= epoch || sabotage.EpochsToWait.Skipped()
			if over {
				sp.returnLocked(x.slab.extent, spaceDirty)
			}
			return over
		})
		if isShort := sp.unused < len(sp.blocks)/8; isShort || sp.isIdle() {
			a.retireLocked(sp, isShort)
			sp.kept.Store(sp.idle.Load())
		}
	}
}

// Waiting returns the number of blocks that will become available for any class after further
// epochs. If there are none, ending the epoch gains nothing.
func (a *Allocator) Waiting() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := 0
	for _, sp := range a.dir.Load().list {
		for _, x := range sp.retired {
			n += x.slab.blocks
		}
	}
	return n
}

// retireLocked retires the empty slabs of sp. Unless all is set, it skips slabs from which a
// worker currently allocates. It always skips slabs whose scan has not finished: otherwise the scan
// would go on in blocks that belong to another slab by then.
func (a *Allocator) retireLocked(sp *space, all bool) {
	for i := 0; i < len(sp.slabs); i++ {
		s := sp.slabs[i].Load()
		if s == nil || s.head != i || !s.ready() || !s.empty() {
			continue
		}
		isKept := !all && a.isCurrent(s)
		if isKept || !s.takeAll() {
			continue
		}
		a.evictLocked(s)
		sp.retired = append(sp.retired, retiree{s, a.mu.epoch, a.cfg.Clock.Now()})
	}
}

// isCurrent reports whether s is the current slab of a worker or of its space.
func (a *Allocator) isCurrent(s *slab) bool {
	for w := range a.workers {
		if a.workers[w].current[s.class].Load() == s {
			return true
		}
	}
	return s.space.current[s.class].Load() == s
}

// reclaimPatience is how long, after a slab was retired, an allocation that finds no room fails
// with ErrReclaiming. It is generous: epochs end in milliseconds, unless a transaction stays open.
const reclaimPatience = time.Second

// orReclaiming adds ErrReclaiming to err if err says that there is no room and retired slabs will
// soon make room. Otherwise it returns err.
func (a *Allocator) orReclaiming(err error) error {
	if !errors.Is(err, ErrFull) && !errors.Is(err, nvram.ErrNoSpace) {
		return err
	}
	waiting, soon := a.retirees()
	if waiting && a.cfg.Emptied != nil {
		a.cfg.Emptied() // the owner does not know yet of slabs that were retired for lack of room
	}
	if soon {
		return fmt.Errorf("%w: %w", ErrReclaiming, err)
	}
	return err
}

// retirees reports whether any slab is retired, and whether one was retired less than
// reclaimPatience ago.
func (a *Allocator) retirees() (exist, recent bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.cfg.Clock.Now()
	for _, sp := range a.dir.Load().list {
		for _, x := range sp.retired {
			exist, recent = true, recent || now.Sub(x.since) < reclaimPatience
		}
	}
	return exist, recent
}

// evictLocked removes a retired slab from its home. A goroutine that is just giving it a home
// does no harm, because it finds no free slot in the slab.
func (a *Allocator) evictLocked(s *slab) {
	for w := range a.workers {
		a.workers[w].current[s.class].CompareAndSwap(s, nil)
	}
	s.space.current[s.class].CompareAndSwap(s, nil)
	list := &s.space.listed[s.class]
	*list = slices.DeleteFunc(*list, func(other *slab) bool { return other == s })
}
