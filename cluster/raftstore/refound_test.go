package raftstore

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"
	"golang.org/x/sys/unix"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/rdma"
)

// refounding begins to refound a machine that does not run.
func (g *group) refounding(m int) *Refounding {
	g.t.Helper()
	r, err := BeginRefounding(g.folderOf(m), Founders{})
	if err != nil {
		g.t.Fatal(err)
	}
	return r
}

// refound makes a machine that does not run the only one, with the configuration of a revision, and starts it.
func (g *group) refound(m int, revision uint64) {
	g.t.Helper()
	r := g.refounding(m)
	defer r.Close()
	if err := r.Refound(inLine(others(revision, 0), r.Founders().Line)); err != nil {
		g.t.Fatal(err)
	}
}

// lose kills the founders once each has the first configuration in its log: a majority is enough for a swap.
func (g *group) lose() {
	g.t.Helper()
	mustSwap(g.t, g.store(0), 0, others(1, 0))
	for m := range g.founded {
		mustLoad(g.t, g.store(m))
	}
	for m := range g.founded {
		g.kill(m)
	}
}

// inLine puts a configuration into a line that goes on from another.
func inLine(c *cluster.Configuration, before cluster.Line) *cluster.Configuration {
	c.Line = append(slices.Clone(before), rand.Uint64())
	return c
}

// absent asks for the others as Refounding.Absent does, and returns only the error.
func (g *group) absent(r *Refounding, cfg Config) error {
	_, err := r.Absent(g.t.Context(), cfg, time.Minute, nil)
	return err
}

// reaching is what a machine of the group reaches others with.
func (g *group) reaching(m int) Config {
	return Config{Dial: through(g.relays[m]), tick: g.tick}
}

// removed waits until a machine has learned that the others go on without it.
func (g *group) removed(m int) {
	g.t.Helper()
	until(g.t, "a machine learns that it was removed", func() bool {
		_, err := g.store(m).Load()
		return errors.Is(err, ErrRemoved)
	})
}

// When a majority is lost, one machine goes on alone with what it has. The others are refused should they come
// back, though they are a majority of before, also when the machine is gone again and they restart; and other machines
// get votes until there are as many as before.
func TestRefound(t *testing.T) {
	t.Parallel()
	g := newGroupWith(t, 3, 5)
	mustSwap(t, g.store(0), 0, others(1, 0))
	mustSwap(t, g.store(2), 1, others(2, 0)) // now machine 2 has it
	for m := range 3 {
		g.kill(m)
	}
	r := g.refounding(2)
	if c, err := r.Configuration(); err != nil || c.Revision != 2 {
		t.Errorf("%+v, %v", c, err)
	}
	if err := g.absent(r, g.reaching(2)); err != nil {
		t.Errorf("all are dead: %v", err)
	}
	if err := r.Refound(inLine(others(2, 0), nil)); err == nil {
		t.Error("refounded with a revision that others may have")
	}
	if err := r.Refound(others(3, 0)); err == nil || !strings.Contains(err.Error(), "is to go on from") {
		t.Errorf("refounded with the line of before: %v", err)
	}
	r.Close()
	g.refound(2, 10)
	g.start(2)
	mustSwap(t, g.store(2), 10, others(11, 0))
	if f := g.founders(2); len(f.Machines) != 1 || !slices.Equal(f.Removed, []rdma.MachineID{0, 1}) || f.Wanted != 3 || len(f.Left) != 2 {
		t.Errorf("%+v", f)
	}
	g.start(0)
	g.start(1)
	for m := range 2 {
		g.removed(m)
		g.kill(m)
	}
	for m := range 2 {
		if _, err := Open(Config{Folder: g.folderOf(m), Listener: closedListener{}, Dial: through(g.relays[m])}); !errors.Is(err, ErrRemoved) {
			t.Errorf("machine %d was removed, and opens: %v", m, err)
		}
		if _, err := BeginRefounding(g.folderOf(m), Founders{}); !errors.Is(err, ErrRemoved) {
			t.Errorf("machine %d was removed, and may be refounded: %v", m, err)
		}
	}
	if err := g.store(2).Forget(0); err != nil {
		t.Errorf("forget a machine that was left behind: %v", err)
	}
	for by := 3; by < 5; by++ {
		s := Successor{Machine: rdma.MachineID(by), Address: addressOf(by), For: rdma.MachineID(by)}
		eventually(t, func() error { return g.store(2).Replace(s) })
		g.join(2, by)
		until(t, "another machine votes", func() bool { return g.founders(by).Has(s.Machine) && g.founders(2).Has(s.Machine) })
	}
	if err := g.store(2).Replace(Successor{Machine: 9, Address: "x:1", For: 9}); !errors.Is(err, ErrFounders) {
		t.Errorf("a fourth founder: %v", err)
	}
	until(t, "all know the founders", func() bool { return len(g.founders(3).Machines) == 3 })
	g.kill(2)
	if got := mustLoad(t, g.store(4)); got.Revision != 11 {
		t.Errorf("revision %d", got.Revision)
	}
	g.start(2) // it is not the only one any more, and one of the others may be lost
	g.kill(3)
	if got := mustLoad(t, g.store(2)); got.Revision != 11 {
		t.Errorf("revision %d after a restart", got.Revision)
	}
	g.forget(4, 3) // as ever
}

// The machine that was refounded may be gone when those that it left behind come back: they do not know the machines that
// keep the configuration now, which tell them. They ask those from then on.
func TestRefoundedIsGone(t *testing.T) {
	g := newGroupWith(t, 3, 5)
	g.lose()
	g.refound(2, 10)
	g.start(2)
	for by := 3; by < 5; by++ {
		s := Successor{Machine: rdma.MachineID(by), Address: addressOf(by), For: rdma.MachineID(by)}
		eventually(t, func() error { return g.store(2).Replace(s) })
		g.join(2, by)
		until(t, "another machine votes", func() bool { return g.founders(by).Has(s.Machine) && g.founders(2).Has(s.Machine) })
	}
	g.kill(2)
	g.start(0) // a majority of before
	g.start(1)
	for m := range 2 {
		g.removed(m)
		if f := g.founders(m); !f.Has(3) || !slices.Contains(f.Removed, rdma.MachineID(m)) {
			t.Errorf("machine %d asks %+v", m, f)
		}
		g.kill(m)
		if _, err := Open(Config{Folder: g.folderOf(m), Listener: closedListener{}, Dial: through(g.relays[m])}); !errors.Is(err, ErrRemoved) {
			t.Errorf("machine %d opens again: %v", m, err)
		}
	}
	mustSwap(t, g.store(3), 10, others(11, 0))
}

// A closedListener is one of a store that does not open.
type closedListener struct{ net.Listener }

// A machine that was refounded, and restarts, goes on: it asks those that it left behind, and none answers.
func TestRefoundedRestarts(t *testing.T) {
	g := newGroupWith(t, 3, 3)
	g.lose()
	g.refound(0, 5)
	for revision := uint64(5); revision < 8; revision++ {
		g.start(0)
		mustSwap(t, g.store(0), revision, others(revision+1, 0))
		g.kill(0)
	}
	if err := UndoRefounding(g.folderOf(0)); !errors.Is(err, errHasBegun) {
		t.Errorf("undone after it has begun: %v", err)
	}
}

// A Refounding that was not begun is undone step by step, and what is missing is said.
func TestUndo(t *testing.T) {
	g := newGroupWith(t, 3, 3)
	g.lose()
	for revision := uint64(5); revision < 7; revision++ {
		g.refound(0, revision)
	}
	if err := keepFormer(g.folderOf(0)); err != nil { // of a third one, which was cut short
		t.Fatal(err)
	}
	for _, want := range []uint64{5, 1} {
		if want == 1 { // the undoing before was cut short
			if err := keepFormer(g.folderOf(0)); err != nil {
				t.Fatal(err)
			}
		}
		if err := UndoRefounding(g.folderOf(0)); err != nil {
			t.Fatal(err)
		}
		r := g.refounding(0)
		if c, err := r.Configuration(); err != nil || c.Revision != want {
			t.Errorf("%+v, %v; want revision %d", c, err, want)
		}
		r.Close()
	}
	g.refound(0, 5)
	s := state{revision: 9, configuration: others(9, 0).Encode(), founders: &Founders{Line: cluster.Line{1}, Machines: founding(3, 0).Machines}}
	snapshot := &raftpb.Snapshot{Data: s.encode(), Metadata: &raftpb.SnapshotMetadata{Index: new(uint64(7)), Term: new(uint64(7)), ConfState: &raftpb.ConfState{Voters: []uint64{1, 2, 3}}}}
	path := filepath.Join(g.folderOf(0), logName)
	refounded, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b, err := encodeLog(record(hard(7, 0, 7), snapshot, nil))
	if err = errors.Join(err, os.WriteFile(path, b, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := UndoRefounding(g.folderOf(0)); !errors.Is(err, errHasBegun) {
		t.Errorf("the snapshot is of others, which have got votes since: %v", err)
	}
	former := filepath.Join(g.folderOf(0), formerLogName+"1")
	if err := errors.Join(os.WriteFile(path, refounded, 0o600), os.Rename(former, former+".kept")); err != nil {
		t.Fatal(err)
	}
	if err := UndoRefounding(g.folderOf(0)); !errors.Is(err, errNotFormer) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is no log of before: %v", err)
	}
	g.refound(0, 9) // with a log of before whose number is free again
	if err := errors.Join(os.Rename(former, formerLog(g.folderOf(0), 7)), os.Rename(former+".kept", former)); err != nil {
		t.Fatal(err)
	}
	if err := UndoRefounding(g.folderOf(0)); err != nil {
		t.Errorf("the latest log of before has another number: %v", err)
	}
	if err := UndoRefounding(g.folderOf(0)); err != nil {
		t.Fatal(err)
	}
	g.refound(0, 5)
	if err := os.WriteFile(formerLog(g.folderOf(0), 8), refounded, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := UndoRefounding(g.folderOf(0)); !errors.Is(err, errNotFormer) {
		t.Errorf("the latest log of before is of another time: %v", err)
	}
	if err := UndoRefounding(filepath.Join(g.folder, "none")); !errors.Is(err, ErrNotCreated) {
		t.Errorf("no folder: %v", err)
	}
}

// The machines that were given up come back before the one that was refounded has begun, and keep the configuration. It
// leaves them alone, and has told nobody that they were removed.
func TestRefoundedTooEarly(t *testing.T) {
	t.Parallel()
	g := newGroupWith(t, 3, 3)
	g.lose()
	g.refound(2, 10)
	g.start(0)
	g.start(1)
	mustSwap(t, g.store(0), 1, others(2, 0))
	asking := make(chan struct{}) // the machine asks once this is closed
	s, address := g.startWith(2, func(ctx context.Context, address string) (net.Conn, error) {
		<-asking
		return through(g.relays[2])(ctx, address)
	})
	only := Founders{Version: 1, Machines: map[rdma.MachineID]string{2: address}}
	c, err := NewClient(ClientConfig{Cluster: testCluster, Machines: founding(3, 0).Machines, Founders: only, Dial: dial, Patience: g.patience, tick: g.tick})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	until(t, "a client is told why it learns nothing", func() bool {
		f, err := c.Founders()
		if !errors.Is(err, cluster.ErrUnreachable) {
			t.Fatalf("a client learns of %+v, %v", f, err)
		}
		return strings.Contains(err.Error(), "was refounded, and asks") // not in time on a slow machine
	})
	until(t, "the others are refused", func() bool {
		l := g.store(0).peers.Load().links[raftID(2)]
		_, reason := l.answeredSince(time.Now())
		return errors.Is(reason, refusals[stranger])
	})
	close(asking)
	until(t, "the machine stops", func() bool { return s.Err() != nil })
	if !errors.Is(s.Err(), ErrNotLost) {
		t.Error(s.Err())
	}
	mustSwap(t, g.store(1), 2, others(3, 0))
	if err := UndoRefounding(g.folderOf(2)); !errors.Is(err, ErrInUse) {
		t.Errorf("undone while the machine runs: %v", err)
	}
	s.Close()
	if err := UndoRefounding(g.folderOf(2)); err != nil {
		t.Fatal(err)
	}
	if err := UndoRefounding(g.folderOf(2)); !errors.Is(err, errNotRefounded) {
		t.Errorf("undone twice: %v", err)
	}
	g.start(2)
	g.kill(0)
	if got := mustLoad(t, g.store(2)); got.Revision != 3 {
		t.Errorf("it takes part again, with revision %d", got.Revision)
	}
}

// A machine that is stopped while it asks has not begun: at the next start it asks again.
func TestRefoundedIsStopped(t *testing.T) {
	g := newGroupWith(t, 3, 3)
	g.lose()
	g.refound(2, 10)
	asked := make(chan struct{}, 100)
	s, _ := g.startWith(2, func(ctx context.Context, address string) (net.Conn, error) {
		asked <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	})
	<-asked
	s.Close()
	if !errors.Is(s.Err(), ErrClosed) {
		t.Error(s.Err())
	}
	g.start(0)
	g.start(1)
	mustSwap(t, g.store(0), 1, others(2, 0))
	s, _ = g.startWith(2, through(g.relays[2]))
	until(t, "the machine stops", func() bool { return s.Err() != nil })
	if !errors.Is(s.Err(), ErrNotLost) {
		t.Error(s.Err())
	}
}

// A machine with an earlier program does not say what it keeps, but it can be asked for the configuration: if it has that,
// the majority of before is back.
func TestRefoundedBesideEarlierPrograms(t *testing.T) {
	g := newGroupWith(t, 3, 3)
	g.lose()
	g.refound(2, 10)
	g.relays[2][0].Retarget(earlierMachine(t))
	s, _ := g.startWith(2, through(g.relays[2]))
	until(t, "the machine stops", func() bool { return s.Err() != nil })
	if err := s.Err(); !errors.Is(err, ErrNotLost) || !strings.Contains(err.Error(), "machine 0 is one of them") {
		t.Error(err)
	}
}

// earlierMachine returns the address of a machine with the program before this one, which has the configuration.
func earlierMachine(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	serve := func(c net.Conn) {
		defer c.Close()
		_, err := readGreeting(c)
		reply := accepted.encode()
		reply[6] = knowsChanges
		_, _ = c.Write(reply)
		for err == nil {
			var k call
			if k, err = readCall(c); err == nil && k.operation == operationLoad {
				r := resultOf(k.id(), others(1, 0).Encode(), nil)
				_, err = c.Write(r.encode())
			} else {
				return // it does not know the call
			}
		}
	}
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { serve(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		running.Wait()
	})
	return l.Addr().String()
}

// Of two machines that were refounded, and begin at once, one waits for what becomes of the other, and then gives way.
func TestRefoundedAtOnce(t *testing.T) {
	t.Parallel()
	g := newGroupWith(t, 3, 3)
	g.lose()
	g.refound(0, 10)
	g.refound(1, 20)
	g.tick = time.Second // they wait for the answers
	asking := make(chan struct{})
	var stores []*Store
	for m := range 2 {
		s, _ := g.startWith(m, func(ctx context.Context, address string) (net.Conn, error) {
			<-asking
			return through(g.relays[m])(ctx, address)
		})
		stores = append(stores, s)
	}
	lower, higher := stores[0], stores[1]
	if lower.peers.Load().founders.Version > higher.peers.Load().founders.Version {
		lower, higher = higher, lower
	}
	close(asking)
	until(t, "one gives way", func() bool { return lower.Err() != nil })
	if !errors.Is(lower.Err(), ErrRemoved) || higher.Err() != nil {
		t.Errorf("%v, %v", lower.Err(), higher.Err())
	}
}

// A machine that was refounded, and has a message's term but no vote of it, has begun all the same.
func TestHasBegun(t *testing.T) {
	g := newGroupWith(t, 3, 3)
	mustSwap(t, g.store(0), 0, others(1, 0))
	g.kill(0)
	g.refound(0, 10)
	_, l, err := openFolder(g.folderOf(0))
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	if l.hasBegun() {
		t.Error("it has begun before it has run")
	}
	now, _, _ := l.memory.InitialState()
	mustAppend(t, l, hard(now.GetTerm()+1, 0, now.GetCommit()))
	if !l.hasBegun() {
		t.Error("it has not begun in a later term")
	}
}

// startWith starts a machine that reaches others by dialer, and waits long for their answers.
func (g *group) startWith(m int, dialer func(ctx context.Context, address string) (net.Conn, error)) (s *Store, address string) {
	g.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		g.t.Fatal(err)
	}
	g.retarget(m, l.Addr().String())
	s, err = Open(Config{Folder: g.folderOf(m), Listener: l, Dial: dialer, tick: max(g.tick, 200*time.Millisecond)})
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { s.Close() })
	return s, l.Addr().String()
}

func dial(ctx context.Context, address string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", address)
}

// Of two machines that were refounded, the one that starts later has changed nothing yet, and asks the other one from
// then on, whose founders it knows.
func TestRefoundedTwice(t *testing.T) {
	g := newGroupWith(t, 3, 3)
	g.lose()
	g.refound(0, 10)
	g.refound(1, 20)
	g.start(1)
	mustSwap(t, g.store(1), 20, others(21, 0))
	g.tick = time.Second // it waits for the answer
	g.start(0)
	g.removed(0)
	if f := g.founders(0); !f.Has(1) || !slices.Contains(f.Removed, 0) {
		t.Errorf("%+v", f)
	}
	mustSwap(t, g.store(1), 21, others(22, 0))
	g.kill(0)
	if _, err := BeginRefounding(g.folderOf(0), Founders{}); !errors.Is(err, ErrRemoved) {
		t.Error(err)
	}
}

// What cannot be written is an error, and the log is as it was.
func TestRefoundCannotWrite(t *testing.T) {
	g := newGroupWith(t, 3, 3)
	mustSwap(t, g.store(0), 0, others(1, 0))
	g.kill(0)
	r := g.refounding(0)
	defer r.Close()
	for _, name := range []string{formerLogName + "1", logName} { // the second has a copy by then
		inTheWay := filepath.Join(g.folderOf(0), name+".new")
		if err := errors.Join(os.RemoveAll(inTheWay), os.MkdirAll(filepath.Join(inTheWay, "x"), 0o700)); err != nil {
			t.Fatal(err)
		}
		if err := r.Refound(inLine(others(9, 0), nil)); err == nil {
			t.Errorf("%s cannot be written", name)
		}
		if c, err := r.Configuration(); err != nil || c.Revision != 1 {
			t.Errorf("%+v, %v", c, err)
		}
		if err := os.RemoveAll(inTheWay); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.read(); err != nil || len(r.founders.Machines) != 3 {
		t.Errorf("%+v, %v", r.founders, err)
	}
	if err := r.founding.saveEnd(filepath.Join(g.folder, "none"), ErrRemoved); err == nil || !strings.Contains(err.Error(), "has ended for good") {
		t.Error(err)
	}
}

// The founders that the machine has learned as a client may be later than those of its log.
func TestRefoundLearns(t *testing.T) {
	g := newGroupWith(t, 3, 3)
	mustSwap(t, g.store(0), 0, others(1, 0))
	g.kill(0)
	known := Founders{Version: 4, Machines: map[rdma.MachineID]string{1: addressOf(1), 2: addressOf(2), 3: addressOf(3)}, Removed: []rdma.MachineID{0}}
	if _, err := BeginRefounding(g.folderOf(0), known); !errors.Is(err, ErrRemoved) {
		t.Errorf("replaced, and refounded: %v", err)
	}
	known = Founders{Version: 4, Machines: map[rdma.MachineID]string{0: addressOf(0), 2: addressOf(2), 3: addressOf(3)}, Removed: []rdma.MachineID{1}}
	r, err := BeginRefounding(g.folderOf(0), known)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	f := r.refounded(cluster.Line{1})
	if !slices.Equal(f.Removed, []rdma.MachineID{1, 2, 3}) || f.Version <= 1<<generationShift-1 || f.Highest() != 3 {
		t.Errorf("%+v", f)
	}
}

// A machine that runs, one whose companions answer, and one that has nothing are not refounded.
func TestRefoundRefuses(t *testing.T) {
	g := newGroupWith(t, 5, 5)
	mustSwap(t, g.store(0), 0, others(1, 0))
	if _, err := BeginRefounding(g.folderOf(0), Founders{}); !errors.Is(err, ErrInUse) {
		t.Errorf("a machine that runs: %v", err)
	}
	g.kill(0)
	r := g.refounding(0)
	defer r.Close()
	if err := g.absent(r, g.reaching(0)); !errors.Is(err, errAnswers) || !strings.HasPrefix(err.Error(), "machine ") {
		t.Error(err)
	}
	secured := g.reaching(0)
	secured.TLS = certificates(t)
	g.relays[0][1].Retarget(distrusted(t))
	if err := g.absent(r, secured); !errors.Is(err, errAnswers) || !strings.Contains(err.Error(), "not as one that can be trusted") {
		t.Errorf("certificates of another authority: %v", err)
	}
	for m := 1; m < 5; m++ { // another machine has its address now
		if m != 3 {
			g.kill(m)
			g.relays[0][m].Retarget(g.addresses[3])
		}
	}
	if err := g.absent(r, g.reaching(0)); !errors.Is(err, errAnswers) || !strings.HasPrefix(err.Error(), "machine 3 at ") {
		t.Errorf("machine 3 is there, also at the addresses of the others: %v", err)
	}
	empty := filepath.Join(t.TempDir(), "x")
	if _, err := BeginRefounding(empty, Founders{}); !errors.Is(err, ErrNotCreated) {
		t.Errorf("no folder: %v", err)
	}
	if err := Create(empty, founding(3, 0)); err != nil {
		t.Fatal(err)
	}
	if _, err := BeginRefounding(empty, Founders{}); !errors.Is(err, errNoFounder) {
		t.Errorf("a founder without a configuration: %v", err)
	}
	if err := os.WriteFile(filepath.Join(empty, logName), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := BeginRefounding(empty, Founders{}); !errors.Is(err, ErrDamaged) {
		t.Errorf("a damaged log: %v", err)
	}
}

// distrusted returns the address of somebody with a certificate of another authority.
func distrusted(t *testing.T) string {
	l, err := tls.Listen("tcp", "127.0.0.1:0", certificates(t))
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.(*tls.Conn).Handshake() // fails
			c.Close()
		}
	})
	t.Cleanup(func() {
		l.Close()
		running.Wait()
	})
	return l.Addr().String()
}

// Entries that nobody knows to be committed count, because those that are lost may have committed them; so do
// changes of the votes.
func TestRefoundTakesAll(t *testing.T) {
	folder := t.TempDir()
	if err := Create(folder, founding(3, 0)); err != nil {
		t.Fatal(err)
	}
	l, err := openLog(filepath.Join(folder, logName))
	if err != nil {
		t.Fatal(err)
	}
	entryOf := func(index uint64, kind raftpb.EntryType, data []byte) *raftpb.Entry {
		return &raftpb.Entry{Index: new(index), Term: new(uint64(1)), Type: &kind, Data: data}
	}
	first, _ := newSwap(requestID{1}, 0, others(1, 0))
	second, _ := newSwap(requestID{2}, 1, others(2, 0))
	forget := change{kind: changeForget, changeText: changeText{Successor: Successor{For: 1}}}
	replace := change{kind: changeReplace, changeText: changeText{Successor: Successor{3, addressOf(3), 1}}}
	_, vote, _ := raftpb.MarshalConfChange(votesChange(raftID(3), raftpb.ConfChangeAddNode))
	mustAppend(t, l, hard(1, 0, 1), entryOf(2, raftpb.EntryNormal, first.encode()), entryOf(3, raftpb.EntryNormal, second.encode()),
		entryOf(4, raftpb.EntryNormal, forget.encode()), entryOf(5, raftpb.EntryNormal, replace.encode()), entryOf(6, raftpb.EntryConfChangeV2, vote))
	if err := l.close(); err != nil {
		t.Fatal(err)
	}
	known := func(version uint64) { // the founders and the configuration, of any number of Refoundings
		t.Helper()
		r, err := BeginRefounding(folder, Founders{})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		c, err := r.Configuration()
		if err != nil || c.Revision != 2+version>>generationShift || r.founders.Version>>generationShift != version>>generationShift {
			t.Errorf("%+v, %v, %+v", c, err, r.founders)
		}
		if f := r.refounded(cluster.Line{1}); !slices.Equal(f.Removed, []rdma.MachineID{1, 2, 3}) || len(f.Left) != 3 || f.Wanted != 3 {
			t.Errorf("%+v", f)
		}
		last, term := r.last, r.term
		if err := r.Refound(inLine(others(c.Revision+1, 0), c.Line)); err != nil {
			t.Fatal(err)
		}
		if err := r.read(); err != nil || r.last-last < 1<<31 || r.term-term < 1<<31 {
			t.Errorf("entry %d of term %d, after %d of %d; %v", r.last, r.term, last, term, err)
		}
	}
	known(0)
	known(1 << generationShift)
	known(2 << generationShift)
	for n := range 3 { // all are kept
		path := filepath.Join(folder, fmt.Sprint(formerLogName, n+1))
		b, err := os.ReadFile(path)
		if isFirst := len(b) > 500 && !bytes.Contains(b, []byte("Left")); err != nil || isFirst != (n == 0) {
			t.Errorf("%s has %d bytes, %v", path, len(b), err)
		}
	}
	r, err := BeginRefounding(folder, Founders{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	r.folder = filepath.Join(folder, "none")
	if err := r.Refound(inLine(others(9, 0), r.Founders().Line)); err == nil {
		t.Error("a folder that is not there")
	}
}

// A change of the votes that does not follow from the founders is left out, as when the log is applied; and one that is
// under way when the majority is lost makes both the old founder and the new one machines that were left behind.
func TestRefoundVotes(t *testing.T) {
	entryOf := func(c *raftpb.ConfChangeV2) *raftpb.Entry {
		_, b, _ := raftpb.MarshalConfChange(c)
		return &raftpb.Entry{Type: raftpb.EntryConfChangeV2.Enum(), Data: b}
	}
	r := &Refounding{founding: founding(3, 0), votes: &raftpb.ConfState{Voters: []uint64{1, 2, 3}}}
	r.founders = r.founding.founders()
	learner := votesChange(raftID(3), raftpb.ConfChangeAddLearnerNode)
	vote := votesChange(raftID(3), raftpb.ConfChangeAddNode)
	vote.Changes = append(vote.Changes, votesChange(raftID(1), raftpb.ConfChangeRemoveNode).Changes...)
	must := func(e *raftpb.Entry, voters, outgoing, learners int) {
		t.Helper()
		if err := r.apply(e); err != nil || len(r.votes.GetVoters()) != voters || len(r.votes.GetVotersOutgoing()) != outgoing || len(r.votes.GetLearners()) != learners {
			t.Errorf("%+v, %v", r.votes, err)
		}
	}
	must(entryOf(learner), 3, 0, 0) // nobody was forgotten
	_ = r.founders.forget(1)
	_ = r.founders.replace(Successor{Machine: 3, Address: addressOf(3), For: 1})
	must(entryOf(vote), 3, 0, 0) // it is no learner yet
	must(entryOf(learner), 3, 0, 1)
	must(entryOf(learner), 3, 0, 1) // of two leaders
	must(entryOf(vote), 3, 3, 0)
	if f := r.refounded(cluster.Line{1}); !slices.Equal(f.Removed, []rdma.MachineID{1, 2, 3}) {
		t.Errorf("%+v", f)
	}
	must(entryOf(new(raftpb.ConfChangeV2)), 3, 0, 0)
	if f := r.founders; f.Has(1) || !f.Has(3) || !slices.Equal(f.Removed, []rdma.MachineID{1}) {
		t.Errorf("%+v", f)
	}
	if err := r.apply(&raftpb.Entry{Type: raftpb.EntryConfChangeV2.Enum(), Data: []byte("x")}); !errors.Is(err, ErrDamaged) {
		t.Error(err)
	}
}

// A machine whose host is gone does not keep others from being asked, nor does it look as if they were lost, too.
func TestAbsent(t *testing.T) {
	g := newGroupWith(t, 3, 3)
	mustSwap(t, g.store(0), 0, others(1, 0))
	g.kill(0)
	r := g.refounding(0)
	defer r.Close()
	reasons := map[string]error{addressOf(1): nil} // nil for one that never answers
	cfg := Config{Dial: func(ctx context.Context, address string) (net.Conn, error) {
		reason, known := reasons[address]
		if known && reason == nil {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		if known {
			return nil, reason
		}
		return through(g.relays[0])(ctx, address)
	}}
	asks := func(patience time.Duration, lost ...rdma.MachineID) ([]Absence, error) {
		return r.Absent(t.Context(), cfg, patience, lost)
	}
	if all, err := asks(time.Hour); !errors.Is(err, errAnswers) || !strings.HasPrefix(err.Error(), "machine 2 at ") {
		t.Errorf("%+v, %v", all, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Absent(ctx, cfg, time.Minute, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped before it has asked: %v", err)
	}
	reasons[addressOf(2)] = &net.OpError{Op: "dial", Err: unix.ECONNREFUSED}
	if all, err := asks(time.Millisecond); err != nil || len(all) != 2 || !errors.Is(all[0].Reason, context.DeadlineExceeded) || !errors.Is(all[1].Reason, unix.ECONNREFUSED) {
		t.Errorf("%+v, %v", all, err)
	}
	for _, local := range []error{&net.DNSError{Err: "no such host", IsNotFound: true}, &net.DNSError{Err: "time is up", IsTimeout: true}, unix.ENETUNREACH, unix.EMFILE} {
		reasons[addressOf(2)] = &net.OpError{Op: "dial", Err: local}
		if _, err := asks(time.Millisecond, 1); !errors.Is(err, ErrNotAsked) || !strings.HasPrefix(err.Error(), "machine 2 at ") {
			t.Errorf("%v: %v", local, err)
		}
		if _, err := asks(time.Millisecond, 2); err != nil {
			t.Errorf("%v, and the operator says that it is lost: %v", local, err)
		}
	}
	hangs, err := net.Listen("tcp", "127.0.0.1:0") // a connection waits to be accepted
	if err != nil {
		t.Fatal(err)
	}
	defer hangs.Close()
	hanging := Config{TLS: certificates(t), Dial: func(context.Context, string) (net.Conn, error) { return dial(t.Context(), hangs.Addr().String()) }}
	if _, err := r.Absent(t.Context(), hanging, 50*time.Millisecond, nil); !errors.Is(err, errHangs) {
		t.Errorf("a process that is stopped: %v", err)
	}
	delete(reasons, addressOf(2))
	if _, err := asks(time.Hour, 1, 2); !errors.Is(err, errAnswers) {
		t.Errorf("it answers, and the operator says that it is lost: %v", err)
	}
}
