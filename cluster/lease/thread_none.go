//go:build !(cgo && linux && (amd64 || arm64))

package lease

import (
	"errors"

	"github.com/farmsql/farmsql/rdma/call"
)

// HaveThread reports whether this build has the thread of C.
const HaveThread = false

// MayRealtime reports whether a thread of C of this process may have RealtimePriority.
func MayRealtime() bool { return false }

// NewThread fails: this build has no thread of C.
func NewThread(uint64, call.Peer, Config) (Keeper, error) {
	return nil, errors.New("lease: built without cgo, there is no thread")
}

// NewLine fails: this build has no thread of C.
func NewLine(*call.Endpoint, uint8, Line, Config) (Keeper, error) {
	return nil, errors.New("lease: built without cgo, there is no thread")
}
