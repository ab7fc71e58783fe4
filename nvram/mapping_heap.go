//go:build race

package nvram

import (
	"fmt"
	"os"
)

// The race detector sees accesses to the Go heap only, so race builds keep memory there: mapFile
// reads the whole file, and flushFile writes it back. A killed race build therefore loses its stores
// since the last flush.

func mapVolatile(size int64) []uint64 { return make([]uint64, size/WordBytes) }

func mapFile(f *os.File, size int64) ([]uint64, error) {
	words := make([]uint64, size/WordBytes)
	err := eachExtent(f, size, func(off, n int64) error {
		_, err := f.ReadAt(asBytes(words)[off:off+n], off)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("nvram: read %s: %w", f.Name(), err)
	}
	return words, nil
}

// discardVolatile is never called in race builds.
func discardVolatile([]uint64) {}

// flushFile replaces the file's content by words. Pages of zeroes become holes.
func flushFile(words []uint64, f *os.File) error {
	if err := writeBack(words, f); err != nil {
		return fmt.Errorf("nvram: write %s: %w", f.Name(), err)
	}
	return nil
}

// writeBack replaces the content of f by words, with holes for pages of zeros.
func writeBack(words []uint64, f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	if err := f.Truncate(int64(len(words)) * WordBytes); err != nil {
		return err
	}
	b := asBytes(words)
	for off := 0; off < len(b); off += pageBytes {
		page := b[off:min(off+pageBytes, len(b))]
		if allZero(page) {
			continue
		}
		if _, err := f.WriteAt(page, int64(off)); err != nil {
			return err
		}
	}
	return f.Sync()
}

func unmap([]uint64) {}

// memoryOnHeap reports whether memory is on the heap. A killed process then loses it.
const memoryOnHeap = true
