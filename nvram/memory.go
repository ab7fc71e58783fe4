package nvram

import (
	"encoding/binary"
	"math/bits"
	"runtime"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// WordBytes is the unit in which memory is shared: a word is never torn.
	WordBytes = 8
	// LineBytes is the size of a line, which a NIC reads atomically if it is aligned.
	LineBytes = 64

	lineWords = LineBytes / WordBytes
)

// Memory is a range of memory shared by workers and by the machine's NIC,
// volatile or mapped from a Folder. Offsets count bytes from its beginning.
//
// Load, Store, CompareAndSwap and Swap are atomic and sequentially consistent; CopyOut, CopyIn and
// Zero move whole words, each atomically. An offset that is not a multiple of 8, or is outside of
// the memory, makes them panic. After Close of the memory or its Folder every access panics.
type Memory struct {
	words []uint64 // the mapping; on the Go heap in race builds
	file  *mapped  // nil if volatile, or attached
	of    Location // the file that attached memory is mapped from

	storage Storage // replaces the file system; usually nil
	pins    pins
}

// A Storage stands in for a Folder's file system in tests with volatile memory.
type Storage interface {
	// Reserve and Discard do the work of Memory.Reserve and Memory.Discard. Memory.Discard clears
	// the discarded pages itself.
	Reserve(off, n uint64) error
	Discard(off, n uint64)
}

// Keep sets the storage of volatile memory, before its first use.
func (m *Memory) Keep(s Storage) { m.storage = s }

// NewMemory returns size bytes of zeroed volatile memory; size is a multiple of 8. The system
// provides pages on demand. The memory is unmapped once nothing refers to it any more. NewMemory
// panics if the system has no address space left.
func NewMemory(size int64) *Memory {
	if size <= 0 || size%WordBytes != 0 {
		panic("nvram: size of memory must be a positive multiple of 8")
	}
	words := mapVolatile(size)
	m := &Memory{words: words}
	runtime.AddCleanup(m, unmap, words)
	return m
}

// Drop makes every later access to volatile memory panic, as after Folder.Remove. It is for types
// that stand in for a Folder. The memory must not be in use.
func (m *Memory) Drop() { m.words = nil }

// IsMapped reports whether the memory is a mapping, which network cards need. In race builds all memory is on the Go
// heap.
func (m *Memory) IsMapped() bool { return !memoryOnHeap }

// Size returns the number of bytes.
func (m *Memory) Size() uint64 { return uint64(len(m.words)) * WordBytes }

// word returns the word at off. It rotates instead of dividing, so that one bounds check catches
// both offsets that are misaligned and offsets that lie outside.
func (m *Memory) word(off uint64) *uint64 { return &m.words[bits.RotateLeft64(off, -3)] }

// Load returns the word at off.
func (m *Memory) Load(off uint64) uint64 { return atomic.LoadUint64(m.word(off)) }

// Store sets the word at off.
func (m *Memory) Store(off, v uint64) { atomic.StoreUint64(m.word(off), v) }

// CompareAndSwap sets the word at off if it has the old value, and reports whether it had.
func (m *Memory) CompareAndSwap(off, old, new uint64) bool {
	return atomic.CompareAndSwapUint64(m.word(off), old, new)
}

// Swap sets the word at off and returns its former value.
func (m *Memory) Swap(off, v uint64) uint64 { return atomic.SwapUint64(m.word(off), v) }

// CopyOut copies len(dst) bytes, a multiple of 8, from off to dst, as a NIC's READ does: each
// 64-byte line is copied as it was at one moment. For that, writers must change the first word of a
// line before and after they change the rest, as package region does with line versions. Lines are
// copied in rising order, each at its own moment.
func (m *Memory) CopyOut(dst []byte, off uint64) {
	if len(dst)%WordBytes != 0 {
		panic("nvram: copy of a broken word")
	}
	if len(dst) == 0 {
		return
	}
	words := m.slice(off, len(dst)/WordBytes)
	if n := min(int(-off%LineBytes), len(dst)); n > 0 { // up to the end of the line that off is in
		copyPart(dst[:n], words[:n/WordBytes])
		dst, words = dst[n:], words[n/WordBytes:]
	}
	for len(dst) >= LineBytes {
		copyLine((*[LineBytes]byte)(dst), (*[lineWords]uint64)(words))
		dst, words = dst[LineBytes:], words[lineWords:]
	}
	if len(dst) > 0 {
		copyPart(dst, words)
	}
}

// copyPart copies a part of a line. Like copyLine it retries, in case the part holds the line's
// first word. A copy counts only if that word was the same before the copy, in the copy and after
// it. Comparing before and after is not enough, because a writer marks a line that it is changing
// with the same word every time.
func copyPart(dst []byte, words []uint64) {
	for {
		before := atomic.LoadUint64(&words[0])
		copyWordsOut(dst, words)
		if binary.NativeEndian.Uint64(dst) == before && atomic.LoadUint64(&words[0]) == before {
			return
		}
	}
}

// CopyIn copies len(src) bytes, a multiple of 8, from src to off. It stores the words in no
// particular order, but has stored all of them when it returns: a Store that follows publishes
// them.
func (m *Memory) CopyIn(off uint64, src []byte) {
	if len(src)%WordBytes != 0 {
		panic("nvram: copy of a broken word")
	}
	if len(src) > 0 {
		copyWordsIn(m.slice(off, len(src)/WordBytes), src)
	}
}

// Zero clears n bytes, a multiple of 8, at off.
func (m *Memory) Zero(off, n uint64) {
	if n%WordBytes != 0 {
		panic("nvram: clear of a broken word")
	}
	if n > 0 {
		clearWords(m.slice(off, int(n/WordBytes)))
	}
}

// Pointer returns the address of n bytes at off, both multiples of 8; n must not be 0. Package
// region uses it to move objects between memory and buffers without another copy. The address is
// valid until Close; the caller keeps m alive.
func (m *Memory) Pointer(off, n uint64) unsafe.Pointer {
	first := bits.RotateLeft64(off, -3)
	_ = m.words[first : first+n/WordBytes] // checks the bounds without reading a word, which may be being written
	return unsafe.Pointer(&m.words[first])
}

// View returns n bytes at off, both multiples of 8, without a copy. It is only for memory that is
// not written any more. The bytes are valid until Close; the caller keeps m alive.
func (m *Memory) View(off, n uint64) []byte {
	if n == 0 {
		return nil
	}
	return asBytes(m.slice(off, int(n/WordBytes)))
}

// slice returns n words at off.
func (m *Memory) slice(off uint64, n int) []uint64 {
	i := bits.RotateLeft64(off, -3)
	return m.words[i : i+uint64(n)]
}

// Reserve reserves storage for n bytes at off. Without it, memory mapped from a full file
// system faults at the first store to a page, which kills the process. ErrNoSpace says that
// there is no room.
func (m *Memory) Reserve(off, n uint64) error {
	switch {
	case m.storage != nil:
		return m.storage.Reserve(off, n)
	case m.file != nil:
		return m.file.reserve(int64(off), int64(n))
	}
	return nil
}

// Discard frees the storage of the whole pages among n bytes at off, both multiples of 8; these
// pages then read as zeroes. Pages that the file system cannot free keep their content. Pinned pages (Pin) are cleared,
// but keep their storage.
func (m *Memory) Discard(off, n uint64) {
	begin, end := (off+pageBytes-1)&^(pageBytes-1), (off+n)&^(pageBytes-1)
	if begin >= end {
		return
	}
	m.pins.Lock()
	defer m.pins.Unlock()
	m.pins.splitLocked(begin, end, m.free, func(begin, end uint64) { m.Zero(begin, end-begin) })
}

// free frees the storage of whole pages.
func (m *Memory) free(begin, end uint64) {
	switch {
	case m.storage != nil:
		m.storage.Discard(begin, end-begin)
		m.Zero(begin, end-begin)
	case memoryOnHeap:
		m.Zero(begin, end-begin)
	case m.file == nil:
		discardVolatile(m.slice(begin, int((end-begin)/WordBytes)))
	}
	if m.file != nil {
		_ = unix.Fallocate(int(m.file.file.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, int64(begin), int64(end-begin))
	}
}
