package farmsql

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/cluster/join"
	"github.com/farmsql/farmsql/cluster/peerport"
	"github.com/farmsql/farmsql/cluster/raftstore"
	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/rdma"
)

// raftFolder is the folder, in PeerFolder, of a machine's part of the configuration store.
const raftFolder = "store"

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
	refused := peerLog{log: c.Logger, now: clock.System{}.Now}
	port, err := peerport.Open(c.Advertise, c.PeerTLS, refused.refused)
	if err != nil {
		return nil, fmt.Errorf("farmsql: Advertise (--advertise) %s: %w", c.Advertise, err)
	}
	s := &ownStore{port: port}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	waiting := func(what string, reason error) {
		c.Logger.Info(what, "machine", c.MachineID, "reason", reason)
		o.failed(reason)
	}
	founders, err := s.awaitFounders(ctx, c, &refused, func(reason string) { waiting("waiting for other machines", errors.New(reason)) })
	if err != nil {
		return nil, err
	}
	if err := s.openStore(c, founders, &refused); err != nil {
		return nil, err
	}
	return s, s.awaitMajority(ctx, func(reason error) {
		waiting("waiting for a majority of the machines that keep the configuration", reason)
	})
}

// awaitFounders begins to admit machines, if this is the issuer, and returns the founders. The first
// time, it waits for them.
func (s *ownStore) awaitFounders(ctx context.Context, c Config, refused *peerLog, waiting func(reason string)) (map[rdma.MachineID]string, error) {
	if !join.IsIssuer(c.peerFolder()) {
		if c.identity.Store != nil {
			return c.identity.Store, nil
		}
		return c.identity.AwaitFounders(ctx, c.PeerTLS, waiting)
	}
	issuer, err := join.OpenIssuer(c.peerFolder(), c.identity, join.Events{
		Admitted: func(m rdma.MachineID, address string) { c.Logger.Info("machine joins", "peer", m, "address", address) },
		Refused:  refused.refused,
	})
	if err != nil {
		return nil, err
	}
	l := s.port.Listener(peerport.Join)
	s.admitting.Go(func() { issuer.Serve(l) })
	return issuer.AwaitFounders(ctx, waiting)
}

// openStore opens this machine's part of the store or, if it is not a founder, its access to it. A
// founder's part is created once: the store before the identity knows of it, because a part that was
// lost must not be created again, since its votes are forgotten.
func (s *ownStore) openStore(c Config, founders map[rdma.MachineID]string, refused *peerLog) (err error) {
	id, folder := *c.identity, filepath.Join(c.peerFolder(), raftFolder)
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
		s.Store, err = raftstore.Open(raftstore.Config{
			Folder: folder, Listener: s.port.Listener(peerport.Store), Dial: dialPeer, TLS: config, Refused: refused.refused,
		})
		return err
	}
	s.Store, err = raftstore.NewClient(raftstore.ClientConfig{Cluster: id.Cluster, Machines: founders, Dial: dialPeer, TLS: config})
	return err
}

// dialPeer connects to another machine.
func dialPeer(ctx context.Context, address string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", address)
}

// awaitMajority waits until the configuration can be read.
func (s *ownStore) awaitMajority(ctx context.Context, waiting func(reason error)) error {
	for isFirst := true; ; isFirst = false {
		_, err := s.Load()
		if err == nil || !errors.Is(err, cluster.ErrUnreachable) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if isFirst {
			waiting(err)
		}
	}
}

// NewToken returns a token with which as many machines as uses can join, within life, the cluster of the
// machine whose data folder is given. That must be the first machine of a cluster with ClusterRaft. It
// may be running, and machines can join only while it runs.
func NewToken(folder string, uses int, life time.Duration) (string, error) {
	t, err := join.NewToken(filepath.Join(folder, PeerFolder), uses, life)
	if err != nil {
		return "", withPrefix("", err)
	}
	return t.String(), nil
}
