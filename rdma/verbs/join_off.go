//go:build !verbs || !linux || !cgo

package verbs

import (
	"errors"
	"fmt"
	"syscall"
)

// errOff says what is needed for a program that can join.
var errOff = errors.New("verbs: this program was built without RDMA verbs: build it on Linux with cgo and -tags verbs, and with the packages libibverbs-dev and pkg-config; it then needs libibverbs1 and ibverbs-providers")

// Available returns nil if this program can join when there is a device, and otherwise the
// reason why not.
func Available() error { return errOff }

// Join makes this process a machine of the network.
func Join(cfg Config) (*NIC, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	return nil, errOff
}

// errnoOf returns the error with number n of errno.
func errnoOf(n uint16) error { return fmt.Errorf("%w (errno %d)", syscall.Errno(n), n) }
