package region

import "errors"

// Errors of reading and allocating objects.
var (
	// ErrLocked says that a transaction is about to change the object: read again after a moment.
	ErrLocked = errors.New("region: object is locked")
	// ErrTorn says that a NIC read the object while it was written: read again.
	ErrTorn = errors.New("region: object was written while it was read")
	// ErrFreed says that the object that the pointer named has been freed.
	ErrFreed = errors.New("region: object has been freed")
	// ErrBadPtr says that no object can be where the pointer points.
	ErrBadPtr = errors.New("region: pointer to no object")
	// ErrFormat says that memory holds no region, or one this program cannot read.
	ErrFormat = errors.New("region: not a region of this format")
	// ErrBackups says that a region now has other backups than when storage was reserved.
	ErrBackups = errors.New("region: other backups")
	// ErrDeparted says that another machine is the region's primary by now, or that this machine has got another
	// replica since it was the primary.
	ErrDeparted = errors.New("region: has another primary")
	// ErrDoubt says that a replica may still carry out the request.
	ErrDoubt = errors.New("region: a replica may still do it")
	// ErrFull says that no region has room for the object.
	ErrFull = errors.New("region: no room left")
	// ErrReclaiming says that no region has room yet: memory that was freed a moment ago will
	// soon be available.
	ErrReclaiming = errors.New("region: freed memory is not available yet")
	// ErrTooLarge says that an object cannot have that size.
	ErrTooLarge = errors.New("region: object too large")
)
