package nvram

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"
)

// A Location tells another process where the file behind a memory is. The path alone is not enough:
// a file may be removed and another one created with its name.
type Location struct {
	Path   string // absolute
	Device uint64
	Inode  uint64
}

// NewShared returns size bytes of zeroed volatile memory; size is a multiple of 8. Other processes
// of this user can attach it by its Location while this process lives. It takes a file descriptor
// and, unlike NewMemory's, has huge pages only if the system grants them to shared memory. It is
// unmapped once nothing refers to it any more.
func NewShared(size int64) (*Memory, error) {
	if size <= 0 || size%WordBytes != 0 {
		return nil, fmt.Errorf("%w: %d is not a positive multiple of 8", ErrSize, size)
	}
	if memoryOnHeap {
		return NewMemory(size), nil
	}
	fd, err := unix.MemfdCreate("farmsql", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("nvram: create shared memory: %w", err)
	}
	file := os.NewFile(uintptr(fd), fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), fd))
	m, err := newShared(file, size)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("nvram: create shared memory: %w", err), file.Close())
	}
	return m, nil
}

func newShared(file *os.File, size int64) (*Memory, error) {
	if err := file.Truncate(size); err != nil {
		return nil, err
	}
	// The seals prevent truncation, so accesses cannot fault.
	if _, err := unix.FcntlInt(file.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW); err != nil {
		return nil, err
	}
	behind, err := fileBehind(file)
	if err != nil {
		return nil, err
	}
	m, err := mapUntilUnused(file, size)
	if err == nil {
		m.file = behind
	}
	return m, err
}

// mapUntilUnused maps memory that is unmapped once nothing refers to it.
func mapUntilUnused(file *os.File, size int64) (*Memory, error) {
	words, err := mapFile(file, size)
	if err != nil {
		return nil, err
	}
	m := &Memory{words: words}
	runtime.AddCleanup(m, unmap, words)
	return m, nil
}

// fileBehind returns the path, device and inode of a file.
func fileBehind(file *os.File) (*mapped, error) {
	path, err := filepath.Abs(file.Name())
	if err != nil {
		return nil, err
	}
	var s unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &s); err != nil {
		return nil, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	return &mapped{file: file, location: Location{path, s.Dev, s.Ino}}, nil
}

// Location returns the location that another process passes to Attach to share this memory.
// Memory of NewMemory and Attach, and all memory in race builds, is private to this process
// and has no location.
func (m *Memory) Location() (l Location, shared bool) {
	if m.file == nil || memoryOnHeap {
		return Location{}, false
	}
	return m.file.location, true
}

// Attach maps the first size bytes of the memory of another process, or of this one, a second time:
// stores through one mapping are visible through the other. The mapping stays until nothing refers
// to it any more, even if the other process ends or the file is removed. Accesses fault only if the
// file is truncated.
//
// Errors are ErrGone if the file does not exist any more, ErrSize if it is shorter, and ErrPrivate
// in race builds.
func Attach(l Location, size int64) (*Memory, error) {
	switch {
	case memoryOnHeap:
		return nil, fmt.Errorf("%w: %s", ErrPrivate, l.Path)
	case size <= 0 || size%WordBytes != 0:
		return nil, fmt.Errorf("%w: %d is not a positive multiple of 8", ErrSize, size)
	}
	// Without O_NONBLOCK opening a pipe with this name would wait.
	file, err := os.OpenFile(l.Path, os.O_RDWR|unix.O_NONBLOCK, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: %w", ErrGone, err)
	}
	if err != nil {
		return nil, fmt.Errorf("nvram: attach: %w", err)
	}
	m, err := attach(file, l, size)
	return m, errors.Join(err, file.Close())
}

// attach maps the memory that file refers to. It returns ErrGone if the file is not the one at l.
func attach(file *os.File, l Location, size int64) (*Memory, error) {
	behind, err := fileBehind(file)
	if err != nil {
		return nil, fmt.Errorf("nvram: attach: %w", err)
	}
	if behind.location.Device != l.Device || behind.location.Inode != l.Inode {
		return nil, fmt.Errorf("%w: %s is another file now", ErrGone, l.Path)
	}
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("nvram: attach: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() < size {
		return nil, fmt.Errorf("%w: %s is no file of %d bytes", ErrSize, l.Path, size)
	}
	m, err := mapUntilUnused(file, size)
	if err == nil {
		m.of = behind.location
	}
	return m, err
}
