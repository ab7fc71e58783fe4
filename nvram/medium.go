package nvram

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// checkPinnable returns ErrMedium unless a NIC may pin the pages of files in the folder at path,
// which need not exist yet. The files of a tmpfs are memory, like the files of NewShared, and their
// pages stay where they are. An ordinary disk's file system must be able to take a page away in order
// to write it back, so Linux refuses to pin shared mappings of its files for long.
func checkPinnable(path string) error {
	var s unix.Statfs_t
	if err := unix.Statfs(existing(path), &s); err != nil {
		return fmt.Errorf("%w: %w", ErrUnwritable, &os.PathError{Op: "statfs", Path: path, Err: err})
	}
	if !isPinnable(int64(s.Type)) {
		return fmt.Errorf("%w: %s is on a file system of type %#x; put it on a tmpfs", ErrMedium, path, s.Type)
	}
	return nil
}

// isPinnable reports whether the files of a file system are memory. It is false for hugetlbfs, too,
// which cannot hold a folder.
func isPinnable(fileSystem int64) bool {
	return fileSystem == unix.TMPFS_MAGIC || fileSystem == unix.RAMFS_MAGIC
}
