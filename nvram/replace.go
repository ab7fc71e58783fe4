package nvram

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// spareBytes is how much a file can grow from one replacement to the next, as numbers in it get
// more digits.
const spareBytes = 4096

// ReplaceFile makes b the content of the file at path, durably: a crash leaves either the old
// content or the new. It writes b to a spare file next to it, whose name has a suffix, and
// exchanges the two. The spare stays, with its storage, so that the file can be replaced even when
// the file system is full: a killed process must be able to start again without more room. A reader
// in another process that is slower than two replacements may read parts of two contents; see
// cluster.FileStore.Load.
func ReplaceFile(path, suffix string, b []byte) error {
	spare := path + suffix
	if err := writeFile(spare, b); err != nil {
		return err
	}
	err := unix.Renameat2(unix.AT_FDCWD, spare, unix.AT_FDCWD, path, unix.RENAME_EXCHANGE)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		// The first replacement, or a file system that cannot exchange files.
		if err = os.Rename(spare, path); err == nil {
			_ = writeFile(spare, b) // ignore the error: the file is replaced, and only lacks a spare
		}
	}
	if err != nil {
		return &os.LinkError{Op: "replace", Old: spare, New: path, Err: err}
	}
	return syncDir(filepath.Dir(path))
}

// writeFile makes b the content of the file at path, durably but not atomically. It truncates the
// file only after writing, because writing may need the storage. It reserves spareBytes for the
// next time.
func writeFile(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, PrivateFile)
	if err != nil {
		return err
	}
	if err = f.Chmod(PrivateFile); err == nil { // a program of an earlier version made it readable for all
		_, err = f.WriteAt(b, 0)
	}
	if err == nil {
		err = f.Truncate(int64(len(b)))
	}
	if err == nil { // best effort: some file systems cannot reserve storage
		_ = unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, int64(len(b)+spareBytes))
	}
	return errors.Join(err, f.Sync(), f.Close())
}
