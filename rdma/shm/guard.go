package shm

import (
	"runtime/debug"

	"github.com/farmsql/farmsql/rdma"
)

// guard runs f, which reads files that other processes share, and returns ErrBroken if f faults:
// another process has truncated a file, or its file system is full. The fast path does not use
// guard; it handles faults itself.
func guard(f func() error) (err error) {
	panicOnFault := debug.SetPanicOnFault(true)
	defer func() {
		faulted(recover(), &err)
		debug.SetPanicOnFault(panicOnFault)
	}()
	return f()
}

// faulted turns a recovered fault into an error. It panics again with any other panic.
func faulted(recovered any, err *error) {
	if recovered == nil {
		return
	}
	if _, isFault := recovered.(interface{ Addr() uintptr }); !isFault {
		panic(recovered)
	}
	*err = rdma.ErrBroken
}
