package region

import (
	"slices"
	"testing"

	"github.com/farmsql/farmsql/nvram"
)

// chunksOf returns the chunks of a set.
func chunksOf(s ChunkSet) []int { return slices.Collect(s.all()) }

// Every path that changes an object marks its chunk with the region's configuration; locks mark
// nothing. Nothing is known of earlier changes.
func TestMarks(t *testing.T) {
	r := newRegion(t, 1, 8<<20)
	a := newAllocator(t, AllocatorConfig{}, r)
	var ptrs []Ptr
	var chunks []int
	for len(ptrs) < 4 {
		p, v := mustAlloc(t, a, 0, 60_000, 0)
		mustLock(t, r, p, v)
		r.Write(p, nil, v+1, true, 0)
		if chunk := int(p.Addr.Offset() >> chunkShift); !slices.Contains(chunks, chunk) {
			ptrs, chunks = append(ptrs, p), append(chunks, chunk)
		}
	}
	if _, ok := r.Marked(0); ok {
		t.Error("marks where nobody marks")
	}
	r.Mark(5)
	if _, ok := r.Marked(4); ok {
		t.Error("marks of before the first configuration")
	}
	check := func(since uint32, want ...int) {
		t.Helper()
		slices.Sort(want)
		if set, ok := r.Marked(since); !ok || !slices.Equal(chunksOf(set), want) {
			t.Errorf("since %d: %v, %v, want %v", since, chunksOf(set), ok, want)
		}
	}
	mustLock(t, r, ptrs[0], 1)
	r.Unlock(ptrs[0], 1)
	r.SetLock(ptrs[0])
	r.ClearLock(ptrs[0])
	check(5)
	mustLock(t, r, ptrs[0], 1)
	r.Write(ptrs[0], nil, 2, true, 0)
	check(5, chunks[0])
	r.ApplyBackup(ptrs[1], nil, 2, true, 0)
	r.ApplyBackup(ptrs[3], nil, 1, true, 0) // is no news
	check(5, chunks[0], chunks[1])
	r.Mark(6)
	check(6)
	r.SetLock(ptrs[2])
	r.ApplyLocked(ptrs[2], nil, 2, false, 1)
	r.ApplyBackup(ptrs[1], nil, 3, true, 0)
	check(6, chunks[1], chunks[2])
	check(5, chunks[0], chunks[1], chunks[2])
	r.Unmark()
	if _, ok := r.Marked(9); ok {
		t.Error("marks that are forgotten")
	}
	r.Mark(9)
	check(9)
}

// A write costs no memory, marked or not.
func TestMarksDoNotAllocate(t *testing.T) {
	r := newRegion(t, 1, 1<<20)
	r.Mark(1)
	p := newObject(t, r, 3)
	v := Version(0)
	if n := testing.AllocsPerRun(100, func() {
		r.Lock(p, v)
		v++
		r.Write(p, nil, v, true, 0)
	}); n != 0 {
		t.Errorf("%v allocations a write", n)
	}
}

// Sums depend on versions, allocation and incarnations, but not on locks. Chunks beyond the end
// have no sums.
func TestSums(t *testing.T) {
	r := newRegion(t, 1, 1<<20)
	a := newAllocator(t, AllocatorConfig{}, r)
	p, v := mustAlloc(t, a, 0, 100, 0)
	chunk := int(p.Addr.Offset() >> chunkShift)
	seen := []uint64{r.Sums(chunk, 1)[0]}
	look := func(what string, isNew bool) {
		t.Helper()
		sum := r.Sums(chunk, 1)[0]
		if slices.Contains(seen, sum) == isNew {
			t.Errorf("%s: sum %#x, seen %#x", what, sum, seen)
		}
		seen = append(seen, sum)
	}
	mustLock(t, r, p, v)
	look("locked", false)
	r.Write(p, []byte("a"), v+1, true, 0)
	look("allocated", true)
	r.ApplyBackup(p, nil, v+2, true, 0)
	look("written", true)
	r.ApplyBackup(p, nil, v+3, false, 0)
	look("freed", true)
	r.ApplyBackup(p, nil, v+4, false, 1)
	look("freed, with another incarnation", true)
	if n := len(r.Sums(r.Chunks()-2, 9)); n != 2 {
		t.Errorf("%d sums of two chunks", n)
	}
	if n := len(r.Sums(-1, 2)) + len(r.Sums(0, -1)) + len(r.Sums(r.Chunks(), 1)); n != 0 {
		t.Errorf("%d sums of no chunks", n)
	}
}

// BenchmarkWriteMarked: a write costs one more load without marking, and another load and a
// comparison with marking.
func BenchmarkWriteMarked(b *testing.B) {
	for what, isMarked := range map[string]bool{"unmarked": false, "marked": true} {
		b.Run(what, func(b *testing.B) {
			r, err := Format(1, nvram.NewMemory(1<<20))
			if err != nil {
				b.Fatal(err)
			}
			if isMarked {
				r.Mark(1)
			}
			p := newObject(b, r, 0)
			v := Version(0)
			for b.Loop() {
				r.Lock(p, v)
				v++
				r.Write(p, nil, v, true, 0)
			}
		})
	}
}
