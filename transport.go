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
	"github.com/farmsql/farmsql/rdma/verbs"
)

// A Transport is how the machines of a cluster reach each other.
type Transport string

// The transports.
const (
	// TransportShm is memory that the processes of one host share.
	TransportShm Transport = "shm"
	// TransportTCP is TCP and, for leases and configurations, UDP, between hosts.
	TransportTCP Transport = "tcp"
	// TransportVerbs is RDMA cards, between hosts, in programs built with the tag verbs.
	TransportVerbs Transport = "verbs"
)

// checkTransport reports the first setting of the network between machines that cannot work.
func (c Config) checkTransport() error {
	switch {
	case c.Cluster == "" && (c.Transport != "" || c.SharedFolder != "" || c.Advertise != "" || c.PeerTLS != nil):
		return errors.New("farmsql: Transport, SharedFolder, Advertise or PeerTLS (--transport, --shared-folder, --advertise, --peer-ca) is given, and no Cluster (--cluster)")
	case c.Cluster == "":
		return nil
	case c.Transport != TransportShm && !c.Transport.isBetweenHosts():
		return fmt.Errorf("farmsql: Transport (--transport) is %q: must be %q, %q or %q", c.Transport, TransportShm, TransportTCP, TransportVerbs)
	case c.Transport != TransportVerbs && c.RDMA != RDMA{}:
		return errors.New("farmsql: RDMA (--rdma-device, --rdma-port, --rdma-gid) is given: it is for Transport (--transport) verbs")
	case c.Transport == TransportShm && (c.Advertise != "" || c.PeerTLS != nil):
		return errors.New("farmsql: Advertise or PeerTLS (--advertise, --peer-ca) is given: these are for Transport (--transport) tcp or verbs")
	case c.Transport == TransportVerbs:
		if _, err := c.RDMA.gidIndex(); err != nil {
			return err
		}
		if err := verbs.Available(); err != nil {
			return fmt.Errorf("farmsql: Transport (--transport) is %q: %w", TransportVerbs, err)
		}
	}
	if c.Transport.isBetweenHosts() {
		return c.checkHosts()
	}
	return nil
}

// isBetweenHosts reports whether machines may be on several hosts, and have addresses.
func (t Transport) isBetweenHosts() bool { return t == TransportTCP || t == TransportVerbs }

// checkHosts is checkTransport for transports between hosts.
func (c Config) checkHosts() error {
	host, port, err := net.SplitHostPort(c.Advertise)
	if number, bad := strconv.ParseUint(port, 10, 16); err != nil || host == "" || bad != nil || number == 0 {
		return fmt.Errorf("farmsql: Advertise (--advertise) is %q: with Transport (--transport) %s it must be HOST:PORT, where the other machines reach this one", c.Advertise, c.Transport)
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
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

var _ lease.Line = (*tcp.Line)(nil)

// A network is a machine's connection with the others of its cluster.
type network struct {
	nic     rdma.NIC
	address string // the address in the configuration: the transport, a colon, and where the machine is
	leases  func(e *call.Endpoint, cfg lease.Config) (lease.Keeper, error)
}

// join puts the machine on the network. book holds the addresses of the others. door, if not nil,
// accepts their connections.
func (c Config) join(book *addressBook, door net.Listener) (network, error) {
	switch c.Transport {
	case TransportTCP:
		return c.joinTCP(book, door)
	case TransportVerbs:
		return c.joinVerbs(book, door)
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
	log := peerLog{log: c.Logger, now: clock.System{}.Now}
	if err := peerport.CheckHost(c.Advertise); err != nil {
		return network{}, fmt.Errorf("farmsql: Advertise (--advertise): %w", err)
	}
	cfg := tcp.Config{
		Machine: rdma.MachineID(c.MachineID), Cluster: c.networkID(), Listen: c.Advertise, Listener: door, Advertise: c.Advertise,
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
		address: hostAddress(TransportTCP, c.Advertise),
		leases: func(e *call.Endpoint, cfg lease.Config) (lease.Keeper, error) {
			cfg.Log = c.Logger
			return lease.NewHosts(e, farm.KindLease, nic.Line(), cfg)
		},
	}, nil
}

// networkID names the cluster to machines of other clusters.
func (c Config) networkID() [16]byte {
	hash := sha256.Sum256([]byte(c.Cluster))
	return [16]byte(hash[:16])
}

// An RDMA says which card a machine uses. The zero value is the first device, its first port, and a GID that the program chooses.
type RDMA struct {
	Device string // the name that ibv_devices lists
	Port   int    // from 1
	GID    string // the index of the GID in decimal
}

// gidIndex returns the index of the GID.
func (r RDMA) gidIndex() (int, error) {
	if r.GID == "" {
		return verbs.AnyGID, nil
	}
	index, err := strconv.ParseUint(r.GID, 10, 8)
	if err != nil {
		return 0, fmt.Errorf("farmsql: RDMA.GID (--rdma-gid) is %q: must be the index of a GID, 0 to 255", r.GID)
	}
	return int(index), nil
}

// joinVerbs is join for TransportVerbs. Leases are calls, over datagrams of the card: the thread that keeps them over TCP has no card.
func (c Config) joinVerbs(book *addressBook, door net.Listener) (network, error) {
	gid, err := c.RDMA.gidIndex()
	if err != nil {
		return network{}, err
	}
	if err := peerport.CheckHost(c.Advertise); err != nil {
		return network{}, fmt.Errorf("farmsql: Advertise (--advertise): %w", err)
	}
	log := peerLog{log: c.Logger, now: clock.System{}.Now}
	cfg := verbs.Config{
		Machine: rdma.MachineID(c.MachineID), Cluster: c.networkID(), Listen: c.Advertise, Listener: door, Advertise: c.Advertise,
		Resolve: book.resolve, TLS: c.PeerTLS, Refused: log.refused, Unreached: log.unreached, Unpinned: log.unpinned,
		Device: c.RDMA.Device, Port: c.RDMA.Port, GIDIndex: gid,
	}
	if c.identity != nil { // the certificates name the machines
		cfg.Authorize = join.Authorize
	}
	nic, err := verbs.Join(cfg)
	if err != nil {
		return network{}, fmt.Errorf("farmsql: RDMA (--rdma-device, --rdma-port, --rdma-gid), Advertise (--advertise) %s: %w", c.Advertise, err)
	}
	return network{
		nic:     nic,
		address: hostAddress(TransportVerbs, c.Advertise),
		leases: func(e *call.Endpoint, cfg lease.Config) (lease.Keeper, error) {
			return lease.NewCalls(e, farm.KindLease, cfg), nil
		},
	}, nil
}
