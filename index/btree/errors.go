package btree

import "errors"

var (
	// ErrExists is Insert's answer when the key is there. The answer has been
	// remembered: a transaction that ends on it validates first.
	ErrExists = errors.New("btree: key exists")

	// ErrKeyTooLong refuses a key of more than MaxKeyBytes.
	ErrKeyTooLong = errors.New("btree: key too long")

	// ErrConfig refuses a Config, naming the field.
	ErrConfig = errors.New("btree: bad configuration")

	// ErrCorrupt says that an object of the tree does not hold what it must.
	ErrCorrupt = errors.New("btree: corrupt")

	// ErrDestroyed is returned by every operation on a tree that Destroy has
	// begun to take apart, or whose anchor is gone.
	ErrDestroyed = errors.New("btree: tree destroyed")
)
