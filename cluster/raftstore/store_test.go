package raftstore

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/cluster/storetest"
	"github.com/farmsql/farmsql/region"
)

func TestConformance(t *testing.T) {
	t.Parallel() // as other tests do most of whose time is waiting for elections
	secured := certificates(t)
	t.Run("one machine", func(t *testing.T) {
		t.Parallel()
		storetest.Run(t, func(t *testing.T) *storetest.System { return newGroup(t, 1, nil).system() })
	})
	t.Run("three machines", func(t *testing.T) {
		t.Parallel()
		storetest.Run(t, func(t *testing.T) *storetest.System { return newGroup(t, 3, secured).system() })
	})
	t.Run("three machines and two clients that ask all at once", func(t *testing.T) {
		t.Parallel()
		storetest.Run(t, func(t *testing.T) *storetest.System {
			g := newGroup(t, 3, nil)
			g.hedge = time.Nanosecond
			return g.mixed(2)
		})
	})
	t.Run("three clients", func(t *testing.T) {
		t.Parallel()
		storetest.Run(t, func(t *testing.T) *storetest.System { return newGroup(t, 3, secured).clients(3) })
	})
}

// configuration returns one of a revision, with a number of lost regions, which make it long.
func configuration(revision uint64, lost int) *cluster.Configuration {
	c := &cluster.Configuration{Cluster: testCluster, ID: 1, Revision: revision, CM: 1, Replicas: 1, NextRegion: 1, Workers: 1, RegionBytes: 1 << 20, LogBytes: 1 << 16}
	c.AddMember(cluster.Member{Machine: 1, Incarnation: 100})
	for i := range lost {
		c.Lost = append(c.Lost, region.ID(1000000+i))
	}
	return c
}

// eventually calls f until it succeeds: while there is no leader, calls fail after their patience.
func eventually(t testing.TB, f func() error) {
	t.Helper()
	for begin := time.Now(); ; {
		err := f()
		if err == nil {
			return
		}
		if !errors.Is(err, cluster.ErrUnreachable) || time.Since(begin) > 2*time.Minute {
			t.Fatal(err)
		}
	}
}

// mustSwap swaps until it is known that next is current.
func mustSwap(t testing.TB, s *Store, old uint64, next *cluster.Configuration) {
	t.Helper()
	eventually(t, func() error {
		err := s.CompareAndSwap(old, next)
		if errors.Is(err, cluster.ErrMoved) { // perhaps by the attempt before
			if c := mustLoad(t, s); reflect.DeepEqual(c, next) {
				return nil
			}
		}
		return err
	})
}

func mustLoad(t testing.TB, s *Store) (c *cluster.Configuration) {
	t.Helper()
	eventually(t, func() (err error) {
		c, err = s.Load()
		return err
	})
	return c
}

// loadFails loads until the error has these texts: the last answers of a machine that has been killed may
// still be on their way.
func loadFails(t *testing.T, s *Store, begin, then string) {
	t.Helper()
	var err error
	for start := time.Now(); time.Since(start) < 2*time.Minute; {
		_, err = s.Load()
		if errors.Is(err, cluster.ErrUnreachable) && strings.HasPrefix(err.Error(), begin) && strings.Contains(err.Error(), then) {
			return
		}
	}
	t.Fatalf("%v, want %s...%s", err, begin, then)
}

// Without a majority the error says who is missing, and why.
func TestNoMajority(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 5, nil)
	mustSwap(t, g.store(0), 0, configuration(1, 0))
	g.kill(1)
	g.kill(2)
	mustSwap(t, g.store(0), 1, configuration(2, 0))
	g.kill(3)
	loadFails(t, g.store(0), "cluster: 2 of 5 machines of the configuration store answer, and it needs 3: machine 1 at 127.0.0.1:2: ", "; machine 3 at 127.0.0.1:4: ")
	g.kill(4)
	loadFails(t, g.store(0), "cluster: 1 of 5 machines of the configuration store answers, and it needs 3: ", "; machine 4 at 127.0.0.1:5: ")
	if err := g.store(0).CompareAndSwap(2, configuration(3, 0)); !errors.Is(err, cluster.ErrUnreachable) {
		t.Error(err)
	}
}

// Machines that were founded with other machines or addresses refuse each other, and say so.
func TestFoundedApart(t *testing.T) {
	g := prepareGroup(t, t.TempDir(), 3, nil)
	for m := range 3 {
		f := founding(3, m)
		if m == 0 {
			f.Machines[2] = "elsewhere:1"
		}
		if err := Create(g.folderOf(m), f); err != nil {
			t.Fatal(err)
		}
		g.start(m)
	}
	mustSwap(t, g.store(1), 0, configuration(1, 0))
	loadFails(t, g.store(0), "cluster: 1 of 3 machines of the configuration store answers, and it needs 2: machine 1 at 127.0.0.1:2: "+refusals[otherFounding].Error(), "")
}

// A majority that answers, and has no leader or no result, is told from one that is missing.
func TestNoResult(t *testing.T) {
	s := unopened(founding(1, 0))
	for leader, want := range map[uint64]string{
		raft.None: "cluster: 1 of 1 machines of the configuration store answers, and have not agreed on a leader within 1s",
		1:         "cluster: 1 of 1 machines of the configuration store answers, but not with a result within 1s: is a disk slow?",
	} {
		s.leader.Store(leader)
		if err := s.unanswered(time.Now(), time.Second); err.Error() != want || !errors.Is(err, cluster.ErrUnreachable) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// The log is compacted, and a machine that was away for longer than the log reaches back gets a
// snapshot.
func TestCompaction(t *testing.T) {
	g := newGroup(t, 3, nil)
	mustSwap(t, g.store(0), 0, configuration(1, 0))
	g.kill(2)
	const lost, swaps = 40_000, 40
	for i := range uint64(swaps) {
		mustSwap(t, g.store(0), 1+i, configuration(2+i, lost))
	}
	for m := range 2 {
		info, err := os.Stat(filepath.Join(g.folderOf(m), logName))
		if err != nil || info.Size() > swaps/2*8*lost {
			t.Errorf("the log has %d bytes after %d swaps of %d: %v", info.Size(), swaps, len(configuration(2, lost).Encode()), err)
		}
	}
	g.start(2)
	if got := mustLoad(t, g.store(2)); !reflect.DeepEqual(got, configuration(1+swaps, lost)) {
		t.Errorf("revision %d", got.Revision)
	}
	g.system().Restart()
	if got := mustLoad(t, g.store(2)); !reflect.DeepEqual(got, configuration(1+swaps, lost)) {
		t.Errorf("revision %d after a restart", got.Revision)
	}
}

// A configuration of a size that a large instance has is kept, and one that is too large is refused.
func TestSize(t *testing.T) {
	g := prepareGroup(t, t.TempDir(), 3, nil)
	g.patience, g.tick = time.Minute, tickDefault // 4 MiB for three logs take a while
	g.create()
	s := g.store(0)
	most := configurationBytesMax/len(",1000000") - 250
	mustSwap(t, s, 0, configuration(1, most))
	if got := mustLoad(t, g.store(1)); !reflect.DeepEqual(got, configuration(1, most)) {
		t.Errorf("%d lost regions, want %d", len(got.Lost), most)
	}
	if err := s.CompareAndSwap(1, configuration(2, most+1000)); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
	if err := s.CompareAndSwap(1, configuration(1, 0)); err == nil || errors.Is(err, cluster.ErrMoved) {
		t.Errorf("a revision that does not grow: %v", err)
	}
}

// A process that is killed loses nothing that it has acknowledged.
func TestKill(t *testing.T) {
	if folder := os.Getenv("RAFTSTORE_TEST_FOLDER"); folder != "" {
		acknowledge(t, folder)
		return
	}
	folder := t.TempDir()
	for m := range 3 {
		if err := Create(filepath.Join(folder, fmt.Sprint(m)), founding(3, m)); err != nil {
			t.Fatal(err)
		}
	}
	last := uint64(0)
	for i := range 3 {
		last = max(last, killAfter(t, folder, 10+7*i))
		g := prepareGroup(t, folder, 3, nil)
		for m := range 3 {
			g.start(m)
		}
		c := mustLoad(t, g.store(i))
		if c == nil || c.Revision < last {
			t.Errorf("loaded %v, revision %d was acknowledged", c, last)
		}
		for m := range 3 {
			g.kill(m)
		}
	}
}

// acknowledge moves the configuration on for ever, and prints each revision once it is
// acknowledged. It runs in a process of its own.
func acknowledge(t *testing.T, folder string) {
	g := prepareGroup(t, folder, 3, nil)
	for m := range 3 {
		g.start(m)
	}
	old := uint64(0)
	if c := mustLoad(t, g.store(0)); c != nil {
		old = c.Revision
	}
	for i := 0; ; i++ {
		mustSwap(t, g.store(i%3), old, configuration(old+1, 100*i))
		old++
		fmt.Printf("acknowledged %d\n", old)
	}
}

// killAfter runs acknowledge, kills it after n acknowledgements, and returns the last one.
func killAfter(t *testing.T, folder string, n int) (last uint64) {
	t.Helper()
	c := exec.Command(os.Args[0], "-test.run=^TestKill$")
	c.Env = append(os.Environ(), "RAFTSTORE_TEST_FOLDER="+folder)
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for n > 0 && lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), "acknowledged "); ok {
			if last, err = strconv.ParseUint(text, 10, 64); err != nil {
				t.Error(err)
			}
			n--
		} else {
			t.Log(lines.Text())
		}
	}
	_ = c.Process.Kill()
	_ = c.Wait()
	if n > 0 {
		t.Fatalf("the process has ended before it was killed, %d acknowledgements too early", n)
	}
	return last
}

func TestClosed(t *testing.T) {
	g := newGroup(t, 1, nil)
	s := g.store(0)
	mustSwap(t, s, 0, configuration(1, 0))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if err := s.CompareAndSwap(1, configuration(2, 0)); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

// single returns machine 0 without the others. Its log is what change makes of it. Nothing happens there
// because time passes. Of cfg it takes TLS and Refused.
func single(t *testing.T, machines int, cfg Config, change func(l *logFile)) *Store {
	t.Helper()
	folder := t.TempDir()
	if err := Create(folder, founding(machines, 0)); err != nil {
		t.Fatal(err)
	}
	f, log, err := openFolder(folder)
	if err != nil {
		t.Fatal(err)
	}
	change(log)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Folder, cfg.Listener, cfg.Patience, cfg.tick = folder, listener, 2*time.Minute, time.Hour
	cfg.Dial = func(context.Context, string) (net.Conn, error) { return nil, errors.New("no network") }
	s, err := open(cfg, f, log)
	if err != nil {
		t.Fatal(err)
	}
	s.unlock = func() {}
	t.Cleanup(func() { s.Close() })
	return s
}

// A store that cannot write its log stops, says so, and does not look alive.
func TestLogCannotBeWritten(t *testing.T) {
	s := single(t, 1, Config{}, func(l *logFile) {
		readOnly, err := os.Open(l.path)
		if err != nil {
			t.Fatal(err)
		}
		l.file.Close()
		l.file = readOnly
	})
	_, err := s.Load()
	if err == nil || errors.Is(err, cluster.ErrUnreachable) || !strings.Contains(err.Error(), "write the log") || !strings.Contains(err.Error(), s.cfg.Folder) {
		t.Error(err)
	}
	if _, err := s.cfg.Listener.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the listener: %v", err)
	}
}

// A store whose log contradicts what the leader knows stops: it must not acknowledge anything.
func TestContradiction(t *testing.T) {
	s := single(t, 3, Config{}, func(*logFile) {})
	s.received <- arrival{message: &raftpb.Message{Type: raftpb.MsgHeartbeat.Enum(), From: new(raftID(1)), To: new(raftID(0)), Term: new(uint64(5)), Commit: new(uint64(100))}}
	if _, err := s.Load(); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "lost its folder") {
		t.Error(err)
	}
}

// An entry or a snapshot of a newer program, or a broken one, stops the store, which would otherwise lose
// what it does not understand.
func TestStrangeEntries(t *testing.T) {
	newer := (&swap{}).encode()
	newer[0] = wantedFormat + 1
	for name, c := range map[string]struct {
		data []byte
		want error
	}{"newer": {newer, ErrNewer}, "short": {[]byte{1}, ErrDamaged}} {
		s := single(t, 3, Config{}, func(*logFile) {})
		s.received <- arrival{message: &raftpb.Message{
			Type: raftpb.MsgApp.Enum(), From: new(raftID(1)), To: new(raftID(0)), Term: new(uint64(5)),
			Index: new(uint64(1)), LogTerm: new(uint64(1)), Commit: new(uint64(2)),
			Entries: []*raftpb.Entry{{Term: new(uint64(5)), Index: new(uint64(2)), Data: c.data}},
		}}
		if _, err := s.Load(); !errors.Is(err, c.want) || !strings.Contains(err.Error(), "number 2") {
			t.Errorf("%s entry: %v", name, err)
		}
		s = single(t, 3, Config{}, func(*logFile) {})
		s.received <- arrival{message: &raftpb.Message{
			Type: raftpb.MsgSnap.Enum(), From: new(raftID(1)), To: new(raftID(0)), Term: new(uint64(5)),
			Snapshot: &raftpb.Snapshot{Data: c.data, Metadata: &raftpb.SnapshotMetadata{
				Index: new(uint64(9)), Term: new(uint64(5)), ConfState: &raftpb.ConfState{Voters: s.founding.voters()},
			}},
		}}
		if _, err := s.Load(); !errors.Is(err, c.want) {
			t.Errorf("%s snapshot: %v", name, err)
		}
	}
}

// A snapshot answers the swaps under way as far as it tells.
func TestSnapshotAnswers(t *testing.T) {
	mine, other := requestID{1}, requestID{2}
	for name, c := range map[string]struct {
		current state
		want    error
		open    bool
	}{
		"mine is current":    {state{revision: 6, writer: mine}, nil, false},
		"another is current": {state{revision: 6, writer: other}, cluster.ErrUnreachable, false},
		"not moved yet":      {state{revision: 5, writer: other}, nil, true},
	} {
		q := &request{id: mine, swap: &swap{old: 5, revision: 6, id: mine}, done: make(chan answer, 1)}
		r := &replica{store: unopened(founding(3, 0)), pending: map[requestID]*request{mine: q}}
		err := r.restore(&raftpb.Snapshot{Data: c.current.encode(), Metadata: &raftpb.SnapshotMetadata{Index: new(uint64(9))}})
		if err != nil || r.applied != 9 {
			t.Errorf("%s: applied %d, %v", name, r.applied, err)
		}
		if _, isOpen := r.pending[mine]; isOpen != c.open {
			t.Errorf("%s: under way: %v", name, isOpen)
		}
		if !c.open {
			if a := <-q.done; !errors.Is(a.err, c.want) {
				t.Errorf("%s: %v, want %v", name, a.err, c.want)
			}
		}
	}
}

// A swap that comes too late is answered at once, and does not go into the log.
func TestTooLate(t *testing.T) {
	r := &replica{store: unopened(founding(3, 0)), pending: make(map[requestID]*request), state: state{revision: 6, writer: requestID{1}}} // without a library
	for id, want := range map[byte]error{1: nil, 2: cluster.ErrMoved} {
		q := &request{id: requestID{id}, swap: &swap{old: 5, revision: 6, id: requestID{id}}, done: make(chan answer, 1)}
		r.pending[q.id] = q
		r.begin(q, time.Now())
		if a := <-q.done; a.err != want || len(r.pending) != 0 {
			t.Errorf("swap %d: %v, want %v; %d under way", id, a.err, want, len(r.pending))
		}
	}
	if r.state.revision != 6 || r.state.writer != (requestID{1}) {
		t.Errorf("%+v", r.state)
	}
}

// A swap that is in the log twice takes effect once, whatever comes between. Its second copy succeeds while
// nothing has come between. One that cannot have taken effect is told from one that may have.
func TestAppliedTwice(t *testing.T) {
	var s state
	mine, other, late := swap{0, 1, requestID{1}, []byte("a")}, swap{1, 2, requestID{2}, []byte("b")}, swap{1, 2, requestID{3}, []byte("c")}
	for i, c := range []struct {
		swap swap
		want error
	}{{mine, nil}, {mine, nil}, {other, nil}, {mine, errMovedOn}, {other, nil}, {late, cluster.ErrMoved}} {
		if err := s.apply(c.swap); err != c.want {
			t.Errorf("swap %d: %v, want %v", i, err, c.want)
		}
	}
	if !reflect.DeepEqual(s, state{revision: 2, writer: other.id, configuration: other.configuration}) {
		t.Errorf("%+v", s)
	}
}

func TestBadConfigs(t *testing.T) {
	folder := t.TempDir()
	if err := Create(folder, founding(1, 0)); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	dial := func(context.Context, string) (net.Conn, error) { return nil, errors.New("no network") }
	strangers := certificates(t)
	strangers.ClientCAs = nil
	for name, c := range map[string]struct {
		cfg  Config
		want string
	}{
		"no listener":       {Config{Folder: folder, Dial: dial}, "listener"},
		"no dialer":         {Config{Folder: folder, Listener: listener}, "dialer"},
		"negative patience": {Config{Folder: folder, Listener: listener, Dial: dial, Patience: -1}, "patience"},
		"no authorities":    {Config{Folder: folder, Listener: listener, Dial: dial, TLS: strangers}, "ClientCAs"},
		"no folder":         {Config{Folder: folder + "/x", Listener: listener, Dial: dial}, ErrNotCreated.Error()},
	} {
		if s, err := Open(c.cfg); err == nil || s != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s, err := Open(Config{Folder: folder, Listener: listener, Dial: dial})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.cfg.Patience != patienceDefault || s.cfg.tick != tickDefault {
		t.Error(s.cfg)
	}
	if _, err := Open(Config{Folder: folder, Listener: listener, Dial: dial}); !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), folder) {
		t.Errorf("opened twice: %v", err)
	}
	if err := Create(folder, founding(1, 0)); !errors.Is(err, ErrInUse) {
		t.Errorf("created while open: %v", err)
	}
}

// Open says why it cannot use a folder, each time: it leaves no lock behind.
func TestOpenFails(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	newer := (&state{}).encode()
	newer[0] = foundersFormat + 1
	snapshot := &raftpb.Snapshot{Data: newer, Metadata: &raftpb.SnapshotMetadata{Index: new(uint64(1)), Term: new(uint64(1)), ConfState: &raftpb.ConfState{Voters: []uint64{1}}}}
	log, err := encodeLog(record(hard(1, 0, 1), snapshot, nil))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		file    string
		content []byte
		want    error
	}{
		"what it is made of":  {foundingFile, nil, ErrDamaged},
		"its log":             {logName, nil, ErrDamaged},
		"a newer one's state": {logName, log, ErrNewer},
	} {
		folder := t.TempDir()
		if err := Create(folder, founding(1, 0)); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, c.file), c.content, 0o600); err != nil {
			t.Fatal(err)
		}
		cfg := Config{Folder: folder, Listener: listener, Dial: func(context.Context, string) (net.Conn, error) { return nil, errors.New("no network") }}
		for range 2 {
			if s, err := Open(cfg); s != nil || !errors.Is(err, c.want) {
				t.Errorf("%s: %v, want %v", name, err, c.want)
			}
		}
	}
}

// Only the library's own panics are errors of the store.
func TestPanic(t *testing.T) {
	caught := func(f func()) (p any, err error) {
		defer func() { p = recover() }()
		func() {
			defer recoverLibrary(&err)
			f()
		}()
		return nil, err
	}
	for name, f := range map[string]func(){
		"Panic":  func() { quiet{}.Panic("x", 1) },
		"Panicf": func() { quiet{}.Panicf("x%d", 1) },
		"Fatal":  func() { quiet{}.Fatal("x", 1) },
		"Fatalf": func() { quiet{}.Fatalf("x%d", 1) },
	} {
		if p, err := caught(f); p != nil || !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "x1") {
			t.Errorf("%s: panic %v, error %v", name, p, err)
		}
	}
	if p, err := caught(func() { panic("a bug") }); p != "a bug" || err != nil {
		t.Errorf("panic %v, error %v", p, err)
	}
}

// A leader that confirms a read of nobody, or in another form, confuses nobody. The first confirmation
// of a read counts.
func TestConfirm(t *testing.T) {
	q := &request{id: requestID{1}}
	r := &replica{store: unopened(founding(3, 0)), pending: map[requestID]*request{q.id: q}}
	for _, c := range []struct {
		context []byte
		index   uint64
		want    uint64
	}{{nil, 5, 0}, {make([]byte, 16), 5, 0}, {make([]byte, 17), 5, 0}, {q.id[:], 6, 6}, {q.id[:], 7, 6}} {
		r.confirm(raft.ReadState{Index: c.index, RequestCtx: c.context})
		if q.index != c.want {
			t.Errorf("%v at %d: %d, want %d", c.context, c.index, q.index, c.want)
		}
	}
}

// unopened returns a Store that does nothing, but knows its peers.
func unopened(f Founding) *Store {
	s, p := &Store{founding: f}, &peers{links: make(map[uint64]*link), founders: f.founders()}
	for m := range f.Machines {
		if m != f.Machine {
			p.links[raftID(m)] = newLink(&s.cfg, &f, m, f.Machines[m])
		}
	}
	s.peers.Store(p)
	return s
}

// A link takes no more frames than it has room for.
func TestLinkIsFull(t *testing.T) {
	s := single(t, 3, Config{}, func(*logFile) {})
	f := founding(3, 0)
	l := newLink(&s.cfg, &f, 1, f.Machines[1])
	for i := range framesMax + 1 {
		if ok := l.send(askFrame); ok != (i < framesMax) {
			t.Errorf("frame %d: %v", i, ok)
		}
	}
}
