package farmsql

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/cluster/raftstore"
	"github.com/farmsql/farmsql/internal/protocol"
	"github.com/farmsql/farmsql/rdma"
)

// TestSuccessor: the place of a founder that is gone goes to a member that was none before, preferably one of a
// failure domain without a founder.
func TestSuccessor(t *testing.T) {
	founders := raftstore.Founders{
		Machines: map[rdma.MachineID]string{0: "a:1", 1: "b:1", 2: "c:1"}, Gone: []rdma.MachineID{0}, Removed: []rdma.MachineID{3},
	}
	for name, c := range map[string]struct {
		domains map[rdma.MachineID]int // of the members
		want    rdma.MachineID         // 0 if there is none
	}{
		"nobody":                     {map[rdma.MachineID]int{1: 1, 2: 2}, 0},
		"removed before":             {map[rdma.MachineID]int{1: 1, 2: 2, 3: 3}, 0},
		"one":                        {map[rdma.MachineID]int{1: 1, 2: 2, 4: 2}, 4},
		"the lowest":                 {map[rdma.MachineID]int{1: 1, 2: 2, 5: 5, 6: 6}, 5},
		"the other failure domain":   {map[rdma.MachineID]int{1: 1, 2: 2, 5: 2, 6: 1, 7: 3}, 7},
		"the domain of who was gone": {map[rdma.MachineID]int{0: 9, 1: 1, 2: 2, 5: 2, 6: 9}, 6},
		"one that is drained":        {map[rdma.MachineID]int{1: 1, 2: 2, 8: 8}, 0},
		"one that is not drained":    {map[rdma.MachineID]int{1: 1, 2: 2, 8: 8, 9: 2}, 9},
	} {
		configuration := &cluster.Configuration{Draining: []cluster.Memory{{Machine: 8, Token: 1}}}
		for m, d := range c.domains {
			configuration.AddMember(cluster.Member{Machine: m, FailureDomain: d, Memory: 1, Address: hostAddress(TransportTCP, "x:1")})
		}
		got, ok := successor(configuration, founders)
		if ok != (c.want != 0) || ok && got != (raftstore.Successor{Machine: c.want, Address: "x:1", For: 0}) {
			t.Errorf("%s: %+v, %v", name, got, ok)
		}
	}
}

// TestFounderIsAwaited: another machine becomes a founder in place of one that is away only if there are enough for all
// places: that one can never become a founder then.
func TestFounderIsAwaited(t *testing.T) {
	for name, c := range map[string]struct {
		founders, gone, wanted int
		members                []rdma.MachineID // 9 is about to become a founder
		want                   bool
	}{
		"catching up":             {3, 1, 0, []rdma.MachineID{0, 1, 9, 10}, true},
		"away, with others":       {3, 1, 0, []rdma.MachineID{0, 1, 10}, false},
		"away, without others":    {3, 1, 0, []rdma.MachineID{0, 1}, true},
		"both places need it":     {1, 0, 3, []rdma.MachineID{0, 10}, true},
		"others for both places":  {1, 0, 3, []rdma.MachineID{0, 10, 11}, false},
		"the last place, another": {2, 0, 3, []rdma.MachineID{0, 1, 10}, false},
		"a place free, one gone":  {3, 1, 5, []rdma.MachineID{0, 1, 10, 11}, true},
		"enough for three places": {3, 1, 5, []rdma.MachineID{0, 1, 10, 11, 12}, false},
	} {
		configuration := new(cluster.Configuration)
		for _, m := range c.members {
			configuration.AddMember(cluster.Member{Machine: m, Memory: 1, Address: hostAddress(TransportTCP, "x:1")})
		}
		f := raftstore.Founders{Machines: make(map[rdma.MachineID]string), Wanted: c.wanted, Next: &raftstore.Successor{Machine: 9}}
		for m := range c.founders {
			f.Machines[rdma.MachineID(m)] = "a:1"
		}
		for m := range c.gone {
			f.Gone = append(f.Gone, rdma.MachineID(c.founders-1-m))
		}
		if got := isAwaited(configuration, f); got != c.want {
			t.Errorf("%s: awaited %v", name, got)
		}
	}
	if isAwaited(new(cluster.Configuration), raftstore.Founders{}) {
		t.Error("nobody is awaited")
	}
}

// A wantingStore notes how many founders it is asked for.
type wantingStore struct {
	foundersStore
	wanted []int
	err    error
}

func (s *wantingStore) Want(n int) error {
	s.wanted = append(s.wanted, n)
	return s.err
}

// TestWantFounders: the CM asks for as many founders as the replicas call for, if these are more than there are, or are
// wanted already. That the store refuses it is said once.
func TestWantFounders(t *testing.T) {
	var log bytes.Buffer
	s := &ownStore{cfg: Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}}
	for _, c := range []struct {
		replicas, founders, wanted int
		speaks                     protocol.Version
		want                       int // 0 if nothing is asked for
	}{
		{1, 1, 0, protocol.Resizes, 0}, {2, 1, 0, protocol.Resizes, 3}, {3, 1, 0, protocol.Resizes, 3}, {3, 1, 3, protocol.Resizes, 0},
		{3, 2, 3, protocol.Resizes, 0}, {4, 3, 0, protocol.Resizes, 5}, {1, 3, 3, protocol.Resizes, 0}, {3, 1, 0, protocol.Resizes - 1, 0},
	} {
		f := raftstore.Founders{Machines: make(map[rdma.MachineID]string), Wanted: c.wanted}
		for m := range c.founders {
			f.Machines[rdma.MachineID(m)] = "a:1"
		}
		var store wantingStore
		err := s.wantFounders(&store, &cluster.Configuration{Replicas: c.replicas, Speaks: c.speaks}, f)
		if err != nil || len(store.wanted) > 1 || len(store.wanted) == 1 && store.wanted[0] != c.want || (len(store.wanted) == 0) != (c.want == 0) {
			t.Errorf("%+v: asked for %v, %v", c, store.wanted, err)
		}
	}
	log.Reset()
	store := wantingStore{err: fmt.Errorf("%w: machines [1] have an earlier farmsql", raftstore.ErrFounders)}
	for range 2 {
		if err := s.wantFounders(&store, &cluster.Configuration{Replicas: 3, Speaks: protocol.Resizes}, raftstore.Founders{}); err == nil {
			t.Error("refused, and no error")
		}
	}
	if text := log.String(); strings.Count(text, "level=WARN") != 1 || !strings.Contains(text, "machines [1] have an earlier farmsql") {
		t.Errorf("%s", text)
	}
}
