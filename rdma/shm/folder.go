package shm

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/farmsql/farmsql/rdma"
	"golang.org/x/sys/unix"
)

const formatName = "FARMSQL-SHM"

func formatText() string { return fmt.Sprintf("farmsql shm folder\nformat %d\n", formatVersion) }

// folder is the folder that all machines share.
type folder struct {
	path string
	dir  *os.File // sockets are named relative to it
}

// openFolder opens the folder, and makes it if necessary. Other processes cannot remove the folder
// until the caller calls settled, which it may do when this process has the lock of a machine.
func openFolder(path string) (f *folder, settled func(), err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return nil, nil, fmt.Errorf("shm: %w", err)
	}
	for {
		f, guard, err := tryFolder(path)
		if err != nil {
			return nil, nil, err
		}
		if f != nil {
			return f, func() { _ = guard.Close() }, nil
		}
	}
}

// tryFolder makes, opens and locks the folder. It returns nil if another process has removed the
// folder meanwhile. The lock lasts until guard is closed.
func tryFolder(path string) (f *folder, guard *os.File, err error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, nil, fmt.Errorf("shm: %w", err)
	}
	dir, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("shm: %w", err)
	}
	guard, isThere, err := holdFolder(path, unix.LOCK_EX)
	if err != nil || !isThere {
		return nil, nil, errors.Join(err, dir.Close())
	}
	if !isSame(dir, path) { // another process has removed dir, and a third one has made the folder again
		return nil, nil, errors.Join(guard.Close(), dir.Close())
	}
	if err := checkFormat(path); err != nil {
		return nil, nil, errors.Join(err, guard.Close(), dir.Close())
	}
	return &folder{path, dir}, guard, nil
}

// checkFormat checks the folder's format file, and writes it in a new folder. Several processes may
// do that at once.
func checkFormat(path string) error {
	name := filepath.Join(path, formatName)
	text, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		if err := writeFormat(path, name); err != nil {
			return err
		}
		text, err = os.ReadFile(name)
	}
	switch {
	case err != nil:
		return fmt.Errorf("shm: %w", err)
	case string(text) != formatText():
		return fmt.Errorf("%w: %s does not say %q; stop all machines that use the folder, and remove it", ErrFormat, name, formatText())
	}
	return nil
}

// writeFormat creates the format file of a folder. It links a draft to the name, because a
// link appears with its content, and only if the name is free. Each caller has its own draft,
// because several machines, also of one process, may do this at once.
func writeFormat(path, name string) error {
	names, err := filepath.Glob(filepath.Join(path, "machine-*"))
	if err != nil {
		return fmt.Errorf("shm: %w", err)
	}
	if len(names) > 0 {
		// The format file comes before machines; another process may have written it meanwhile.
		if _, err := os.Stat(name); err == nil {
			return nil
		}
		return fmt.Errorf("%w: %s holds machines but no %s", ErrFormat, path, formatName)
	}
	draft, err := os.CreateTemp(path, formatName+".*")
	if err != nil {
		return fmt.Errorf("shm: %w", err)
	}
	defer os.Remove(draft.Name())
	_, err = draft.WriteString(formatText())
	if err := errors.Join(err, draft.Close()); err != nil {
		return fmt.Errorf("shm: %w", err)
	}
	if err := os.Link(draft.Name(), name); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("shm: %w", err)
	}
	return nil
}

func (f *folder) file(m rdma.MachineID, kind string) string {
	return filepath.Join(f.path, fmt.Sprintf("machine-%d.%s", m, kind))
}

// socket returns a short name of a socket: the kernel accepts at most 107 bytes.
func (f *folder) socket(m rdma.MachineID, kind string) string {
	return fmt.Sprintf("/proc/self/fd/%d/machine-%d.%s", f.dir.Fd(), m, kind)
}

// machines returns the machines that have a state file; none if the folder has been removed.
// It fails only for lack of resources.
func (f *folder) machines() ([]rdma.MachineID, error) {
	entries, err := os.ReadDir(f.path)
	if isShortage(err) {
		return nil, fmt.Errorf("shm: %w", err)
	}
	var all []rdma.MachineID
	for _, e := range entries {
		id, isState := strings.CutSuffix(strings.TrimPrefix(e.Name(), "machine-"), ".state")
		if n, err := strconv.ParseUint(id, 10, 16); err == nil && isState {
			all = append(all, rdma.MachineID(n))
		}
	}
	return all, nil
}

// lock makes this process machine m, until the file is closed.
func (f *folder) lock(m rdma.MachineID) (*os.File, error) {
	lock, err := os.OpenFile(f.file(m, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("shm: %w", err)
	}
	switch err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
	case err == nil:
		return lock, nil
	case errors.Is(err, unix.EWOULDBLOCK):
		err = f.taken(m)
		return nil, errors.Join(err, lock.Close())
	default:
		return nil, errors.Join(fmt.Errorf("shm: lock %s: %w", lock.Name(), err), lock.Close())
	}
}

// taken returns the error for a machine's name that is taken. It names the process that has it, if
// known.
func (f *folder) taken(m rdma.MachineID) error {
	s, err := openState(f.file(m, "state"), m)
	if err != nil { // the process that has the name is only starting
		return fmt.Errorf("%w: machine %d of %s", rdma.ErrMachineTaken, m, f.path)
	}
	return fmt.Errorf("%w: machine %d of %s is process %d", rdma.ErrMachineTaken, m, f.path, s.process())
}

// dial connects to the process of machine m. The connection ends when the
// process does.
func (f *folder) dial(m rdma.MachineID) (net.Conn, error) {
	defer runtime.KeepAlive(f)
	return net.Dial("unix", f.socket(m, "alive"))
}

// saysGone reports whether an error of dial proves that the machine has no process: the socket
// exists, and no process listens. A missing socket proves nothing.
func saysGone(err error) bool { return errors.Is(err, unix.ECONNREFUSED) }

// isGone reports whether machine m certainly has no process.
func (f *folder) isGone(m rdma.MachineID) bool {
	conn, err := f.dial(m)
	if err == nil {
		_ = conn.Close()
	}
	return saysGone(err)
}

// identity returns the device and inode of the file at path.
func identity(path string) (device, inode uint64, err error) {
	var s unix.Stat_t
	if err := unix.Stat(path, &s); err != nil {
		return 0, 0, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	return s.Dev, s.Ino, nil
}
