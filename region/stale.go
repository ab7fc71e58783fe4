package region

import (
	"fmt"
	"iter"
	"math/bits"

	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/nvram"
)

// A Stale says what of a replica may be out of date, in non-volatile memory beside
// it: a machine that comes back keeps the replicas that it had, and fetches what
// has changed. If it fails before it has everything, it goes on where it was.
//
// # Why it is right
//
// A replica has applied what was committed, and nothing else; so one that was left
// behind is a committed state, only old. Versions of a slot rise, so that the newer
// of two states is the one with the higher version (see Region.Take), provided that
// two things are forgotten:
//
//   - What transactions wrote that were not truncated when the machine failed: a
//     coordinator applies to its own backup early, objects may be locked or
//     half-written, writes may not have been applied. The machine's own logs name all
//     of them. Forget sets version and incarnation of a slot to zero, which is older
//     than anything.
//   - What lies in blocks that have changed hands. Versions begin anew with a
//     block's next slab, so those of two slabs do not compare. The machine's own
//     block table says which slabs it knew, with generations; Compare forgets the blocks
//     of others. The primary writes its table over the machine's by one-sided WRITE, so
//     a copy is kept from before.
//
// From then on the newer version wins, also while commits are applied.
//
// A chunk is stale if a slot that begins there may be older than at the primary. The
// stale ones are those that have been forgotten, those that the primary has marked
// since the configuration Since, and those of an earlier, unfinished attempt.
type Stale struct {
	r *Region
	m *nvram.Memory

	comparing lockrank.Mutex[lockrank.Leaf]
}

// The words of a Stale's memory; behind them a bit for each chunk, then the copy of the
// block table.
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

// StaleBytes returns how much memory the Stale of a region of so many bytes takes.
func StaleBytes(size int64) int64 {
	end := staleTableOffset(uint64(size)) + tableEnd(uint64(size)) - anewOffset
	return int64(end+stalePage-1) &^ (stalePage - 1)
}

// FormatStale makes m, of StaleBytes, the Stale of an empty replica of region id,
// which is made next: it needs everything.
func FormatStale(id ID, size int64, m *nvram.Memory) error {
	return formatStale(id, uint64(size), m, func() {
		for i := uint64(staleHeader); i < staleTableOffset(uint64(size)); i += 8 {
			m.Store(i, ^uint64(0))
		}
		m.Store(staleSinceOffset, 0)
		m.Store(stalePendingOffset, 1)
	})
}

// FormatStale makes m the Stale of r, which was up to date before configuration since.
// Nobody may write to r meanwhile.
func (r *Region) FormatStale(since uint32, m *nvram.Memory) error {
	return formatStale(r.id, r.size, m, func() {
		s := Stale{r: r, m: m}
		m.Store(staleSinceOffset, uint64(since))
		s.saveTable()
	})
}

// formatStale writes the words that identify m, and calls f for the others in between. It
// writes the first word last, so that a copy cut short by a crash is not valid.
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

// OpenStale returns what m says about r. ErrFormat means that it says nothing: it is not
// a Stale, or not all of one, or of another region.
func (r *Region) OpenStale(m *nvram.Memory) (*Stale, error) {
	switch {
	case m.Size() < uint64(StaleBytes(int64(r.size))) || m.Load(staleMagicOffset) != staleMagic:
		return nil, fmt.Errorf("%w: memory does not say what is stale of region %d", ErrFormat, r.id)
	case m.Load(staleRegionOffset) != uint64(r.id)<<32 || m.Load(staleSizeOffset) != r.size:
		return nil, fmt.Errorf("%w: memory says what is stale of another region than %d", ErrFormat, r.id)
	}
	return &Stale{r: r, m: m}, nil
}

// Rejoin begins another life of the machine, which was a member up to the
// configuration before since. Nobody may write to the region meanwhile.
func (s *Stale) Rejoin(since uint32) {
	if s.Since() == 0 { // all that was stale then is known; changes since then are not
		s.m.Store(staleSinceOffset, uint64(since))
	}
	if !s.Pending() {
		s.saveTable()
	}
}

// saveTable copies the block table, to be compared with the one that the primary sends.
// A copy that has not been compared stays: the table may be the primary's already.
func (s *Stale) saveTable() {
	off, n := s.r.Table()
	table := make([]byte, n)
	s.r.m.CopyOut(table, off)
	s.m.CopyIn(staleTableOffset(s.r.size), table)
	s.m.Store(stalePendingOffset, 1)
}

// Region returns the replica.
func (s *Stale) Region() *Region { return s.r }

// Pending says that the block table has not been compared yet.
func (s *Stale) Pending() bool { return s.m.Load(stalePendingOffset) != 0 }

// Since returns the first configuration whose changes the stale chunks do not have;
// 0 if they have all.
func (s *Stale) Since() uint32 { return uint32(s.m.Load(staleSinceOffset)) }

// Learned says that the stale chunks are all that may be out of date.
func (s *Stale) Learned() { s.m.Store(staleSinceOffset, 0) }

// Add makes the chunks of a set stale, unless it is not one of the region's.
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

func (s *Stale) set(chunk int) {
	off, bit := s.word(chunk)
	for w := s.m.Load(off); w&bit == 0 && !s.m.CompareAndSwap(off, w, w|bit); w = s.m.Load(off) {
	}
}

// Clear says that a chunk is up to date.
func (s *Stale) Clear(chunk int) {
	off, bit := s.word(chunk)
	for w := s.m.Load(off); w&bit != 0 && !s.m.CompareAndSwap(off, w, w&^bit); w = s.m.Load(off) {
	}
}

// Has says whether a chunk is stale.
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

// InUse says whether any slot begins in n chunks from the given one on.
func (s *Stale) InUse(chunk, n int) bool {
	begin := uint64(chunk) << chunkShift
	for range s.r.slots(begin, begin+uint64(n)<<chunkShift) {
		return true
	}
	return false
}

// Pieces yields the pieces of a chunk that are to be read: see Region.Pieces.
func (s *Stale) Pieces(chunk, n int) iter.Seq[Piece] {
	begin := uint64(chunk) << chunkShift
	return s.r.pieces(begin, begin+ChunkBytes, n)
}

// Differ makes the chunks stale, from the given one on, of which the primary has other
// sums than this replica.
func (s *Stale) Differ(chunk int, sums []uint64) {
	for i, own := range s.r.Sums(chunk, len(sums)) {
		if own != sums[i] {
			s.set(chunk + i)
		}
	}
}

// Forget forgets the state of the slot that p points to, which an undecided transaction
// writes. It may be called again. It comes before the block table is compared, and before
// anybody else writes to the region.
func (s *Stale) Forget(p Ptr) {
	r := s.r
	if !r.within(p.Addr, uint64(p.Class().Size())) {
		return // of no region that there has been here
	}
	off := uint64(p.Addr.Offset())
	s.set(int(off >> chunkShift))
	if _, ok := r.slotAt(p); !ok {
		// The table is another already than when the record was written, or was another
		// then. The block is forgotten as a whole.
		s.m.Store(s.saved(int(off>>r.shift)), ^uint64(0))
		return
	}
	r.m.Store(off, 0)
	r.m.Store(off+incarnationOffset, 0)
}

// saved returns where the copy of block i's state is.
func (s *Stale) saved(i int) uint64 {
	return staleTableOffset(s.r.size) + tableOffset - anewOffset + uint64(i)*8
}

// Compare compares the block table, which is the primary's by now, with the one that the
// replica had, and forgets the content of blocks that now belong to another slab. It is called
// before the region is active, so that no commit has written to the region yet. A second call
// does nothing.
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

// differing returns which blocks have changed hands. A slab has if one of its blocks has:
// its objects may begin in one and end in another.
func (s *Stale) differing() []bool {
	r := s.r
	all := s.m.Load(staleTableOffset(r.size)) != r.m.Load(anewOffset)
	differs := make([]bool, r.Blocks())
	for i := range differs {
		differs[i] = all || block(s.m.Load(s.saved(i))) != r.block(i)
	}
	for e := range r.slabs {
		one := false
		for i := e.head; i < e.head+e.blocks; i++ {
			one = one || differs[i]
		}
		for i := e.head; i < e.head+e.blocks; i++ {
			differs[i] = one
		}
	}
	return differs
}

// forgetBlock makes all of a block stale, and zero if it has held anything. A block without
// storage has held nothing, because a primary reserves storage for whole blocks.
func (s *Stale) forgetBlock(i int) {
	r := s.r
	begin, end := uint64(i)<<r.shift, uint64(i+1)<<r.shift
	for chunk := begin >> chunkShift; chunk<<chunkShift < end; chunk++ {
		s.set(int(chunk))
	}
	begin = max(begin, r.first)
	switch {
	case s.m.Load(s.saved(i)) == 0, begin >= end:
	case r.block(i).kind() == blockDirt: // cleared by who takes it; the primary may have given its storage back
		r.m.Discard(begin, end-begin)
	case r.m.Reserve(begin, end-begin) == nil:
		r.m.Zero(begin, end-begin)
	}
}
