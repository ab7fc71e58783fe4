package main

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/farmsql/farmsql"
	"github.com/farmsql/farmsql/cluster/join"
	"github.com/farmsql/farmsql/cmd/farmsql/doctor"
	"github.com/farmsql/farmsql/internal/cli"
)

type doctorCommand struct {
	Data           string            `default:"./farmsql-data" placeholder:"FOLDER" help:"See farmsql serve (${default}); it need not exist."`
	Saves          string            `placeholder:"FOLDER" help:"See farmsql serve."`
	Machines       *int              `placeholder:"N" help:"See farmsql serve, as for the next three."`
	Replicas       *int              `placeholder:"N" help:"With --cluster it stands for the number of machines, unless there is a configuration."`
	Workers        *int              `placeholder:"N" help:"Workers per machine (${workers} on this computer)."`
	LogSize        *farmsql.Size     `placeholder:"SIZE" help:"Size of one transaction log."`
	Cluster        string            `placeholder:"URL" help:"See farmsql serve: examine also what a machine needs that is one of several processes."`
	Join           string            `placeholder:"TOKEN" help:"See farmsql serve, as for the next three: a machine of several hosts needs no shared memory, but an address, on TCP and UDP. The machine that the token names is reached for."`
	Transport      farmsql.Transport `placeholder:"NAME" help:"Certificates for tcp and verbs are not examined."`
	RDMADevice     string            `name:"rdma-device" placeholder:"NAME" help:"See farmsql serve, as for the next one: with --transport verbs."`
	RDMAPort       int               `name:"rdma-port" placeholder:"N" help:"The device's port (1)."`
	Advertise      string            `placeholder:"HOST:PORT" help:"Where it is not given, it is tried whether port ${peerPort} is free."`
	SharedFolder   string            `placeholder:"FOLDER" help:"See farmsql serve."`
	Listen         string            `default:"127.0.0.1:3306" placeholder:"HOST:PORT" help:"See farmsql serve (${default})."`
	MaxConnections int               `default:"1000" placeholder:"N" help:"See farmsql serve (${default})."`
	JSON           bool              `name:"json" help:"Print one JSON document a line, one for each check."`
}

// Help is shown by doctor --help.
func (doctorCommand) Help() string {
	return durability + `

Examines whether this computer has what farmsql serve needs with the same flags, as the same user, and
says of each thing what was found. Where that is a warning (farmsql runs, but slower, or with less
safety, than it could) or a problem (it does not start, or must not be relied on), it says what that
costs and what mends it. What only root could see is "not examined". Exits 0 if there is no problem,
and 1 otherwise. It changes nothing: it makes a file in the data folder, or where that will be, and
removes it, listens for a moment where clients will connect, and connects to the machine whose token
is given. As limits differ between a shell and a service, run it in the service, too:
systemd-run --pipe -p User=USER farmsql doctor.`
}

// Run examines the computer and prints what it found.
func (c *doctorCommand) Run(std cli.Streams) error {
	p, err := c.plan()
	if err != nil {
		return err
	}
	report := doctor.Examine(doctor.This(), p)
	if !c.JSON {
		report.Print(std.Out)
	} else if err := report.PrintJSON(std.Out); err != nil {
		return err
	}
	if n := report.Count(doctor.Problem); n > 0 {
		return fmt.Errorf("%s on this computer", plural(n, "problem", "problems"))
	}
	return nil
}

// plan returns what serve would do with these flags.
func (c *doctorCommand) plan() (p doctor.Plan, err error) {
	cfg := farmsql.Config{
		Folder: c.Data, Saves: c.Saves, Cluster: c.Cluster, Join: c.Join, Transport: c.Transport, Advertise: c.Advertise,
		SharedFolder: c.SharedFolder, RDMA: farmsql.RDMA{Device: c.RDMADevice, Port: c.RDMAPort}, MaxConnections: c.MaxConnections,
	}
	if c.Transport == farmsql.TransportTCP || c.Transport == farmsql.TransportVerbs {
		cfg.PeerTLS = new(tls.Config) // as if certificates were given
	}
	err = errors.Join(
		given("--machines", c.Machines, &cfg.Machines),
		given("--replicas", c.Replicas, &cfg.Replicas),
		given("--workers", c.Workers, &cfg.Workers),
		given("--log-size", c.LogSize, &cfg.LogSize),
	)
	if err != nil {
		return p, err
	}
	if c.MaxConnections == 0 {
		return p, cli.UsageError("--max-connections is 0")
	}
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		return p, listenFlagError(c.Listen)
	}
	if err := cfg.Validate(); err != nil {
		return p, cli.UsageError(err.Error())
	}
	asked, err := issuer(cfg)
	if err != nil {
		return p, err
	}
	l := layoutOf(cfg)
	return doctor.Plan{
		Data: c.Data, Saves: c.Saves, Listen: c.Listen,
		IsCluster: l.isCluster, Shared: cmp.Or(c.SharedFolder, sharedParent),
		IsTCP: l.isTCP, IsVerbs: l.isVerbs, Device: c.RDMADevice, Port: c.RDMAPort, Advertise: advertised(cfg), Identity: identityFolder(cfg), Issuer: asked,
		Machines: l.machines, Peers: l.peers, Workers: l.workers, LogBytes: l.logBytes,
		Exists: len(machineFolders(c.Data)) > 0,
		Files:  l.descriptors() + clientDescriptors(c.MaxConnections), FilesLeast: l.descriptors() + clientDescriptors(1),
		HeapLimit: func(memory, mapped int64) int64 {
			return int64(heapLimit(farmsql.Size(memory), farmsql.Size(mapped)))
		},
	}, nil
}

// advertised returns the address at which a machine of several hosts listens for the others.
// Without --advertise, the address has a port but no host: a machine that joins learns its host
// only when it connects.
func advertised(c farmsql.Config) string {
	if id := identityOf(c); id != nil && c.Advertise == "" {
		return id.Advertise
	}
	return cmp.Or(c.Advertise, ":"+join.DefaultPort)
}

// issuer returns the address of the machine that this machine asks to admit it, or "" if it need not ask.
func issuer(c farmsql.Config) (string, error) {
	if c.Join == "" || identityOf(c) != nil {
		return "", nil
	}
	token, err := join.ParseToken(c.Join)
	if err != nil {
		return "", cli.UsageError(fmt.Sprintf("--join: %v", err))
	}
	return token.Address, nil
}

// identityFolder returns the folder in which a machine keeps its identity, or "" if
// its flags state the identity.
func identityFolder(c farmsql.Config) string {
	if c.Cluster != farmsql.ClusterRaft && c.Join == "" && identityOf(c) == nil {
		return ""
	}
	own := filepath.Join(c.Folder, farmsql.PeerFolder)
	if _, err := os.Stat(own); err == nil || c.Saves == "" {
		return own
	}
	return filepath.Join(c.Saves, farmsql.PeerFolder)
}
