package hash

import "errors"

// Errors that callers distinguish with errors.Is. In a transaction, other errors become
// outcome.ErrConflict.
var (
	// ErrExists is returned by Insert if the key is in the table.
	ErrExists = errors.New("hash: key exists")
	// ErrKeyTooLong and ErrValueTooLong mean that the pair does not fit into an
	// object.
	ErrKeyTooLong   = errors.New("hash: key too long")
	ErrValueTooLong = errors.New("hash: value too long")
	// ErrConfig means that no table can have this configuration.
	ErrConfig = errors.New("hash: bad configuration")
	// ErrCorrupt says that an object which should belong to a table has invalid
	// contents.
	ErrCorrupt = errors.New("hash: corrupt table")
	// ErrFull means that a table cannot have as many shards as were asked for.
	ErrFull = errors.New("hash: table cannot grow that far")
	// ErrDestroyed is returned by operations outside transactions on a table
	// that no longer exists. Inside a transaction that is a conflict.
	ErrDestroyed = errors.New("hash: table has been destroyed")

	// errOvertaken means that a change came between the reads of several pages: read them again.
	errOvertaken = errors.New("hash: overtaken by a change")
)
