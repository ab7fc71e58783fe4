package region

import (
	"encoding/binary"
	"sync/atomic"
	"unsafe"

	"github.com/farmsql/farmsql/internal/invariant"
	"github.com/farmsql/farmsql/internal/sabotage"
)

// readSpins bounds how long ReadObject waits for a writer, about a microsecond. A
// lock is held for a whole commit: how to wait for that is left to the caller.
const readSpins = 128

// Header returns the header at off, an object's offset.
func (r *Region) Header(off uint32) Header { return Header(r.m.Load(uint64(off))) }

// Incarnation returns the incarnation at off, an object's offset.
func (r *Region) Incarnation(off uint32) uint64 {
	return r.m.Load(uint64(off) + incarnationOffset)
}

// ReadObject copies the payload of p's object into dst[:p.Capacity()], as one writer left it,
// and returns the header it had. It does not allocate. dst must be long enough; after an error
// its content is undefined. It may be called with any p, however stale or wrong. ErrLocked: a
// transaction held the object during all attempts. ErrFreed: the object, or its whole block, has
// been freed; the block may have another class by now. ErrBadPtr: p cannot point to an object
// of this region.
func (r *Region) ReadObject(p Ptr, dst []byte) (Header, error) {
	off, ok := r.at(p)
	if !ok {
		return 0, r.absent(p)
	}
	dst = dst[:p.Capacity()]
	object := r.m.Pointer(off, uint64(p.Class().Size()))
	header, incarnation := (*uint64)(object), (*uint64)(unsafe.Add(object, incarnationOffset))
	for range readSpins {
		h := Header(atomic.LoadUint64(header))
		if h.Locked() {
			continue
		}
		if !h.Allocated() || atomic.LoadUint64(incarnation) != p.Incarnation() {
			if Header(atomic.LoadUint64(header)) == h {
				return h, ErrFreed
			}
			continue
		}
		loadPayload(dst, object)
		if Header(atomic.LoadUint64(header)) == h || sabotage.LocalHeader.Skipped() {
			return h, nil
		}
	}
	return 0, ErrLocked
}

// loadPayload copies the payload of an object whose class has the capacity len(dst). It
// ignores writers: the caller compares headers. It never forms a pointer to the end of object
// or dst, because another allocation may begin there.
func loadPayload(dst []byte, object unsafe.Pointer) {
	copyFirst(unsafe.Pointer(unsafe.SliceData(dst)), object)
	for i := firstPayload; i < len(dst); i += linePayload {
		object = unsafe.Add(object, lineBytes)
		copyLine(unsafe.Pointer(&dst[i]), unsafe.Add(object, versionBytes))
	}
}

// Unpack copies the payload of p's object from raw, the p.Class().Size() bytes
// that a NIC read at its address, into dst[:p.Capacity()]. After ErrLocked or ErrTorn
// the caller should read again. ErrFreed says that the object is gone, ErrBadPtr that
// raw has another length. dst and raw must not overlap.
func Unpack(dst, raw []byte, p Ptr) (Header, error) {
	if len(raw) != p.Class().Size() {
		return 0, ErrBadPtr
	}
	h := Header(binary.LittleEndian.Uint64(raw))
	if h.Locked() && !sabotage.LockedReads.Skipped() {
		return h, ErrLocked
	}
	// The NIC read the first line atomically: that line alone shows whether the object
	// is gone. The other lines of a free slot may be of any version.
	isOther := binary.LittleEndian.Uint64(raw[incarnationOffset:]) != p.Incarnation()
	if !h.Allocated() || (isOther && !sabotage.Incarnation.Skipped()) {
		return h, ErrFreed
	}
	dst = dst[:p.Capacity()]
	copy(dst, raw[HeaderBytes:lineBytes])
	dst = dst[firstPayload:]
	v := lineVersion(h.Version())
	for raw = raw[lineBytes:]; len(raw) > 0; raw = raw[lineBytes:] {
		if binary.LittleEndian.Uint16(raw) != v && !sabotage.LineVersions.Skipped() {
			return h, ErrTorn
		}
		*(*[linePayload]byte)(dst) = *(*[linePayload]byte)(raw[versionBytes:])
		dst = dst[linePayload:]
	}
	return h, nil
}

// lineVersion returns the line version of an object at version v: its low bits.
func lineVersion(v Version) uint16 { return uint16(v) }

// Lock sets the lock bit of the slot at p if the slot is unlocked and at version v, and reports
// whether it did. The slot need not be allocated. It returns false if p points to no slot.
func (r *Region) Lock(p Ptr, v Version) bool {
	off, ok := r.slotAt(p)
	if !ok {
		return false
	}
	h := Header(r.m.Load(off))
	return !h.Locked() && h.Version() == v && r.m.CompareAndSwap(off, uint64(h), uint64(h|lockBit))
}

// Unlock clears the lock bit and leaves the object as it was. If the object is not locked, or
// not at version v, it does nothing and returns false.
func (r *Region) Unlock(p Ptr, v Version) bool {
	off, ok := r.at(p)
	if !ok {
		return false
	}
	h := Header(r.m.Load(off))
	return h.Locked() && h.Version() == v && r.m.CompareAndSwap(off, uint64(h), uint64(h&^lockBit))
}

// Write changes the object at p and unlocks it. The caller must have locked the object, and v must
// be newer than its present version. If allocated is set, the object gets payload, followed by
// zeros; otherwise the slot becomes free and keeps its bytes. Write stores in the order of NSDI'14
// section 3.5: a reader never accepts a read that overlaps it.
func (r *Region) Write(p Ptr, payload []byte, v Version, allocated bool, incarnation uint64) {
	off, ok := r.at(p)
	if !ok {
		invariant.Violated("write to an object", p, r.id)
	}
	if h := Header(r.m.Load(off)); !h.Locked() || v <= h.Version() || v > VersionMax {
		invariant.Violated("write to a locked object, at a newer version", h, v)
	}
	r.write(off, p.Class(), payload, v, allocated, incarnation, 0)
}

// write does the work of Write without its checks. It leaves the object locked if lock is lockBit.
func (r *Region) write(off uint64, c Class, payload []byte, v Version, allocated bool, incarnation uint64, lock Header) {
	if len(payload) > c.Capacity() {
		invariant.Violated("payload within the object's capacity", len(payload), c.Capacity())
	}
	r.mark(off)
	if allocated {
		r.storePayload(off, c, payload, v)
	}
	if r.m.Load(off+incarnationOffset) != incarnation { // an atomic store costs more than a load
		r.m.Store(off+incarnationOffset, incarnation)
	}
	r.m.Store(off, uint64(MakeHeader(v, allocated)|lock))
}

// ApplyBackup makes at a backup the change that Write made at the primary. It makes the change only
// if v is newer than the object's version at the backup, and reports whether it was. It may be
// called again for the same record, in any order of versions, and by several goroutines
// concurrently. It ignores, and removes, a lock bit that a crash or a former primary has left behind. It returns false if p points to no
// slot. Never call it at a primary, whose lock bits have owners. While the replica is being filled,
// it skips an object for which there is no room, and returns true.
func (r *Region) ApplyBackup(p Ptr, payload []byte, v Version, allocated bool, incarnation uint64) bool {
	return r.apply(p, payload, v, allocated, incarnation, 0)
}

// ApplyLocked is like ApplyBackup, at a primary where recovery has locked the object (SetLock); it
// leaves the object locked.
func (r *Region) ApplyLocked(p Ptr, payload []byte, v Version, allocated bool, incarnation uint64) bool {
	return r.apply(p, payload, v, allocated, incarnation, lockBit)
}

// apply writes an object at version v. lock is the lock bit that the object has afterwards. It
// returns false if the slot has version v or a newer one already, or if p points to no slot. If the
// replica has no room for the object yet, it skips the write and returns true.
func (r *Region) apply(p Ptr, payload []byte, v Version, allocated bool, incarnation uint64, lock Header) bool {
	off, ok := r.slotAt(p)
	if !ok || len(payload) > p.Capacity() || v > VersionMax {
		return false
	}
	if !r.hasRoom(off, uint64(p.Class().Size())) {
		return true // skipped: filling the replica brings the object later
	}
	mu := &r.applying[off/lineBytes%uint64(len(r.applying))]
	mu.Lock()
	defer mu.Unlock()
	h := Header(r.m.Load(off))
	if v <= h.Version() && !sabotage.NewerVersion.Skipped() {
		return false
	}
	r.m.Store(off, uint64(h|lockBit)) // locked, so that readers at a backup do not accept a partial write
	r.write(off, p.Class(), payload, v, allocated, incarnation, lock)
	return true
}

// SetLock sets the lock bit of the slot at p, at any version and even if it is set already. It
// returns false if p points to no slot. Recovery locks the objects that recovering transactions
// write, before anyone else can access them (SOSP'15 section 5.3 step 4).
func (r *Region) SetLock(p Ptr) bool {
	off, ok := r.slotAt(p)
	for ok {
		h := Header(r.m.Load(off))
		if h.Locked() || r.m.CompareAndSwap(off, uint64(h), uint64(h|lockBit)) {
			return true
		}
	}
	return false
}

// ClearLock removes the lock bit of the object at p and reports whether it was
// set. Recovery calls it once no transaction can own the lock any more.
func (r *Region) ClearLock(p Ptr) bool {
	off, ok := r.slotAt(p)
	for ok {
		h := Header(r.m.Load(off))
		if !h.Locked() {
			return false
		}
		if r.m.CompareAndSwap(off, uint64(h), uint64(h&^lockBit)) {
			return true
		}
	}
	return false
}

// DropLock removes, at a backup, a lock bit that is left in the slot at p from the time when this machine was the
// primary. It first waits for a writer of the object: ApplyBackup, too, sets the bit, to keep readers away from a
// partial write, and readers may still find this replica by an old route. It reports whether there was a lock bit.
func (r *Region) DropLock(p Ptr) bool {
	off, ok := r.slotAt(p)
	if !ok {
		return false
	}
	mu := &r.applying[off/lineBytes%uint64(len(r.applying))]
	mu.Lock()
	defer mu.Unlock()
	return r.ClearLock(p)
}

// HasLock reports whether the slot at p has a lock bit, at a backup, while nobody writes the object.
func (r *Region) HasLock(p Ptr) bool {
	off, ok := r.slotAt(p)
	if !ok {
		return false
	}
	mu := &r.applying[off/lineBytes%uint64(len(r.applying))]
	mu.Lock()
	defer mu.Unlock()
	return r.Header(uint32(off)).Locked()
}

// Objects yields every slot of every slab in address order, free and locked ones
// included, with the pointer to its present incarnation. Slots that change
// meanwhile are yielded in their old or in their new state.
func (r *Region) Objects(yield func(Ptr, Header) bool) {
	for s := range r.slabs {
		for i := range s.slots {
			p, h := r.slot(s, i)
			if !yield(p, h) {
				return
			}
		}
	}
}

// slot returns the pointer to the present incarnation of slot i of s, and the slot's header.
func (r *Region) slot(s extent, i int) (Ptr, Header) {
	off := s.slot(i)
	h := Header(r.m.Load(off))
	return MakePtr(MakeAddr(r.id, uint32(off)), s.class, r.m.Load(off+incarnationOffset)), h
}

// lines returns the number of lines of an object.
func (c Class) lines() int { return int(classLines[c]) }
