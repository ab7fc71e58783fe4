package region

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/farmsql/farmsql/internal/prefetch"
)

// viewRegion is newRegion with memory that lasts as long as the test. Memory that nothing refers to
// is unmapped, and a View does not refer to its memory.
func viewRegion(t *testing.T, id ID, size int64) *Region {
	t.Helper()
	r := newRegion(t, id, size)
	t.Cleanup(func() { runtime.KeepAlive(r) })
	return r
}

// TestViewLoads loads ranges of objects of all shapes, and checks which bytes were loaded.
func TestViewLoads(t *testing.T) {
	for _, c := range []Class{0, 1, 2, 3, 15, 27} {
		r := viewRegion(t, 7, 4<<20)
		p := newObject(t, r, c)
		want := payloadOf(c, 1)
		mustLock(t, r, p, 0)
		r.Write(p, want, 1, true, 0)
		v, err := r.Look(p)
		if err != nil || v.Header() != MakeHeader(1, true) {
			t.Fatal(v.Header(), err)
		}
		rng := rand.New(rand.NewPCG(1, uint64(c)))
		for range 200 {
			from, to := rng.IntN(len(want)+20)-10, rng.IntN(len(want)+20)-10
			dst := make([]byte, len(want))
			v.Touch(from, to)
			v.Load(dst, from, to)
			checkLoaded(t, dst, want, from, to)
			checkLines(t, v, want, from, to)
		}
		if !v.Valid() {
			t.Fatal("nobody wrote, and the view is not valid")
		}
	}
}

// TestViewCopies copies, and compares, ranges of objects of all shapes.
func TestViewCopies(t *testing.T) {
	for _, c := range []Class{0, 1, 2, 3, 15} {
		r := viewRegion(t, 7, 4<<20)
		p := newObject(t, r, c)
		want := payloadOf(c, 1)
		mustLock(t, r, p, 0)
		r.Write(p, want, 1, true, 0)
		v, err := r.Look(p)
		if err != nil {
			t.Fatal(err)
		}
		for i := range FirstWords {
			if got := binary.LittleEndian.Uint64(want[8*i:]); v.Word(i) != got {
				t.Errorf("word %d is %#x, want %#x", i, v.Word(i), got)
			}
		}
		for from := 0; from <= len(want); from += 1 + from%7 {
			for n := 0; from+n <= len(want); n += 1 + n/3 {
				part, dst := want[from:from+n], make([]byte, n)
				if v.Copy(dst, from); !bytes.Equal(dst, part) {
					t.Fatalf("copy of [%d,+%d) of %d: %x, want %x", from, n, len(want), dst, part)
				}
				if !v.Equal(part, from) {
					t.Fatalf("[%d,+%d) of %d does not equal itself", from, n, len(want))
				}
				for i := range dst {
					dst[i] ^= 1
					if v.Equal(dst, from) {
						t.Fatalf("[%d,+%d) of %d equals what differs in byte %d", from, n, len(want), i)
					}
					dst[i] ^= 1
				}
			}
		}
		for name, f := range map[string]func(){
			"word":     func() { v.Word(FirstWords) },
			"before":   func() { v.Copy(make([]byte, 1), -1) },
			"beyond":   func() { v.Copy(make([]byte, 2), len(want)-1) },
			"equal":    func() { v.Equal(make([]byte, 2), len(want)-1) },
			"zero":     func() { View{}.Copy(make([]byte, 49), 0) },
			"negative": func() { v.Word(-1) },
		} {
			if !panics(f) {
				t.Errorf("%s: no panic", name)
			}
		}
	}
}

func panics(f func()) (did bool) {
	defer func() { did = recover() != nil }()
	f()
	return false
}

// checkLoaded checks that dst has the lines of want with bytes [from, to), and zeroes elsewhere.
func checkLoaded(t *testing.T, dst, want []byte, from, to int) {
	t.Helper()
	from, to = max(from, 0), min(to, len(want))
	if from >= to {
		if !bytes.Equal(dst, make([]byte, len(dst))) {
			t.Fatalf("nothing of [%d,%d) is there, but something came", from, to)
		}
		return
	}
	if !bytes.Equal(dst[from:to], want[from:to]) {
		t.Fatalf("[%d,%d) of %d did not come", from, to, len(want))
	}
	for i := range dst {
		near := i > from-linePayload && i < to+linePayload
		if dst[i] != 0 && (dst[i] != want[i] || !near) {
			t.Fatalf("byte %d of %d for [%d,%d) is %d, want %d", i, len(want), from, to, dst[i], want[i])
		}
	}
}

// checkLines checks that LoadLines copies bytes [from, to) of want to Place, and no more than Len
// bytes.
func checkLines(t *testing.T, v View, want []byte, from, to int) {
	t.Helper()
	lines := v.class.Lines(from, to)
	dst := make([]byte, lines.Len()+1)
	v.LoadLines(dst, lines)
	if dst[lines.Len()] != 0 {
		t.Fatalf("the lines of [%d,%d) are more than %d bytes", from, to, lines.Len())
	}
	from, to = max(from, 0), min(to, len(want))
	if from < to && !bytes.Equal(dst[lines.Place(from):lines.Place(to)], want[from:to]) {
		t.Fatalf("[%d,%d) of %d did not come with its lines", from, to, len(want))
	}
	if from < to && !panics(func() { v.LoadLines(dst[:lines.Len()-1], lines) }) {
		t.Fatalf("%d bytes are room for the lines of [%d,%d)", lines.Len()-1, from, to)
	}
}

func TestZeroViewDoesNothing(t *testing.T) {
	var v View
	dst := []byte{1, 2, 3}
	v.Touch(0, 3)
	v.Load(dst, 0, 3)
	v.LoadLines(dst, Class(0).Lines(0, 3))
	var batch prefetch.Batch
	v.Gather(&batch, Class(0).Lines(0, 3))
	if batch != (prefetch.Batch{}) {
		t.Error("the zero view has lines")
	}
	if !v.Valid() || !bytes.Equal(dst, []byte{1, 2, 3}) {
		t.Error("the zero view loaded", dst)
	}
}

// TestPair: the methods of a pair do the same as those of its two objects.
func TestPair(t *testing.T) {
	r := viewRegion(t, 7, 4<<20)
	first := newObject(t, r, 3)
	second := first.Element(1)
	if _, ok := r.slotAt(second); !ok {
		t.Fatal("the object is the last of its slab")
	}
	pair := func() *Pair {
		a := new(Pair)
		r.Aim(a, first)
		return a
	}
	var batch prefetch.Batch
	look := func(want bool, why string) {
		t.Helper()
		a := pair()
		a.Gather(&batch)
		batch.Fetch()
		if got := a.Look(); got != want {
			t.Errorf("Look: %t, want %t: %s", got, want, why)
		}
	}
	look(false, "none is there")
	mustLock(t, r, first, 0)
	look(false, "the first is locked")
	r.Write(first, []byte("first"), 1, true, 0)
	look(false, "the second is not there")
	mustLock(t, r, second, 0)
	look(false, "the second is locked")
	r.Write(second, []byte("second"), 2, true, 0)
	look(true, "both are there")
	a := pair()
	if !a.Look() {
		t.Fatal("both are there")
	}
	for i, want := range []string{"first", "second"} {
		v, lines := a.Views[i], first.Class().Lines(0, len(want))
		dst := make([]byte, lines.Len())
		v.Gather(&batch, lines)
		v.LoadLines(dst, lines)
		if dst = dst[lines.Place(0):][:len(want)]; string(dst) != want || !v.Valid() || v.Header().Version() != Version(i+1) {
			t.Errorf("object %d is %q at %v", i, dst, v.Header())
		}
	}
	batch.Fetch()
	for i, p := range []Ptr{first, second} {
		if !a.Valid() {
			t.Error("nobody has either object, and the pair is not valid")
		}
		mustLock(t, r, p, Version(i+1))
		if a.Valid() || a.Views[i].Valid() || !a.Views[1-i].Valid() {
			t.Errorf("valid although object %d is locked, or not although nobody has it", i)
		}
		look(false, "one is locked again")
		r.Unlock(p, Version(i+1))
	}
	r.Aim(a, MakePtr(first.Addr, first.Class(), first.Incarnation()+1))
	if a.Look() {
		t.Error("a pointer to what was there before is looked at")
	}
}

// TestPairRefuses pointers that are not two objects of the region.
func TestPairRefuses(t *testing.T) {
	r := viewRegion(t, 7, 4<<20)
	p := newObject(t, r, 3)
	s, _ := r.slabOf(int(p.Addr.Offset() >> r.shift))
	size := uint32(p.Class().Size())
	for _, p := range []Ptr{
		{}, MakePtr(p.Addr, p.Class()+1, 0), MakePtr(MakeAddr(8, p.Addr.Offset()), p.Class(), 0), MakePtr(p.Addr+8, p.Class(), 0),
		MakePtr(MakeAddr(7, uint32(r.Memory().Size())-size), p.Class(), 0),
		MakePtr(MakeAddr(7, uint32(s.slot(s.slots))-size), p.Class(), 0), // the slab ends between the two
	} {
		a := Pair{Views: [2]View{{object: unsafe.Pointer(new(uint64))}}}
		r.Aim(&a, p)
		if a != (Pair{}) || a.Look() {
			t.Errorf("%v is taken for two objects", p)
		}
	}
}

func TestLookRefuses(t *testing.T) {
	r := viewRegion(t, 7, 4<<20)
	p := newObject(t, r, 3)
	look := func(p Ptr, want error) {
		t.Helper()
		if v, err := r.Look(p); !errors.Is(err, want) || !v.Valid() {
			t.Errorf("Look: %v, want %v", err, want)
		}
	}
	look(p, ErrFreed)
	mustLock(t, r, p, 0)
	look(p, ErrLocked)
	r.Write(p, []byte("x"), 1, true, 0)
	look(MakePtr(p.Addr, p.Class(), 1), ErrFreed)
	look(MakePtr(p.Addr, p.Class()+1, 0), ErrFreed)
	look(MakePtr(MakeAddr(8, p.Addr.Offset()), p.Class(), 0), ErrBadPtr)
	look(MakePtr(p.Addr+8, p.Class(), 0), ErrBadPtr)

	v, err := r.Look(p)
	if err != nil {
		t.Fatal(err)
	}
	mustLock(t, r, p, 1)
	if v.Valid() {
		t.Error("valid although a writer has the object")
	}
	r.Unlock(p, 1)
	if !v.Valid() {
		t.Error("the writer left the object as it was, and the view is not valid")
	}
	mustLock(t, r, p, 1)
	r.Write(p, []byte("y"), 2, true, 0)
	if v.Valid() {
		t.Error("valid although the object has changed")
	}
}

// TestFetchRefuses pointers to no object of the region. Fetch must not compute an address from
// them: beyond the region's end that panics.
func TestFetchRefuses(t *testing.T) {
	r := viewRegion(t, 7, 4<<20)
	p := newObject(t, r, 3)
	end := MakePtr(MakeAddr(7, uint32(r.Memory().Size()-64)), p.Class(), 0)
	for _, p := range []Ptr{
		{}, p, MakePtr(p.Addr, p.Class()+1, 0), MakePtr(MakeAddr(8, p.Addr.Offset()), p.Class(), 0), MakePtr(p.Addr+8, p.Class(), 0), end,
	} {
		_, err := r.Look(p)
		_, there := r.at(p)
		if is := r.within(p.Addr, uint64(p.Class().Size())); is == errors.Is(err, ErrBadPtr) || !there && err == nil {
			t.Errorf("%v: there %v, Look: %v", p, there, err)
		}
		r.Fetch(p)
		r.FetchAll(p)
		var batch prefetch.Batch
		if r.Gather(&batch, p); there == (batch == prefetch.Batch{}) {
			t.Errorf("%v: there %v, gathered %v", p, there, batch)
		}
		batch.Fetch()
	}
}

// TestViewNeverAcceptsAMixture: writers fill an object with one byte while readers load two distant
// parts of it. If a reader's View is valid, the parts must agree.
func TestViewNeverAcceptsAMixture(t *testing.T) {
	r := viewRegion(t, 7, 4<<20)
	p := newObject(t, r, 15)
	n := p.Capacity()
	mustLock(t, r, p, 0)
	r.Write(p, make([]byte, n), 1, true, 0)
	var stop atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for v := Version(1); v < 20_000; v++ {
			r.Lock(p, v)
			r.Write(p, bytes.Repeat([]byte{byte(v)}, n), v+1, true, 0)
		}
		stop.Store(true)
	})
	valid := 0
	dst := make([]byte, n)
	for !stop.Load() || valid == 0 {
		v, err := r.Look(p)
		if err != nil {
			continue
		}
		v.Load(dst, 0, 1)
		v.Load(dst, n-1, n)
		if !v.Valid() {
			continue
		}
		valid++
		if dst[0] != dst[n-1] || dst[0] != byte(v.Header().Version()-1) && v.Header().Version() > 1 {
			t.Fatalf("begins with %d, ends with %d at %v", dst[0], dst[n-1], v.Header())
		}
	}
	wg.Wait()
}

// TestNothingPointsBeyond copies whole objects that are allocations of their own, each with another
// one right behind it. A pointer one past the end would keep the other alive, or be invalid for the
// garbage collector. Builds with checkptr, such as with -race, fail at such a pointer.
func TestNothingPointsBeyond(t *testing.T) {
	for _, c := range []Class{0, 1, 2, 3} {
		for range 100 {
			words := make([]uint64, c.Size()/8)
			for i := range words {
				words[i] = rand.Uint64()
			}
			v := View{object: unsafe.Pointer(&words[0]), class: c}
			want, loaded := make([]byte, c.Capacity()), make([]byte, c.Capacity())
			loadPayload(want, v.object)
			if v.Load(loaded, 0, len(loaded)); !bytes.Equal(loaded, want) || !v.Equal(want, 0) {
				t.Fatalf("class %d: %x, %x", c, loaded, want)
			}
			if v.Copy(loaded, 0); !bytes.Equal(loaded, want) {
				t.Fatalf("class %d copied: %x, want %x", c, loaded, want)
			}
			if v.Copy(nil, len(want)); !v.Equal(nil, len(want)) {
				t.Fatalf("class %d: nothing does not equal nothing", c)
			}
			if last := c.Lines(len(want)-1, len(want)); c > 0 {
				lines := make([]byte, last.Len())
				v.LoadLines(lines, last)
				if !bytes.HasSuffix(want, lines) {
					t.Fatalf("class %d: last line %x of %x", c, lines, want)
				}
			}
		}
	}
}
