package region

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/invariant"
	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/internal/sabotage"
)

// AllocatorConfig connects an allocator to the replication of its blocks and the source of its
// regions. The hooks may be nil. The allocator calls them while it holds locks that Alloc takes: a
// hook must not call Alloc. It may call Release, Advance and Stats.
type AllocatorConfig struct {
	// Workers is the number of workers, each with slabs of its own.
	Workers int
	// HeldBack is the number of blocks that are held back for transactions that free memory
	// (ToFree). At most one in 32 of a region's blocks is held back.
	HeldBack int
	// Clock, by default the system's, is used to wait for locks that are held while a hook runs.
	Clock clock.Clock
	// Config returns the machine's configuration. A region whose tenure here ends with another
	// configuration must leave the allocator (Keep) before Config returns that configuration.
	Config func() uint32
	// Replicate writes data at off to every backup of t's region, in ascending order, before it
	// returns; it must not keep data. config is the configuration that Reserve returned: Replicate
	// must fail with ErrBackups if the backups may differ from the backups that Reserve asked. If
	// config is 0, any backups will do.
	//
	// Replicate, Reserve and Discard must fail with ErrDeparted, and change nothing, if the tenure is
	// over: the blocks are the new primary's.
	Replicate func(t *Tenure, off uint64, data []byte, config uint32) error
	// Reserve reserves storage for n bytes at off in every backup of t's region, before anything is
	// written there. It returns the configuration in which these backups became replicas.
	Reserve func(t *Tenure, off, n uint64) (config uint32, err error)
	// Discard frees the storage of n bytes at off on every replica of t's region. It returns the
	// configuration in which it asked the replicas. All replicas consider the blocks there dirty,
	// and nobody uses these blocks until Discard has returned. ErrDoubt means that a replica may
	// still free the storage later, while the replica is in that configuration.
	Discard func(t *Tenure, off, n uint64) (config uint32, err error)
	// Emptied is called when much memory has been freed: the owner should then end epochs and call
	// GiveBack, in the background. Emptied must not wait.
	Emptied func()
	// Grow returns a new region. If near is not 0, the new region has its replicas on the machines
	// of region near. The allocator adds the new region.
	Grow func(near ID) (*Region, error)
	// Colocated reports whether the same machines keep regions a and b. Without
	// it all regions count as co-located.
	Colocated func(a, b ID) bool
}

// Allocator finds room for objects in the regions that one machine is primary
// of. It is safe for concurrent use.
//
// It reserves slots: the transaction that commits a new object sets the allocated bit. The
// allocator's own state is volatile and small, one bit per slot. It is rebuilt from block tables
// and object headers.
//
// Lock order: Allocator.grow, worker.refill, Allocator.holding, Allocator.dirty,
// Allocator.mu.
type Allocator struct {
	cfg     AllocatorConfig
	workers []worker
	dir     atomic.Pointer[directory]

	grow    lockrank.Mutex[lockrank.Grow]     // held while a region is added
	holding lockrank.Mutex[lockrank.HoldBack] // held while blocks to hold back are chosen
	dirty   lockrank.Mutex[lockrank.Dirty]    // held while former slabs' blocks are marked dirty

	mu struct {
		lockrank.Mutex[lockrank.Leaf]
		epoch uint64 // the latest epoch that was passed to Advance
		held  []heldBlock
		keeps func(ID) (isOurs, goesOn bool) // the latest argument of Keep, or nil
	}
}

// worker holds, for each class, the slab that one worker allocates from.
type worker struct {
	current [Classes]atomic.Pointer[slab]
	refill  lockrank.Mutex[lockrank.Refill] // held while a full slab is replaced
	_       [lineBytes]byte
}

// directory lists an allocator's spaces in the order of their ids. It never changes: setLocked
// stores a new one.
type directory struct {
	byID map[ID]*space
	list []*space
}

// NewAllocator returns an allocator without regions.
func NewAllocator(cfg AllocatorConfig) *Allocator {
	if cfg.Clock == nil {
		cfg.Clock = clock.System{}
	}
	a := &Allocator{cfg: cfg, workers: make([]worker, max(cfg.Workers, 1))}
	a.dir.Store(&directory{byID: map[ID]*space{}})
	return a
}

// Alloc reserves a slot for payload bytes. It returns the pointer that the new object will have,
// the slot's present version, and the configuration in which the slot was reserved: in that
// configuration this machine is the primary of the slot's region. The slot stays reserved until a
// transaction has committed the object, until Release, or until the region gets another primary.
//
// Objects are placed near hint: in its block, in its region, in a co-located
// region, in any. Zero, or an address in a region the allocator does not have,
// is not a hint. Errors are ErrTooLarge, ErrFull, and those of the hooks.
func (a *Allocator) Alloc(need Need, worker int, payload int, hint Addr) (p Ptr, v Version, config uint32, err error) {
	c, ok := ClassFor(payload)
	if !ok {
		return Ptr{}, 0, 0, fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, payload, MaxPayload)
	}
	w := &a.workers[worker]
	for {
		s, p, v, ok := a.quick(w, c, hint)
		if !ok {
			s, p, v, err = a.slow(need, w, c, hint)
		}
		if err != nil {
			return Ptr{}, 0, 0, err
		}
		if config, ok := a.reservedIn(s); ok {
			return p, v, config, nil
		} // the region has another primary by now: search elsewhere
	}
}

// reservedIn returns the configuration in which a slot of s has just been reserved. ok is false if the region has
// another primary by now: the slot is then that primary's to hand out. reservedIn reads the configuration before it
// checks the tenure, because a region leaves before the configuration that takes it away begins.
func (a *Allocator) reservedIn(s *slab) (config uint32, ok bool) {
	if a.cfg.Config != nil {
		config = a.cfg.Config()
	}
	return config, !s.space.tenure.IsOver() || sabotage.ReservedIn.Skipped()
}

// quick allocates from the slab that contains hint, or else from a current slab: the worker's own, or
// that of hint's region if the worker's is in another region. It returns false if these have no room.
func (a *Allocator) quick(w *worker, c Class, hint Addr) (*slab, Ptr, Version, bool) {
	s := w.current[c].Load()
	if hint != 0 {
		if sp := a.dir.Load().byID[hint.Region()]; sp != nil {
			if near := sp.slabAt(hint.Offset()); near != nil && near.class == c {
				if p, v, ok := near.alloc(); ok {
					return near, p, v, true
				}
			}
			isHere := s != nil && s.space == sp // the worker's own slab is in the hinted region
			if !isHere && !sp.closed[c].Load() {
				s = sp.current[c].Load()
			}
		}
	}
	p, v, ok := s.alloc()
	return s, p, v, ok
}

// slow finds or makes a slab, allocates from it, and keeps it as a current slab.
func (a *Allocator) slow(need Need, w *worker, c Class, hint Addr) (*slab, Ptr, Version, error) {
	a.cfg.Clock.Lock(&w.refill)
	defer w.refill.Unlock()
	for {
		if s, p, v, ok := a.quick(w, c, hint); ok {
			return s, p, v, nil // another goroutine has made a slab while this one waited
		}
		s, err := a.find(c, hint)
		if err != nil {
			s, err = a.orHeld(need, c, 1, err)
		}
		if err != nil && !errors.Is(err, ErrDeparted) {
			return nil, Ptr{}, 0, err
		}
		if s == nil {
			continue // a region was added, or has left: search again
		}
		p, v, ok := s.alloc()
		if !ok {
			a.leave(s)
			continue
		}
		a.keep(w, hint, s)
		return s, p, v, nil
	}
}

// keep makes s the current slab of a worker or a region, in place of a full one.
func (a *Allocator) keep(w *worker, hint Addr, s *slab) {
	home := &w.current[s.class]
	hinted := a.dir.Load().byID[hint.Region()]
	if own := home.Load(); own != nil && hint != 0 && s.space == hinted && own.space != hinted {
		home = &hinted.current[s.class] // keep the worker's own slab, which has room in another region
	}
	if old := home.Swap(s); old != nil {
		a.leave(old)
	}
}

// leave marks s, which is no longer a current slab, as having no home. If enough of its slots have
// been released meanwhile, leave lists s.
func (a *Allocator) leave(s *slab) {
	if s.unhouse() {
		a.list(s)
	}
}

// list enters a slab into the lists of its space, from which workers take slabs.
func (a *Allocator) list(s *slab) {
	a.mu.Lock()
	s.space.listLocked(s)
	a.mu.Unlock()
}

// Release makes the slot at p available. Call it when the transaction that reserved the slot has
// aborted, or when the write that freed the object has been applied. The object must be unlocked
// and not allocated. Release ignores p if the allocator does not have its region: the region has
// another primary by now.
func (a *Allocator) Release(p Ptr) {
	sp := a.dir.Load().byID[p.Addr.Region()]
	if sp == nil {
		return
	}
	s := sp.slabAt(p.Addr.Offset())
	if s == nil {
		invariant.Violated("a released slot lies in a slab", p, "free block")
	}
	emptied := s.release(p)
	if s.ready() && s.rehouse() {
		a.list(s)
	}
	if emptied && sp.isIdle() {
		a.retire(sp)
	}
}

// retire retires the empty slabs of sp, but not slabs that workers are about to fill again.
func (a *Allocator) retire(sp *space) {
	a.mu.Lock()
	before := len(sp.retired)
	a.retireLocked(sp, false)
	sp.kept.Store(sp.idle.Load())
	more := len(sp.retired) > before
	a.mu.Unlock()
	if more && a.cfg.Emptied != nil {
		a.cfg.Emptied()
	}
}

// Add takes over region r, and rebuilds its free lists by reading every object's header. See
// Attach.
func (a *Allocator) Add(r *Region) {
	a.Attach(r)
	for a.Scan(1 << 16) {
	}
}

// Attach takes over region r, unless Keep has just said that another machine is its primary. Nothing
// is allocated in its slabs until Scan has read their
// objects' headers. The block table must already be repaired, here and in the backups (Repair;
// SOSP'15 section 5.5). Attach may be called again for the same region, even concurrently: the
// second call does nothing, since objects may already have been allocated after the first. Recovery
// has locked the objects that its transactions may still change: locked slots count as in use until
// they are released.
func (a *Allocator) Attach(r *Region) {
	a.mu.Lock()
	defer a.mu.Unlock()
	isOurs := a.mu.keeps == nil
	if !isOurs {
		isOurs, _ = a.mu.keeps(r.id)
	}
	if isOurs && !a.Has(r.id) {
		a.setLocked(r.id, newSpace(r))
	}
}

// Has reports whether region id was added or attached.
func (a *Allocator) Has(id ID) bool { return a.dir.Load().byID[id] != nil }

// Keep says what the next configuration means for the regions: whether this machine is a region's
// primary, and, if so, whether its present tenure goes on. Keep ends all other tenures, and forgets
// what the allocator knows of these regions. Those that are not this machine's cannot be attached
// until the next Keep: a region that is being made may be among them. An Alloc that runs meanwhile
// searches again.
//
// If this machine has lost the role of primary in a configuration that it never applied, its tenure ends although it is
// the primary again: the other machines count its earlier reservations as lost.
func (a *Allocator) Keep(fate func(ID) (isOurs, goesOn bool)) {
	for _, sp := range a.dropExcept(fate) {
		sp.tenure.end() // without the mutex: it waits for writes
	}
}

// dropExcept forgets the regions whose tenure does not go on, and returns them.
func (a *Allocator) dropExcept(fate func(ID) (isOurs, goesOn bool)) (dropped []*space) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mu.keeps = fate
	for _, sp := range a.dir.Load().list {
		if isOurs, goesOn := fate(sp.region.id); !isOurs || !goesOn {
			a.dropLocked(sp)
			dropped = append(dropped, sp)
		}
	}
	return dropped
}

// drop forgets sp, whose region has another primary by now.
func (a *Allocator) drop(sp *space) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.dropLocked(sp)
}

// dropLocked ends sp's tenure, takes its slabs from the workers and its blocks from those that are held back, and
// removes sp from the directory.
func (a *Allocator) dropLocked(sp *space) {
	sp.tenure.over.Store(!sabotage.Dropped.Skipped())
	for w := range a.workers {
		for c := range a.workers[w].current {
			if cur := &a.workers[w].current[c]; cur.Load() != nil && cur.Load().space == sp {
				cur.Store(nil)
			}
		}
	}
	a.mu.held = slices.DeleteFunc(a.mu.held, func(h heldBlock) bool { return h.space == sp })
	if a.dir.Load().byID[sp.region.id] == sp {
		a.setLocked(sp.region.id, nil)
	}
}

// setLocked makes sp the space of region id, or forgets the region if sp is nil.
func (a *Allocator) setLocked(id ID, sp *space) {
	byID := maps.Clone(a.dir.Load().byID)
	delete(byID, id)
	if sp != nil {
		byID[id] = sp
	}
	d := &directory{byID: byID}
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		d.list = append(d.list, byID[id])
	}
	a.dir.Store(d)
}

// Hold calls lock, which locks the slot at p, while Scan cannot run. It returns true if Scan is yet
// to reach the slot. Scan will count the slot as in use, so the caller must Release the slot if it
// holds no object in the end. If an earlier recovery has released the slot, Hold takes it back: no
// one can have reserved it, because its slab is not ready.
func (a *Allocator) Hold(p Ptr, lock func()) (isAhead bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	lock()
	sp := a.dir.Load().byID[p.Addr.Region()]
	if sp == nil {
		return true // the scan will reach the slot after the region is attached
	}
	s := sp.slabAt(p.Addr.Offset())
	if s == nil {
		return false
	}
	i := s.index(uint64(p.Addr.Offset()))
	if i < int(s.scanned.Load()) {
		return false
	}
	s.hold(i)
	return true
}

// Scan reads the headers of the next n slots of attached regions, and reports whether there are
// more. Recovery paces it.
func (a *Allocator) Scan(n int) (more bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, sp := range a.dir.Load().list {
		for len(sp.unready) > 0 && n > 0 {
			n -= a.scanLocked(sp, len(sp.unready)-1, n)
		}
		more = more || len(sp.unready) > 0
	}
	return more
}

// scanLocked reads the headers of up to n slots of the slab sp.unready[i]. If that completes the
// scan, it lists the slab. It returns how many slots it looked at.
func (a *Allocator) scanLocked(sp *space, i, n int) int {
	s := sp.unready[i]
	n = s.scan(n)
	if s.ready() {
		sp.unready = slices.Delete(sp.unready, i, i+1)
		if s.rehouse() {
			sp.listLocked(s)
		}
	}
	return n
}

// replicate calls the Replicate hook, if there is one.
func (a *Allocator) replicate(t *Tenure, off uint64, data []byte, config uint32) error {
	if a.cfg.Replicate == nil {
		return nil
	}
	if err := a.cfg.Replicate(t, off, data, config); err != nil {
		return fmt.Errorf("region %d: replicate at %#x: %w", t.id, off, err)
	}
	return nil
}

// reserve reserves storage for n bytes at off on every replica of t's region. It returns the
// configuration that the Reserve hook returned.
func (a *Allocator) reserve(t *Tenure, off, n uint64) (config uint32, err error) {
	err = t.m.Reserve(off, n)
	if err == nil && a.cfg.Reserve != nil {
		config, err = a.cfg.Reserve(t, off, n)
	}
	if err != nil {
		return 0, fmt.Errorf("region %d: reserve %d bytes at %#x: %w", t.id, n, off, err)
	}
	return config, nil
}
