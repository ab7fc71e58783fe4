package tcp

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/hosts"
)

// A Config says how a machine joins the network.
type Config struct {
	Machine rdma.MachineID
	// Cluster is the instance's identity. Machines of other clusters are refused.
	Cluster [16]byte
	// Listen is the address, HOST:PORT, at which the machine accepts connections (TCP) and
	// datagrams (UDP). Port 0 takes a free one: see NIC.Address.
	Listen string
	// Listener, if not nil, accepts the machine's connections in place of a socket at Listen; the NIC
	// closes it, and takes datagrams at its address. With TLS it makes the handshakes, demanding a
	// certificate of TLS.ClientCAs, and its connections are *tls.Conn (cluster/peerport); without, they are *net.TCPConn.
	Listener net.Listener
	// Advertise is the address, HOST:PORT, at which the other machines reach this one. The machine
	// tells it to those that it connects to. If it is empty, the machine tells the address at which it
	// listens.
	Advertise string
	// Resolve returns the address of another machine. It is asked only for a machine that has not
	// told its address by connecting to this one, or does not answer there. It must not wait.
	Resolve func(m rdma.MachineID) (address string, ok bool)
	// TLS secures connections, and with them the keys of datagrams. It has the machine's
	// certificate, and in RootCAs and ClientCAs the authorities that certify the others'. With nil,
	// connections and keys travel in the clear, and anybody who reaches the port can use the memory.
	TLS *tls.Config
	// Authorize, if not nil, decides whether the owner of a certificate may act as machine m. With
	// nil, the owner of any certificate of the authorities may act as any machine.
	Authorize func(m rdma.MachineID, peer tls.ConnectionState) error
	// Line opens the machine's line (NIC.Line).
	Line bool
	// silence is silenceMax, except in tests.
	silence time.Duration
	// silent is silentAfter, except in tests.
	silent time.Duration
	// Refused, if not nil, is called for each connection from another host that is refused.
	Refused func(from net.Addr, reason error)
	// Unreached, if not nil, is called for each attempt to connect to a machine that fails; address is
	// empty if the machine has none.
	Unreached func(m rdma.MachineID, address string, reason error)
	// Silent, if not nil, is called when datagrams have been sent to a machine for silentAfter
	// and none has come from it, although it has just answered over TCP. It is called again as
	// long as that is so. It must not wait.
	Silent func(m rdma.MachineID, address netip.AddrPort)
}

var errAdvertise = fmt.Errorf("tcp: the advertised address is longer than %d bytes", hosts.AddressMax)

// check refuses a configuration that would let in strangers, or with which nobody could connect.
func (c *Config) check() error {
	if len(c.Advertise) > hosts.AddressMax {
		return errAdvertise
	}
	s := c.security()
	if err := s.Check(); err != nil {
		return fmt.Errorf("tcp: %w", err)
	}
	return nil
}

// security returns how connections are secured.
func (c *Config) security() hosts.Security {
	return hosts.Security{TLS: c.TLS, Authorize: c.Authorize, IsShaken: c.Listener != nil, Silence: c.silence}
}
