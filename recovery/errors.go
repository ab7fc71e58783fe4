package recovery

import "errors"

// A machine refuses a call of another with one of these errors, and the caller gets the same error.
var (
	ErrNotCM      = errors.New("recovery: not the configuration manager")
	ErrNotMember  = errors.New("recovery: the caller is not a member")
	ErrSuperseded = errors.New("recovery: there is a newer configuration")
)
