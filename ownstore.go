package farmsql

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/cluster/join"
	"github.com/farmsql/farmsql/cluster/peerport"
	"github.com/farmsql/farmsql/cluster/raftstore"
	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/rdma"
)

// An ownStore is the configuration store of a cluster that keeps it itself, as one machine has it: the
// founders take part in it, the others ask them. With it go the port at which the machine is reached
// and, at the issuer, the admission of new machines.
type ownStore struct {
	cluster.Store // nil until it is open
	port          *peerport.Port
	admitting     sync.WaitGroup
}

// Close implements cluster.Store.
func (s *ownStore) Close() error {
	var errs []error
	if s.Store != nil {
		errs = append(errs, s.Store.Close())
	}
	errs = append(errs, s.port.Close())
	s.admitting.Wait()
	return errors.Join(errs...)
}

// openOwnStore opens the port and the store. It waits until all founders have joined, if the cluster is
// new, and until a majority of them answers.
func (c Config) openOwnStore(ctx context.Context, o *Operator) (_ *ownStore, err error) {
	log := peerLog{log: c.Logger, now: clock.System{}.Now}
	refused := func(from net.Addr, reason error) {
		if !errors.Is(reason, peerport.ErrNobody) { // peers knock before this machine is open, and after it
			log.refused(from, reason)
		}
	}
	port, err := peerport.Open(c.Advertise, c.PeerTLS, refused)
	if err != nil {
		return nil, fmt.Errorf("farmsql: Advertise (--advertise) %s: %w", c.Advertise, err)
	}
	s := &ownStore{port: port}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	c.warnOfTmpfs()
	waiting := func(what string, reason error) {
		c.Logger.Info(what, "machine", c.MachineID, "reason", reason)
		o.failed(reason)
	}
	issuer, err := c.openIssuer(refused)
	if err != nil {
		return nil, err
	}
	founders, err := s.awaitFounders(ctx, c, issuer, func(reason string) { waiting("waiting for other machines", errors.New(reason)) })
	if err != nil {
		return nil, err
	}
	if err := s.openStore(c, founders, refused); err != nil {
		return nil, err
	}
	current, err := s.awaitMajority(ctx, func(reason error) {
		waiting("waiting for a majority of the machines that keep the configuration", reason)
	})
	if err != nil {
		return nil, err
	}
	if issuer != nil && c.identity.Store != nil {
		// Now, because only the configuration has all machines if the issuer's list is a copy.
		issuer.Reserve(highest(current))
		s.admit(issuer)
	}
	return s, nil
}

// warnOfTmpfs warns if the machine's identity, votes and keys are on a tmpfs.
func (c Config) warnOfTmpfs() {
	var fs unix.Statfs_t
	if err := unix.Statfs(c.peerFolder(), &fs); err == nil && fs.Type == unix.TMPFS_MAGIC {
		c.Logger.Warn("a power cut takes away who this machine is, and its part of the configuration: give --saves a folder on a disk before the machine first starts, or keep the folder there",
			"folder", c.peerFolder())
	}
}

// openIssuer returns the issuer of a machine that admits others, otherwise nil.
func (c Config) openIssuer(refused func(from net.Addr, reason error)) (*join.Issuer, error) {
	if !join.IsIssuer(c.peerFolder()) {
		return nil, nil
	}
	return join.OpenIssuer(c.peerFolder(), c.identity, join.Events{
		Admitted: func(m rdma.MachineID, address string) { c.Logger.Info("machine joins", "peer", m, "address", address) },
		Refused:  refused,
	})
}

// admit begins to admit machines. It is called once.
func (s *ownStore) admit(i *join.Issuer) {
	l := s.port.Listener(peerport.Join)
	s.admitting.Go(func() { i.Serve(l) })
}

// awaitFounders returns the founders. If the machine does not know them yet, it waits for them: the issuer
// by admitting them, the others by asking it.
func (s *ownStore) awaitFounders(ctx context.Context, c Config, issuer *join.Issuer, waiting func(reason string)) (map[rdma.MachineID]string, error) {
	switch {
	case c.identity.Store != nil:
		return c.identity.Store, nil
	case issuer != nil:
		s.admit(issuer)
		return issuer.AwaitFounders(ctx, waiting)
	}
	return c.identity.AwaitFounders(ctx, c.PeerTLS, waiting)
}

// highest returns the highest number of a machine that a configuration, which may be nil, knows.
func highest(c *cluster.Configuration) (m rdma.MachineID) {
	if c == nil {
		return 0
	}
	for _, member := range c.Machines {
		m = max(m, member)
	}
	for _, p := range c.Regions {
		for _, away := range slices.Concat(p.Away, p.Before) {
			m = max(m, away.Machine)
		}
	}
	return m
}

// openStore opens this machine's part of the store or, if it is not a founder, its access to it. A
// founder's part is created once: the store before the identity knows of it, because a part that was
// lost must not be created again, since its votes are forgotten.
func (s *ownStore) openStore(c Config, founders map[rdma.MachineID]string, refused func(from net.Addr, reason error)) (err error) {
	id, folder := *c.identity, join.StoreFolder(c.peerFolder())
	if id.Store == nil {
		if id.IsFounder() {
			f := raftstore.Founding{Cluster: id.Cluster, Machine: id.Machine, Machines: founders}
			if err := raftstore.Create(folder, f); err != nil && !errors.Is(err, raftstore.ErrCreated) {
				return err
			}
		}
		id.Store = founders
		if err := id.Save(c.peerFolder()); err != nil {
			return err
		}
	}
	config := peerport.ClientConfig(c.PeerTLS, peerport.Store)
	if id.IsFounder() {
		part, err := raftstore.Open(raftstore.Config{
			Folder: folder, Listener: s.port.Listener(peerport.Store), Dial: dialPeer, TLS: config, Authorize: join.Authorize, Refused: refused,
		})
		if err == nil { // a nil *raftstore.Store would not be a nil cluster.Store
			s.Store = part
		}
		return err
	}
	client, err := raftstore.NewClient(raftstore.ClientConfig{Cluster: id.Cluster, Machines: founders, Dial: dialPeer, TLS: config})
	if err == nil {
		s.Store = client
	}
	return err
}

// dialPeer connects to another machine.
func dialPeer(ctx context.Context, address string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", address)
}

// awaitMajority waits until the configuration can be read, and returns it.
func (s *ownStore) awaitMajority(ctx context.Context, waiting func(reason error)) (*cluster.Configuration, error) {
	for isFirst := true; ; isFirst = false {
		c, err := s.Load()
		if err == nil || !errors.Is(err, cluster.ErrUnreachable) {
			return c, err
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if isFirst {
			waiting(err)
		}
	}
}

// NewToken returns a token with which as many machines as uses can join, within life, the cluster of the
// machine whose folder is given: the data folder, or Config.Saves if that was given when the machine was
// made. It must be the first machine of a cluster with ClusterRaft. It may be running, and machines can
// join only while it runs.
func NewToken(folder string, uses int, life time.Duration) (string, error) {
	t, err := join.NewToken(filepath.Join(folder, PeerFolder), uses, life)
	if err != nil {
		return "", withPrefix("", err)
	}
	return t.String(), nil
}
