package region

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/nvram"
)

// An empty slab's blocks may serve another class, but not at once: a reader may hold a pointer
// to an object freed there, and would take the bytes there for a header. NSDI'14 section 3.5
// waits for an epoch to end on every machine.
//
//	in use --> retired: no slot can be taken --> two epochs --> free, dirty
//	   ^----------- revived for its own class ---'

// epochsToWait is how far the epoch must advance. One machine may already be in
// the epoch after the one this machine was last told of, so that pointers read
// now may belong to that next one.
const epochsToWait = 2

// retiree is a slab all of whose slots are taken, so that nobody else gets one.
type retiree struct {
	slab  *slab
	epoch uint64 // when it retired
	since time.Time
}

// Advance is called when every operation that began in an epoch before the given one has ended
// on every machine, that no machine has a pointer from such an epoch in a cache, and that
// every backup has applied the log records of such operations. Blocks that have been empty for
// long enough become available for any class; where free blocks are few, or much is empty,
// empty slabs begin to wait.
func (a *Allocator) Advance(epoch uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if epoch <= a.mu.epoch {
		return
	}
	if a.mu.epoch == 0 { // what has retired before did so in an epoch that is not known
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

// Waiting returns the number of blocks that epochs to come will make available
// for any class. An end of epoch is worth its price if there are some.
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

// retireLocked retires every empty slab of sp, those that are somebody's current one only
// if all is said. Not one that Scan has not looked at: it would find slots of a block that
// is another slab's by then.
func (a *Allocator) retireLocked(sp *space, all bool) {
	for i := 0; i < len(sp.slabs); i++ {
		s := sp.slabs[i].Load()
		if s == nil || s.head != i || !s.ready() || !s.empty() || !all && a.isCurrent(s) || !s.takeAll() {
			continue
		}
		a.evictLocked(s)
		sp.retired = append(sp.retired, retiree{s, a.mu.epoch, a.cfg.Clock.Now()})
	}
}

// isCurrent says whether somebody allocates from s.
func (a *Allocator) isCurrent(s *slab) bool {
	for w := range a.workers {
		if a.workers[w].current[s.class].Load() == s {
			return true
		}
	}
	return s.space.current[s.class].Load() == s
}

// reclaimPatience is the time for which allocations fail with ErrReclaiming after memory was
// retired: epochs end in milliseconds, unless a transaction stays open.
const reclaimPatience = time.Second

// orReclaiming returns err, the reason for which there is no room, or ErrReclaiming if
// reclaiming will make room soon.
func (a *Allocator) orReclaiming(err error) error {
	if !errors.Is(err, ErrFull) && !errors.Is(err, nvram.ErrNoSpace) {
		return err
	}
	waiting, soon := a.retirees()
	if waiting && a.cfg.Emptied != nil {
		a.cfg.Emptied() // nobody has been told yet that slabs were retired for want of room
	}
	if soon {
		return fmt.Errorf("%w: %w", ErrReclaiming, err)
	}
	return err
}

// retirees says whether there are any, and one among them that has retired lately.
func (a *Allocator) retirees() (any, late bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.cfg.Clock.Now()
	for _, sp := range a.dir.Load().list {
		for _, x := range sp.retired {
			any, late = true, late || now.Sub(x.since) < reclaimPatience
		}
	}
	return any, late
}

// evictLocked takes a retired slab out of whatever its home is. A goroutine that
// is just about to provide a home finds no free slot in it.
func (a *Allocator) evictLocked(s *slab) {
	for w := range a.workers {
		a.workers[w].current[s.class].CompareAndSwap(s, nil)
	}
	s.space.current[s.class].CompareAndSwap(s, nil)
	list := &s.space.listed[s.class]
	*list = slices.DeleteFunc(*list, func(other *slab) bool { return other == s })
}
