package region

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/farmsql/farmsql/nvram"
)

func newStale(t testing.TB, r *Region, since uint32) *Stale {
	t.Helper()
	m := nvram.NewMemory(StaleBytes(int64(r.size)))
	if err := r.FormatStale(since, m); err != nil {
		t.Fatal(err)
	}
	return openStale(t, r, m)
}

func openStale(t testing.TB, r *Region, m *nvram.Memory) *Stale {
	t.Helper()
	s, err := r.OpenStale(m)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStaleOpens(t *testing.T) {
	for _, size := range []int64{1 << 20, 64 << 20} {
		r := newRegion(t, 3, size)
		m := nvram.NewMemory(StaleBytes(size))
		if _, err := r.OpenStale(m); !errors.Is(err, ErrFormat) {
			t.Errorf("zeroes: %v", err)
		}
		if err := FormatStale(3, size, m); err != nil {
			t.Fatal(err)
		}
		s := openStale(t, r, m)
		if n := len(slices.Collect(s.Chunks())); n != r.Chunks() || s.Since() != 0 || !s.Pending() || s.Region() != r {
			t.Errorf("an empty replica: %d of %d chunks are stale, since %d", n, r.Chunks(), s.Since())
		}
		for what, spoil := range map[string]func(m *nvram.Memory){
			"other format": func(m *nvram.Memory) { m.Store(staleMagicOffset, staleMagic+1<<56) },
			"other region": func(m *nvram.Memory) { m.Store(staleRegionOffset, 4<<32) },
			"other size":   func(m *nvram.Memory) { m.Store(staleSizeOffset, 1) },
		} {
			c := nvram.NewMemory(StaleBytes(size))
			if err := FormatStale(3, size, c); err != nil {
				t.Fatal(err)
			}
			if spoil(c); !isFormat(r.OpenStale(c)) {
				t.Errorf("%s opens", what)
			}
		}
		if !isFormat(r.OpenStale(nvram.NewMemory(64))) {
			t.Error("memory that is too short opens")
		}
	}
}

func isFormat(_ *Stale, err error) bool { return errors.Is(err, ErrFormat) }

// The set of stale chunks outlives the machine's lives: a later life knows how far the earlier one
// had come.
func TestStaleLives(t *testing.T) {
	r := newRegion(t, 1, 8<<20)
	s := newStale(t, r, 7)
	if n := len(slices.Collect(s.Chunks())); n != 0 || s.Since() != 7 {
		t.Errorf("%d chunks of a replica that is kept are stale, since %d", n, s.Since())
	}
	set := make(ChunkSet, chunkSetBytes(r.size))
	set[0], set[3] = 0b110, 1
	s.Add(set)
	if err := s.Add(set[:8]); !errors.Is(err, ErrFormat) {
		t.Errorf("a set of another region: %v", err)
	}
	s.Clear(2)
	s.Rejoin(9) // before it was known what had changed since 7
	if s = openStale(t, r, s.m); s.Since() != 7 || !slices.Equal(slices.Collect(s.Chunks()), []int{1, 24}) || !s.Has(24) || s.Has(2) {
		t.Errorf("stale %v, since %d", slices.Collect(s.Chunks()), s.Since())
	}
	s.Learned()
	s.Rejoin(12)
	if s = openStale(t, r, s.m); s.Since() != 12 || !s.Has(1) {
		t.Errorf("stale %v, since %d", slices.Collect(s.Chunks()), s.Since())
	}
}

// Compare forgets a block that belongs to another slab now, with all of its slab; other blocks keep
// their content. If the machine failed before the comparison, the copy of the block table is still
// the replica's. After the comparison nothing is forgotten any more.
func TestStaleCompares(t *testing.T) {
	for what, c := range map[string]struct {
		change func(r *Region)
		want   []int // blocks
	}{
		"nothing":                   {func(*Region) {}, nil},
		"generation":                {func(r *Region) { r.setBlocks(4, []uint64{uint64(r.block(4).withGeneration(1))}) }, []int{4}},
		"generation of a tail":      {func(r *Region) { r.setBlocks(9, []uint64{uint64(r.block(9).withGeneration(1))}) }, []int{8, 9, 10}},
		"given":                     {func(r *Region) { r.setBlocks(5, runWords(1, 7)) }, []int{5}},
		"dirty":                     {func(r *Region) { r.setBlocks(4, dirtyWords(1)) }, []int{4}},
		"generation wrapped around": {func(r *Region) { r.m.Store(wrapsOffset, 1) }, []int{4, 8, 9, 10}},
	} {
		r := newRegion(t, 1, 8<<20)
		r.setBlocks(4, runWords(1, 3))
		r.setBlocks(8, runWords(3, 200))
		for _, b := range []int{4, 8, 9, 10} {
			r.m.Store(uint64(b)<<r.shift+64, 77)
		}
		s := newStale(t, r, 7)
		c.change(r)
		for range 2 { // the machine fails before the comparison
			s = openStale(t, r, s.m)
			s.Rejoin(8)
		}
		s.Compare()
		for _, b := range []int{4, 5, 8, 9, 10} {
			isForgotten := s.Has(b << r.shift >> chunkShift)
			if isZero := r.m.Load(uint64(b)<<r.shift+64) == 0; isForgotten != slices.Contains(c.want, b) && what != "generation wrapped around" || isForgotten && !isZero {
				t.Errorf("%s: block %d is stale: %v, zero: %v", what, b, isForgotten, isZero)
			}
		}
		r.m.Store(4<<r.shift+64, 88)
		s.Compare()
		if r.m.Load(4<<r.shift+64) != 88 || s.Pending() {
			t.Errorf("%s: compared twice", what)
		}
	}
}

// Forget makes an object that a log names older than any other state. If the block has another
// class by now, Forget forgets the whole block.
func TestStaleForgets(t *testing.T) {
	r := newRegion(t, 1, 8<<20)
	r.setBlocks(4, runWords(1, 3))
	size := uint32(Class(3).Size())
	p := MakePtr(MakeAddr(1, 4<<r.shift), 3, 2)
	other := MakePtr(p.Addr+Addr(size), 3, 2)
	for _, q := range []Ptr{p, other} {
		r.ApplyBackup(q, bytes.Repeat([]byte{1}, 10), 9, true, 2)
	}
	r.SetLock(p)
	s := newStale(t, r, 7)
	s.Forget(p)
	s.Forget(MakePtr(MakeAddr(1, 0), 3, 2))                 // the header of the region
	s.Forget(MakePtr(MakeAddr(1, uint32(r.size-64)), 3, 2)) // beyond its end
	s.Forget(MakePtr(MakeAddr(2, 4<<r.shift), 3, 2))
	if r.Header(p.Addr.Offset()) != 0 || r.Incarnation(p.Addr.Offset()) != 0 || r.Header(other.Addr.Offset()) != MakeHeader(9, true) {
		t.Errorf("headers %v, %v", r.Header(p.Addr.Offset()), r.Header(other.Addr.Offset()))
	}
	if got := slices.Collect(s.Chunks()); !slices.Equal(got, []int{4 << r.shift >> chunkShift}) {
		t.Errorf("stale %v", got)
	}
	if !r.ApplyBackup(p, nil, 1, true, 0) {
		t.Error("version 1 does not win over what was forgotten")
	}
	s.Forget(MakePtr(MakeAddr(1, 4<<r.shift+64), 5, 0)) // was of another class
	s.Compare()
	if r.Header(other.Addr.Offset()) != 0 {
		t.Errorf("a block whose slab is another by now holds %v", r.Header(other.Addr.Offset()))
	}
}

// The pieces of all chunks are the pieces of the region: every slot once, in the chunk
// in which it begins.
func TestPiecesOfChunks(t *testing.T) {
	r := newRegion(t, 1, 8<<20)
	a := newAllocator(t, AllocatorConfig{}, r)
	for _, payload := range []int{40, 300, 9000, 70_000, 700_000} {
		mustAlloc(t, a, 0, payload, 0)
	}
	m := nvram.NewMemory(StaleBytes(8 << 20))
	if err := FormatStale(1, 8<<20, m); err != nil {
		t.Fatal(err)
	}
	s := openStale(t, r, m)
	seen := map[uint64]bool{}
	total := uint64(0)
	for chunk := range s.Chunks() {
		for p := range s.Pieces(chunk, 8<<10) {
			if p.Bytes > max(8<<10, p.slab.class.Size()) {
				t.Errorf("a piece of %d bytes", p.Bytes)
			}
			total += uint64(p.Bytes)
			for off := p.Offset; off < p.Offset+uint64(p.Bytes); off += uint64(p.slab.class.Size()) {
				if seen[off] || !p.slab.holds(off) || int(off>>chunkShift) != chunk {
					t.Fatalf("slot at %#x in chunk %d", off, chunk)
				}
				seen[off] = true
			}
		}
		if s.InUse(chunk, 1) != (slicesLen(s, chunk) > 0) {
			t.Errorf("chunk %d is in use: %v", chunk, s.InUse(chunk, 1))
		}
	}
	if total != r.Used() || total == 0 {
		t.Errorf("%d bytes in pieces, %d used", total, r.Used())
	}
}

func slicesLen(s *Stale, chunk int) int { return len(slices.Collect(s.Pieces(chunk, 8<<10))) }

// A replica that comes back gives back the storage of blocks that are dirty by now.
func TestStaleGivesBack(t *testing.T) {
	p := newScarcePair(t, 256)
	ptr, v := mustAlloc(t, p.a, 0, 1000, 0)
	p.commit(t, ptr, v, []byte("what was there"))
	s := newStale(t, p.backup, 5)
	i := int(ptr.Addr.Offset()) >> p.backup.shift
	if err := p.a.markDirty(&p.a.dir.Load().byID[p.primary.id].tenure, extent{head: i, blocks: 1}); err != nil {
		t.Fatal(err)
	}
	s.Compare()
	first := uint64(i) << p.backup.shift / scarcePage
	for page := first; page < first+1<<p.backup.shift/scarcePage; page++ {
		if page*scarcePage >= p.backup.first && p.storage[1].has[page] {
			t.Errorf("page %d of block %d has storage", page, i)
		}
	}
}
