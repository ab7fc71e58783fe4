package ring

import (
	"errors"
	"fmt"
)

var (
	// ErrFull: the record does not fit into the space that is free and not
	// reserved. More may become free.
	ErrFull = errors.New("ring: full")
	// ErrTooLarge: the record does not fit into the ring even when it is empty.
	ErrTooLarge = errors.New("ring: record larger than the ring")
	// ErrReservation: the record does not fit into the reserved space.
	ErrReservation = errors.New("ring: record larger than the reservation")
	// ErrCorrupt: the ring holds words that its sender cannot have written, or a head that its
	// receiver cannot have written. See CorruptError.
	ErrCorrupt = errors.New("ring: corrupt")
	// ErrUnformatted: the memory holds no ring, or a ring whose creation was interrupted. It holds
	// no records.
	ErrUnformatted = errors.New("ring: not formatted")
	// ErrBytes: a ring cannot have this size, or cannot begin at this offset.
	ErrBytes = errors.New("ring: bad size or alignment")
)

// A CorruptError describes the damage found in a ring. It matches ErrCorrupt.
type CorruptError struct {
	What     string
	Position uint64
	Word     uint64 // the word that was found
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("ring: corrupt at position %d: %s: %#x", e.Position, e.What, e.Word)
}

// Is makes every CorruptError match ErrCorrupt.
func (e *CorruptError) Is(target error) bool { return target == ErrCorrupt }
