package nvram

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Modes of what holds a database: nobody but its user reads it, whatever the umask says.
const (
	PrivateFile   fs.FileMode = 0o600
	PrivateFolder fs.FileMode = 0o700
)

// keepPrivate takes from everybody else what a program of an earlier version has let them
// do with a folder of ours and its files, what folders in it hold not included. It fails if
// they belong to another user, who alone can change that.
func keepPrivate(path string) error {
	entries, err := os.ReadDir(path)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnwritable, err)
	}
	names := []string{""}
	for _, e := range entries {
		if e.Type()&fs.ModeSymlink == 0 {
			names = append(names, e.Name())
		}
	}
	for _, name := range names {
		if err := takeAway(filepath.Join(path, name)); err != nil {
			return fmt.Errorf("%w: others may read %s: %w", ErrUnwritable, filepath.Join(path, name), err)
		}
	}
	return nil
}

// takeAway takes all rights to a file or a folder from everybody but its user.
func takeAway(path string) error {
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Perm()&^PrivateFolder == 0 {
		return err
	}
	return os.Chmod(path, info.Mode().Perm()&PrivateFolder)
}
