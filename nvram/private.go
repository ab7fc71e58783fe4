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

// PrivateFile and PrivateFolder keep what holds a database from everybody but its user,
// whatever the umask says.
const (
	PrivateFile   fs.FileMode = 0o600
	PrivateFolder fs.FileMode = 0o700
)

// ListenPrivately returns a configuration for a Unix socket to which only this user's
// processes can connect, from the first moment on: the file that bind makes has the socket's
// mode.
func ListenPrivately() net.ListenConfig {
	return net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		return errors.Join(c.Control(func(fd uintptr) { err = unix.Fchmod(int(fd), uint32(PrivateFile)) }), err)
	}}
}

// keepPrivate removes the permissions of other users, which earlier versions granted, from a
// folder and the files in it, but not in folders below. It fails if they belong to another
// user, who alone can change them.
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
