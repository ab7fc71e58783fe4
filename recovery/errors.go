package recovery

import "errors"

// Calls between members are refused with these errors, at the caller and at the machine called.
var (
	ErrNotCM      = errors.New("recovery: not the configuration manager")
	ErrNotMember  = errors.New("recovery: the caller is not a member")
	ErrSuperseded = errors.New("recovery: there is a newer configuration")
)
