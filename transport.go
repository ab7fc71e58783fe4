package farmsql

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/farmsql/farmsql/cluster/join"
	"github.com/farmsql/farmsql/cluster/lease"
	"github.com/farmsql/farmsql/cluster/peerport"
	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
	"github.com/farmsql/farmsql/rdma/shm"
	"github.com/farmsql/farmsql/rdma/tcp"
)

// A Transport is how the machines of a cluster reach each other.
type Transport string

// The transports.
const (
	// TransportShm is memory that the processes of one host share.
	TransportShm Transport = "shm"
	// TransportTCP is TCP and, for leases and configurations, UDP, between hosts.
	TransportTCP Transport = "tcp"
)

// checkTransport reports the first setting of the network between machines that cannot work.
func (c Config) checkTransport() error {
	switch {
	case c.Cluster == "" && (c.Transport != "" || c.SharedFolder != "" || c.Advertise != "" || c.PeerTLS != nil):
		return errors.New("farmsql: Transport, SharedFolder, Advertise or PeerTLS (--transport, --shared-folder, --advertise, --peer-ca) is given, and no Cluster (--cluster)")
	case c.Cluster == "":
		return nil
	case c.Transport == "verbs":
		return fmt.Errorf("farmsql: Transport (--transport) is \"verbs\", RDMA cards: no database can use them yet, because a card pins all of a region's memory when that is registered, and keeps pages that are given back; between hosts, use %q", TransportTCP)
	case c.Transport != TransportShm && c.Transport != TransportTCP:
		return fmt.Errorf("farmsql: Transport (--transport) is %q: must be %q or %q", c.Transport, TransportShm, TransportTCP)
	case c.Transport == TransportShm && (c.Advertise != "" || c.PeerTLS != nil):
		return errors.New("farmsql: Advertise or PeerTLS (--advertise, --peer-ca) is given: these are for Transport (--transport) tcp")
	case c.Transport == TransportTCP:
		return c.checkTCP()
	}
	return nil
}

// checkTCP is checkTransport for TransportTCP.
func (c Config) checkTCP() error {
	host, port, err := net.SplitHostPort(c.Advertise)
	if number, bad := strconv.ParseUint(port, 10, 16); err != nil || host == "" || bad != nil || number == 0 {
		return fmt.Errorf("farmsql: Advertise (--advertise) is %q: with Transport (--transport) tcp it must be HOST:PORT, where the other machines reach this one", c.Advertise)
	}
	isLocal := isLoopback(host)
	switch {
	case c.SharedFolder != "":
		return errors.New("farmsql: SharedFolder (--shared-folder) is given: it is for Transport (--transport) shm")
	case !isLocal && strings.HasPrefix(c.Cluster, "file://"):
		return fmt.Errorf("farmsql: Cluster (--cluster) is %s: machines of several hosts need zk://HOST:PORT,HOST:PORT/PATH; a file is for machines of one host, which advertise a loopback address", c.Cluster)
	case !isLocal && c.PeerTLS == nil:
		return fmt.Errorf("farmsql: PeerTLS (--peer-ca, --peer-cert, --peer-key) is missing: whoever reaches %s could read and change all data; it may be missing only with a loopback address", c.Advertise)
	}
	return nil
}

// isLoopback reports whether a host is certainly this one.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

var _ lease.Line = (*tcp.Line)(nil)

// A network is a machine's connection with the others of its cluster.
type network struct {
	nic     rdma.NIC
	address string // for the configuration: the transport, a colon, and where the machine is
	leases  func(e *call.Endpoint, cfg lease.Config) (lease.Keeper, error)
}

// join puts the machine on the network. book holds the addresses of the others. door, if not nil,
// accepts their connections.
func (c Config) join(book *addressBook, door net.Listener) (network, error) {
	if c.Transport == TransportTCP {
		return c.joinTCP(book, door)
	}
	return c.joinShm()
}

func (c Config) joinShm() (network, error) {
	if c.SharedFolder == "" { // remove the folders that killed machines of other clusters have left
		if err := shm.Sweep(fmt.Sprintf("%s/farmsql-%d-*", sharedParent, os.Getuid())); err != nil {
			c.Logger.Warn("folders that nobody uses are left", "error", err)
		}
	}
	nic, err := shm.Join(c.sharedFolder(), rdma.MachineID(c.MachineID))
	if err != nil {
		return network{}, err
	}
	return network{
		nic:     nic,
		address: fmt.Sprintf("%s:%s/%d", TransportShm, c.sharedFolder(), c.MachineID),
		leases: func(e *call.Endpoint, cfg lease.Config) (lease.Keeper, error) {
			return lease.New(c.clusterHash(), e, farm.KindLease, cfg)
		},
	}, nil
}

// joinTCP is join for TransportTCP. The thread that keeps the leases has a line of its own to other hosts.
func (c Config) joinTCP(book *addressBook, door net.Listener) (network, error) {
	hash := sha256.Sum256([]byte(c.Cluster))
	log := peerLog{log: c.Logger, now: clock.System{}.Now}
	if err := peerport.CheckHost(c.Advertise); err != nil {
		return network{}, fmt.Errorf("farmsql: Advertise (--advertise): %w", err)
	}
	cfg := tcp.Config{
		Machine: rdma.MachineID(c.MachineID), Cluster: [16]byte(hash[:16]), Listen: c.Advertise, Listener: door, Advertise: c.Advertise,
		Resolve: book.resolve, TLS: c.PeerTLS, Refused: log.refused, Unreached: log.unreached, Silent: log.silent,
		Line: lease.HaveThread,
	}
	if c.identity != nil { // the certificates name the machines
		cfg.Authorize = join.Authorize
	}
	nic, err := tcp.Join(cfg)
	if err != nil {
		return network{}, fmt.Errorf("farmsql: Advertise (--advertise) %s: %w", c.Advertise, err)
	}
	return network{
		nic:     nic,
		address: tcpAddress(c.Advertise),
		leases: func(e *call.Endpoint, cfg lease.Config) (lease.Keeper, error) {
			cfg.Log = c.Logger
			return lease.NewHosts(e, farm.KindLease, nic.Line(), cfg)
		},
	}, nil
}
