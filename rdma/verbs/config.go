package verbs

import (
	"crypto/tls"
	"errors"
	"fmt"
	"slices"

	"github.com/farmsql/farmsql/rdma"
)

// A Config says how a machine joins the network, and with which card.
type Config struct {
	Machine rdma.MachineID
	// Cluster is the instance's identity. Machines of other clusters are refused.
	Cluster [16]byte
	// Listen is the address, HOST:PORT, at which the machine takes the TCP connections over which queue pairs are
	// agreed on. Port 0 takes a free one: see NIC.Address.
	Listen string
	// Resolve returns that address of another machine. It must not wait.
	Resolve func(m rdma.MachineID) (address string, ok bool)
	// TLS secures these connections, over which keys of memory are handed out. It has the machine's certificate, and in RootCAs and
	// ClientCAs the authorities that certify the others'. With nil, anybody who reaches the port is handed keys.
	// What goes from card to card is neither encrypted nor authenticated in either case.
	TLS *tls.Config

	// Device is the name of the RDMA device, as ibv_devices lists it; "" is the first one.
	Device string
	// Port is the device's port, which count from 1; 0 is 1.
	Port int
	// GIDIndex is which of the port's GIDs the machine uses; with AnyGID the package takes the first of RoCE v2 that holds an IPv4
	// address, or else the first of all.
	GIDIndex int
	// TrafficClass goes into each packet: in networks that tell classes of traffic apart, it chooses the one for
	// which they are lossless.
	TrafficClass int
	// MTU is how many bytes a packet carries: 256, 512, 1024, 2048 or 4096; 0 is what the port has. Two machines use
	// the smaller of theirs.
	MTU int

	// receives is receiveDepth, except in tests.
	receives int
}

// AnyGID has the package choose a GID.
const AnyGID = -1

var errTLS = errors.New("verbs: TLS needs RootCAs and ClientCAs, and must verify: without them, the authorities of the system would let in strangers")

// check refuses what cannot be meant.
func (c *Config) check() error {
	switch {
	case c.TLS != nil && (c.TLS.RootCAs == nil || c.TLS.ClientCAs == nil || c.TLS.InsecureSkipVerify):
		return errTLS
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
