package btree

import "errors"

var (
	// ErrExists is returned by Insert if the key is there. The transaction has read that: if it
	// ends because of it, it validates first.
	ErrExists = errors.New("btree: key exists")

	// ErrKeyTooLong refuses a key of more than MaxKeyBytes.
	ErrKeyTooLong = errors.New("btree: key too long")

	// ErrConfig rejects a Config, and names the field.
	ErrConfig = errors.New("btree: bad configuration")

	// ErrCorrupt says that an object of the tree does not hold what it must.
	ErrCorrupt = errors.New("btree: corrupt")

	// ErrDestroyed is returned by every operation on a tree that Destroy has
	// begun to take apart, or whose anchor is gone.
	ErrDestroyed = errors.New("btree: tree destroyed")
)
