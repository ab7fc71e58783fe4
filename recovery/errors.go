package recovery

import "errors"

// Calls between members are refused with these errors; the caller and the machine called use them
// alike.
var (
	ErrNotCM      = errors.New("recovery: not the configuration manager")
	ErrNotMember  = errors.New("recovery: the caller is not a member")
	ErrSuperseded = errors.New("recovery: there is a newer configuration")
)
