package farmsql

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/cluster/join"
	"github.com/farmsql/farmsql/cluster/raftstore"
	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
)

// TestRefoundOlder: what the operator says of the newest revision decides, and what the machine's own memory has, before
// anything is touched.
func TestRefoundOlder(t *testing.T) {
	for name, c := range map[string]struct {
		newest uint64
		newer  string
		want   error
		says   string
	}{
		"a later one":       {8, "", ErrOlder, "machine 2 has revision 7, and the newest is 8"},
		"an earlier one":    {4, "", ErrNotNewest, "machine 2 has revision 7, and the newest is said to be 4"},
		"in its own memory": {7, "region 5", ErrOlder, "its own memory has region 5"},
	} {
		r := &Refounding{Machine: 2, Others: []int{0}, Configuration: 1, Revision: 7, Newer: c.newer}
		if err := r.Refound(t.Context(), c.newest, false); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	r := &Refounding{Machine: 2, Revision: 7}
	if err := r.Refound(t.Context(), 4, true); !errors.Is(err, ErrNotNewest) {
		t.Errorf("an earlier one, and older: %v", err)
	}
}

// TestNewerMemory: memory that has been in a later configuration, or has a region that was made later, says that the
// configuration is not the newest; so does a save.
func TestNewerMemory(t *testing.T) {
	c := &cluster.Configuration{ID: 5, NextRegion: 3}
	for name, m := range map[string]struct {
		identity string
		applied  uint64
		regions  []string
		want     string
	}{
		"nothing":        {"", 0, nil, ""},
		"the same":       {farm.IdentityFile, 5, []string{"region-2.mem"}, ""},
		"a later one":    {farm.IdentityFile, 6, nil, "configuration 6"},
		"in a save":      {identityImage, 7, nil, "configuration 7"},
		"a later region": {farm.IdentityFile, 5, []string{"region-2.mem", "region-3.mem"}, "region 3"},
		"saved":          {identityImage, 5, []string{"region-9.img"}, "region 9"},
	} {
		folder := t.TempDir()
		b := make([]byte, 4096)
		binary.NativeEndian.PutUint64(b[32:], m.applied)
		for _, file := range append(m.regions, m.identity) {
			if err := os.WriteFile(filepath.Join(folder, file), b, 0o600); file != "" && err != nil {
				t.Fatal(err)
			}
		}
		if what, err := newerIn(folder, c); err != nil || what != m.want {
			t.Errorf("%s: %q, %v", name, what, err)
		}
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, farm.IdentityFile), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := newerIn(folder, c); err == nil || !strings.Contains(err.Error(), "is cut short") {
		t.Error(err)
	}
}

// TestNewerMemoryOfAMachine: the memory of a machine is looked at where serve has it, and the newest save, where serve
// puts it.
func TestNewerMemoryOfAMachine(t *testing.T) {
	c, of := Config{Folder: t.TempDir(), Saves: t.TempDir()}, &cluster.Configuration{ID: 5, NextRegion: 3}
	must := func(want string) {
		t.Helper()
		if what, err := c.newerMemory(2, of); err != nil || what != want {
			t.Errorf("%q, %v; want %q", what, err, want)
		}
	}
	must("")
	path := machineFolder(c.Folder, 2)
	f, err := nvram.OpenFolder(path, nvram.Options{Saves: machineFolder(c.Saves, 2)})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"identity", "region-7"} {
		if _, err := f.Map(name, 4096); err != nil {
			t.Fatal(err)
		}
	}
	must("region 7") // after a kill
	if err := errors.Join(f.Save(machineFolder(c.Saves, 2)), f.Close(), os.RemoveAll(path)); err != nil {
		t.Fatal(err)
	}
	must("region 7") // after a power cut
	c.Saves = ""
	must("")
	c.Saves = filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(c.Saves, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.newerMemory(2, of); err == nil {
		t.Error("a folder of saves that cannot be read")
	}
}

// TestRefoundLost: members that are lost, too, are given by the operator; also those for which a machine that keeps the
// configuration alone waits in vain. What is asked for is checked before anything is changed.
func TestRefoundLost(t *testing.T) {
	s := newOwnStore(t)
	c, err := s.Load()
	if err != nil {
		t.Fatal(err)
	}
	next := c.Succeed()
	next.AddMember(cluster.Member{Machine: 3, Incarnation: 1})
	if err := s.CompareAndSwap(c.Revision, next); err != nil {
		t.Fatal(err)
	}
	s.ownPart().Close()
	for _, bad := range []struct {
		lost []int
		says string
	}{
		{[]int{0}, "machine 0 cannot be given as lost: it is this one"},
		{[]int{3, 7}, "machine 7 cannot be given as lost"},
	} {
		if _, err := BeginRefounding(s.cfg.Folder, "", bad.lost); err == nil || !strings.Contains(err.Error(), bad.says) {
			t.Errorf("%v: %v", bad.lost, err)
		}
	}
	r, err := BeginRefounding(s.cfg.Folder, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Check(t.Context(), next.Revision, false); !errors.Is(err, ErrOnlyFounder) || !strings.Contains(err.Error(), "give them with --lost") {
		t.Error(err)
	}
	if err := r.Refound(t.Context(), next.Revision, true); err != nil || r.next.Gaps != nil {
		t.Errorf("so that machines with newer memory may come back: %v, gaps %+v", err, r.next.Gaps)
	}
	r.Close()
	if err := UndoRefounding(s.cfg.Folder, ""); err != nil {
		t.Fatal(err)
	}
	if r, err = BeginRefounding(s.cfg.Folder, "", []int{3}); err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if r.Next != nil || len(r.Others) != 0 || !slices.Equal(r.Members, []int{0, 3}) || !slices.Equal(r.Left, []int{0}) {
		t.Errorf("%+v", r)
	}
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Refound(stopped, next.Revision, false); !errors.Is(err, context.Canceled) || errors.Is(err, ErrNotLost) {
		t.Errorf("stopped: %v", err)
	}
	if lost, err := r.Check(t.Context(), next.Revision, false); err != nil || len(lost) != 0 {
		t.Errorf("%+v, %v", lost, err)
	}
	if err := r.Refound(t.Context(), next.Revision, false); err != nil {
		t.Fatal(err)
	}
	r.Close()
	if err := UndoRefounding(s.cfg.Folder, ""); err != nil {
		t.Fatal(err)
	}
	if r, err = BeginRefounding(s.cfg.Folder, "", []int{3}); err != nil || r.Revision != next.Revision {
		t.Fatalf("undone: %+v, %v", r, err)
	}
	if err := r.Refound(t.Context(), next.Revision, false); err != nil {
		t.Fatal(err)
	}
	r.Close()
	s.mu.part = nil
	if err := s.openPart(); err != nil {
		t.Fatal(err)
	}
	if c, err := s.awaitMajority(t.Context(), func(error) {}); err != nil || !slices.Equal(c.Machines, []rdma.MachineID{0}) || len(c.Line) != 1 || !c.Omits(next.ID+1) {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestRefoundIsTooEarly: a founder that answers is not lost, and one that cannot be asked only if the operator says so.
func TestRefoundIsTooEarly(t *testing.T) {
	s := newOwnStore(t)
	s.ownPart().Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var answering sync.WaitGroup
	defer answering.Wait()
	defer l.Close()
	answering.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("no such protocol\n"))
			c.Close()
		}
	})
	check := func(address string, lost ...int) ([]LostFounder, error) {
		t.Helper()
		f := raftstore.Founders{Version: 9, Machines: map[rdma.MachineID]string{0: s.id.Advertise, 1: address}, Next: &raftstore.Successor{Machine: 5}}
		s.id.Current, _ = json.Marshal(f)
		if err := s.saveIdentity(); err != nil {
			t.Fatal(err)
		}
		r, err := BeginRefounding(s.cfg.Folder, "", lost)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if !slices.Equal(r.Others, []int{1}) || r.Next == nil || *r.Next != 5 {
			t.Errorf("%+v", r)
		}
		return r.Check(t.Context(), r.Revision, false)
	}
	if _, err := check(l.Addr().String(), 1); !errors.Is(err, ErrNotLost) || !strings.Contains(err.Error(), "machine 1 at "+l.Addr().String()+" answers") || !strings.Contains(err.Error(), "stop that machine, too") {
		t.Error(err)
	}
	if _, err := check("no port"); !errors.Is(err, ErrNotLost) || !strings.Contains(err.Error(), "may be there") || !strings.Contains(err.Error(), "give it with --lost") {
		t.Error(err)
	}
	if lost, err := check("no port", 1); err != nil || len(lost) != 1 || lost[0].Machine != 1 || lost[0].Reason == nil {
		t.Errorf("%+v, %v", lost, err)
	}
}

// TestBeginRefounding: a folder that is not of a founder is refused, and one of a machine that was replaced.
func TestBeginRefounding(t *testing.T) {
	if _, err := BeginRefounding(t.TempDir(), "", nil); err == nil || !strings.Contains(err.Error(), "is not of a machine of a cluster") {
		t.Error(err)
	}
	data := t.TempDir()
	peer := filepath.Join(data, PeerFolder)
	id, _, err := join.Found(peer, "127.0.0.1:1", join.Settings{Replicas: 3, Founders: 3}, FirstTokenLife)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := BeginRefounding(data, "", nil); !errors.Is(err, raftstore.ErrNotCreated) {
		t.Errorf("no store: %v", err)
	}
	founders := map[rdma.MachineID]string{0: "127.0.0.1:1", 1: "127.0.0.1:2", 2: "127.0.0.1:3"}
	if err := raftstore.Create(join.StoreFolder(peer), raftstore.Founding{Cluster: id.Cluster, Machine: 0, Machines: founders}); err != nil {
		t.Fatal(err)
	}
	if _, err := BeginRefounding(data, "", nil); err == nil || !strings.Contains(err.Error(), "has not got it yet") {
		t.Errorf("no configuration: %v", err)
	}
	asks := *id
	asks.Machine, asks.Store = 5, founders
	other := t.TempDir()
	if err := errors.Join(os.CopyFS(filepath.Join(other, PeerFolder), os.DirFS(peer)), os.RemoveAll(join.StoreFolder(filepath.Join(other, PeerFolder)))); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ current, says string }{{"", "machine 5, whose folder this is, only asks those that do, which are machines [0 1 2]"}, {`{"Version": 9, "Machines": {"3": "x:1"}}`, "machines [3]"}} {
		asks.Current = []byte(c.current)
		if err := asks.Save(filepath.Join(other, PeerFolder)); err != nil {
			t.Fatal(err)
		}
		if _, err := BeginRefounding(other, "", nil); !errors.Is(err, ErrNoFounder) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("a machine that only asks: %v", err)
		}
	}
	id.Current = []byte(`{"Version": 9, "Machines": {"1": "x:1"}, "Removed": [0]}`)
	if err := id.Save(peer); err != nil {
		t.Fatal(err)
	}
	if _, err := BeginRefounding(data, "", nil); !errors.Is(err, raftstore.ErrRemoved) {
		t.Errorf("a machine that was replaced: %v", err)
	}
}
