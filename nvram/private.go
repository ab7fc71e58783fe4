package nvram

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// PrivateFile and PrivateFolder are the modes of files and folders of a database, which only its
// user can access. They do not depend on the umask.
const (
	PrivateFile   fs.FileMode = 0o600
	PrivateFolder fs.FileMode = 0o700
)

// ListenPrivately returns a configuration for a Unix socket to which only this user's processes can
// ever connect: the file that bind creates has the socket's mode from the beginning.
func ListenPrivately() net.ListenConfig {
	return net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		return errors.Join(c.Control(func(fd uintptr) { err = unix.Fchmod(int(fd), uint32(PrivateFile)) }), err)
	}}
}

// keepPrivate removes the permissions of other users, which earlier versions granted. It does so
// for a folder and the files in it, but not for folders in it. It fails if a file belongs to
// another user, because only that user can change its permissions.
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

// takeAway removes the permissions of everybody but the owner from a file or folder.
func takeAway(path string) error {
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Perm()&^PrivateFolder == 0 {
		return err
	}
	return os.Chmod(path, info.Mode().Perm()&PrivateFolder)
}
