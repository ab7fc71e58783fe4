package region

import (
	"fmt"
	"iter"
	"math/bits"

	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/nvram"
)

// A Stale records which chunks of a replica may be out of date, in non-volatile memory
// beside the replica: a machine that comes back keeps its replicas, and fetches only
// what has changed. If the machine fails before it has everything, it continues where
// it stopped.
//
// # Why it is right
//
// A replica has applied only committed changes; so a replica that was left behind has an old state,
// but a committed one. The versions of a slot only grow: of two states of a slot, the state with
// the higher version is newer (see Region.Take). This is true once the replica has forgotten two
// things:
//
//   - Objects that were written by transactions that were not truncated when the machine
//     failed: a coordinator applies changes to its own backup early, objects may be locked
//     or half-written, writes may not have been applied. The machine's own logs name all
//     these objects. Forget sets a slot's version and incarnation to zero: any other
//     state is newer.
//   - Objects in blocks that belong to another slab now. Versions restart with a block's
//     next slab, so versions from two slabs cannot be compared. The machine's own block
//     table says which slabs the replica had, by their generations; Compare forgets the
//     blocks of other slabs. The primary overwrites the machine's table by one-sided
//     WRITEs, so a Stale keeps a copy of the old table.
//
// From then on the newer version wins, also while commits are applied.
//
// A chunk is stale if a slot that begins there may be older than at the primary. These are
// the chunks with forgotten slots, the chunks that the primary has marked in the
// configuration that Since returns or in later ones, and chunks left over from an
// earlier, unfinished attempt.
type Stale struct {
	r *Region
	m *nvram.Memory

	comparing lockrank.Mutex[lockrank.Leaf]
}

// The words of a Stale's memory. After them come a bit for each chunk and the copy of the block
// table.
const (
	staleMagic  = 0x31656c617473_4d46 // "FMstale1"
	staleHeader = lineBytes

	staleMagicOffset   = 0
	staleRegionOffset  = 8  // id 32b | zero 32b
	staleSizeOffset    = 16 // the region's
	staleSinceOffset   = 24
	stalePendingOffset = 32

	stalePage = 4096
)

func staleTableOffset(size uint64) uint64 { return staleHeader + chunkSetBytes(size) }

// StaleBytes returns the bytes of memory that the Stale of a region of this size takes.
func StaleBytes(size int64) int64 {
	end := staleTableOffset(uint64(size)) + tableEnd(uint64(size)) - wrapsOffset
	return int64(end+stalePage-1) &^ (stalePage - 1)
}

// FormatStale makes m the Stale of an empty replica of region id, with all chunks stale. m must
// have StaleBytes; the caller creates the replica next.
func FormatStale(id ID, size int64, m *nvram.Memory) error {
	return formatStale(id, uint64(size), m, func() {
		for i := uint64(staleHeader); i < staleTableOffset(uint64(size)); i += 8 {
			m.Store(i, ^uint64(0))
		}
		m.Store(staleSinceOffset, 0)
		m.Store(stalePendingOffset, 1)
	})
}

// FormatStale makes m the Stale of r, a replica that has all changes made before the given
// configuration. No one may write to r meanwhile.
func (r *Region) FormatStale(since uint32, m *nvram.Memory) error {
	return formatStale(r.id, r.size, m, func() {
		s := Stale{r: r, m: m}
		m.Store(staleSinceOffset, uint64(since))
		s.saveTable()
	})
}

// formatStale writes the words that identify m, and calls f to write the others. It writes the
// magic word last, so that m is not valid if a crash interrupts this.
func formatStale(id ID, size uint64, m *nvram.Memory, f func()) error {
	if err := m.Reserve(0, m.Size()); err != nil {
		return fmt.Errorf("region: what is stale of region %d: %w", id, err)
	}
	m.Store(staleMagicOffset, 0)
	m.Zero(8, m.Size()-8)
	m.Store(staleRegionOffset, uint64(id)<<32)
	m.Store(staleSizeOffset, size)
	f()
	m.Store(staleMagicOffset, staleMagic)
	return nil
}

// OpenStale returns the Stale of r that m holds. It returns ErrFormat if m holds no complete
// Stale, or the Stale of another region.
func (r *Region) OpenStale(m *nvram.Memory) (*Stale, error) {
	switch {
	case m.Size() < uint64(StaleBytes(int64(r.size))) || m.Load(staleMagicOffset) != staleMagic:
		return nil, fmt.Errorf("%w: memory does not say what is stale of region %d", ErrFormat, r.id)
	case m.Load(staleRegionOffset) != uint64(r.id)<<32 || m.Load(staleSizeOffset) != r.size:
		return nil, fmt.Errorf("%w: memory says what is stale of another region than %d", ErrFormat, r.id)
	}
	return &Stale{r: r, m: m}, nil
}

// Rejoin begins another life of the machine, which has missed the changes of the given configuration
// and of all later ones. No one may write to the region meanwhile.
func (s *Stale) Rejoin(since uint32) {
	if s.Since() == 0 { // otherwise it has missed changes since an earlier configuration
		s.m.Store(staleSinceOffset, uint64(since))
	}
	if !s.Pending() {
		s.saveTable()
	}
}

// saveTable copies the block table, which Compare later compares with the primary's table. It must
// not replace a copy that is still pending: the primary may have overwritten the table already.
func (s *Stale) saveTable() {
	off, n := s.r.Table()
	table := make([]byte, n)
	s.r.m.CopyOut(table, off)
	s.m.CopyIn(staleTableOffset(s.r.size), table)
	s.m.Store(stalePendingOffset, 1)
}

// Region returns the replica.
func (s *Stale) Region() *Region { return s.r }

// Pending reports whether the block table is still to be compared.
func (s *Stale) Pending() bool { return s.m.Load(stalePendingOffset) != 0 }

// Since returns the first configuration whose changes are not among the stale chunks yet;
// 0 if all changes are.
func (s *Stale) Since() uint32 { return uint32(s.m.Load(staleSinceOffset)) }

// Learned records that the stale chunks include everything that this replica has missed: from now
// on Since returns 0. Before, the caller must have made these chunks stale, by Add or Differ.
func (s *Stale) Learned() { s.m.Store(staleSinceOffset, 0) }

// Add makes the chunks of a set stale. It returns ErrFormat if the set's length is not that of
// the region's sets.
func (s *Stale) Add(set ChunkSet) error {
	if uint64(len(set)) != chunkSetBytes(s.r.size) {
		return fmt.Errorf("%w: %d bytes of chunks of region %d", ErrFormat, len(set), s.r.id)
	}
	for chunk := range set.all() {
		if chunk < s.r.Chunks() {
			s.set(chunk)
		}
	}
	return nil
}

// word returns where a chunk's bit is.
func (s *Stale) word(chunk int) (off, bit uint64) {
	return staleHeader + uint64(chunk)/64*8, 1 << (chunk % 64)
}

// set records that a chunk is stale. It tries again when another goroutine changes the same word.
func (s *Stale) set(chunk int) {
	off, bit := s.word(chunk)
	for w := s.m.Load(off); w&bit == 0 && !s.m.CompareAndSwap(off, w, w|bit); w = s.m.Load(off) {
	}
}

// Clear records that a chunk is up to date.
func (s *Stale) Clear(chunk int) {
	off, bit := s.word(chunk)
	for w := s.m.Load(off); w&bit != 0 && !s.m.CompareAndSwap(off, w, w&^bit); w = s.m.Load(off) {
	}
}

// Has reports whether a chunk is stale.
func (s *Stale) Has(chunk int) bool {
	off, bit := s.word(chunk)
	return s.m.Load(off)&bit != 0
}

// Chunks yields the stale chunks in rising order.
func (s *Stale) Chunks() iter.Seq[int] {
	return func(yield func(int) bool) {
		for first := 0; first < s.r.Chunks(); first += 64 {
			off, _ := s.word(first)
			for w := s.m.Load(off); w != 0; w &= w - 1 {
				chunk := first + bits.TrailingZeros64(w)
				if chunk >= s.r.Chunks() || !yield(chunk) {
					return
				}
			}
		}
	}
}

// InUse reports whether any slot begins in n chunks from the given one on.
func (s *Stale) InUse(chunk, n int) bool {
	begin := uint64(chunk) << chunkShift
	for range s.r.slots(begin, begin+(uint64(n)<<chunkShift)) {
		return true
	}
	return false
}

// Pieces yields the pieces to read for a chunk: see Region.Pieces.
func (s *Stale) Pieces(chunk, n int) iter.Seq[Piece] {
	begin := uint64(chunk) << chunkShift
	return s.r.pieces(begin, begin+ChunkBytes, n)
}

// Differ compares the primary's sums of chunks, from the given chunk on, with this replica's sums.
// Chunks whose sums differ become stale.
func (s *Stale) Differ(chunk int, sums []uint64) {
	for i, own := range s.r.Sums(chunk, len(sums)) {
		if own != sums[i] {
			s.set(chunk + i)
		}
	}
}

// Forget forgets the state of the slot that p points to, which an undecided transaction
// writes. It may be called again for the same slot. Call it before Compare, and before anyone
// else writes to the region.
func (s *Stale) Forget(p Ptr) {
	r := s.r
	if !r.within(p.Addr, uint64(p.Class().Size())) {
		return // p points outside of this region
	}
	off := uint64(p.Addr.Offset())
	s.set(int(off >> chunkShift))
	if _, ok := r.slotAt(p); !ok {
		// The block table has changed since the record was written. Changing the copy makes
		// Compare forget the whole block.
		s.m.Store(s.saved(int(off>>r.shift)), ^uint64(0))
		return
	}
	r.m.Store(off, 0)
	r.m.Store(off+incarnationOffset, 0)
}

// saved returns where the copy of block i's state is.
func (s *Stale) saved(i int) uint64 {
	return staleTableOffset(s.r.size) + tableOffset - wrapsOffset + uint64(i)*8
}

// Compare forgets the content of blocks that now belong to another slab. It finds them by comparing
// the block table, which the primary has overwritten by now, with the copy of the old table. It is
// called before the region is active, so that no commit has written to the region yet. A second
// call does nothing.
func (s *Stale) Compare() {
	s.comparing.Lock()
	defer s.comparing.Unlock()
	if !s.Pending() {
		return
	}
	differs := s.differing()
	for i, d := range differs {
		if d {
			s.forgetBlock(i)
		}
	}
	s.m.Store(stalePendingOffset, 0)
}

// differing reports for each block whether it belonged to another slab before. If this is true of
// one block of a slab, differing reports it for all of the slab's blocks: an object may begin in
// one block and end in the next.
func (s *Stale) differing() []bool {
	r := s.r
	all := s.m.Load(staleTableOffset(r.size)) != r.m.Load(wrapsOffset)
	differs := make([]bool, r.Blocks())
	for i := range differs {
		differs[i] = all || block(s.m.Load(s.saved(i))) != r.block(i)
	}
	for e := range r.slabs {
		anyDiffers := false
		for i := e.head; i < e.head+e.blocks; i++ {
			anyDiffers = anyDiffers || differs[i]
		}
		for i := e.head; i < e.head+e.blocks; i++ {
			differs[i] = anyDiffers
		}
	}
	return differs
}

// forgetBlock makes all chunks of a block stale, and clears the block if it has held anything. A
// block without storage has held nothing, because a primary reserves storage for whole blocks.
func (s *Stale) forgetBlock(i int) {
	r := s.r
	begin, end := uint64(i)<<r.shift, uint64(i+1)<<r.shift
	for chunk := begin >> chunkShift; chunk<<chunkShift < end; chunk++ {
		s.set(int(chunk))
	}
	begin = max(begin, r.first)
	switch {
	case s.m.Load(s.saved(i)) == 0, begin >= end: // nothing to clear
	case r.block(i).kind() == blockDirt: // cleared when it is taken; the primary may have given its storage back
		r.m.Discard(begin, end-begin)
	case r.m.Reserve(begin, end-begin) == nil:
		r.m.Zero(begin, end-begin)
	}
}
