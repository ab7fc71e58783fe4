package raftstore

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/cluster/storetest"
	"github.com/farmsql/farmsql/rdma"
)

// newGroupWith founds a store with the first machines of a group, and starts them. The others may take their
// places.
func newGroupWith(t testing.TB, founded, machines int) *group {
	g := prepareGroup(t, t.TempDir(), machines, nil)
	g.founded = founded
	g.create()
	return g
}

// others returns a configuration whose only member is none of the founders, so that any of these can be forgotten.
func others(revision uint64, lost int) *cluster.Configuration {
	c := configuration(revision, lost)
	c.Machines[0], c.CM = 100, 100
	return c
}

// until calls f until it returns true.
func until(t testing.TB, what string, f func() bool) {
	t.Helper()
	for begin := time.Now(); !f(); time.Sleep(time.Millisecond) {
		if time.Since(begin) > 2*time.Minute {
			t.Fatal("not within two minutes: " + what)
		}
	}
}

// forget declares a founder gone at another machine.
func (g *group) forget(at, gone int) {
	g.t.Helper()
	eventually(g.t, func() error { return g.store(at).Forget(rdma.MachineID(gone)) })
}

// replace gives the place of a founder that was forgotten to a machine, which opens its part of the store.
func (g *group) replace(at, gone, by int) {
	g.t.Helper()
	s := Successor{Machine: rdma.MachineID(by), Address: addressOf(by), For: rdma.MachineID(gone)}
	eventually(g.t, func() error { return g.store(at).Replace(s) })
	g.join(at, by)
	until(g.t, "a successor votes", func() bool { return g.know(s) })
}

// know reports whether all machines that run know that a successor has the vote, so that the next may be lost:
// a machine that does not know yet counts the votes of before.
func (g *group) know(by Successor) bool {
	for m := range g.relays {
		s := g.store(m)
		if s == nil || s.Err() != nil || rdma.MachineID(m) == by.For {
			continue
		}
		if f := g.founders(m); !f.Has(by.Machine) || f.Has(by.For) {
			return false
		}
	}
	return true
}

// join makes and opens the part of a successor.
func (g *group) join(at, by int) {
	g.t.Helper()
	until(g.t, "the machine knows the successor", func() bool {
		f := g.founders(at)
		return f.Next != nil && f.Next.Machine == rdma.MachineID(by)
	})
	f, err := g.founders(at).Joining(testCluster, founding(g.founded, 0).Machines, rdma.MachineID(by))
	if err == nil {
		err = Create(g.folderOf(by), f)
	}
	if err != nil {
		g.t.Fatal(err)
	}
	g.start(by)
}

func (g *group) founders(at int) Founders {
	f, _ := g.store(at).Founders() // never fails
	return f
}

// A founder that is lost is replaced, then another, and the store survives the loss of as many as before.
func TestReplace(t *testing.T) {
	t.Parallel()
	g := newGroupWith(t, 3, 5)
	c, _ := g.client()
	mustSwap(t, g.store(0), 0, others(1, 0))
	g.kill(0)
	g.forget(1, 0)
	if f := g.founders(1); !f.Has(0) || !slices.Equal(f.Gone, []rdma.MachineID{0}) {
		t.Errorf("forgotten, and not replaced: %+v", f)
	}
	g.replace(1, 0, 3)
	mustSwap(t, g.store(1), 1, others(2, 0))
	g.kill(1)
	mustSwap(t, g.store(3), 2, others(3, 0))
	g.forget(3, 1)
	g.replace(3, 1, 4)
	g.kill(2)
	mustSwap(t, g.store(4), 3, others(4, 0))
	want := map[rdma.MachineID]string{2: addressOf(2), 3: addressOf(3), 4: addressOf(4)}
	until(t, "the machines know the founders", func() bool { return reflect.DeepEqual(g.founders(3).Machines, want) })
	if f := g.founders(3); !slices.Equal(f.Removed, []rdma.MachineID{0, 1}) || len(f.Gone) > 0 || f.Next != nil || f.Leaving != nil {
		t.Errorf("%+v", f)
	}
	g.start(2)
	for _, m := range []int{2, 3, 4} { // everything is on the disks
		g.kill(m)
	}
	for _, m := range []int{2, 3, 4} {
		g.start(m)
	}
	if got := mustLoad(t, g.store(2)); got.Revision != 4 {
		t.Errorf("revision %d", got.Revision)
	}
	f, err := c.Founders() // of machine 2, which the client knows from before
	for err != nil || !reflect.DeepEqual(f.Machines, want) {
		if err != nil && !errors.Is(err, cluster.ErrUnreachable) {
			t.Fatal(err)
		}
		f, err = c.Founders()
	}
	g.kill(2)
	eventually(t, func() error { _, err := c.Load(); return err })
}

// Machines that come back with their old folders are told that they have been replaced, and together they are no
// majority of anything, though they were one when the store was founded.
func TestReplacedMachinesComeBack(t *testing.T) {
	t.Parallel()
	g := newGroupWith(t, 3, 5)
	mustSwap(t, g.store(0), 0, others(1, 0))
	g.kill(0)
	g.forget(1, 0)
	g.replace(2, 0, 3)
	g.kill(1)
	g.forget(2, 1)
	g.replace(2, 1, 4)
	mustSwap(t, g.store(2), 1, others(2, 0))
	heal := g.system().Cut(2)
	g.each(3, func(from, to *storetest.Relay) { from.Cut(); to.Cut() })
	g.each(4, func(from, to *storetest.Relay) { from.Cut(); to.Cut() })
	g.start(0)
	g.start(1)
	if c, err := g.store(0).Load(); err == nil {
		t.Errorf("two machines that were replaced have loaded revision %d", c.Revision)
	}
	if err := g.store(1).CompareAndSwap(1, others(2, 9)); err == nil {
		t.Error("two machines that were replaced have swapped")
	}
	heal()
	g.heal(3)()
	g.heal(4)()
	for m := range 2 {
		until(t, "a machine learns that it was replaced", func() bool {
			_, err := g.store(m).Load()
			return errors.Is(err, ErrRemoved)
		})
		g.kill(m)
	}
	if got := mustLoad(t, g.store(3)); got.Revision != 2 {
		t.Errorf("revision %d", got.Revision)
	}
}

// A machine that was forgotten, and runs, is replaced nevertheless, and stops: a leader, too.
func TestReplaceLeader(t *testing.T) {
	g := newGroupWith(t, 3, 4)
	mustSwap(t, g.store(0), 0, others(1, 0))
	var gone int
	until(t, "there is a leader", func() bool {
		leader, ok := g.leader()
		gone = leader
		return ok
	})
	at := (gone + 1) % 3
	g.forget(at, gone)
	g.replace(at, gone, 3)
	until(t, "the machine learns that it was replaced", func() bool {
		_, err := g.store(gone).Load()
		return errors.Is(err, ErrRemoved)
	})
	if g.store(gone).leader.Load() == raftID(rdma.MachineID(gone)) {
		t.Error("the machine was the leader to its end, which others may not have heard of")
	}
	mustSwap(t, g.store(3), 1, others(2, 0))
}

// A successor that never comes is replaced by another, and is refused should it come later.
func TestReplaceSuccessor(t *testing.T) {
	g := newGroupWith(t, 3, 5)
	mustSwap(t, g.store(1), 0, others(1, 0))
	g.kill(0)
	g.forget(1, 0)
	s := Successor{Machine: 3, Address: addressOf(3), For: 0}
	eventually(t, func() error { return g.store(2).Replace(s) })
	eventually(t, func() error { return g.store(1).Replace(s) }) // a second copy changes nothing
	until(t, "machine 1 knows", func() bool { return g.founders(1).Next != nil })
	late := g.founders(1)
	g.replace(1, 0, 4)
	if f := g.founders(1); !slices.Equal(f.Removed, []rdma.MachineID{0, 3}) {
		t.Errorf("%+v", f)
	}
	f, err := late.Joining(testCluster, founding(3, 0).Machines, 3)
	if err == nil {
		err = Create(g.folderOf(3), f)
	}
	if err != nil {
		t.Fatal(err)
	}
	g.start(3)
	until(t, "the late successor is refused", func() bool {
		_, err := g.store(3).Load()
		return errors.Is(err, ErrRemoved)
	})
}

// A successor gets the log by a snapshot, if it is compacted, and then votes.
func TestSuccessorCatchesUp(t *testing.T) {
	t.Parallel()
	g := newGroupWith(t, 3, 4)
	mustSwap(t, g.store(1), 0, others(1, 0))
	for i := range uint64(30) {
		mustSwap(t, g.store(1), 1+i, others(2+i, 40_000)) // the log is compacted
	}
	g.kill(0)
	g.forget(1, 0)
	g.replace(1, 0, 3)
	g.kill(2)
	if got := mustLoad(t, g.store(3)); got.Revision != 31 {
		t.Errorf("revision %d", got.Revision)
	}
}

// The vote passes on only once the successor has the log, and while a majority of the founders, as they are to
// be, answers.
func TestIsReady(t *testing.T) {
	f := founding(5, 0).founders()
	_ = f.forget(4)
	_ = f.replace(Successor{7, "x:1", 4})
	for name, c := range map[string]struct {
		match     uint64
		state     tracker.StateType
		answering []rdma.MachineID // but for the leader, machine 0
		want      bool
	}{
		"all":                        {100, tracker.StateReplicate, []rdma.MachineID{1, 2, 3, 7}, true},
		"a bare majority":            {100, tracker.StateReplicate, []rdma.MachineID{1, 7}, true},
		"almost the log":             {100 - lagMax, tracker.StateReplicate, []rdma.MachineID{1, 2, 7}, true},
		"not the log":                {99 - lagMax, tracker.StateReplicate, []rdma.MachineID{1, 2, 7}, false},
		"a snapshot on its way":      {100, tracker.StateSnapshot, []rdma.MachineID{1, 2, 7}, false},
		"a successor that is silent": {100, tracker.StateReplicate, []rdma.MachineID{1, 2, 3}, false},
		"with who is gone only":      {100, tracker.StateReplicate, []rdma.MachineID{4, 7}, false},
	} {
		status := raft.Status{Progress: make(map[uint64]tracker.Progress)}
		status.ID, status.HardState = raftID(0), hard(3, 0, 100)
		for _, m := range c.answering {
			status.Progress[raftID(m)] = tracker.Progress{Match: c.match, State: c.state, RecentActive: true}
		}
		if got := isReady(status, f); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// The suite passes while founders are killed and replaced one after the other.
func TestConformanceWhileReplacing(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) *storetest.System {
		g := newGroupWith(t, 3, 9)
		s := g.clients(3)
		s.Restart = nil // the machines are not the same for long
		stop, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			g.churn(stop)
		}()
		t.Cleanup(func() {
			close(stop)
			<-done
		})
		return s
	})
}

// churn replaces founders until all of the first are replaced, and it is stopped or no machine is left. Every
// other one is dead before. The clients ask for the founders, as machines do from time to time.
func (g *group) churn(stop <-chan struct{}) {
	for by := g.founded; by < len(g.relays); by++ {
		gone, at := by-3, by-2
		if by%2 == 0 {
			g.kill(gone)
		}
		next := Successor{Machine: rdma.MachineID(by), Address: addressOf(by), For: rdma.MachineID(gone)}
		again(func() bool { // not by Forget: the machines are members in the suite's configurations
			s := g.store(at)
			id := s.newID()
			_, err := s.ask(&request{id: id, change: &change{kind: changeForget, id: id, changeText: changeText{Successor: next}}}, g.patience)
			return err == nil
		})
		again(func() bool { return g.store(at).Replace(next) == nil })
		again(func() bool { return g.founders(at).Next != nil })
		g.join(at, by)
		again(func() bool { return g.know(next) })
		for _, c := range g.asking {
			again(func() bool { f, err := c.Founders(); return err == nil && f.Has(next.Machine) })
		}
		g.kill(gone)
		select {
		case <-stop:
			if gone >= g.founded-1 {
				return
			}
		default:
		}
	}
}

// again calls f until it returns true, or for two minutes.
func again(f func() bool) {
	for begin := time.Now(); !f() && time.Since(begin) < 2*time.Minute; time.Sleep(time.Millisecond) {
	}
}

// Changes that make no sense are refused, here and through a client.
func TestFoundersRefuse(t *testing.T) {
	g := newGroupWith(t, 3, 4)
	mustSwap(t, g.store(0), 0, configuration(1, 0))
	c, _ := g.client()
	forget := func(m rdma.MachineID) func() error {
		return func() error { return errors.Join(g.store(0).Forget(m), c.Forget(m)) }
	}
	replace := func(s Successor) func() error {
		return func() error { return errors.Join(g.store(0).Replace(s), c.Replace(s)) }
	}
	refused := func(want string, f func() error) {
		t.Helper()
		until(t, want, func() bool {
			err := f()
			if !errors.Is(err, cluster.ErrUnreachable) && (!errors.Is(err, ErrFounders) || strings.Count(err.Error(), want) != 2) {
				t.Fatalf("%v, want %s", err, want)
			}
			return !errors.Is(err, cluster.ErrUnreachable)
		})
	}
	refused("machine 1 is a member of configuration 1", forget(1))
	refused("machine 9 does not keep the configuration", forget(9))
	refused("machine 2 is not one that was forgotten", replace(Successor{3, addressOf(3), 2}))
	g.forget(0, 2)
	refused("machine 0 keeps the configuration, or has kept it before", replace(Successor{0, addressOf(0), 2}))
	refused("machine 3 has the address \"\"", replace(Successor{3, "", 2}))
	refused("machine 3 has the address \"127.0.0.1:1\"", replace(Successor{3, addressOf(0), 2}))
}

// Founders are changed in steps, which may come twice, or too late.
func TestFounders(t *testing.T) {
	start := func() Founders { return founding(3, 0).founders() }
	forgotten := func() Founders { f := start(); _ = f.forget(0); return f }
	next := func() Founders { f := forgotten(); _ = f.replace(Successor{3, "x:1", 0}); return f }
	leaving := func() Founders { f := next(); f.vote(); return f }
	left := func() Founders { f := leaving(); f.leave(); return f }
	for name, c := range map[string]struct {
		f    Founders
		c    change
		want string // error, or "" and nothing changes
	}{
		"forgotten twice":          {forgotten(), change{kind: changeForget, changeText: changeText{Successor: Successor{For: 0}}}, ""},
		"forgotten when replaced":  {left(), change{kind: changeForget, changeText: changeText{Successor: Successor{For: 0}}}, ""},
		"a successor twice":        {next(), change{kind: changeReplace, changeText: changeText{Successor: Successor{3, "x:1", 0}}}, ""},
		"a successor once more":    {left(), change{kind: changeReplace, changeText: changeText{Successor: Successor{3, "x:1", 0}}}, ""},
		"two changes at a time":    {leaving(), change{kind: changeReplace, changeText: changeText{Successor: Successor{4, "x:2", 0}}}, "one change at a time"},
		"a founder as a successor": {forgotten(), change{kind: changeReplace, changeText: changeText{Successor: Successor{1, "x:2", 0}}}, "machine 1 keeps"},
		"one that was replaced":    {left(), change{kind: changeReplace, changeText: changeText{Successor: Successor{0, "x:2", 1}}}, "not one that was forgotten"},
		"no founder":               {start(), change{kind: changeForget, changeText: changeText{Successor: Successor{For: 7}}}, "does not keep"},
		"the only founder":         {founding(1, 0).founders(), change{kind: changeForget, changeText: changeText{Successor: Successor{For: 0}}}, "alone"},
	} {
		before := c.f.clone()
		err := c.f.apply(c.c)
		if (err == nil) != (c.want == "") || err != nil && (!errors.Is(err, ErrFounders) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if !reflect.DeepEqual(c.f, before) {
			t.Errorf("%s: %+v has become %+v", name, before, c.f)
		}
	}
}

// A store with one founder gets two more when three are wanted, and goes on without the first, also after a restart of
// all. Fewer are never wanted.
func TestWant(t *testing.T) {
	t.Parallel()
	g := newGroupWith(t, 1, 4)
	c, _ := g.client()
	mustSwap(t, g.store(0), 0, others(1, 0))
	further := func(m int) Successor { return Successor{rdma.MachineID(m), addressOf(m), rdma.MachineID(m)} }
	if err := g.store(0).Replace(further(1)); !errors.Is(err, ErrFounders) || !strings.Contains(err.Error(), "no place is free") {
		t.Errorf("a second founder, though one is wanted: %v", err)
	}
	eventually(t, func() error { return c.Want(3) })
	for _, n := range []int{3, 1} {
		eventually(t, func() error { return g.store(0).Want(n) })
	}
	if f := g.founders(0); f.Wanted != 3 || f.Version != 1 {
		t.Errorf("%+v", f)
	}
	for by := 1; by < 3; by++ {
		eventually(t, func() error { return c.Replace(further(by)) })
		g.join(0, by)
		until(t, "another machine votes", func() bool { return g.know(Successor{Machine: rdma.MachineID(by), For: 99}) })
	}
	if err := g.store(0).Replace(further(3)); !errors.Is(err, ErrFounders) {
		t.Errorf("a fourth founder: %v", err)
	}
	mustSwap(t, g.store(0), 1, others(2, 0))
	for m := range 3 {
		g.kill(m)
	}
	g.start(1)
	g.start(2)
	mustSwap(t, g.store(2), 2, others(3, 0))
	if f := g.founders(2); f.Wanted != 3 || len(f.Machines) != 3 {
		t.Errorf("%+v", f)
	}
}

// Snapshots and changes are read as they were written, and what is not one is refused.
func TestFoundersFormat(t *testing.T) {
	f := founding(3, 0).founders()
	_ = f.forget(2)
	_ = f.replace(Successor{7, "x:1", 2})
	s := state{revision: 4, writer: requestID{1}, configuration: []byte("c"), founders: &f}
	got, err := decodeState(s.encode())
	if err != nil || !reflect.DeepEqual(got, s) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, b := range [][]byte{s.encode()[:stateHeaderBytes+3], s.encode()[:stateHeaderBytes+20], append(s.encode()[:stateHeaderBytes], 2, 0, 0, 0, 0, 0, 0, 0, '{', '}')} {
		if _, err := decodeState(b); !errors.Is(err, ErrDamaged) {
			t.Errorf("%q: %v", b, err)
		}
	}
	c := change{changeReplace, requestID{3}, changeText{Successor: Successor{7, "x:1", 2}}}
	if got, err := decodeChange(c.encode()); err != nil || got != c {
		t.Errorf("%+v, %v", got, err)
	}
	want := change{kind: changeWant, id: requestID{3}, changeText: changeText{Wanted: 3}}
	if got, err := decodeChange(want.encode()); err != nil || got != want || !isChange(want.encode()) {
		t.Errorf("%+v, %v", got, err)
	}
	if b := want.encode(); b[0] <= foundersFormat { // they would take it for damage
		t.Errorf("programs that do not know %+v read it as format %d", want, b[0])
	}
	if b := string(c.encode()[changeHeaderBytes:]); b != `{"Machine":7,"Address":"x:1","For":2}` {
		t.Errorf("earlier programs do not know %s", b)
	}
	unknown := c.encode()
	unknown[1] = 9
	earlier := want.encode()
	earlier[0] = foundersFormat
	for _, b := range [][]byte{unknown, earlier, c.encode()[:changeHeaderBytes+2], c.encode()[:5]} {
		if _, err := decodeChange(b); !errors.Is(err, ErrDamaged) {
			t.Errorf("%q: %v", b, err)
		}
	}
}

// Folders of the version before founders could be replaced are opened, and can be replaced in.
func TestFormatBefore(t *testing.T) {
	g := prepareGroup(t, t.TempDir(), 4, nil)
	g.founded = 3
	for m := range 3 {
		if err := os.CopyFS(g.folderOf(m), os.DirFS(filepath.Join("testdata", "format1", string(rune('0'+m))))); err != nil {
			t.Fatal(err)
		}
		g.start(m)
	}
	if got := mustLoad(t, g.store(0)); !reflect.DeepEqual(got, configuration(5, 3)) {
		t.Errorf("%+v", got)
	}
	g.kill(0)
	g.forget(1, 0)
	g.replace(2, 0, 3)
	g.kill(1)
	if got := mustLoad(t, g.store(3)); got.Revision != 5 {
		t.Errorf("revision %d", got.Revision)
	}
}

// As long as nobody has changed the founders, everything is written in the format of the version before.
func TestFormatIsThatBefore(t *testing.T) {
	folder := t.TempDir()
	if err := Create(folder, founding(3, 0)); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(folder, foundingFile))
	if err != nil || !strings.Contains(string(b), "\"Format\": 1,") {
		t.Errorf("%s, %v", b, err)
	}
	if b := (&state{revision: 1}).encode(); b[0] != entryFormat {
		t.Errorf("a snapshot has format %d", b[0])
	}
}

// While a machine with an earlier program is connected, which would stop at such entries, founders are not
// changed.
func TestEarlierProgram(t *testing.T) {
	s := unopened(founding(3, 0))
	l := s.peers.Load().links[raftID(1)]
	if err := s.checkPrograms(changeReplace); err != nil {
		t.Errorf("nobody is connected: %v", err)
	}
	l.mu.reason = nil
	if err := s.change(&change{kind: changeForget}, time.Second); !errors.Is(err, ErrFounders) || !strings.Contains(err.Error(), "machines [1] have an earlier farmsql") {
		t.Error(err)
	}
	l.mu.knows = knowsChanges
	if err := s.checkPrograms(changeReplace); err != nil {
		t.Error(err)
	}
	f := s.founding.founders()
	f.Line = cluster.Line{1}
	s.peers.Store(&peers{links: s.peers.Load().links, founders: f})
	if err := s.checkPrograms(changeReplace); !errors.Is(err, ErrFounders) {
		t.Errorf("a machine that does not know what a Refounding leaves behind: %v", err)
	}
	l.mu.knows = knowsRefounded
	if err := s.checkPrograms(changeReplace); err != nil {
		t.Error(err)
	}
	if err := s.Want(5); !errors.Is(err, ErrFounders) || !strings.Contains(err.Error(), "machines [1] have an earlier farmsql") {
		t.Errorf("a machine that does not know how many are wanted: %v", err)
	}
	l.mu.knows = knowsFormat
	if err := s.checkPrograms(changeWant); err != nil {
		t.Error(err)
	}
	f.Line, f.Wanted = nil, 3
	if l.mu.knows = knowsChanges; f.needs(changeReplace) != knowsRefounded || !l.isEarlier(f.needs(changeReplace)) {
		t.Error("a machine that drops the number that is wanted")
	}
}

// After a Refounding, a member with an earlier program gets no vote: it would drop a part of the founders, and take later
// changes of them otherwise than the others.
func TestEarlierSuccessor(t *testing.T) {
	r := &replica{store: unopened(founding(3, 0))}
	f := Founders{Next: &Successor{Machine: 1, Address: addressOf(1), For: 1}}
	if r.isTooEarly(f) {
		t.Error("there was no Refounding")
	}
	f.Line = cluster.Line{1}
	f.Line, f.Wanted = nil, 3
	if l := r.store.peers.Load().links[raftID(1)]; l.mu.knows != 0 || !r.isTooEarly(f) {
		t.Error("a program that drops the number that is wanted")
	}
	f.Line, f.Wanted = cluster.Line{1}, 0
	l := r.store.peers.Load().links[raftID(1)]
	for knows, want := range map[byte]bool{0: true, knowsChanges: true, knowsRefounded: false} {
		if l.mu.knows = knows; r.isTooEarly(f) != want {
			t.Errorf("a program that knows format %d: want %v", knows, want)
		}
	}
	if f.Next.Machine = 9; !r.isTooEarly(f) {
		t.Error("a machine without a link")
	}
}

// A message from a machine that has been replaced counts for nothing, though its connection is from before.
func TestMessageOfReplacedMachine(t *testing.T) {
	s := unopened(founding(3, 0))
	vote := &raftpb.Message{Type: raftpb.MsgVoteResp.Enum(), From: new(raftID(1)), To: new(raftID(0))}
	if !s.isPlausible(vote, 1) {
		t.Error("a vote of a founder does not count")
	}
	f := s.founding.founders()
	_ = f.forget(1)
	_ = f.replace(Successor{3, "x:1", 1})
	f.vote()
	f.leave()
	s.peers.Store(&peers{links: map[uint64]*link{raftID(2): s.peers.Load().links[raftID(2)]}, founders: f})
	if s.isPlausible(vote, 1) {
		t.Error("a vote of a machine that was replaced counts")
	}
	s.hasBegun.Store(true)
	if got := s.refusalOf(1); got != removed {
		t.Errorf("it is refused for reason %d", got)
	}
	if got := s.refusalOf(9); got != stranger {
		t.Errorf("a stranger is refused for reason %d", got)
	}
}
