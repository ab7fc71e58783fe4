package shm

import "errors"

// Errors of Join, Open and Register, which also return errors of package rdma.
var (
	// ErrFormat: the folder belongs to another version of this package, or to another program.
	ErrFormat = errors.New("shm: unknown format")
	// ErrStuck: a process that was stopped (SIGSTOP, a debugger) in the middle of an operation on
	// this machine's memory has not continued.
	ErrStuck = errors.New("shm: a stopped process is in the middle of an operation")
	// ErrTooMany: more workers or registrations than a state file has room for,
	// or a path that is too long.
	ErrTooMany = errors.New("shm: no room in the state file")
)
