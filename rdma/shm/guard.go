package shm

import (
	"runtime/debug"

	"github.com/farmsql/farmsql/rdma"
)

// guard runs f, which looks at files that others share, and returns ErrBroken if
// it faults: somebody has cut a file short, or its file system is full. It is not
// for the fast path, which does the same by itself.
func guard(f func() error) (err error) {
	panicOnFault := debug.SetPanicOnFault(true)
	defer func() {
		faulted(recover(), &err)
		debug.SetPanicOnFault(panicOnFault)
	}()
	return f()
}

// faulted turns a recovered fault into an error. Other panics go on.
func faulted(recovered any, err *error) {
	if recovered == nil {
		return
	}
	if _, isFault := recovered.(interface{ Addr() uintptr }); !isFault {
		panic(recovered)
	}
	*err = rdma.ErrBroken
}
