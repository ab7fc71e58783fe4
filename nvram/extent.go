package nvram

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// eachExtent calls fn for each part of the first size bytes of f that holds data. It skips holes,
// so that an untouched region costs nothing to save. On a file system that does not report holes,
// all of it counts as data.
func eachExtent(f *os.File, size int64, fn func(off, n int64) error) error {
	for off := int64(0); off < size; {
		begin, err := unix.Seek(int(f.Fd()), off, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			return nil // nothing but a hole follows
		}
		if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EOPNOTSUPP) {
			return fn(off, size-off)
		}
		if err != nil {
			return &os.PathError{Op: "seek data", Path: f.Name(), Err: err}
		}
		end, err := unix.Seek(int(f.Fd()), begin, unix.SEEK_HOLE)
		if err != nil {
			return &os.PathError{Op: "seek hole", Path: f.Name(), Err: err}
		}
		begin = min(begin, size)
		if begin < min(end, size) {
			if err := fn(begin, min(end, size)-begin); err != nil {
				return err
			}
		}
		off = end
	}
	return nil
}
