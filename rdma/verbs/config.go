package verbs

import (
	"crypto/tls"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/hosts"
)

// A Config says how a machine joins the network, and with which card.
type Config struct {
	Machine rdma.MachineID
	// Cluster is the instance's identity. Machines of other clusters are refused.
	Cluster [16]byte
	// Listen is the address, HOST:PORT, at which the machine accepts TCP connections, over
	// which machines agree on queue pairs. Port 0 takes a free one: see NIC.Address.
	Listen string
	// Listener, if not nil, accepts the machine's connections in place of a socket at Listen; the NIC
	// closes it. With TLS it makes the handshakes, demanding a certificate of TLS.ClientCAs, and its connections
	// are *tls.Conn (cluster/peerport); without, they are *net.TCPConn.
	Listener net.Listener
	// Advertise is the address, HOST:PORT, at which the other machines reach this one. The machine
	// tells it to those that it connects to. If it is empty, the machine tells the address at which it
	// listens.
	Advertise string
	// Resolve returns the address of another machine. It is asked only for a machine that has
	// not told its address by connecting to this one, or does not answer there. It must not
	// wait.
	Resolve func(m rdma.MachineID) (address string, ok bool)
	// TLS secures the TCP connections, over which keys of memory are handed out. It has the
	// machine's certificate, and in RootCAs and ClientCAs the authorities that certify the
	// others'. With nil, anybody who reaches the port is handed keys. The traffic between cards
	// is neither encrypted nor authenticated in either case.
	TLS *tls.Config
	// Authorize, if not nil, decides whether the owner of a certificate may act as machine m. With
	// nil, the owner of any certificate of the authorities may act as any machine.
	Authorize func(m rdma.MachineID, peer tls.ConnectionState) error

	// Device is the name of the RDMA device, as ibv_devices lists it; "" is the first one.
	Device string
	// Port is the number of the device's port, from 1; 0 stands for 1.
	Port int
	// GIDIndex is which of the port's GIDs the machine uses; with AnyGID the package takes the first of RoCE v2 that holds an IPv4
	// address, or else the first of all.
	GIDIndex int
	// TrafficClass goes into each packet. In networks that have classes of traffic, it must
	// name one for which they are lossless.
	TrafficClass int
	// MTU is how many bytes a packet carries: 256, 512, 1024, 2048 or 4096; 0 is what the port has. Two machines use
	// the smaller of theirs.
	MTU int

	// Refused, if not nil, is called for each connection from another host that is refused.
	Refused func(from net.Addr, reason error)
	// Unreached, if not nil, is called for each attempt to connect to a machine that fails; address is
	// empty if the machine has none.
	Unreached func(m rdma.MachineID, address string, reason error)
	// Unpinned, if not nil, is called when the card cannot register memory that another machine
	// has asked for. That machine's connection breaks then. Unpinned must not wait.
	Unpinned func(reason error)

	// receives is receiveDepth, and stall is stallTime, except in tests.
	receives int
	stall    time.Duration
}

// AnyGID makes the package choose a GID: see Config.GIDIndex.
const AnyGID = -1

// check returns an error for settings that make no sense.
func (c *Config) check() error {
	s := c.security()
	if err := s.Check(); err != nil {
		return fmt.Errorf("verbs: %w", err)
	}
	switch {
	case len(c.Advertise) > hosts.AddressMax:
		return fmt.Errorf("verbs: the advertised address is longer than %d bytes", hosts.AddressMax)
	case c.Port < 0 || c.Port > 255:
		return fmt.Errorf("verbs: port %d is not from 1 to 255", c.Port)
	case c.GIDIndex < AnyGID || c.GIDIndex > 255:
		return fmt.Errorf("verbs: GID index %d is not from 0 to 255, nor AnyGID (%d)", c.GIDIndex, AnyGID)
	case c.TrafficClass < 0 || c.TrafficClass > 255:
		return fmt.Errorf("verbs: traffic class %d is not from 0 to 255", c.TrafficClass)
	case c.MTU != 0 && mtuCode(c.MTU) == 0:
		return fmt.Errorf("verbs: MTU %d is none of %v", c.MTU, mtus)
	}
	return nil
}

// security returns how connections are secured.
func (c *Config) security() hosts.Security {
	return hosts.Security{TLS: c.TLS, Authorize: c.Authorize, IsShaken: c.Listener != nil, Silence: silenceMax}
}

// mtus are the MTUs that there are, in the order of their codes, which begin with 1.
var mtus = []int{256, 512, 1024, 2048, 4096}

// mtuCode returns the code by which verbs name an MTU, 0 if there is none.
func mtuCode(bytes int) uint8 { return uint8(slices.Index(mtus, bytes) + 1) }

// mtuBytes returns the MTU of a code; 0 if it has none.
func mtuBytes(code uint8) int {
	if code == 0 || int(code) > len(mtus) {
		return 0
	}
	return mtus[code-1]
}
