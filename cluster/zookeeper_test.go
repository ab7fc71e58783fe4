package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/farmsql/farmsql/cluster/zookeepertest"
	"github.com/farmsql/farmsql/region"
)

func TestOpenURL(t *testing.T) {
	s, err := Open("file://" + t.TempDir() + "/c.json")
	if _, ok := s.(*FileStore); !ok || err != nil {
		t.Errorf("%T, %v", s, err)
	}
	for _, url := range []string{
		"", "x", "file://", "zk://", "etcd://h:1/p", "zk://h:1", "zk://h:1/", "zk:///p", "zk://h:/p", "zk://:1/p", "zk://h:1,/p",
		"zk://h:1:2/p", "zk://h:1/a//b", "zk://h:1/a/", "zk://h:1/../a", "zk://h:1/zookeeper/a",
	} {
		if s, err := Open(url); s != nil || !errors.Is(err, ErrURL) || !strings.Contains(err.Error(), fmt.Sprintf("%q", url)) {
			t.Errorf("%q: %v, %v", url, s, err)
		}
	}
	servers, path, err := splitZooKeeper("", "a,b:1,[::1]:2/x/y")
	if !slices.Equal(servers, []string{"a:2181", "b:1", "[::1]:2"}) || path != "/x/y" || err != nil {
		t.Error(servers, path, err)
	}
}

// For a wrong address, Open soon returns an error that names the address and the flag: nobody
// listens there, the name does not exist, or something else listens.
func TestWrongAddress(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() }) // never accepts
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	for name, address := range map[string]string{
		"nobody listens": closed.Addr().String(),
		"never answers":  l.Addr().String(),
		"no name":        "no-such-host.invalid:2181",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begin := time.Now()
			url := "zk://" + address + "/farmsql"
			s, err := Open(url)
			if s != nil || !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "--cluster "+url) {
				t.Errorf("%v, %v", s, err)
			}
			if took := time.Since(begin); took > 20*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

// The store with a real ZooKeeper: what it has that other stores have not, and ZooKeeper going away.
// TestZooKeeperStore has what is true of every store.
func TestZooKeeper(t *testing.T) {
	t.Parallel()
	server := zookeepertest.Start(t)
	open := func(path string) Store {
		s, err := Open("zk://" + server.Address + path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	t.Run("two clients", func(t *testing.T) {
		a, b := open("/two"), open("/two")
		c := placed(t)
		if err := a.CompareAndSwap(0, c); err != nil {
			t.Fatal(err)
		}
		if err := b.CompareAndSwap(0, c); !errors.Is(err, ErrMoved) {
			t.Errorf("made twice: %v", err)
		}
		if err := b.CompareAndSwap(c.Revision, c.Revise()); err != nil {
			t.Errorf("second client: %v", err)
		}
		if err := a.CompareAndSwap(c.Revision, c.Revise()); !errors.Is(err, ErrMoved) {
			t.Errorf("client that has not heard of it: %v", err)
		}
	})
	t.Run("strange contents", func(t *testing.T) {
		s := open("/strange").(*ZooKeeperStore)
		if err := s.create(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.conn.Set("/strange", nil, -1); err != nil { // now of version 1
			t.Fatal(err)
		}
		c := placed(t)
		if err := s.CompareAndSwap(0, c); err != nil {
			t.Errorf("empty znode: %v", err)
		}
		if _, err := s.conn.Set("/strange", []byte("127.0.0.1:3306"), -1); err != nil {
			t.Fatal(err)
		}
		if c, err := s.Load(); c != nil || !errors.Is(err, ErrBadConfiguration) {
			t.Errorf("another program's: %v, %v", c, err)
		}
		if err := s.CompareAndSwap(c.Revision, c.Revise()); !errors.Is(err, ErrBadConfiguration) {
			t.Errorf("another program's: %v", err)
		}
	})
	t.Run("version before", func(t *testing.T) {
		s := open("/before").(*ZooKeeperStore)
		if err := s.create(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.conn.Set("/before", format3(t), -1); err != nil {
			t.Fatal(err)
		}
		c, err := s.Load()
		if err != nil {
			t.Fatal(err)
		}
		checkFormat3(t, c)
		if err := s.CompareAndSwap(c.Revision, c.Revise()); err != nil {
			t.Error(err)
		}
	})
	t.Run("newer version", func(t *testing.T) {
		s := open("/newer").(*ZooKeeperStore)
		if err := s.create(); err != nil {
			t.Fatal(err)
		}
		newer := encoded(t, func(outer, _ map[string]any) { outer["Format"] = formatVersion + 1 })
		if _, err := s.conn.Set("/newer", newer, -1); err != nil {
			t.Fatal(err)
		}
		refused := func(what string, err error) {
			if !errors.Is(err, ErrBadConfiguration) || !strings.Contains(err.Error(), "newer farmsql") || !strings.Contains(err.Error(), "/newer") {
				t.Errorf("%s: %v", what, err)
			}
		}
		c, err := s.Load()
		if refused("loaded", err); c != nil {
			t.Errorf("loaded %+v", c)
		}
		old := placed(t)
		refused("replaced", s.CompareAndSwap(old.Revision, old.Revise()))
		refused("made anew", s.CompareAndSwap(0, old))
		if b, _, err := s.conn.Get("/newer"); err != nil || !bytes.Equal(b, newer) {
			t.Errorf("the newer one has become %q, %v", b, err)
		}
	})
	t.Run("as large as can be", func(t *testing.T) {
		s := open("/large")
		c := large(t, zooKeeperBytesMax)
		if err := s.CompareAndSwap(0, c); err != nil {
			t.Fatalf("%d bytes: %v", len(c.Encode()), err)
		}
		if again, err := s.Load(); err != nil || !reflect.DeepEqual(again, c) {
			t.Errorf("loaded something else, %v", err)
		}
		if err := s.CompareAndSwap(c.Revision, large(t, zooKeeperBytesMax+500)); !errors.Is(err, ErrTooLarge) {
			t.Errorf("too large: %v", err)
		}
	})
	t.Run("restart", func(t *testing.T) {
		s := open("/restart")
		c := placed(t)
		if err := s.CompareAndSwap(0, c); err != nil {
			t.Fatal(err)
		}
		server.Kill()
		if _, err := s.Load(); !errors.Is(err, ErrUnreachable) {
			t.Errorf("server is down: %v", err)
		}
		if err := s.CompareAndSwap(c.Revision, c.Revise()); !errors.Is(err, ErrUnreachable) {
			t.Errorf("server is down: %v", err)
		}
		server.Start()
		if err := s.CompareAndSwap(c.Revision, c.Revise()); err != nil {
			t.Errorf("server is up again: %v", err)
		}
	})
}

// large returns a configuration whose encoding is nearly size bytes long.
func large(t *testing.T, size int) *Configuration {
	c := placed(t)
	each := len(c.Encode())
	next, _, err := c.Place(1, 1)
	if err != nil {
		t.Fatal(err)
	}
	each = len(next.Encode()) - each
	for n := (size - len(c.Encode())) / (each + 8); n > 0; n-- {
		p := c.Regions[0].clone()
		p.Region, p.Group = c.NextRegion, 1
		c.NextRegion++
		c.Regions = append(c.Regions, p)
	}
	for n := (size - len(c.Encode()) - 20) / len(",1000000"); n > 0; n-- { // the rest
		c.Lost = append(c.Lost, region.ID(1000000+n))
	}
	slices.Sort(c.Lost)
	if got := len(c.Encode()); got > size || got < size-40 {
		t.Fatalf("%d bytes, want %d", got, size)
	}
	return c
}

// fakeZooKeeper is a znode whose next operations fail as the test demands.
type fakeZooKeeper struct {
	data    []byte // nil: there is none
	version int32
	fail    []fault // one for each operation
	after   func()  // runs once, after the first that fails
}

type fault struct {
	err     error
	carried bool // out, all the same
}

// do carries out an operation as far as the next fault allows.
func (f *fakeZooKeeper) do(operation func() error) error {
	var next fault
	if len(f.fail) > 0 {
		next, f.fail = f.fail[0], f.fail[1:]
	}
	if next.err == nil || next.carried {
		if err := operation(); err != nil {
			return err
		}
	}
	if next.err != nil && f.after != nil {
		f.after()
		f.after = nil
	}
	return next.err
}

func (f *fakeZooKeeper) Get(string) (b []byte, stat *zk.Stat, err error) {
	err = f.do(func() error {
		if f.data == nil {
			return zk.ErrNoNode
		}
		b, stat = f.data, &zk.Stat{Version: f.version}
		return nil
	})
	return b, stat, err
}

func (f *fakeZooKeeper) Set(_ string, b []byte, version int32) (stat *zk.Stat, err error) {
	err = f.do(func() error {
		switch {
		case f.data == nil:
			return zk.ErrNoNode
		case f.version != version:
			return zk.ErrBadVersion
		}
		f.data, f.version = b, version+1
		stat = &zk.Stat{Version: f.version}
		return nil
	})
	return stat, err
}

func (f *fakeZooKeeper) Create(path string, b []byte, _ int32, _ []zk.ACL) (string, error) {
	return path, f.do(func() error {
		if f.data != nil {
			return zk.ErrNodeExists
		}
		f.data = []byte{}
		return nil
	})
}

func (f *fakeZooKeeper) Close() {}

// If the answer to a write is lost, the znode's content shows whether the write was carried out.
func TestLostAnswers(t *testing.T) {
	lost, expired := fault{err: zk.ErrConnectionClosed}, fault{err: zk.ErrSessionExpired}
	carried := fault{zk.ErrConnectionClosed, true}
	first := placed(t)
	mine, theirs := first.Revise(), first.Revise()
	theirs.CM = 1
	for name, c := range map[string]struct {
		fail  []fault
		after *Configuration // what another machine stores after the first failure
		want  error
		is    *Configuration
	}{
		"nothing fails":            {is: mine},
		"carried out":              {fail: []fault{carried}, is: mine},
		"not carried out":          {fail: []fault{lost}, is: mine},
		"session expired":          {fail: []fault{expired, {err: zk.ErrNoServer}, {err: zk.ErrSessionMoved}}, is: mine},
		"another is faster":        {fail: []fault{lost}, after: theirs, want: ErrMoved, is: theirs},
		"mine, then another":       {fail: []fault{carried}, after: theirs.Revise(), want: ErrMoved, is: theirs.Revise()},
		"never":                    {fail: slices.Repeat([]fault{lost}, zooKeeperTries), want: ErrUnreachable, is: first},
		"not allowed":              {fail: []fault{{err: zk.ErrNoAuth}}, want: zk.ErrNoAuth, is: first},
		"reading it is impossible": {fail: []fault{lost, {err: zk.ErrNoAuth}}, want: zk.ErrNoAuth, is: first},
	} {
		f := &fakeZooKeeper{data: first.Encode(), version: 4, fail: c.fail}
		s := &ZooKeeperStore{url: "zk://x/y", path: "/y", conn: f, current: seen{first.Revision, 4}}
		if c.after != nil {
			f.after = func() { f.data, f.version = c.after.Encode(), f.version+1 }
		}
		if err := s.CompareAndSwap(first.Revision, mine); !errors.Is(err, c.want) || err != nil && c.want != ErrMoved && !strings.Contains(err.Error(), "--cluster zk://x/y") {
			t.Errorf("%s: %v", name, err)
		}
		if got, err := s.Load(); err != nil || !reflect.DeepEqual(got, c.is) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// CompareAndSwap notices a lost write that arrives after it has read the znode again.
func TestLateWrite(t *testing.T) {
	first := placed(t)
	mine := first.Revise()
	f := &fakeZooKeeper{data: first.Encode(), fail: []fault{{err: zk.ErrConnectionClosed}, {}, {err: zk.ErrBadVersion}}}
	late := &lateZooKeeper{fakeZooKeeper: f, at: 2, write: func() { f.data, f.version = mine.Encode(), 1 }}
	s := &ZooKeeperStore{path: "/y", conn: late, current: seen{first.Revision, 0}}
	if err := s.CompareAndSwap(first.Revision, mine); err != nil {
		t.Error(err)
	}
}

// lateZooKeeper calls a function during the at-th write.
type lateZooKeeper struct {
	*fakeZooKeeper
	at    int
	write func()
}

func (f *lateZooKeeper) Set(path string, b []byte, version int32) (*zk.Stat, error) {
	if f.at--; f.at == 0 {
		f.write()
	}
	return f.fakeZooKeeper.Set(path, b, version)
}

func TestMakeZnodeFails(t *testing.T) {
	for n, want := range map[int]error{1: zk.ErrNoAuth, 2: zk.ErrNoAuth, 3: nil} {
		f := &fakeZooKeeper{fail: make([]fault, n)}
		f.fail = append(f.fail, fault{err: zk.ErrNoAuth})
		if n == 3 {
			f.fail = nil
		}
		s := &ZooKeeperStore{path: "/x/y", conn: f}
		if err := s.CompareAndSwap(0, placed(t)); !errors.Is(err, want) {
			t.Errorf("%d operations succeed: %v", n, err)
		}
	}
	f := &fakeZooKeeper{fail: slices.Repeat([]fault{{err: zk.ErrConnectionClosed}}, zooKeeperTries)}
	if _, err := (&ZooKeeperStore{conn: f}).Load(); !errors.Is(err, ErrUnreachable) {
		t.Error(err)
	}
}
