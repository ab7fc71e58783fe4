package btree

import "errors"

var (
	// ErrExists is returned by Insert if the key exists. The transaction has then read that the key exists, as by Has.
	// Before a transaction gives up because of ErrExists, it must validate.
	ErrExists = errors.New("btree: key exists")

	// ErrKeyTooLong refuses a key of more than MaxKeyBytes.
	ErrKeyTooLong = errors.New("btree: key too long")

	// ErrConfig rejects a Config, and names the field.
	ErrConfig = errors.New("btree: bad configuration")

	// ErrCorrupt means that an object of the tree breaks the format or an invariant of the tree.
	ErrCorrupt = errors.New("btree: corrupt")

	// ErrDestroyed is returned by every operation on a tree that Destroy has
	// begun to take apart, or whose anchor is gone.
	ErrDestroyed = errors.New("btree: tree destroyed")
)
