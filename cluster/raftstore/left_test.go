package raftstore

import (
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/rdma"
)

// Two machines that were refounded have both begun, because they did not reach each other. Once they do, one stops, and
// does not begin again; and the other says so.
func TestRefoundedApart(t *testing.T) {
	t.Parallel()
	g := newGroupWith(t, 3, 3)
	g.lose()
	g.refound(0, 10)
	g.refound(1, 20)
	for m := range 2 {
		g.start(m)
		mustSwap(t, g.store(m), uint64(10*(m+1)), others(uint64(10*(m+1)+1), 0))
		g.kill(m)
	}
	lower, higher := 0, 1
	if g.founders(0).Version > g.founders(1).Version {
		lower, higher = higher, lower
	}
	g.relays[lower][higher].Cut()
	g.rivals = make(chan error, 1000)
	g.start(lower)
	g.start(higher)
	until(t, "the one that goes on says so", func() bool {
		select {
		case err := <-g.rivals:
			return errors.Is(err, ErrSplit)
		default:
			return false
		}
	})
	mustSwap(t, g.store(lower), uint64(10*(lower+1)+1), others(29, 0)) // it does not know
	g.relays[lower][higher].Heal()
	until(t, "one of them stops", func() bool { return g.store(lower).Err() != nil })
	if err := g.store(lower).Err(); !errors.Is(err, ErrSplit) {
		t.Error(err)
	}
	mustSwap(t, g.store(higher), uint64(10*(higher+1)+1), others(30, 0))
	g.kill(lower)
	g.relays[lower][higher].Cut()
	if _, err := Open(Config{Folder: g.folderOf(lower), Listener: closedListener{}, Dial: through(g.relays[lower])}); !errors.Is(err, ErrSplit) {
		t.Errorf("it begins again where it does not reach the other: %v", err)
	}
	if _, err := BeginRefounding(g.folderOf(lower), Founders{}); !errors.Is(err, ErrSplit) {
		t.Errorf("it may be refounded: %v", err)
	}
	apart := Founders{Version: 1, Line: cluster.Line{1}, Machines: map[rdma.MachineID]string{rdma.MachineID(higher): addressOf(higher)}}
	c, err := NewClient(ClientConfig{Cluster: testCluster, Machines: founding(3, 0).Machines, Founders: apart, Dial: through(g.relays[2]), Patience: time.Minute, tick: g.tick})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if f, err := c.Founders(); !errors.Is(err, ErrSplit) {
		t.Errorf("a machine that follows another one learns of %+v, %v", f, err)
	}
}

// A machine that follows one of two refounded machines learns nothing of the other: not as a client, not as a founder to
// be, and not when it is refounded itself.
func TestFollowersStay(t *testing.T) {
	known := Founders{Version: 5, Line: cluster.Line{1}, Machines: map[rdma.MachineID]string{0: addressOf(0)}}
	other := Founders{Version: 9, Line: cluster.Line{2}, Machines: map[rdma.MachineID]string{2: addressOf(2)}}
	c, err := NewClient(ClientConfig{Cluster: testCluster, Machines: founding(3, 0).Machines, Founders: known, Dial: dial})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Learn(other); !errors.Is(err, ErrSplit) || !c.known().Has(0) {
		t.Errorf("%v, %+v", err, c.known())
	}
	if other.Line = (cluster.Line{1, 2}); c.Learn(other) != nil || !c.known().Has(2) {
		t.Errorf("refounded again: %+v", c.known())
	}
	other.Line = cluster.Line{2}
	r := &replica{store: unopened(founding(3, 0))}
	r.store.peers.Store(&peers{founders: known})
	s := state{founders: &other}
	if err := r.restore(&raftpb.Snapshot{Data: s.encode()}); !errors.Is(err, ErrSplit) {
		t.Errorf("a snapshot of the other one: %v", err)
	}
	if err := (&Refounding{founders: known}).learn(other); !errors.Is(err, ErrSplit) {
		t.Errorf("refounded: %v", err)
	}
}

// Each machine says which revision is kept, for those who have to know the newest one day.
func TestChanged(t *testing.T) {
	g := prepareGroup(t, t.TempDir(), 3, nil)
	var mu sync.Mutex
	newest := make(map[int]uint64)
	g.changed = func(machine int, revision uint64) {
		mu.Lock()
		defer mu.Unlock()
		newest[machine] = max(newest[machine], revision)
	}
	g.create()
	mustSwap(t, g.store(0), 0, others(4, 0))
	until(t, "all have said it", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return newest[0] == 4 && newest[1] == 4 && newest[2] == 4
	})
}

// The answer of a machine that was left behind decides whether this one goes on.
func TestJudge(t *testing.T) {
	of := func(version uint64, line ...uint64) Founders { return Founders{Version: version, Line: line} }
	version := func(random uint64) uint64 { return refoundedVersion(3, random<<40) }
	old, mine, lower, higher := of(3), version(200), of(version(100), 100), of(version(300), 300)
	twice := of(refoundedVersion(mine, 1<<40), 200, 1)
	for name, c := range map[string]struct {
		hasBegun bool
		other    left
		stops    error
		isRival  bool
	}{
		"of before":                     {false, left{standing: standing{old, true}}, nil, false},
		"of before, keeps":              {false, left{standing: standing{old, true}, keeps: true}, ErrNotLost, true},
		"of before, keeps, begun":       {true, left{standing: standing{old, true}, keeps: true}, nil, true},
		"the same":                      {true, left{standing: standing{of(mine+5, 200), true}}, nil, false},
		"lower":                         {true, left{standing: standing{lower, true}}, nil, true},
		"higher":                        {true, left{standing: standing{higher, true}}, ErrSplit, true},
		"higher, not begun":             {true, left{standing: standing{higher, false}}, nil, true},
		"lower, neither begun":          {false, left{standing: standing{lower, false}}, nil, true},
		"higher, neither begun":         {false, left{standing: standing{higher, false}}, errAwaited, true},
		"lower, this not begun":         {false, left{standing: standing{lower, true}}, ErrRemoved, true},
		"refounded again since":         {true, left{standing: standing{twice, true}}, ErrSplit, true},
		"another, refounded twice":      {true, left{standing: standing{of(twice.Version, 100, 1), true}}, ErrSplit, true},
		"many changes after refounding": {true, left{standing: standing{of(lower.Version+1<<20, 100), true}}, nil, true},
	} {
		s := standing{of(mine, 200), c.hasBegun}
		if err := s.judge(c.other); !errors.Is(err, c.stops) || err != nil && c.stops == nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := s.rivals(c.other); (err != nil) != c.isRival {
			t.Errorf("%s: rival %v", name, err)
		}
	}
}

// Only a machine that goes on without this one, and has begun, ends this one's part by asking.
func TestHear(t *testing.T) {
	of := func(line ...uint64) Founders {
		return Founders{Line: line, Machines: map[rdma.MachineID]string{2: addressOf(2)}, Removed: []rdma.MachineID{0}}
	}
	for name, c := range map[string]struct {
		own    cluster.Line
		asker  standing
		isOver bool
	}{
		"refounded":           {nil, standing{of(1), true}, true},
		"refounded again":     {cluster.Line{1}, standing{of(1, 2), true}, true},
		"has not begun":       {nil, standing{of(1), false}, false},
		"says nothing":        {nil, standing{Founders{}, true}, false},
		"of the same line":    {cluster.Line{1}, standing{of(1), true}, false},
		"of another line":     {cluster.Line{2}, standing{of(1), true}, false},
		"of before":           {cluster.Line{1}, standing{of(), true}, false},
		"without removing it": {nil, standing{Founders{Line: cluster.Line{1}, Machines: map[rdma.MachineID]string{0: addressOf(0)}}, true}, false},
	} {
		s := unopened(founding(3, 0))
		s.ending = make(chan error, 1)
		s.peers.Store(&peers{founders: Founders{Line: c.own}})
		b, _ := json.Marshal(c.asker)
		s.hear(b)
		if isOver := len(s.ending) == 1 && s.heirs.Load() != nil; isOver != c.isOver {
			t.Errorf("%s: over %v", name, isOver)
		}
	}
	s := unopened(founding(3, 0))
	s.ending = make(chan error, 1)
	for _, b := range []string{"", "x"} {
		if s.hear([]byte(b)); len(s.ending) > 0 {
			t.Errorf("%q ends it", b)
		}
	}
}
