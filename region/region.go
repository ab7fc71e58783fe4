package region

import (
	"fmt"
	"math/bits"
	"sync/atomic"

	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/nvram"
)

const (
	// MinSize and MaxSize bound a region's size, which is a power of two.
	MinSize = 1 << 20
	MaxSize = 1 << 32

	// FormatVersion is the layout that this program writes. Open upgrades regions of the
	// previous format, which had no generations.
	FormatVersion = 2

	formatBefore = 1

	magic       = 0x6e6f69676572_4d46 // "FMregion"
	tableOffset = lineBytes           // the block table follows the header's line

	// The words of a region's header.
	magicOffset  = 0
	shapeOffset  = 8 // id 32b | block shift 16b | format 16b
	sizeOffset   = 16
	headerSumOff = 24
	sinceOffset  = 32 // see Since; each replica has its own value
	wrapsOffset  = 56 // how many times a block's generation has wrapped around; the block table begins after this word

	blockShiftMax = 20 // 1 MB
	blocksWanted  = 128
)

// Region is one replica of one region. Its methods are safe for concurrent use as long as
// callers keep the protocol: only the holder of an object's lock writes the object.
type Region struct {
	id    ID
	m     *nvram.Memory
	size  uint64
	first uint64 // offset of the first object: after header and block table
	shift uint8  // log2 of the block size

	filling atomic.Pointer[room]  // nil unless the replica is being filled
	marks   atomic.Pointer[marks] // nil unless changes are marked

	// applying serializes the writers of an object at a backup, by address. These locks are
	// volatile: one that survived a crash would prevent a log from being applied again.
	applying [64]struct {
		lockrank.Mutex[lockrank.Leaf]
		_ [lineBytes - 8]byte
	}
}

// blockShiftFor returns log2 of the block size of a region: 1 MB in regions of 128 MB
// and more, less in smaller ones, so that these too have blocks for many classes.
func blockShiftFor(size uint64) uint8 {
	return uint8(min(bits.Len64(size/blocksWanted)-1, blockShiftMax))
}

// Format makes zeroed memory into region id, without objects. It returns ErrFormat if no region can
// have the memory's size, or if the memory holds a region already. It returns nvram.ErrNoSpace if
// there is no storage for the block table.
func Format(id ID, m *nvram.Memory) (*Region, error) {
	size := m.Size()
	if size < MinSize || size > MaxSize || size&(size-1) != 0 {
		return nil, fmt.Errorf("%w: size %d is not a power of two from 1 MB to 4 GB", ErrFormat, size)
	}
	if err := m.Reserve(0, tableEnd(size)); err != nil {
		return nil, fmt.Errorf("region: block table of region %d: %w", id, err)
	}
	if Formatted(m) {
		return nil, fmt.Errorf("%w: memory for region %d is in use", ErrFormat, id)
	}
	shape := uint64(id)<<32 | uint64(blockShiftFor(size))<<16 | FormatVersion
	m.Store(shapeOffset, shape)
	m.Store(sizeOffset, size)
	m.Store(headerSumOff, headerSum(shape, size))
	m.Store(magicOffset, magic)
	return Open(id, m)
}

// Formatted reports whether anything is in the place of a region's magic number. Open checks
// whether it is a region.
func Formatted(m *nvram.Memory) bool { return m.Load(magicOffset) != 0 }

// Open returns region id, which m must hold. It returns ErrFormat if m holds other bytes, another
// region, a region whose size is not m's, or a newer format. It upgrades a region of the previous
// format.
func Open(id ID, m *nvram.Memory) (*Region, error) {
	if m.Size() < MinSize || m.Load(magicOffset) != magic {
		return nil, fmt.Errorf("%w: no region header", ErrFormat)
	}
	shape, size := m.Load(shapeOffset), m.Load(sizeOffset)
	sum := m.Load(headerSumOff)
	// A crash during upgrade leaves the new format beside the checksum of the previous one.
	isHalfway := uint16(shape) == FormatVersion && sum == headerSum(formatted(shape, formatBefore), size)
	if sum != headerSum(shape, size) && !isHalfway {
		return nil, fmt.Errorf("%w: region header is damaged", ErrFormat)
	}
	if v := uint16(shape); v != FormatVersion && v != formatBefore {
		return nil, fmt.Errorf("%w: format %d, this program reads %d and %d", ErrFormat, v, formatBefore, FormatVersion)
	}
	if got := ID(shape >> 32); got != id {
		return nil, fmt.Errorf("%w: memory holds region %d, not %d", ErrFormat, got, id)
	}
	if size != m.Size() || size > MaxSize || size&(size-1) != 0 || uint8(shape>>16) != blockShiftFor(size) {
		return nil, fmt.Errorf("%w: region of %d bytes in %d bytes of memory", ErrFormat, size, m.Size())
	}
	if now := formatted(shape, FormatVersion); sum != headerSum(now, size) {
		upgrade(m, now, size)
	}
	return &Region{id: id, m: m, size: size, shift: blockShiftFor(size), first: tableEnd(size)}, nil
}

// upgrade changes a region to this program's format. The previous format has zeros in place of
// generations, so that only the header changes: the shape first, then its checksum. After a crash
// in between, Open finds the upgrade halfway done and completes it, while programs of the previous
// format report damage.
func upgrade(m *nvram.Memory, shape, size uint64) {
	m.Store(shapeOffset, shape)
	m.Store(headerSumOff, headerSum(shape, size))
}

// formatted returns a shape with its format replaced.
func formatted(shape, format uint64) uint64 { return (shape &^ 0xffff) | format }

// tableEnd returns the offset at which the block table of a region ends and objects may begin.
func tableEnd(size uint64) uint64 {
	blocks := size >> blockShiftFor(size)
	return tableOffset + ((blocks*8 + lineBytes - 1) &^ (lineBytes - 1)) // whole lines
}

// headerSum mixes a header's words so that every single flipped bit changes the sum.
func headerSum(shape, size uint64) uint64 {
	return bits.RotateLeft64(shape*0x9e3779b97f4a7c15, 32) ^ (size * 0xff51afd7ed558ccd) ^ magic
}

// ID returns the region's number.
func (r *Region) ID() ID { return r.id }

// Since returns the configuration in which this replica was created, or 0 if it has existed
// since the region was created. SetSince sets it. Both use non-volatile memory.
func (r *Region) Since() uint32     { return uint32(r.m.Load(sinceOffset)) }
func (r *Region) SetSince(c uint32) { r.m.Store(sinceOffset, uint64(c)) }

// Memory returns the memory that holds the region.
func (r *Region) Memory() *nvram.Memory { return r.m }

// Size returns the region's bytes, header and block table included.
func (r *Region) Size() uint64 { return r.size }

// Blocks returns the number of blocks.
func (r *Region) Blocks() int { return int(r.size >> r.shift) }

// BlockSize returns the bytes of a block.
func (r *Region) BlockSize() int { return 1 << r.shift }

// Used returns the bytes of all slots of all slabs.
func (r *Region) Used() (n uint64) {
	for s := range r.slabs {
		n += uint64(s.slots) * uint64(s.class.Size())
	}
	return n
}

// block returns block i's state.
func (r *Region) block(i int) block { return block(r.m.Load(tableOffset + uint64(i)*8)) }

// blockAt returns the state of the block that off lies in.
func (r *Region) blockAt(off uint64) block { return r.block(int(off >> (r.shift & 63))) } // the mask saves a comparison

// inOneBlock reports whether two offsets lie in one block.
func (r *Region) inOneBlock(a, b uint64) bool { return (a^b)>>(r.shift&63) == 0 }

// at returns the offset p points to, and whether an object of its class can be there: inside the
// region, on a line, in a block of that class. The check costs no miss: the block table stays in
// the cache (16 KB for 2 GB), and its load overlaps that of the header. A pointer into the middle
// of an object passes the check; reading it gives garbage or ErrFreed, which is harmless.
func (r *Region) at(p Ptr) (uint64, bool) {
	if !r.within(p.Addr, uint64(p.Class().Size())) {
		return 0, false
	}
	off := uint64(p.Addr.Offset())
	return off, r.blockAt(off).holds(p.Class())
}

// absent returns why no object can be where p points. A pointer that was kept for long may
// point into a block that has been freed and given to another class since.
func (r *Region) absent(p Ptr) error {
	if r.within(p.Addr, uint64(p.Class().Size())) {
		return ErrFreed
	}
	return ErrBadPtr
}

// within reports whether an address is the beginning of a line, and n bytes from there are in the
// region, after its header and block table.
func (r *Region) within(a Addr, n uint64) bool {
	off := uint64(a.Offset())
	return a.Region() == r.id && off%lineBytes == 0 && off >= r.first && off+n <= r.size
}

// slotAt is like at, but for writers: p must point to the beginning of a slot.
func (r *Region) slotAt(p Ptr) (uint64, bool) {
	off, ok := r.at(p)
	if !ok {
		return 0, false
	}
	s, ok := r.slabOf(int(off >> r.shift))
	return off, ok && s.holds(off)
}
