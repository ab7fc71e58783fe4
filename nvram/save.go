package nvram

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	imageSuffix      = ".img"
	unfinishedSuffix = ".unfinished"
	pageBytes        = 4096 // alignment of direct I/O
)

// Save writes all memory of the folder, mapped or not, into a new save in dir. It writes in
// parallel, and bypasses the page cache if the file system allows it. No stores to the memory are
// allowed during the save. The save becomes the newest when Save returns nil; after a crash or an
// error the earlier saves count. Save neither reads nor writes memory that was never touched. It
// does not save a folder with an UncheckedError.
func (f *Folder) Save(dir string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.unchecked != nil {
		return f.mu.unchecked
	}
	if err := os.MkdirAll(dir, PrivateFolder); err != nil {
		return fmt.Errorf("%w: %w", ErrUnwritable, err)
	}
	last, err := newestSave(dir)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, saveName(last+1))
	if err := f.writeSaveLocked(path+unfinishedSuffix, nil); err != nil {
		return errors.Join(err, os.RemoveAll(path+unfinishedSuffix))
	}
	if err := errors.Join(os.Rename(path+unfinishedSuffix, path), syncDir(dir)); err != nil {
		return fmt.Errorf("nvram: save: %w", err)
	}
	return prune(dir)
}

// SaveAs writes all memory of the folder into a save at path, which must not exist; its
// directory must. After an error the caller has to remove what is at path. moved, if not nil,
// is called with the number of bytes that were processed since its last call, by several
// goroutines at a time.
func (f *Folder) SaveAs(path string, moved func(bytes int64)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.writeSaveLocked(path, moved)
}

// DataBytes returns the size of the data to save; no save takes more room.
func (f *Folder) DataBytes() (n int64, err error) {
	names, err := f.Names()
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		chunks, err := chunksOf(f.file(name))
		if err != nil {
			return 0, err
		}
		for _, c := range chunks {
			n += int64(c.n)
		}
	}
	return n, nil
}

// chunksOf returns the chunks of a memory's file that hold data.
func chunksOf(path string) ([]chunk, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("nvram: %w", err)
	}
	defer file.Close() // read only
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("nvram: %w", err)
	}
	return chunksIn(file, info.Size())
}

// chunksIn divides the data of a file, without its holes, into chunks.
func chunksIn(file *os.File, size int64) (chunks []chunk, err error) {
	err = eachExtent(file, size, func(off, n int64) error {
		for ; n > 0; off, n = off+chunkBytes, n-chunkBytes {
			chunks = append(chunks, chunk{off: off, n: uint32(min(n, chunkBytes))})
		}
		return nil
	})
	return chunks, err
}

// FreeBytes returns the free room of the file system of path. path need not exist yet.
func FreeBytes(path string) (int64, error) {
	var s unix.Statfs_t
	err := unix.Statfs(existing(path), &s)
	if err != nil {
		return 0, fmt.Errorf("nvram: %w", &os.PathError{Op: "statfs", Path: path, Err: err})
	}
	return int64(s.Bavail) * s.Bsize, nil
}

// Device returns the device of the file system of path. path need not exist yet.
func Device(path string) (uint64, error) {
	var s unix.Stat_t
	if err := unix.Stat(existing(path), &s); err != nil {
		return 0, fmt.Errorf("nvram: %w", &os.PathError{Op: "stat", Path: path, Err: err})
	}
	return s.Dev, nil
}

// existing returns path or, if it does not exist, the nearest folder above it that does.
func existing(path string) string {
	for {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) || filepath.Dir(path) == path {
			return path
		}
		path = filepath.Dir(path)
	}
}

// writeSaveLocked writes a save into the new directory path, durably.
func (f *Folder) writeSaveLocked(path string, moved func(int64)) error {
	if f.mu.mapped == nil {
		return ErrClosed
	}
	if memoryOnHeap {
		if err := f.flushLocked(); err != nil {
			return err
		}
	}
	if err := errors.Join(os.RemoveAll(path), os.Mkdir(path, PrivateFolder)); err != nil {
		return fmt.Errorf("%w: %w", ErrUnwritable, err)
	}
	names, err := f.Names()
	if err != nil {
		return err
	}
	images := make([]image, 0, len(names))
	for _, name := range names {
		m, err := f.saveMemory(path, name, moved)
		if err != nil {
			return fmt.Errorf("nvram: save %s: %w", name, err)
		}
		images = append(images, m)
	}
	if err := writeFile(filepath.Join(path, indexName), encodeIndex(images)); err != nil {
		return fmt.Errorf("nvram: save: %w", err)
	}
	return nil
}

// saveMemory writes the image of one memory.
func (f *Folder) saveMemory(path, name string, moved func(int64)) (m image, err error) {
	mem := f.mu.mapped[name]
	if mem == nil {
		if mem, err = mapForSave(f.file(name)); err != nil {
			return image{}, err
		}
		defer func() { err = errors.Join(err, mem.release()) }()
	}
	m = image{name: name, size: int64(mem.Size())}
	if m.chunks, err = chunksIn(mem.file.file, m.size); err != nil {
		return image{}, err
	}
	m.chunks, err = writeImage(filepath.Join(path, name+imageSuffix), asBytes(mem.words), m.chunks, moved)
	return m, err
}

func mapForSave(path string) (*Memory, error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && (info.Size() == 0 || info.Size()%WordBytes != 0) {
		err = fmt.Errorf("%w: %s has %d bytes", ErrSize, path, info.Size())
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	words, err := mapFile(file, info.Size())
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &Memory{words: words, file: &mapped{file: file}}, nil
}

// writeImage writes the chunks of memory that are not zero, durably, and returns the written chunks
// with their checksums.
func writeImage(path string, memory []byte, chunks []chunk, moved func(int64)) ([]chunk, error) {
	out, err := openDirect(path, os.O_CREATE|os.O_RDWR)
	if err != nil {
		return nil, err
	}
	err = out.plain.Truncate(int64(len(memory)))
	if err == nil {
		err = eachParallel(len(chunks), func(i int, _ []byte) error {
			c := &chunks[i]
			b := memory[c.off : c.off+int64(c.n)]
			if moved != nil {
				defer moved(int64(len(b)))
			}
			if allZero(b) {
				c.n = 0
				return nil
			}
			c.crc = crc32.Checksum(b, castagnoli)
			_, err := out.file(c.off, b).WriteAt(b, c.off)
			return err
		})
	}
	if err := errors.Join(err, out.plain.Sync(), out.Close()); err != nil {
		return nil, err
	}
	written := chunks[:0]
	for _, c := range chunks {
		if c.n > 0 {
			written = append(written, c)
		}
	}
	return written, nil
}

// directFile is a file that is read and written past the page cache if offset, length and buffer
// are aligned, and through the cache otherwise.
type directFile struct {
	plain  *os.File
	direct *os.File // nil if the file system has no direct I/O
}

// openDirect opens a file twice: through the page cache and, where the file system allows it, with
// O_DIRECT.
func openDirect(path string, flag int) (directFile, error) {
	plain, err := os.OpenFile(path, flag, PrivateFile)
	if err != nil {
		return directFile{}, err
	}
	direct, err := os.OpenFile(path, flag&^os.O_CREATE|unix.O_DIRECT, 0)
	if err != nil {
		direct = nil
	}
	return directFile{plain, direct}, nil
}

// file returns the handle for reading or writing b at off: the direct one only if off, the length of
// b and the address of b are multiples of a page.
func (f directFile) file(off int64, b []byte) *os.File {
	if f.direct == nil || (off|int64(len(b))|int64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))))%pageBytes != 0 {
		return f.plain
	}
	return f.direct
}

func (f directFile) Close() error {
	err := f.plain.Close()
	if f.direct != nil {
		err = errors.Join(err, f.direct.Close())
	}
	return err
}

// eachParallel calls do for 0 to n-1, on as many goroutines as there are processors, each with an
// aligned buffer of chunkBytes. It stops at the first error and returns it.
func eachParallel(n int, do func(i int, buffer []byte) error) error {
	var wg sync.WaitGroup
	var next atomic.Int64
	var failed atomic.Pointer[error]
	for range min(runtime.GOMAXPROCS(0), n) {
		wg.Go(func() {
			buffer := alignedBuffer(chunkBytes)
			for failed.Load() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if err := do(i, buffer); err != nil {
					failed.CompareAndSwap(nil, &err)
				}
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

// alignedBuffer returns n bytes that begin at a page, as O_DIRECT requires.
func alignedBuffer(n int) []byte {
	b := make([]byte, n+pageBytes)
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(b))) % pageBytes
	return b[skip : int(skip)+n]
}
