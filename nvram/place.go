package nvram

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// A place identifies the folder in which a manifest was written, for as long as the folder is in
// use. A copy of the folder has the same manifest but another place. The place is the inode of the
// folder's lock, together with the inode's time of birth, because file systems reuse inodes. It
// stays the same after a rename, another mount and a restart, and differs in a copy. If the file
// system does not report that time, the place is the device and the inode.
//
//	lock 131083 1764000000.123456789
//	lock 131083 on 2049
//
// An empty place is unknown, as in folders of versions that did not write it.
type place string

// btimeMark is contained in places that hold the inode's time of birth. Such places stay valid
// after a restart of the machine, when devices may have other numbers.
const btimeMark = "."

// placeOf returns the place of the folder whose lock is open.
func placeOf(lock *os.File) (place, error) {
	var s unix.Statx_t
	err := unix.Statx(int(lock.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_INO|unix.STATX_BTIME, &s)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrUnwritable, &os.PathError{Op: "statx", Path: lock.Name(), Err: err})
	}
	if s.Mask&unix.STATX_BTIME == 0 {
		return place(fmt.Sprintf("%d on %d", s.Ino, unix.Mkdev(s.Dev_major, s.Dev_minor))), nil
	}
	return place(fmt.Sprintf("%d %d%s%09d", s.Ino, s.Btime.Sec, btimeMark, s.Btime.Nsec)), nil
}

// isAnother reports whether a folder that was in use at p and is at q now must be a copy.
// sameBoot says that the machine has not been restarted since.
func (p place) isAnother(q place, sameBoot bool) bool {
	return p != "" && p != q && (sameBoot || strings.Contains(string(p), btimeMark))
}
