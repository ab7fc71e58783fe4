package set

// An Arena hands out byte slices that live as long as a transaction. The last chunk is kept for the
// next transaction, if it has at most arenaKeepBytes.
type Arena struct {
	chunk []byte
	used  int
	full  int // bytes in earlier chunks, which are full
}

const (
	arenaChunkBytes = 16 << 10
	arenaKeepBytes  = 1 << 20
)

// Get returns n bytes, not cleared, whose capacity is n.
func (a *Arena) Get(n int) []byte {
	if a.used+n > len(a.chunk) {
		a.full += len(a.chunk)
		grown := min(2*len(a.chunk), 1<<20) // each chunk is twice as long as the one before, up to 1 MiB
		a.chunk = make([]byte, max(arenaChunkBytes, n, grown))
		a.used = 0
	}
	b := a.chunk[a.used : a.used+n : a.used+n]
	a.used += (n + 7) &^ 7 // the next slice begins at a multiple of 8
	if a.used > len(a.chunk) {
		a.used = len(a.chunk)
	}
	return b
}

// Copy returns a copy of b in the arena.
func (a *Arena) Copy(b []byte) []byte {
	c := a.Get(len(b))
	copy(c, b)
	return c
}

// Reset takes all slices back.
func (a *Arena) Reset() {
	if len(a.chunk) > arenaKeepBytes {
		a.chunk = nil
	}
	a.used, a.full = 0, 0
}

// Held returns how many bytes of memory the slices since Reset take.
func (a *Arena) Held() int { return a.full + a.used }

// Mangle overwrites the bytes that Get has returned, so that tests notice a slice that is used
// after its transaction ended.
func (a *Arena) Mangle() {
	for i := range a.chunk[:a.used] {
		a.chunk[i] = 0xdb
	}
}
