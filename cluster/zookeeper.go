package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/go-zookeeper/zk"
)

// ErrUnreachable means that no server of the ensemble that keeps the configuration answers, or
// too few of the machines that keep it themselves (package raftstore).
var ErrUnreachable = errors.New("cluster: ZooKeeper does not answer")

// ErrTooLarge means that a configuration is larger than its store can keep.
var ErrTooLarge = errors.New("cluster: the configuration is too large for ZooKeeper")

const (
	// zooKeeperBytesMax is how much a znode can hold: jute.maxbuffer is 1 MB by default, which
	// includes the request's own fields.
	zooKeeperBytesMax = 1<<20 - 1<<10
	// sessionTimeout determines how long a server may take to answer a new connection: 20/3 of it.
	// Nothing here depends on the session itself, whose length the server chooses.
	sessionTimeout = 300 * time.Millisecond
	// zooKeeperTries is how often an operation is attempted when connections break; each attempt
	// takes about a second.
	zooKeeperTries = 5
	// openTries is how often openZooKeeper asks for a first answer, about a second apart. If a
	// server accepts connections, it asks up to openTriesMax times: a starting server refuses
	// sessions for a while, and a busy server answers late.
	openTries, openTriesMax = 3, 5
)

// A ZooKeeperStore keeps the configuration in a znode. Compare and swap is
// ZooKeeper's own, on the version of the znode (SOSP'15 section 5.2 step 3).
type ZooKeeperStore struct {
	url  string
	path string
	conn zooKeeper

	mu      lockrank.Mutex[lockrank.Leaf]
	current seen
}

// seen caches the known state of the znode, which saves requests.
type seen struct {
	revision uint64 // 0: no configuration, or not known
	version  int32
}

// zooKeeper is the part of *zk.Conn that ZooKeeperStore uses.
type zooKeeper interface {
	Get(path string) ([]byte, *zk.Stat, error)
	Set(path string, data []byte, version int32) (*zk.Stat, error)
	Create(path string, data []byte, flags int32, acl []zk.ACL) (string, error)
	Close()
}

// dialer stores why the last connection failed, which zk.Conn does not report, or nil if it succeeded.
type dialer struct{ last atomic.Pointer[error] }

// dial connects like net.DialTimeout, and keeps the last error for unreachable.
func (d *dialer) dial(network, address string, timeout time.Duration) (net.Conn, error) {
	c, err := net.DialTimeout(network, address, timeout)
	if err != nil {
		d.last.Store(&err)
	} else {
		d.last.Store(nil)
	}
	return c, err
}

// unreachable returns the error that no server answers, with the reason if it is known.
func (d *dialer) unreachable(url string, err error) error {
	if last := d.last.Load(); last != nil {
		err = *last
	}
	return fmt.Errorf("%w at --cluster %s: %v; is the address right, and is ZooKeeper running?", ErrUnreachable, url, err)
}

type silent struct{}

func (silent) Printf(string, ...any) {}

func openZooKeeper(url string, servers []string, path string) (Store, error) {
	var d dialer
	conn, _, err := zk.Connect(servers, sessionTimeout, zk.WithDialer(d.dial), zk.WithLogger(silent{}), zk.WithLogInfo(false))
	if err != nil {
		return nil, d.unreachable(url, err)
	}
	for try := 0; try < openTries || (try < openTriesMax && d.last.Load() == nil); try++ {
		if _, _, err = conn.Get(path); err == nil || errors.Is(err, zk.ErrNoNode) {
			return &ZooKeeperStore{url: url, path: path, conn: conn}, nil
		}
	}
	conn.Close()
	return nil, d.unreachable(url, err)
}

// Close implements Store.
func (s *ZooKeeperStore) Close() error {
	s.conn.Close()
	return nil
}

// Load implements Store.
func (s *ZooKeeperStore) Load() (*Configuration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	for range zooKeeperTries {
		var c *Configuration
		if c, _, err = s.get(); !connectionLost(err) {
			return c, err
		}
	}
	return nil, err
}

// get returns the configuration, or nil, and its encoding.
func (s *ZooKeeperStore) get() (*Configuration, []byte, error) {
	s.current = seen{}
	b, stat, err := s.conn.Get(s.path)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, s.failed("read", err)
	}
	s.current.version = stat.Version
	if len(b) == 0 { // created by hand, or created and not written yet
		return nil, nil, nil
	}
	c, err := Decode(s.url, b)
	if err != nil {
		return nil, nil, err
	}
	s.current = seen{c.Revision, stat.Version}
	return c, b, nil
}

// CompareAndSwap implements Store. When a connection is lost, ZooKeeper may or may not have carried
// out the operation: the content of the znode then decides.
func (s *ZooKeeperStore) CompareAndSwap(old uint64, next *Configuration) error {
	b := next.Encode()
	if len(b) > zooKeeperBytesMax {
		return fmt.Errorf("%w: %d regions take %d bytes, a znode has %d; use larger regions, or keep it in a file",
			ErrTooLarge, len(next.Regions), len(b), zooKeeperBytesMax)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	lost := false // an attempt's answer was lost
	var err error
	for range zooKeeperTries {
		var done bool
		done, err = s.attempt(old, next.Revision, b, lost)
		if done {
			return nil
		}
		if !connectionLost(err) {
			return err
		}
		lost = true
	}
	return err
}

// attempt tries to swap once. lost means that the answer to an earlier attempt was lost: the earlier
// attempt may have succeeded.
func (s *ZooKeeperStore) attempt(old, revision uint64, b []byte, lost bool) (done bool, err error) {
	if old == 0 || s.current.revision != old {
		c, stored, err := s.get()
		switch {
		case err != nil:
			return false, err
		case lost && bytes.Equal(stored, b):
			return true, nil
		case c.revision() != old:
			return false, ErrMoved
		}
	}
	version := s.current.version
	s.current = seen{}
	if old == 0 {
		if err := s.create(); err != nil {
			return false, err
		}
	}
	stat, err := s.conn.Set(s.path, b, version)
	switch {
	case errors.Is(err, zk.ErrBadVersion) && lost:
		// Perhaps the lost attempt has succeeded just now. The caller tries again, and reads the znode.
		return false, s.failed("write", zk.ErrConnectionClosed)
	case errors.Is(err, zk.ErrBadVersion), errors.Is(err, zk.ErrNoNode):
		return false, ErrMoved
	case err != nil:
		return false, s.failed("write", err)
	}
	s.current = seen{revision, stat.Version}
	return true, nil
}

// create creates an empty znode, whose version is 0, and its parents, unless they exist.
func (s *ZooKeeperStore) create() error {
	for end := 1; end <= len(s.path); end++ {
		if end < len(s.path) && s.path[end] != '/' {
			continue
		}
		if _, err := s.conn.Create(s.path[:end], nil, 0, zk.WorldACL(zk.PermAll)); err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return s.failed("make", err)
		}
	}
	return nil
}

// failed wraps an error of ZooKeeper with what the store was doing.
func (s *ZooKeeperStore) failed(what string, err error) error {
	if connectionLost(err) {
		return fmt.Errorf("%w: %s --cluster %s: %w", ErrUnreachable, what, s.url, err)
	}
	return fmt.Errorf("cluster: %s --cluster %s: %w", what, s.url, err)
}

// connectionLost reports whether err leaves the outcome of the operation unknown, so that another
// attempt on a new connection makes sense.
func connectionLost(err error) bool {
	return errors.Is(err, zk.ErrConnectionClosed) || errors.Is(err, zk.ErrSessionExpired) ||
		errors.Is(err, zk.ErrSessionMoved) || errors.Is(err, zk.ErrNoServer)
}
