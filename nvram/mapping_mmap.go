//go:build !race

package nvram

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// mapVolatile returns size bytes of anonymous memory.
func mapVolatile(size int64) []uint64 {
	b, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		panic(fmt.Sprintf("nvram: map %d bytes: %v", size, err))
	}
	adviseHuge(b)
	return asWords(b)
}

// mapFile maps the first size bytes of f, shared.
func mapFile(f *os.File, size int64) ([]uint64, error) {
	b, err := unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("nvram: map %s: %w", f.Name(), err)
	}
	adviseHuge(b)
	return asWords(b), nil
}

// adviseHuge asks for huge pages, which halve the cost of a cache miss. A file system without huge
// pages refuses the advice, which does no harm.
func adviseHuge(b []byte) { _ = unix.Madvise(b, unix.MADV_HUGEPAGE) }

// discardVolatile gives back the pages of anonymous memory, which then reads as zeroes.
func discardVolatile(words []uint64) { _ = unix.Madvise(asBytes(words), unix.MADV_DONTNEED) }

// flushFile writes the stores to words to the file's device.
func flushFile(words []uint64, _ *os.File) error {
	if err := unix.Msync(asBytes(words), unix.MS_SYNC); err != nil {
		return fmt.Errorf("nvram: msync: %w", err)
	}
	return nil
}

// unmap unmaps the address range of words.
func unmap(words []uint64) {
	if err := unix.Munmap(asBytes(words)); err != nil {
		panic(fmt.Sprintf("nvram: munmap: %v", err)) // the range was not mapped
	}
}

// memoryOnHeap reports whether memory is on the heap. A killed process then loses it.
const memoryOnHeap = false
