package nvram

import (
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// CopyOutBare is like CopyOut, for callers that may read an object whose storage has been given
// back (Discard). Such an object reads as zeroes, even if the file system is so full that the read
// faults because it gets no page. A fault for another reason, such as a truncated file, panics.
func (m *Memory) CopyOutBare(dst []byte, off uint64) {
	defer m.recoverBare(dst, debug.SetPanicOnFault(true))
	m.CopyOut(dst, off)
}

// recoverBare must be deferred. If the copy has faulted because it got no page, recoverBare clears
// dst; it repeats any other panic.
func (m *Memory) recoverBare(dst []byte, panicOnFault bool) {
	r := recover()
	debug.SetPanicOnFault(panicOnFault)
	if r == nil {
		return
	}
	if _, isFault := r.(interface{ Addr() uintptr }); !isFault || !m.isWhole() {
		panic(r)
	}
	clear(dst)
}

// isWhole reports whether the file behind the memory is at least as long as the memory. For attached
// memory it returns false also if another file has the path now.
func (m *Memory) isWhole() bool {
	var s unix.Stat_t
	var err error
	if m.file != nil {
		err = unix.Fstat(int(m.file.file.Fd()), &s)
	} else {
		err = unix.Stat(m.of.Path, &s)
		if s.Dev != m.of.Device || s.Ino != m.of.Inode {
			return false
		}
	}
	return err == nil && s.Size >= int64(m.Size())
}
