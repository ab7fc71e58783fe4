package farmsql

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/farmsql/farmsql/cluster/join"
	"github.com/farmsql/farmsql/cluster/peerport"
	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/nvram"
)

// ClusterRaft is the Config.Cluster of machines that keep the configuration themselves, by Raft.
const ClusterRaft = "raft:"

// PeerFolder is the folder, in the data folder, of a machine's identity in such a cluster.
const PeerFolder = "peer"

// FirstTokenLife is how long the token of a new cluster can be used.
const FirstTokenLife = 24 * time.Hour

// peerFolder returns the folder of the machine's identity, with its votes and keys. It is in
// Saves, if that is given, because it must survive a power failure, unless the data folder has
// it already.
func (c Config) peerFolder() string {
	own := filepath.Join(c.Folder, PeerFolder)
	if _, err := os.Stat(own); err == nil || c.Saves == "" {
		return own
	}
	return filepath.Join(c.Saves, PeerFolder)
}

// hasIdentity reports whether the machine is one of a cluster that keeps the configuration itself.
func (c Config) hasIdentity() bool {
	if c.Folder == "" {
		return false
	}
	id, err := join.Load(c.peerFolder())
	return err != nil || id != nil // opening the identity reports an error
}

// identify completes the settings of a machine of a cluster that keeps the configuration itself. It
// reads from the folder who the machine is or, if the folder does not say, makes the cluster (Cluster is
// ClusterRaft) or joins it (Join). It returns other settings as they are.
func (c Config) identify(ctx context.Context) (Config, error) {
	if c.Folder == "" {
		if c.Cluster == ClusterRaft || c.Join != "" {
			return c, errors.New("farmsql: Folder (--data) is empty: with Cluster (--cluster) raft: or Join (--join) a machine keeps there who it is")
		}
		return c, nil
	}
	id, err := join.Load(c.peerFolder())
	if err != nil {
		return c, withPrefix("", err)
	}
	if id == nil && c.Cluster != ClusterRaft && c.Join == "" {
		return c, nil
	}
	if err := c.checkIdentity(id); err != nil {
		return c, err
	}
	if id == nil || c.isMoving(id) {
		if id, err = c.begin(ctx, id); err != nil {
			return c, withPrefix("", err)
		}
	}
	if err := c.checkSettings(id); err != nil {
		return c, err
	}
	return c.as(id)
}

// checkSettings reports the first setting that differs from the cluster's, which its first machine has
// decided: the machine that begins the instance must not decide anew. The number of replicas is compared only as long as
// machines are missing: afterwards it may have changed, and a service that goes on giving the former one must not fail.
func (c Config) checkSettings(id *join.Identity) error {
	for _, s := range []struct {
		name       string
		given, was any
		isGiven    bool
	}{
		{"Replicas (--replicas)", c.Replicas, id.Replicas, c.Replicas != 0 && id.Store == nil},
		{"Workers (--workers)", c.Workers, id.Workers, c.Workers != 0},
		{"RegionSize (--region-size)", c.RegionSize, Size(id.RegionBytes), c.RegionSize != 0},
		{"LogSize (--log-size)", c.LogSize, Size(id.LogBytes), c.LogSize != 0},
	} {
		if s.isGiven && s.given != s.was {
			return fmt.Errorf("farmsql: %w: %s is %v, and %v in the cluster of this machine: leave it out", farm.ErrMismatch, s.name, s.given, s.was)
		}
	}
	if c.Replicas < 0 || c.Replicas > machinesMax {
		return fmt.Errorf("farmsql: Replicas (--replicas) is %d: must be 1 to %d", c.Replicas, machinesMax)
	}
	return nil
}

// checkIdentity reports the first setting that a machine of a cluster that keeps the configuration itself
// cannot have. id is nil if the machine is new.
func (c Config) checkIdentity(id *join.Identity) error {
	switch {
	case c.Cluster != "" && c.Cluster != ClusterRaft && id != nil:
		return fmt.Errorf("farmsql: Cluster (--cluster) is %s: the machine of this folder is of a cluster that keeps its configuration itself: give %s, or nothing", c.Cluster, ClusterRaft)
	case c.Cluster != "" && c.Cluster != ClusterRaft:
		return fmt.Errorf("farmsql: Join (--join) is given, and Cluster (--cluster) %s: a token is for a cluster that keeps its configuration itself", c.Cluster)
	case c.Cluster == ClusterRaft && c.Join != "" && id == nil:
		return errors.New("farmsql: Cluster (--cluster) raft: makes a cluster, and Join (--join) joins another: give one of them")
	case c.Transport != "" && !c.Transport.isBetweenHosts():
		return fmt.Errorf("farmsql: Transport (--transport) is %q: machines that keep the configuration themselves reach each other by %q or %q", c.Transport, TransportTCP, TransportVerbs)
	case c.PeerTLS != nil:
		return errors.New("farmsql: PeerTLS (--peer-ca, --peer-cert, --peer-key) is given: a cluster that keeps its configuration itself certifies its machines itself")
	case c.MachineID != 0 && (id == nil || c.MachineID != int(id.Machine)):
		return errors.New("farmsql: MachineID (--machine-id) is given: a cluster that keeps its configuration itself numbers its machines itself")
	case id != nil && c.isMoving(id):
		return c.checkToken()
	case id != nil && c.Advertise != "" && c.Advertise != id.Advertise && id.Store == nil:
		return fmt.Errorf("farmsql: Advertise (--advertise) was %s and is now %s: as long as machines are missing, one that joins may change it, with its token (--join); the first machine must remove %s, and make the cluster anew",
			id.Advertise, c.Advertise, c.peerFolder())
	case id != nil && c.Advertise != "" && c.Advertise != id.Advertise:
		return fmt.Errorf("farmsql: Advertise (--advertise) was %s and is now %s: the machine's certificate, and the others' configuration store, are for its first address", id.Advertise, c.Advertise)
	case id != nil && c.Join != "":
		return c.checkToken()
	}
	return nil
}

// isMoving reports whether a machine that joins is given another address than before. It may have one while
// machines are missing, since only the issuer has been told its address.
func (c Config) isMoving(id *join.Identity) bool {
	return id.Store == nil && c.Join != "" && c.Advertise != "" && c.Advertise != id.Advertise && !join.IsIssuer(c.peerFolder())
}

// checkToken reports an error if Join is not a token of the machine's cluster.
func (c Config) checkToken() error {
	t, err := join.ParseToken(c.Join)
	if err != nil {
		return fmt.Errorf("farmsql: Join (--join): %w", err)
	}
	if isOfCluster, err := t.IsOf(c.peerFolder()); err != nil || !isOfCluster {
		return withPrefix("", errors.Join(fmt.Errorf("%w: Join (--join) is a token of another cluster than that of %s", ErrOtherFolder, c.peerFolder()), err))
	}
	return nil
}

// begin makes a cluster, or joins one; known is nil unless the machine is moving. It checks all other
// settings before, because afterwards a token is used up, and a number taken.
func (c Config) begin(ctx context.Context, known *join.Identity) (*join.Identity, error) {
	if err := c.checkNew(); err != nil {
		return nil, err
	}
	folder := c.peerFolder()
	if err := os.MkdirAll(folder, nvram.PrivateFolder); err != nil {
		return nil, err
	}
	unlock, err := lockNewFolder(folder)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if id, err := join.Load(folder); err != nil || (id != nil && known == nil) { // another process has been faster
		return id, err
	}
	if c.Join != "" {
		t, err := join.ParseToken(c.Join)
		if err != nil {
			return nil, fmt.Errorf("farmsql: Join (--join): %w", err)
		}
		return join.Ask(ctx, folder, t, c.Advertise, func(reason error) {
			c.Logger.Info("waiting for the machine that admits others", "reason", reason)
		})
	}
	if err := peerport.CheckHost(c.Advertise); err != nil { // before a token names the address
		return nil, fmt.Errorf("farmsql: Advertise (--advertise): %w", err)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", c.Advertise)
	if err != nil {
		return nil, fmt.Errorf("farmsql: Advertise (--advertise): %w", err)
	}
	if err := l.Close(); err != nil {
		return nil, err
	}
	s := c.settings()
	id, t, err := join.Found(folder, c.Advertise, s, FirstTokenLife)
	if err == nil && s.Founders > 1 && c.Invite != nil {
		c.Invite(t.String(), s.Founders-1)
	}
	return id, err
}

// lockNewFolder locks the folder of a new machine until unlock is called or the process ends, so that two
// processes do not become two machines in one folder.
func lockNewFolder(folder string) (unlock func(), err error) {
	d, err := os.Open(folder)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(d.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("farmsql: another process is making a machine in %s", folder), d.Close())
	}
	return func() { _ = d.Close() }, nil
}

// checkNew checks the settings of a machine that is about to make a cluster or to join one, and that
// the folder is not of another instance.
func (c Config) checkNew() error {
	for _, folder := range []string{c.Folder, c.Saves} {
		if folder != "" && hasConfiguration(folder) {
			return fmt.Errorf("%w: %s has a database with a configuration of its own: give another folder (--data, --saves)", ErrOtherFolder, folder)
		}
	}
	if err := c.checkMemories(); err != nil {
		return err
	}
	// A power failure has taken the folder of the machine, or it was removed: that machine's
	// save is of no use to a new one.
	if saved, err := filepath.Glob(filepath.Join(c.Saves, machinePrefix+"*")); c.Saves != "" && (err != nil || len(saved) > 0) {
		return fmt.Errorf("%w: %s has a save of a machine, and %s is not there: put it back, or give another folder (--saves)", ErrOtherFolder, c.Saves, c.peerFolder())
	}
	if c.Join == "" && c.Advertise == "" {
		return errors.New("farmsql: Advertise (--advertise) is empty: the first machine of a cluster must say at which HOST:PORT the others reach it")
	}
	return c.Validate()
}

// provisional returns c with stand-ins for what a machine of a cluster with ClusterRaft gets when it makes the
// cluster, joins it, or reads its identity, if that is still to come: so its other settings can be checked before. For other
// machines it returns c as it is.
func (c Config) provisional() Config {
	keepsItself := c.Cluster == ClusterRaft || c.Join != "" || (c.Cluster == "" && c.hasIdentity()) // of a cluster with ClusterRaft
	if c.identity != nil || !keepsItself {
		return c
	}
	c.Cluster, c.MachineID, c.Transport = ClusterRaft, 0, cmp.Or(c.Transport, TransportTCP)
	c.Advertise = cmp.Or(c.Advertise, "localhost:"+join.DefaultPort)
	c.PeerTLS = new(tls.Config)
	return c
}

// settings returns the settings of the cluster that this machine makes. The configuration is
// kept by as many machines as a region has replicas, or one more if that is an even number.
func (c Config) settings() join.Settings {
	d := c.withDefaults()
	return join.Settings{
		Replicas: d.Replicas, Workers: d.Workers, RegionBytes: int64(d.RegionSize), LogBytes: int64(d.LogSize),
		Founders: foundersFor(d.Replicas),
	}
}

// as returns the settings of the machine with an identity.
func (c Config) as(id *join.Identity) (Config, error) {
	var err error
	if c.PeerTLS, err = join.TLS(c.peerFolder()); err != nil {
		return c, withPrefix("", err)
	}
	return c.like(id), nil
}

// like returns the settings of the machine with an identity, except PeerTLS.
func (c Config) like(id *join.Identity) Config {
	c.identity = id
	c.Cluster = fmt.Sprintf("%s%016x", ClusterRaft, id.Cluster)
	c.MachineID, c.Transport, c.Advertise = int(id.Machine), cmp.Or(c.Transport, TransportTCP), id.Advertise
	c.Replicas, c.Workers = id.Replicas, cmp.Or(c.Workers, id.Workers)
	c.RegionSize, c.LogSize = cmp.Or(c.RegionSize, Size(id.RegionBytes)), cmp.Or(c.LogSize, Size(id.LogBytes))
	return c
}
