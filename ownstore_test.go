package farmsql

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/cluster/join"
	"github.com/farmsql/farmsql/cluster/peerport"
	"github.com/farmsql/farmsql/cluster/raftstore"
	"github.com/farmsql/farmsql/rdma"
)

// newOwnStore returns the store of a machine whose part has a configuration, not opened.
func newOwnStore(t *testing.T) *ownStore {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	cfg := Config{Folder: t.TempDir(), Logger: slog.New(slog.DiscardHandler)}
	id, _, err := join.Found(cfg.peerFolder(), address, join.Settings{Replicas: 1, Founders: 1}, FirstTokenLife)
	if err != nil {
		t.Fatal(err)
	}
	if cfg.PeerTLS, err = join.TLS(cfg.peerFolder()); err != nil {
		t.Fatal(err)
	}
	refused := func(net.Addr, error) {}
	port, err := peerport.Open(address, cfg.PeerTLS, refused)
	if err != nil {
		t.Fatal(err)
	}
	s := &ownStore{cfg: cfg, id: *id, refused: refused, port: port}
	s.ctx, s.cancel = context.WithCancel(t.Context())
	t.Cleanup(func() { s.Close() })
	if err := s.openStore(map[rdma.MachineID]string{0: address}); err != nil {
		t.Fatal(err)
	}
	c := &cluster.Configuration{ID: 1, Revision: 1, Replicas: 1, Cluster: id.Cluster, NextRegion: 1, Workers: 1, RegionBytes: 1 << 20, LogBytes: 1 << 16}
	c.AddMember(cluster.Member{Machine: 0, Incarnation: 1})
	if err := s.CompareAndSwap(0, c); err != nil {
		t.Fatal(err)
	}
	return s
}

// reopen opens the store of a machine again, as one that became a founder later and has learned others since.
func (s *ownStore) reopen(t *testing.T, current raftstore.Founders) {
	t.Helper()
	if part := s.ownPart(); part != nil {
		part.Close()
	}
	s.mu.part, s.mu.client = nil, nil
	s.id.Founders, s.id.IsSuccessor = 0, true
	s.id.Current, _ = json.Marshal(current)
	if err := s.openStore(s.id.Store); err != nil {
		t.Fatal(err)
	}
}

// refound makes the machine the only founder. Its part is closed.
func (s *ownStore) refound(t *testing.T) {
	t.Helper()
	s.ownPart().Close()
	r, err := raftstore.BeginRefounding(s.partFolder(), raftstore.Founders{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c, err := r.Configuration()
	if err == nil {
		c = c.Revise()
		c.Line = append(r.Founders().Line, 77)
		err = r.Refound(c)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// logTo has the machine log into what is returned.
func (s *ownStore) logTo() *bytes.Buffer {
	var text bytes.Buffer
	s.cfg.Logger = slog.New(slog.NewTextHandler(&text, nil)) // which has a lock
	return &text
}

// TestOpenRefounded: a machine that became a founder later asks others, as it knows them. If it was refounded, it alone
// is left to be asked, which its part knows.
func TestOpenRefounded(t *testing.T) {
	s := newOwnStore(t)
	s.refound(t)
	s.reopen(t, raftstore.Founders{Version: 1, Machines: map[rdma.MachineID]string{1: "127.0.0.1:1"}})
	if c, err := s.Load(); !errors.Is(err, cluster.ErrUnreachable) || !strings.Contains(err.Error(), "has to note first") {
		t.Errorf("it has not noted that it follows the one that was refounded, and gets %+v, %v", c, err)
	}
	if c, err := s.awaitMajority(t.Context(), func(error) {}); err != nil || c.Revision != 2 {
		t.Errorf("%+v, %v", c, err)
	}
	b, err := os.ReadFile(filepath.Join(s.cfg.peerFolder(), "identity.json"))
	if err != nil || !strings.Contains(string(b), `"Line"`) {
		t.Errorf("it keeps %s, %v", b, err)
	}
	s.cfg.Folder = filepath.Join(t.TempDir(), "none")
	s.known.Store(nil)
	if _, err := s.loadFirst(); err == nil {
		t.Error("what cannot be noted is followed")
	}
}

// TestLineIsKept: a machine that follows one of two machines that were refounded takes nothing from the other: neither its
// configuration nor its founders. It says so once.
func TestLineIsKept(t *testing.T) {
	s := newOwnStore(t)
	text := s.logTo()
	s.refound(t)
	s.mu.part = nil
	if err := s.openPart(); err != nil {
		t.Fatal(err)
	}
	other := raftstore.Founders{Version: 1 << 60, Line: cluster.Line{5}, Machines: map[rdma.MachineID]string{1: "127.0.0.1:1"}}
	s.know(other)
	if c, err := s.Load(); !errors.Is(err, raftstore.ErrSplit) {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := s.loadFirst(); !errors.Is(err, raftstore.ErrSplit) {
		t.Errorf("at the start: %+v, %v", c, err)
	}
	for range 2 {
		err := s.follow()
		if !errors.Is(err, raftstore.ErrSplit) || s.known.Load().Line[0] != 5 {
			t.Errorf("it follows %+v, %v", s.known.Load(), err)
		}
		s.reportRetry("follow the founders", err)
	}
	other.Removed = []rdma.MachineID{0}
	other.Line = cluster.Line{6}
	if err := s.heed(other); !errors.Is(err, raftstore.ErrSplit) || s.ownPart() == nil {
		t.Errorf("it is told that it was removed by those of another line, and gives up its part: %v", err)
	}
	if seen := s.rivalAt(time.Now()); !strings.Contains(seen, "two machines were refounded") {
		t.Errorf("the status shows %q", seen)
	}
	if n := strings.Count(text.String(), "this machine cannot go on with the others"); n != 1 {
		t.Errorf("it says so %d times:\n%s", n, text)
	}
}

// A machine that has a part of the store, and asks others until that has got the log, tells both whom it suspects. With
// -tags invariants this also checks the order of the mutexes.
func TestSuspect(t *testing.T) {
	s := newOwnStore(t)
	s.suspect(1) // it has a part only
	if err := s.openClient(s.current()); err != nil {
		t.Fatal(err)
	}
	s.suspect(1)
	if c, err := s.Load(); err != nil || c == nil {
		t.Errorf("after a suspicion: %+v, %v", c, err)
	}
}

// TestHeed: a machine that is told that it was removed asks those who keep the configuration now, even if its part, which
// was refounded and has not noted anything yet, has a later version.
func TestHeed(t *testing.T) {
	s := newOwnStore(t)
	s.refound(t)
	s.mu.part = nil
	if err := s.openPart(); err != nil {
		t.Fatal(err)
	}
	others := raftstore.Founders{Version: 1, Line: cluster.Line{5}, Machines: map[rdma.MachineID]string{1: "127.0.0.1:1"}}
	if err := s.heed(others); err != nil || s.ownPart() == nil {
		t.Errorf("it was not removed: %v", err)
	}
	others.Removed = []rdma.MachineID{0}
	if err := s.heed(others); err != nil || s.ownPart() != nil {
		t.Fatalf("it was removed: %v", err)
	}
	if _, err := s.Load(); !errors.Is(err, cluster.ErrUnreachable) || !strings.Contains(err.Error(), "machine 1 at 127.0.0.1:1") {
		t.Errorf("it does not ask the others: %v", err)
	}
}

// TestReportRival: each machine that keeps a configuration of its own is reported, and again after a while.
func TestReportRival(t *testing.T) {
	s := newOwnStore(t)
	text := s.logTo()
	now := time.Unix(1000, 0)
	report := s.reportRival(func() time.Time { return now })
	for range 2 {
		report(errors.New("machine 1"))
		report(errors.New("machine 2"))
	}
	if seen := s.rivalAt(now); seen != "machine 2" {
		t.Errorf("the status shows %q", seen)
	}
	now = now.Add(rivalPeriod)
	if seen := s.rivalAt(now); seen != "" {
		t.Errorf("the status still shows %q", seen)
	}
	report(errors.New("machine 1"))
	if n := strings.Count(text.String(), "keeps a configuration of this cluster, too"); n != 3 {
		t.Errorf("%d reports:\n%s", n, text)
	}
}

// TestRevisionIsLogged: which configuration is the newest has to be known after a majority is lost, so each machine that
// keeps it says so.
func TestRevisionIsLogged(t *testing.T) {
	s := newOwnStore(t)
	s.ownPart().Close()
	text := s.logTo()
	if err := s.openPart(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "msg=\"configuration kept\" revision=1") {
		t.Errorf("the log says\n%s", text)
	}
}

// TestRetireAtOnce: several goroutines learn at once that the machine was removed. All go on with the others, also if
// nothing can be written, and nothing else is written than what the part has noted.
func TestRetireAtOnce(t *testing.T) {
	s := newOwnStore(t)
	text := s.logTo()
	s.refound(t)
	s.mu.part = nil
	if err := s.openPart(); err != nil {
		t.Fatal(err)
	}
	s.cfg.Folder = filepath.Join(t.TempDir(), "none")
	var retiring sync.WaitGroup
	for range 8 {
		retiring.Go(func() {
			if err := s.retire(); err != nil {
				t.Error(err)
			}
		})
	}
	retiring.Wait()
	if s.ownPart() != nil || s.mu.client == nil {
		t.Error("its calls go to its part")
	}
	if n := strings.Count(text.String(), "does not keep the configuration any more"); n != 1 {
		t.Errorf("it says so %d times:\n%s", n, text)
	}
}

// TestRetireIsKept: a machine that was removed does not open its part again after a restart.
func TestRetireIsKept(t *testing.T) {
	s := newOwnStore(t)
	path := filepath.Join(s.partFolder(), "store.json")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b = []byte(strings.Replace(string(b), `"Format": 1`, `"Format": 3, "IsRemoved": true`, 1))
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	s.reopen(t, s.current())
	if s.ownPart() != nil || s.mu.client == nil {
		t.Error("its part is open again")
	}
}

// TestHighest: a machine that joins gets no number that one has had, also if the configuration has forgotten it.
func TestHighest(t *testing.T) {
	c := &cluster.Configuration{Regions: []cluster.Placement{{Away: []cluster.Memory{{Machine: 5}}}}}
	c.AddMember(cluster.Member{Machine: 4})
	f := raftstore.Founders{Machines: map[rdma.MachineID]string{1: "x:1"}, Removed: []rdma.MachineID{0, 7}}
	if all := []rdma.MachineID{highest(nil, raftstore.Founders{}), highest(c, raftstore.Founders{}), highest(nil, f), highest(c, f)}; !slices.Equal(all, []rdma.MachineID{0, 5, 7, 7}) {
		t.Errorf("%v", all)
	}
}
