package nvram

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// ErrNoSpace says that the folder's file system is full.
var ErrNoSpace = errors.New("nvram: no space left")

// mapped is a memory's file.
type mapped struct {
	file *os.File
}

func (f *mapped) reserve(off, n int64) error {
	err := unix.Fallocate(int(f.file.Fd()), unix.FALLOC_FL_KEEP_SIZE, off, n)
	switch {
	case err == nil, errors.Is(err, unix.EOPNOTSUPP):
		return nil
	case errors.Is(err, unix.ENOSPC):
		return fmt.Errorf("%w for %s", ErrNoSpace, f.file.Name())
	}
	return fmt.Errorf("nvram: reserve space for %s: %w", f.file.Name(), err)
}
