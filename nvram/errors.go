package nvram

import "errors"

// Reasons for which a folder is refused or fails. Each error that a function returns names the
// folder, and says what to do about it.
var (
	// ErrInUse says that another process has the folder open.
	ErrInUse = errors.New("nvram: folder is in use by another process")
	// ErrUnwritable says that the folder cannot be created or written.
	ErrUnwritable = errors.New("nvram: cannot write folder")
	// ErrFormat says that the folder or save was written by a newer program, or that there is
	// neither at the path.
	ErrFormat = errors.New("nvram: unknown format")
	// ErrLost says that a power failure or reboot has destroyed the folder's content, and that no
	// save is complete.
	ErrLost = errors.New("nvram: memory was lost")
	// ErrCopy says that the folder is a copy that was made while the original was in
	// use: its files are of different moments.
	ErrCopy = errors.New("nvram: folder is a copy of one that was in use")
	// ErrMedium says that the folder's file system does not keep files in memory that can be pinned.
	ErrMedium = errors.New("nvram: memory on this file system cannot be pinned")
	// ErrSize says that a memory exists with another size.
	ErrSize = errors.New("nvram: memory has another size")
	// ErrName says that a name cannot be a memory's, or that it is mapped already.
	ErrName = errors.New("nvram: bad memory name")
	// ErrNoSpace says that the folder's file system is full.
	ErrNoSpace = errors.New("nvram: no space left")
	// ErrNoSave says that there is no complete save.
	ErrNoSave = errors.New("nvram: no complete save")
	// ErrCorrupt says that the bytes of a save have changed since they were written.
	ErrCorrupt = errors.New("nvram: save is damaged")
	// ErrNotEmpty says that a restore would overwrite memory.
	ErrNotEmpty = errors.New("nvram: folder holds memory already")
	// ErrGone says that the shared memory to be attached does not exist any more.
	ErrGone = errors.New("nvram: shared memory is gone")
	// ErrPrivate says that memory cannot be shared with other processes.
	ErrPrivate = errors.New("nvram: memory cannot be shared in race builds")
	// ErrClosed says that the folder has been closed.
	ErrClosed = errors.New("nvram: folder is closed")
)
