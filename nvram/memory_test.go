package nvram

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
)

func mustPanic(t *testing.T, what string, fn func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Errorf("%s: no panic", what)
		}
	}()
	fn()
}

func TestWords(t *testing.T) {
	m := NewMemory(4096)
	m.Store(8, 5)
	if m.Load(8) != 5 || m.Swap(8, 6) != 5 || m.Load(8) != 6 {
		t.Error("store, load, swap")
	}
	if m.CompareAndSwap(8, 5, 7) || !m.CompareAndSwap(8, 6, 7) || m.Load(8) != 7 {
		t.Error("compare and swap")
	}
	if m.Load(0) != 0 || m.Load(16) != 0 || m.Size() != 4096 {
		t.Error("neighbours or size")
	}
}

func TestBadOffsetsPanic(t *testing.T) {
	m := NewMemory(4096)
	for _, off := range []uint64{1, 4, 4096, 4095, 1 << 40, ^uint64(7)} {
		mustPanic(t, "load", func() { m.Load(off) })
		mustPanic(t, "copy out", func() { m.CopyOut(make([]byte, 8), off) })
		mustPanic(t, "copy in", func() { m.CopyIn(off, make([]byte, 8)) })
		mustPanic(t, "zero", func() { m.Zero(off, 8) })
		mustPanic(t, "pointer", func() { m.Pointer(off, 8) })
	}
	mustPanic(t, "copy out beyond the end", func() { m.CopyOut(make([]byte, 16), 4088) })
	mustPanic(t, "copy in beyond the end", func() { m.CopyIn(4088, make([]byte, 16)) })
	mustPanic(t, "broken word out", func() { m.CopyOut(make([]byte, 9), 0) })
	mustPanic(t, "broken word in", func() { m.CopyIn(0, make([]byte, 9)) })
	mustPanic(t, "broken word cleared", func() { m.Zero(0, 9) })
	mustPanic(t, "odd size", func() { NewMemory(9) })
	mustPanic(t, "no size", func() { NewMemory(0) })
}

func TestCopies(t *testing.T) {
	m := NewMemory(4096)
	rng := rand.New(rand.NewPCG(1, 2))
	model := make([]byte, 4096)
	for range 2000 {
		off := rng.Uint64N(500) * 8
		b := make([]byte, rng.IntN(int(4096-off)/8+1)*8)
		switch rng.IntN(3) {
		case 0:
			for i := range b {
				b[i] = byte(rng.Uint32())
			}
			m.CopyIn(off, b)
			copy(model[off:], b)
		case 1:
			m.Zero(off, uint64(len(b)))
			clear(model[off : off+uint64(len(b))])
		default:
			m.CopyOut(b, off)
			if !bytes.Equal(b, model[off:off+uint64(len(b))]) {
				t.Fatalf("%d bytes at %d", len(b), off)
			}
		}
	}
}

// TestLinesAreCopiedAtOnce has a writer that changes a line's first word before
// and after the rest, as objects' writers do.
func TestLinesAreCopiedAtOnce(t *testing.T) {
	m := NewMemory(4096)
	var done atomic.Bool
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			b := make([]byte, 4*LineBytes)
			for !done.Load() {
				m.CopyOut(b, 128)
				for line := b; len(line) > 0; line = line[LineBytes:] {
					first := binary.LittleEndian.Uint64(line)
					if first%2 == 1 {
						continue // being written
					}
					for i := 8; i < LineBytes; i += 8 {
						if w := binary.LittleEndian.Uint64(line[i:]); w != first {
							t.Errorf("word %d is %d in a line of %d", i/8, w, first)
							return
						}
					}
				}
			}
		})
	}
	for v := uint64(2); v < 40000; v += 2 {
		for off := uint64(128); off < 128+4*LineBytes; off += LineBytes {
			m.Store(off, v-1)
			for i := uint64(8); i < LineBytes; i += 8 {
				m.Store(off+i, v)
			}
			m.Store(off, v)
		}
	}
	done.Store(true)
	wg.Wait()
}
