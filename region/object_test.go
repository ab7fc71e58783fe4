package region

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/farmsql/farmsql/nvram"
)

// newRegion returns a region of size bytes in volatile memory.
func newRegion(t testing.TB, id ID, size int64) *Region {
	t.Helper()
	r, err := Format(id, nvram.NewMemory(size))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// newObject makes a slab of class c and returns the pointer to its slot 1.
func newObject(t testing.TB, r *Region, c Class) Ptr {
	t.Helper()
	n := (2*c.Size() + r.BlockSize() - 1) / r.BlockSize()
	r.setBlocks(1, runWords(n, c))
	s, ok := r.slabOf(1)
	if !ok || s.slots < 2 {
		t.Fatalf("slab of %d blocks for %d B: %+v", n, c.Size(), s)
	}
	p, _ := r.slot(s, 1)
	return p
}

func payloadOf(c Class, seed uint64) []byte {
	rng := rand.New(rand.NewPCG(seed, uint64(c)))
	b := make([]byte, c.Capacity())
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

func mustLock(t testing.TB, r *Region, p Ptr, v Version) {
	t.Helper()
	if !r.Lock(p, v) {
		t.Fatalf("lock %v at %d refused, header %v", p, v, r.Header(p.Addr.Offset()))
	}
}

// rawCopy reads p's bytes as a NIC does.
func rawCopy(r *Region, p Ptr) []byte {
	raw := make([]byte, p.Class().Size())
	r.Memory().CopyOut(raw, uint64(p.Addr.Offset()))
	return raw
}

func TestWriteThenRead(t *testing.T) {
	for _, c := range []Class{0, 1, 2, 3, 5, 27, 60, 100, 160} {
		r := newRegion(t, 7, 4<<20)
		p := newObject(t, r, c)
		for v := Version(1); v < 4; v++ {
			want := payloadOf(c, uint64(v))
			if v == 3 {
				clear(want[len(want)/2:]) // written short, read as zeroes
			}
			mustLock(t, r, p, v-1)
			r.Write(p, want[:len(want)/int(1+v/3)], v, true, 0)

			got := make([]byte, c.Capacity())
			h, err := r.ReadObject(p, got)
			if err != nil || h != MakeHeader(v, true) || !bytes.Equal(got, want) {
				t.Fatalf("class %d: read %v, %v, equal %v", c, h, err, bytes.Equal(got, want))
			}
			clear(got)
			h, err = Unpack(got, rawCopy(r, p), p)
			if err != nil || h != MakeHeader(v, true) || !bytes.Equal(got, want) {
				t.Fatalf("class %d: unpack %v, %v, equal %v", c, h, err, bytes.Equal(got, want))
			}
		}
	}
}

func TestReadErrors(t *testing.T) {
	r := newRegion(t, 7, 1<<20)
	p := newObject(t, r, 4)
	dst := make([]byte, p.Capacity())
	check := func(what string, p Ptr, want error) {
		t.Helper()
		if _, err := r.ReadObject(p, dst[:cap(dst)]); !errors.Is(err, want) {
			t.Errorf("%s: ReadObject: %v, want %v", what, err, want)
		}
		if _, there := r.at(p); !there {
			return
		}
		if _, err := Unpack(dst, rawCopy(r, p), p); !errors.Is(err, want) {
			t.Errorf("%s: Unpack: %v, want %v", what, err, want)
		}
	}
	check("never allocated", p, ErrFreed)
	mustLock(t, r, p, 0)
	check("locked", p, ErrLocked)
	r.Write(p, []byte("x"), 1, true, 0)
	check("there", p, nil)
	check("other incarnation", MakePtr(p.Addr, p.Class(), 1), ErrFreed)
	mustLock(t, r, p, 1)
	r.Write(p, nil, 2, false, 1)
	check("freed", p, ErrFreed)
	check("freed, its next incarnation", MakePtr(p.Addr, p.Class(), 1), ErrFreed)

	off := p.Addr.Offset()
	check("nil", Ptr{}, ErrBadPtr)
	check("other region", MakePtr(MakeAddr(8, off), p.Class(), 0), ErrBadPtr)
	check("a block of another class", MakePtr(p.Addr, p.Class()-1, 0), ErrFreed)
	check("between lines", MakePtr(p.Addr+8, p.Class(), 0), ErrBadPtr)
	check("block table", MakePtr(MakeAddr(7, lineBytes), p.Class(), 0), ErrBadPtr)
	check("a free block", MakePtr(MakeAddr(7, 1<<19), p.Class(), 0), ErrFreed)
	check("outside", MakePtr(MakeAddr(7, 1<<30), p.Class(), 0), ErrBadPtr)
	check("beyond the end", MakePtr(MakeAddr(7, 1<<20-64), 255, 0), ErrBadPtr)

	if _, err := Unpack(dst, make([]byte, 64), p); !errors.Is(err, ErrBadPtr) {
		t.Errorf("short raw bytes: %v", err)
	}
}

func TestUnpackTorn(t *testing.T) {
	r := newRegion(t, 7, 1<<20)
	p := newObject(t, r, 3)
	mustLock(t, r, p, 0)
	r.Write(p, nil, 1, true, 0)
	older := rawCopy(r, p)
	mustLock(t, r, p, 1)
	r.Write(p, nil, 2, true, 0)
	newer := rawCopy(r, p)
	dst := make([]byte, p.Capacity())
	for line := range p.Class().lines() {
		mixed := bytes.Clone(newer)
		copy(mixed[line*lineBytes:], older[line*lineBytes:(line+1)*lineBytes])
		if _, err := Unpack(dst, mixed, p); !errors.Is(err, ErrTorn) {
			t.Errorf("line %d of the older version: %v", line, err)
		}
	}
}

// TestReadersNeverSeeTornObjects lets one writer fill an object with its version
// while readers copy it locally and as a NIC would.
func TestReadersNeverSeeTornObjects(t *testing.T) {
	large, _ := ClassFor(40_000) // to copy it takes so long that hardly a read meets no write
	rounds := Version(10000)
	if raceEnabled {
		rounds = 500
	}
	for _, c := range []Class{0, 1, 3, 15, 60, large} {
		r := newRegion(t, 1, 1<<20)
		p := newObject(t, r, c)
		mustLock(t, r, p, 0)
		r.Write(p, bytes.Repeat([]byte{1}, c.Capacity()), 1, true, 0)
		var done atomic.Bool
		var wg sync.WaitGroup
		reader := func(read func(dst []byte) (Header, error)) {
			dst := make([]byte, c.Capacity())
			for !done.Load() {
				h, err := read(dst)
				if err != nil {
					if !errors.Is(err, ErrLocked) && !errors.Is(err, ErrTorn) {
						t.Error(err)
						return
					}
					continue
				}
				for i, b := range dst {
					if b != byte(h.Version()) {
						t.Errorf("class %d version %d byte %d: %d", c, h.Version(), i, b)
						return
					}
				}
			}
		}
		wg.Go(func() { reader(func(dst []byte) (Header, error) { return r.ReadObject(p, dst) }) })
		wg.Go(func() { reader(func(dst []byte) (Header, error) { return Unpack(dst, rawCopy(r, p), p) }) })
		payload := make([]byte, c.Capacity())
		for v := Version(2); v < rounds; v++ {
			for i := range payload {
				payload[i] = byte(v)
			}
			mustLock(t, r, p, v-1)
			r.Write(p, payload, v, true, 0)
		}
		done.Store(true)
		wg.Wait()
	}
}

func TestLockUnlock(t *testing.T) {
	r := newRegion(t, 7, 1<<20)
	p := newObject(t, r, 2)
	if r.Unlock(p, 0) {
		t.Error("unlocked what was not locked")
	}
	if r.Lock(p, 1) {
		t.Error("locked at a version it does not have")
	}
	mustLock(t, r, p, 0)
	if r.Lock(p, 0) {
		t.Error("locked twice")
	}
	if r.Unlock(p, 1) {
		t.Error("unlocked at another version")
	}
	if !r.Unlock(p, 0) || r.Header(p.Addr.Offset()) != 0 {
		t.Error("unlock left", r.Header(p.Addr.Offset()))
	}
	inside := MakePtr(p.Addr+lineBytes, p.Class(), 0)
	if r.Lock(inside, 0) || r.ApplyBackup(inside, nil, 9, true, 0) || r.ClearLock(inside) {
		t.Error("a pointer into the middle of a slot was taken for a slot")
	}
	mustLock(t, r, p, 0)
	if !r.ClearLock(p) || r.ClearLock(p) {
		t.Error("ClearLock")
	}
}

func TestApplyBackup(t *testing.T) {
	r := newRegion(t, 7, 1<<20)
	p := newObject(t, r, 2)
	mustLock(t, r, p, 0) // as a crash may leave it
	if !r.ApplyBackup(p, []byte("two"), 2, true, 0) {
		t.Fatal("not applied")
	}
	if r.ApplyBackup(p, []byte("two"), 2, true, 0) || r.ApplyBackup(p, []byte("one"), 1, true, 0) {
		t.Fatal("an older version was applied")
	}
	dst := make([]byte, p.Capacity())
	if h, err := r.ReadObject(p, dst); err != nil || h.Version() != 2 || string(dst[:4]) != "two\x00" {
		t.Fatalf("%v %v %q", h, err, dst[:4])
	}
	if !r.ApplyBackup(p, nil, 3, false, 1) || r.Incarnation(p.Addr.Offset()) != 1 {
		t.Fatal("free not applied")
	}
	if r.ApplyBackup(p, make([]byte, p.Capacity()+1), 4, true, 1) || r.ApplyBackup(p, nil, VersionMax+1, true, 1) {
		t.Fatal("nonsense was applied")
	}
}

func TestApplyBackupConcurrently(t *testing.T) {
	r := newRegion(t, 7, 1<<20)
	p := newObject(t, r, 5)
	var wg sync.WaitGroup
	for g := range Version(4) {
		wg.Go(func() {
			for v := 1 + g; v <= 400; v += 1 + g%2 {
				r.ApplyBackup(p, bytes.Repeat([]byte{byte(v)}, p.Capacity()), v, true, 0)
			}
		})
	}
	wg.Wait()
	dst := make([]byte, p.Capacity())
	h, err := Unpack(dst, rawCopy(r, p), p)
	if err != nil || h.Version() != 400 || !bytes.Equal(dst, bytes.Repeat([]byte{byte(400 & 0xff)}, len(dst))) {
		t.Fatalf("%v %v", h, err)
	}
}

func TestObjects(t *testing.T) {
	r := newRegion(t, 3, 1<<20)
	p := newObject(t, r, 9)
	mustLock(t, r, p, 0)
	var slots, locked int
	for q, h := range r.Objects {
		slots++
		if h.Locked() {
			locked++
			if q != p {
				t.Errorf("locked slot is %v, want %v", q, p)
			}
		}
	}
	s, _ := r.slabOf(1)
	if slots != s.slots || locked != 1 {
		t.Errorf("%d slots of %d, %d locked", slots, s.slots, locked)
	}
}
