package farmsql

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/cluster/join"
	"github.com/farmsql/farmsql/cluster/peerport"
	"github.com/farmsql/farmsql/cluster/raftstore"
	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/rdma"
)

// An ownStore is the configuration store of a cluster that keeps it itself, as one machine has
// it: the founders take part in it, the others ask them. Founders that are gone are replaced:
// see founders.go. An ownStore also has the port at which the machine is reached, and, at the
// issuer, admits new machines.
type ownStore struct {
	cfg     Config
	id      join.Identity // tend changes it, once it runs
	issuer  *join.Issuer  // nil if the machine admits no others
	refused func(from net.Addr, reason error)
	port    *peerport.Port
	ctx     context.Context // ends with the store
	cancel  context.CancelFunc
	running sync.WaitGroup
	applied atomic.Pointer[cluster.Configuration] // the configuration that this machine applied last; nil until there is one
	known   atomic.Pointer[raftstore.Founders]    // the newest that this machine knows
	// lacksSuccessor is set while no member can take a place among the founders, and tend has said so.
	lacksSuccessor bool
	// isRefused is set while the store refuses to have more founders, and tend has said so.
	isRefused bool
	// hasFailed is set once tend has said that this machine's part has ended. isSplit is set
	// once tend has said that another machine was refounded than the one that this one follows.
	hasFailed, isSplit bool
	rival              atomic.Pointer[sighting] // the last sighting of a rival

	mu struct {
		lockrank.Mutex[lockrank.Leaf]
		part   *raftstore.Store  // the part of this machine; nil if it has none
		client *raftstore.Client // nil if calls go to the part
	}
}

// A foundersStore is a part of the store, or a client.
type foundersStore interface {
	cluster.Store
	Founders() (raftstore.Founders, error)
	Forget(m rdma.MachineID) error
	Replace(by raftstore.Successor) error
	Want(n int) error
	Suspect(m rdma.MachineID)
}

// asked returns what calls go to: the client if there is one, otherwise the part. A successor has both, because its
// part has yet to get the log. asked returns nil until the store is open.
func (s *ownStore) asked() foundersStore {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.mu.client != nil:
		return s.mu.client
	case s.mu.part != nil:
		return s.mu.part
	}
	return nil
}

// suspect tells the store that this machine suspects another one: the founders then need not
// wait until the suspect's silence shows.
func (s *ownStore) suspect(m rdma.MachineID) {
	s.mu.Lock()
	part, client := s.mu.part, s.mu.client
	s.mu.Unlock()
	if part != nil {
		part.Suspect(m)
	}
	if client != nil {
		client.Suspect(m)
	}
}

// Load implements cluster.Store.
func (s *ownStore) Load() (*cluster.Configuration, error) {
	c, err := s.asked().Load()
	if errors.Is(err, raftstore.ErrRemoved) {
		if err := s.retire(); err != nil {
			return nil, err
		}
		c, err = s.asked().Load()
	}
	if err == nil && c != nil {
		err = s.checkLine(c.Line)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// CompareAndSwap implements cluster.Store. A swap that was under way when the machine was replaced may have
// been carried out.
func (s *ownStore) CompareAndSwap(old uint64, next *cluster.Configuration) error {
	err := s.asked().CompareAndSwap(old, next)
	if err == nil { // also for new regions, which do not change the configuration's number
		s.cfg.Logger.Info("configuration changed", "configuration", next.ID, "revision", next.Revision)
	}
	if !errors.Is(err, raftstore.ErrRemoved) {
		return err
	}
	if err := s.retire(); err != nil {
		return err
	}
	return fmt.Errorf("%w: %w", cluster.ErrUnreachable, err)
}

// Close implements cluster.Store.
func (s *ownStore) Close() error {
	s.cancel()
	s.mu.Lock()
	part, client := s.mu.part, s.mu.client
	s.mu.Unlock()
	var errs []error
	if client != nil {
		errs = append(errs, client.Close())
	}
	if part != nil {
		errs = append(errs, part.Close())
	}
	errs = append(errs, s.port.Close())
	s.running.Wait()
	return errors.Join(errs...)
}

// openOwnStore opens the port and the store. It waits until all founders have joined, if the cluster is
// new, and until a majority of them answers.
func (c Config) openOwnStore(ctx context.Context, o *Operator) (_ *ownStore, err error) {
	log := peerLog{log: c.Logger, now: clock.System{}.Now}
	refused := func(from net.Addr, reason error) {
		if !errors.Is(reason, peerport.ErrNobody) { // peers also connect before this machine is open, and after it has closed
			log.refused(from, reason)
		}
	}
	port, err := peerport.Open(c.Advertise, c.PeerTLS, refused)
	if err != nil {
		return nil, fmt.Errorf("farmsql: Advertise (--advertise) %s: %w", c.Advertise, err)
	}
	s := &ownStore{cfg: c, id: *c.identity, refused: refused, port: port}
	s.ctx, s.cancel = context.WithCancel(context.Background())
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
	if s.issuer, err = c.openIssuer(refused); err != nil {
		return nil, err
	}
	founders, err := s.awaitFounders(ctx, func(reason string) { waiting("waiting for other machines", errors.New(reason)) })
	if err != nil {
		return nil, err
	}
	if err := s.openStore(founders); err != nil {
		return nil, err
	}
	if f := s.current(); f.Version > 0 {
		s.know(f)
	}
	current, err := s.awaitMajority(ctx, func(reason error) {
		waiting("waiting for a majority of the machines that keep the configuration", reason)
	})
	if err != nil {
		return nil, err
	}
	if s.issuer != nil && c.identity.Store != nil { // otherwise awaitFounders has begun to admit machines
		// Reserve numbers only now: if the issuer's list is a copy, only the configuration has
		// all machines.
		s.issuer.Reserve(highest(current, s.newest()))
		s.admit()
	}
	o.store.Store(s)
	s.running.Go(s.tend)
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
func (s *ownStore) admit() {
	l := s.port.Listener(peerport.Join)
	s.running.Go(func() { s.issuer.Serve(l) })
}

// awaitFounders returns the founders. If the machine does not know them yet, it waits for them: the issuer
// by admitting them, the others by asking it.
func (s *ownStore) awaitFounders(ctx context.Context, waiting func(reason string)) (map[rdma.MachineID]string, error) {
	switch {
	case s.id.Store != nil:
		return s.id.Store, nil
	case s.issuer != nil:
		s.admit()
		return s.issuer.AwaitFounders(ctx, waiting)
	}
	return s.id.AwaitFounders(ctx, s.cfg.PeerTLS, waiting)
}

// highest returns the highest number of a machine that a configuration, which may be nil, or the founders know.
func highest(c *cluster.Configuration, f raftstore.Founders) (m rdma.MachineID) {
	m = f.Highest()
	if c == nil {
		return m
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

// openStore opens this machine's part of the store or, if it is not a founder, its access to
// it. A founder's part is created once, before the identity says that it exists: a part that
// was lost must not be created again, since its votes are forgotten. A successor has a part and
// a client: its own calls go to the others, as before.
func (s *ownStore) openStore(founders map[rdma.MachineID]string) error {
	if s.id.Store == nil {
		if s.id.IsFounder() {
			f := raftstore.Founding{Cluster: s.id.Cluster, Machine: s.id.Machine, Machines: founders}
			if err := raftstore.Create(s.partFolder(), f); err != nil && !errors.Is(err, raftstore.ErrCreated) {
				return err
			}
		}
		s.id.Store = founders
		if err := s.saveIdentity(); err != nil {
			return err
		}
	}
	current := s.current()
	hasPart := s.id.IsFounder() || s.id.IsSuccessor
	if hasPart && !slices.Contains(current.Removed, s.id.Machine) { // a part that was removed may find too few of those it knows
		err := s.openPart()
		if err == nil && (s.id.IsFounder() || s.isAlone()) {
			return nil
		}
		if err != nil && !errors.Is(err, raftstore.ErrRemoved) {
			return err
		}
	}
	return s.openClient(current)
}

// isAlone reports whether this machine alone keeps the configuration, since it was refounded:
// it must not ask the machines that it has left behind.
func (s *ownStore) isAlone() bool {
	f, err := s.ownPart().Founders()
	return err == nil && len(f.Machines) == 1 && f.Has(s.id.Machine)
}

func (s *ownStore) partFolder() string { return join.StoreFolder(s.cfg.peerFolder()) }

func (s *ownStore) saveIdentity() error { return s.id.Save(s.cfg.peerFolder()) }

// openPart opens this machine's part of the store.
func (s *ownStore) openPart() error {
	l, log := s.port.Listener(peerport.Store), s.cfg.Logger
	part, err := raftstore.Open(raftstore.Config{
		Folder: s.partFolder(), Listener: l, Dial: dialPeer, TLS: peerport.ClientConfig(s.cfg.PeerTLS, peerport.Store),
		Authorize: join.Authorize, Refused: s.refused, Rival: s.reportRival(clock.System{}.Now),
		Changed: func(revision uint64) { log.Info("configuration kept", "revision", revision) },
	})
	if err != nil {
		return errors.Join(err, l.Close())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.part = part
	return nil
}

// openClient opens the access of a machine that asks the founders, as it knows them.
func (s *ownStore) openClient(f raftstore.Founders) error {
	client, err := raftstore.NewClient(raftstore.ClientConfig{
		Cluster: s.id.Cluster, Machines: s.id.Store, Founders: f, Dial: dialPeer, TLS: peerport.ClientConfig(s.cfg.PeerTLS, peerport.Store),
	})
	if err != nil {
		return err
	}
	if !s.takeClient(client) {
		return client.Close() // another call was faster
	}
	return nil
}

// takeClient makes calls go to the client from now on, and reports whether there was none.
func (s *ownStore) takeClient(client *raftstore.Client) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.client != nil {
		return false
	}
	s.mu.client = client
	return true
}

// dialPeer connects to another machine.
func dialPeer(ctx context.Context, address string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", address)
}

// awaitMajority waits until the configuration can be read, and returns it. It calls waiting once if it has to wait,
// and then also asks the issuer: all founders that this machine knows may have been replaced.
func (s *ownStore) awaitMajority(ctx context.Context, waiting func(reason error)) (*cluster.Configuration, error) {
	for isFirst := true; ; isFirst = false {
		c, err := s.loadFirst()
		if err == nil || !errors.Is(err, cluster.ErrUnreachable) {
			return c, err
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if isFirst {
			waiting(err)
		}
		s.askIssuer(ctx)
	}
}

// loadFirst is Load before tend runs: it notes that the store was refounded.
func (s *ownStore) loadFirst() (*cluster.Configuration, error) {
	c, err := s.Load()
	if !errors.Is(err, errUnknownLine{}) {
		return c, err
	}
	f, err := s.asked().Founders()
	if err == nil {
		err = s.note(f)
	}
	if err != nil {
		return nil, ours(err)
	}
	c, err = s.Load()
	if errors.Is(err, errUnknownLine{}) {
		clock.System{}.Sleep(requestRetry) // the machine that was asked does not know yet, either
	}
	return c, err
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
