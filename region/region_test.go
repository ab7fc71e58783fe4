package region

import (
	"errors"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/nvram"
)

func TestFormatAndOpen(t *testing.T) {
	for _, size := range []int64{1 << 20, 8 << 20, 256 << 20, 4 << 30} {
		if raceEnabled && size > 8<<20 {
			continue // memory is on the heap
		}
		m := nvram.NewMemory(size)
		if Formatted(m) {
			t.Error("formatted before Format")
		}
		r, err := Format(9, m)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Open(9, m)
		if err != nil || again.ID() != 9 || again.Size() != uint64(size) || again.first != r.first {
			t.Errorf("%d bytes: %+v %v", size, again, err)
		}
		if r.Blocks() > blocksMax || r.BlockSize() > 1<<20 || r.first > uint64(r.BlockSize())/4 {
			t.Errorf("%d bytes: %d blocks of %d, first object at %d", size, r.Blocks(), r.BlockSize(), r.first)
		}
		if _, err := Format(9, m); !errors.Is(err, ErrFormat) {
			t.Error("formatted twice:", err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	for _, bad := range []struct {
		what, text string
		change     func(m *nvram.Memory)
	}{
		{"zeroes", "no region header", func(m *nvram.Memory) { m.Zero(0, 64) }},
		{"other bytes", "no region header", func(m *nvram.Memory) { m.Store(magicOffset, 77) }},
		{"flipped bit", "damaged", func(m *nvram.Memory) { m.Store(sizeOffset, m.Load(sizeOffset)^1) }},
		{"newer format", "format 3", func(m *nvram.Memory) { seal(m, 7<<32|13<<16|3, 1<<20) }},
		{"older format", "format 0", func(m *nvram.Memory) { seal(m, 7<<32|13<<16, 1<<20) }},
		{"newer format, halfway", "damaged", func(m *nvram.Memory) { m.Store(shapeOffset, 7<<32|13<<16|3) }},
		{"other region", "region 8, not 7", func(m *nvram.Memory) { seal(m, 8<<32|13<<16|1, 1<<20) }},
		{"other size", "of 2097152 bytes in 1048576", func(m *nvram.Memory) { seal(m, 7<<32|13<<16|1, 2<<20) }},
		{"other blocks", "of 1048576 bytes", func(m *nvram.Memory) { seal(m, 7<<32|14<<16|1, 1<<20) }},
	} {
		r := newRegion(t, 7, 1<<20)
		bad.change(r.m)
		if _, err := Open(7, r.m); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), bad.text) {
			t.Errorf("%s: %v", bad.what, err)
		}
	}
	for _, size := range []int64{4096, 3 << 20} {
		if _, err := Format(1, nvram.NewMemory(size)); !errors.Is(err, ErrFormat) {
			t.Errorf("%d bytes: %v", size, err)
		}
		if _, err := Open(1, nvram.NewMemory(size)); !errors.Is(err, ErrFormat) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

// seal writes a region header whose checksum holds.
func seal(m *nvram.Memory, shape, size uint64) {
	m.Store(shapeOffset, shape)
	m.Store(sizeOffset, size)
	m.Store(headerSumOff, headerSum(shape, size))
}

func FuzzOpen(f *testing.F) {
	f.Add(uint64(magic), uint64(7<<32|13<<16|1), uint64(1<<20), true)
	f.Add(uint64(magic), uint64(7<<32|20<<16|1), uint64(1<<32), true)
	f.Add(uint64(0), uint64(0), uint64(0), false)
	m := nvram.NewMemory(1 << 20)
	f.Fuzz(func(t *testing.T, magic, shape, size uint64, sealed bool) {
		m.Store(magicOffset, magic)
		m.Store(shapeOffset, shape)
		m.Store(sizeOffset, size)
		m.Store(headerSumOff, 1)
		if sealed {
			seal(m, shape, size)
		}
		r, err := Open(7, m)
		if err != nil {
			if !errors.Is(err, ErrFormat) {
				t.Error(err)
			}
			return
		}
		if r.Size() != m.Size() || r.id != 7 {
			t.Errorf("%+v", r)
		}
	})
}

// FuzzTable reads a region whose block table and headers are arbitrary words. Nothing may crash,
// and all objects must lie inside the region.
func FuzzTable(f *testing.F) {
	f.Add(uint64(makeBlock(blockHead, 3, 2)), uint64(makeBlock(blockTail, 3, 1)), uint64(0), uint64(1)<<63, uint16(0))
	f.Add(uint64(makeBlock(blockHead, 255, 4095)), ^uint64(0), uint64(5), uint64(1)<<62, uint16(126))
	f.Add(uint64(makeBlock(blockDirt, 0, 0)), uint64(makeBlock(blockTail, 0, 7)), uint64(5), uint64(1)<<62, uint16(3))
	m := nvram.NewMemory(1 << 20)
	f.Fuzz(func(t *testing.T, a, b, off, header uint64, at uint16) {
		m.Zero(0, m.Size())
		r, err := Format(1, m)
		if err != nil {
			t.Fatal(err)
		}
		i := int(at) % (r.Blocks() - 1)
		r.setBlocks(i, []uint64{a, b})
		if a != 0 { // a block that was never used is zero
			m.Store(max(uint64(i)<<r.shift, r.first)+off%4096&^7, header)
		}
		for p := range r.Objects {
			if end := uint64(p.Addr.Offset()) + uint64(p.Class().Size()); p.Addr.Offset() < uint32(r.first) || end > r.size {
				t.Fatalf("%v outside", p)
			}
			r.Lock(p, 1)
			r.ApplyBackup(p, []byte("x"), 9, true, 3)
		}
		r.Check(func(yield func(Ptr) bool) { yield(MakePtr(MakeAddr(1, uint32(off)), Class(header), a)) })
		r.Repair()
		for j := range r.Blocks() {
			if w := r.block(j); w.valid(j, r.Blocks()) && w.kind() == blockTail {
				if s, ok := r.slabOf(j); !ok || s.head >= j {
					t.Fatalf("block %d: tail without a head after repair", j)
				}
			}
		}
		alloc := NewAllocator(AllocatorConfig{})
		alloc.Add(r)
		for _, n := range []int{0, 100, 9000} {
			if p, _, _, err := alloc.Alloc(Ordinary, 0, n, 0); err == nil {
				alloc.Release(p)
			}
		}
	})
}

// FuzzReadObject reads through arbitrary pointers.
func FuzzReadObject(f *testing.F) {
	r := newRegion(f, 1, 1<<20)
	p := newObject(f, r, 5)
	mustLock(f, r, p, 0)
	r.Write(p, []byte("object"), 1, true, 0)
	f.Add(p.Append(nil))
	f.Add(Ptr{}.Append(nil))
	f.Add(MakePtr(p.Addr+64, p.Class(), 0).Append(nil))
	dst := make([]byte, MaxPayload)
	f.Fuzz(func(t *testing.T, b []byte) {
		q, err := DecodePtr(b)
		if err != nil {
			if !errors.Is(err, ErrBadPtr) {
				t.Error(err)
			}
			return
		}
		if string(q.Append(nil)) != string(b[:PtrBytes]) {
			t.Errorf("%v does not encode to its bytes", q)
		}
		if h, err := r.ReadObject(q, dst); err == nil && q == p && h.Version() != 1 {
			t.Error(h)
		}
		if q == p {
			return
		}
		if v := r.Header(p.Addr.Offset()).Version(); r.Lock(q, v) || r.Unlock(q, v) || r.ApplyBackup(q, nil, 2, false, 9) {
			if q.Addr != p.Addr && !isSlot(r, q) {
				t.Errorf("%v was written to", q)
			}
			r.ClearLock(q)
		}
	})
}

func isSlot(r *Region, p Ptr) bool {
	_, ok := r.slotAt(p)
	return ok
}

// FuzzUnpack unpacks arbitrary bytes.
func FuzzUnpack(f *testing.F) {
	r := newRegion(f, 1, 1<<20)
	p := newObject(f, r, 2)
	mustLock(f, r, p, 0)
	r.Write(p, []byte("object"), 1, true, 0)
	f.Add(rawCopy(r, p), uint8(2), uint64(0))
	f.Add([]byte{}, uint8(0), uint64(9))
	f.Fuzz(func(t *testing.T, raw []byte, c uint8, incarnation uint64) {
		p := MakePtr(64, Class(c), incarnation)
		dst := make([]byte, p.Capacity())
		if _, err := Unpack(dst, raw, p); err == nil && len(raw) != p.Class().Size() {
			t.Error("accepted", len(raw), "bytes")
		}
	})
}

func TestPtrText(t *testing.T) {
	p := MakePtr(MakeAddr(3, 0x1c0), 2, 5)
	if p.String() != "3:0x1c0/192#5" || (Ptr{}).String() != "nil" {
		t.Error(p, Ptr{})
	}
	if MakeHeader(4, true).String() != "allocated@4" || (lockBit|3).String() != "free,locked@3" {
		t.Error(MakeHeader(4, true), lockBit|3)
	}
	for b, want := range map[block]string{
		0:                            "free",
		makeBlock(blockHead, 0, 3):   "head of 3, 64 B",
		makeBlock(blockTail, 1, 2):   "tail +2, 128 B",
		makeBlock(blockDirt, 0, 0):   "dirty",
		makeBlock(9, 0, 0):           "invalid 0xb10c000000000900",
		makeBlock(blockHead, 0, 0x1): "head of 1, 64 B",
	} {
		if b.String() != want {
			t.Errorf("%v, want %s", b, want)
		}
	}
	for _, bad := range [][]byte{nil, make([]byte, 15), MakePtr(8, 0, 0).Append(nil), MakePtr(0, 0, 1).Append(nil), MakePtr(1<<32, 0, 0).Append(nil)} {
		if q, err := DecodePtr(bad); !errors.Is(err, ErrBadPtr) {
			t.Errorf("%x decodes to %v, %v", bad, q, err)
		}
	}
	if q, err := DecodePtr(Ptr{}.Append(nil)); err != nil || !q.IsNil() {
		t.Error("nil does not decode")
	}
}
