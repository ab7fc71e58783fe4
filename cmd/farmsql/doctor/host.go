package doctor

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/farmsql/farmsql/cluster/lease"
	"github.com/farmsql/farmsql/cluster/peerport"
	"github.com/farmsql/farmsql/internal/host"
	"github.com/farmsql/farmsql/nvram"
)

// A Host is a computer, as a process of farmsql sees it.
type Host struct {
	host.Root // where /proc and /sys are

	// Processors returns how many processors the process may use.
	Processors func() int
	// Limit returns a resource's limit (RLIMIT_...).
	Limit func(resource int) (uint64, error)
	// HasThread is set if this build keeps leases with a thread written in C. MayRealtime tries
	// to give the thread its priority. Pin tries to pin this number of bytes.
	HasThread   bool
	MayRealtime func() bool
	Pin         func(bytes int) error
	// IsDumpable reports whether other processes of this user may open the process's files.
	IsDumpable func() (bool, error)
	// Place returns the real path of a folder or, if it does not exist, of the nearest one above it.
	Place func(folder string) (string, error)
	// Fullness returns how full the file system of a folder is.
	Fullness func(folder string) (nvram.Fullness, error)
	// Try makes a file in a folder, and tries on it the operations that memory needs.
	Try func(folder string) (Trial, error)
	// Listen listens on an address for a moment; ListenPacket does the same for datagrams.
	Listen, ListenPacket func(address string) error
	// Reach connects to an address and disconnects. ReachPacket sends a datagram to it, and returns an
	// error if the datagram is refused.
	Reach, ReachPacket func(address string) error
	// CheckHost returns an error if other hosts cannot reach the host that an address names.
	CheckHost func(address string) error
	// IsSynchronised reports whether the kernel's time of day is kept correct.
	IsSynchronised func() (bool, error)
}

// A Trial says what a file system can do. Each error is nil if the operation worked.
type Trial struct {
	Reserve error // reserve storage before it is used (fallocate)
	Punch   error // give storage back, from the middle of a file
}

// This returns the computer that the program runs on.
func This() Host {
	return Host{
		Root: host.System, Processors: runtime.NumCPU, Limit: limit,
		HasThread: lease.HaveThread, MayRealtime: lease.MayRealtime, Pin: pin, IsDumpable: isDumpable,
		Place: place, Fullness: nvram.FullnessOf, Try: try, Listen: listen, ListenPacket: listenPacket, CheckHost: peerport.CheckHost,
		Reach: reach, ReachPacket: reachPacket,
		IsSynchronised: isSynchronised,
	}
}

func limit(resource int) (uint64, error) {
	var l unix.Rlimit
	err := unix.Getrlimit(resource, &l)
	return l.Cur, err
}

// pin pins new memory, and gives it back.
func pin(bytes int) error {
	b, err := unix.Mmap(-1, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return err
	}
	return errors.Join(unix.Mlock(b), unix.Munmap(b))
}

func isDumpable() (bool, error) {
	n, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	return n == 1, err
}

func place(folder string) (string, error) {
	path, err := filepath.Abs(folder)
	if err != nil {
		return "", err
	}
	for {
		there, err := filepath.EvalSymlinks(path)
		if !errors.Is(err, os.ErrNotExist) || path == filepath.Dir(path) {
			return there, err
		}
		path = filepath.Dir(path)
	}
}

// tryBytes is a part of a block of memory: several pages of any size.
const tryBytes = 256 << 10

func try(folder string) (t Trial, err error) {
	f, err := os.CreateTemp(folder, ".farmsql-doctor-*")
	if err != nil {
		return t, err
	}
	if err = f.Truncate(tryBytes); err == nil {
		t.Reserve = unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, tryBytes)
		t.Punch = unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, tryBytes/2)
	}
	return t, errors.Join(err, f.Close(), os.Remove(f.Name()))
}

func listen(address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	return l.Close()
}

func listenPacket(address string) error {
	c, err := net.ListenPacket("udp", address)
	if err != nil {
		return err
	}
	return c.Close()
}

func isSynchronised() (bool, error) {
	var clock unix.Timex // without Modes: the call only reads the state
	state, err := unix.Adjtimex(&clock)
	return state != unix.TIME_ERROR && (clock.Status&unix.STA_UNSYNC) == 0, err
}
