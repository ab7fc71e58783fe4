package shm

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"golang.org/x/sys/unix"
)

// A folder is removed when no process is a machine in it: by the last machine that leaves, or, if
// that was killed, by Sweep. A joining process holds the folder's own lock (flock) from before it
// looks for the folder until it has the lock of a machine. A process that removes the folder holds
// the same lock, and first finds the locks of all machines free. A joiner that has waited for the
// folder's lock finds the folder gone, and makes another.

// ours matches the names that this package creates in a folder. A folder that holds any other name
// is not removed.
var ours = regexp.MustCompile(`^(` + formatName + `(\..*)?|machine-[0-9]+\.(lock|state.*|alive|datagram))$`)

// holdFolder locks a folder until the returned file is closed. ok is false if the folder does not
// exist, was replaced, or, with LOCK_NB, is locked by another process.
func holdFolder(path string, how int) (held *os.File, ok bool, err error) {
	dir, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("shm: %w", err)
	}
	for {
		err = unix.Flock(int(dir.Fd()), how)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	switch {
	case err == nil && isSame(dir, path):
		return dir, true, nil
	case err == nil || errors.Is(err, unix.EWOULDBLOCK):
		return nil, false, dir.Close()
	}
	return nil, false, errors.Join(fmt.Errorf("shm: lock %s: %w", path, err), dir.Close())
}

// isSame reports whether dir, an open folder, is still the folder at path. Another process may have
// removed dir meanwhile.
func isSame(dir *os.File, path string) bool {
	open, err := dir.Stat()
	if err != nil {
		return false
	}
	now, err := os.Stat(path)
	return err == nil && os.SameFile(open, now)
}

// removeUnused removes the folder at path if the folder is empty or one of this package, and no
// living process is a machine in it. It reports whether it removed the folder.
func removeUnused(path string) (bool, error) {
	held, ok, err := holdFolder(path, unix.LOCK_EX|unix.LOCK_NB)
	if err != nil || !ok {
		return false, err
	}
	defer held.Close() // read only
	entries, err := os.ReadDir(path)
	if err != nil {
		return false, fmt.Errorf("shm: %w", err)
	}
	for _, e := range entries {
		if !ours.MatchString(e.Name()) || (filepath.Ext(e.Name()) == ".lock" && !isFree(filepath.Join(path, e.Name()))) {
			return false, nil
		}
	}
	if err := removeRead(path, entries); err != nil {
		return false, fmt.Errorf("shm: remove a folder that nobody uses: %w", err)
	}
	return true, nil
}

// removeRead removes a folder. The caller must have read its entries. A machine that was leaving at
// that time may have removed its files since, before it released its lock.
func removeRead(path string, entries []os.DirEntry) error {
	var errs []error
	for _, e := range entries {
		if err := os.Remove(filepath.Join(path, e.Name())); !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, os.Remove(path))...)
}

// isFree reports whether no process holds the lock of a machine.
func isFree(lock string) bool {
	f, err := os.Open(lock)
	if err != nil {
		return false
	}
	defer f.Close() // closing the file also gives back the lock
	return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
}

// Sweep removes the folders that match a pattern of filepath.Glob and that certainly no process
// uses: folders that killed machines have left. It leaves folders of other users, and folders that
// this package has not made.
func Sweep(pattern string) error {
	paths, err := filepath.Glob(pattern)
	errs := []error{err}
	for _, path := range paths {
		var s unix.Stat_t
		if unix.Lstat(path, &s) == nil && s.Mode&unix.S_IFMT == unix.S_IFDIR && int(s.Uid) == os.Getuid() {
			_, err := removeUnused(path)
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
