package farmsql

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/farmsql/farmsql/cluster/join"
	"github.com/farmsql/farmsql/nvram"
)

// ClusterRaft is the Config.Cluster of machines that keep the configuration themselves, by Raft.
const ClusterRaft = "raft:"

// PeerFolder is the folder, in the data folder, of a machine's identity in such a cluster.
const PeerFolder = "peer"

// FirstTokenLife is how long the token of a new cluster can be used.
const FirstTokenLife = 24 * time.Hour

func (c Config) peerFolder() string { return filepath.Join(c.Folder, PeerFolder) }

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
	if id == nil {
		if id, err = c.begin(ctx); err != nil {
			return c, withPrefix("", err)
		}
	}
	return c.as(id)
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
	case c.Transport != "" && c.Transport != TransportTCP:
		return fmt.Errorf("farmsql: Transport (--transport) is %q: machines that keep the configuration themselves reach each other by %q", c.Transport, TransportTCP)
	case c.PeerTLS != nil:
		return errors.New("farmsql: PeerTLS (--peer-ca, --peer-cert, --peer-key) is given: a cluster that keeps its configuration itself certifies its machines itself")
	case c.MachineID != 0 && (id == nil || c.MachineID != int(id.Machine)):
		return errors.New("farmsql: MachineID (--machine-id) is given: a cluster that keeps its configuration itself numbers its machines itself")
	case id != nil && c.Advertise != "" && c.Advertise != id.Advertise:
		return fmt.Errorf("farmsql: Advertise (--advertise) was %s and is now %s: the machine's certificate, and the others' configuration store, are for its first address", id.Advertise, c.Advertise)
	}
	return nil
}

// begin makes a cluster, or joins one. It does so last, when nothing else is wrong with the settings,
// because a token is used up, and a number taken.
func (c Config) begin(ctx context.Context) (*join.Identity, error) {
	if err := c.checkNew(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(c.Folder, nvram.PrivateFolder); err != nil {
		return nil, err
	}
	if c.Join != "" {
		t, err := join.ParseToken(c.Join)
		if err != nil {
			return nil, fmt.Errorf("farmsql: Join (--join): %w", err)
		}
		return join.Ask(ctx, c.peerFolder(), t, c.Advertise)
	}
	s := c.settings()
	id, t, err := join.Found(c.peerFolder(), c.Advertise, s, FirstTokenLife)
	if err == nil && s.Founders > 1 && c.Invite != nil {
		c.Invite(t.String(), s.Founders-1)
	}
	return id, err
}

// checkNew checks the settings of a machine that is about to make a cluster or to join one, and that
// the folder is not of another instance.
func (c Config) checkNew() error {
	if hasConfiguration(c.Folder) {
		return fmt.Errorf("%w: %s has a database with a configuration of its own: give another folder (--data)", ErrOtherFolder, c.Folder)
	}
	if err := c.checkMemories(); err != nil {
		return err
	}
	if c.Join == "" && c.Advertise == "" {
		return errors.New("farmsql: Advertise (--advertise) is empty: the first machine of a cluster must say at which HOST:PORT the others reach it")
	}
	return c.Validate()
}

// provisional returns c with what a machine gets when it makes a cluster or joins one, if it is going
// to: so its other settings can be checked before. Other settings are returned as they are.
func (c Config) provisional() Config {
	if c.identity != nil || c.Cluster != ClusterRaft && c.Join == "" {
		return c
	}
	c.Cluster, c.MachineID, c.Transport = ClusterRaft, 0, TransportTCP
	c.Advertise = cmp.Or(c.Advertise, "localhost:"+join.DefaultPort)
	c.PeerTLS = new(tls.Config)
	return c
}

// settings returns those of the cluster that this machine makes. The configuration is kept by as many
// machines as a region has replicas, or one more if that is an even number.
func (c Config) settings() join.Settings {
	d := c.withDefaults()
	return join.Settings{
		Replicas: d.Replicas, Workers: d.Workers, RegionBytes: int64(d.RegionSize), LogBytes: int64(d.LogSize),
		Founders: d.Replicas | 1,
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

// like returns the settings of the machine with an identity, but for PeerTLS.
func (c Config) like(id *join.Identity) Config {
	c.identity = id
	c.Cluster = fmt.Sprintf("%s%016x", ClusterRaft, id.Cluster)
	c.MachineID, c.Transport, c.Advertise = int(id.Machine), TransportTCP, id.Advertise
	c.Replicas, c.Workers = cmp.Or(c.Replicas, id.Replicas), cmp.Or(c.Workers, id.Workers)
	c.RegionSize, c.LogSize = cmp.Or(c.RegionSize, Size(id.RegionBytes)), cmp.Or(c.LogSize, Size(id.LogBytes))
	return c
}
