package lease

import (
	"context"
	"net/netip"

	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
)

// LineKeyBytes is the length of a key of a Line: its number, 8 bytes, and the secret, 16.
const LineKeyBytes = 24

// A Line is what a thread of C needs to exchange leases with machines of other hosts: a UDP
// socket, and keys that the machines hand out to each other over a connection that others can
// neither read nor forge. A key is for one direction: the receiver makes it, for one sender.
type Line interface {
	// Socket returns a UDP socket that receives only datagrams that begin with LineMagic. It must
	// stay open until NewLine has returned.
	Socket() (fd int)
	// Ask asks a machine for a key, and returns it with the machine's address. The error is
	// errors.ErrUnsupported if the machine never hands out a key in its present life.
	Ask(ctx context.Context, m rdma.MachineID) (key [LineKeyBytes]byte, at netip.AddrPort, err error)
	// HandOut sets the function that is called with each key that the machine hands out, before the
	// other machine gets it. Until then, and with nil, the machine hands out none.
	HandOut(f func(to rdma.MachineID, key [LineKeyBytes]byte))
}

// LineMagic begins the datagrams of a Line.
const LineMagic = "fsleaud1"

// NewHosts returns the best keeper of this build for machines of several hosts: a thread of C if the build
// has that, and otherwise a keeper that uses calls. The two understand each other.
func NewHosts(e *call.Endpoint, kind uint8, line Line, cfg Config) (Keeper, error) {
	if HaveThread {
		return NewLine(e, kind, line, cfg)
	}
	return NewCalls(e, kind, cfg), nil
}
