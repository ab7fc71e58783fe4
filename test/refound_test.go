package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/farmsql/farmsql/cluster/raftstore"
	"github.com/farmsql/farmsql/rdma"
)

// refound runs farmsql refound at a machine, with the revision that the fleet's configuration had, and returns what it
// prints.
func (m *machine) refound(newest uint64, more ...string) string {
	args := append([]string{"refound", "--data", m.data(), "--newest", strconv.FormatUint(newest, 10)}, more...)
	cmd := exec.Command(m.fleet.program, args...)
	others := slices.DeleteFunc([]string{"0", "1", "2"}, func(id string) bool { return id == strconv.Itoa(m.id) })
	cmd.Stdin = strings.NewReader("refound machine " + strconv.Itoa(m.id) + ", " + strings.Join(others, " ") + " switched off\n")
	out, _ := cmd.CombinedOutput() // the text says it
	return string(out)
}

// mustRefound makes a machine the only one that keeps the configuration.
func (m *machine) mustRefound(newest uint64) {
	m.fleet.t.Helper()
	out := m.refound(newest)
	if !strings.Contains(out, "machine "+strconv.Itoa(m.id)+" alone keeps the configuration: start it") {
		m.fleet.t.Fatalf("not refounded: %s", out)
	}
}

// keepers waits until n machines keep the configuration, and returns them.
func (f *fleet) keepers(n int) (keepers raftstore.Founders) {
	f.t.Helper()
	f.wait(strconv.Itoa(n)+" machines to keep the configuration", func() bool {
		var err error
		keepers, err = f.store.(*raftstore.Client).Founders()
		return err == nil && len(keepers.Machines) == n
	})
	return keepers
}

// says waits until a machine has logged a message that begins so.
func (m *machine) says(message string) {
	m.fleet.t.Helper()
	m.fleet.wait("machine "+strconv.Itoa(m.id)+" to say: "+message, func() bool {
		_, found := m.find(time.Time{}, func(e *event) bool { return strings.HasPrefix(e.Message, message) })
		return found
	})
}

// TestRefound: two of the three machines that keep the configuration are lost for good at once, so that nobody
// can change it any more. The third, refounded, goes on alone with the newest, the other machines follow it, which have
// not been stopped, and two of them keep the configuration with it from then on.
func TestRefound(t *testing.T) {
	f := newJoiningFleet(t, 3, newPeers(t))
	f.start()
	f.awaitWhole()
	f.grow()
	f.grow()
	l := &fleetLoad{t: t, fleet: f, seed: seedOf(t)}
	l.prepare()
	l.begin(l.transfer, l.replace)
	l.end()
	newest := f.configuration().Revision
	if out := f.machines[0].refound(newest); !strings.Contains(out, "in use") {
		t.Fatalf("refounded while it runs: %s", out)
	}
	f.hasNewest(f.machines[0])
	f.machines[0].kill()
	f.machines[1].kill()
	if out := f.machines[0].refound(newest + 100); !strings.Contains(out, "does not have the newest configuration") {
		t.Fatalf("refounded with an older configuration: %s", out)
	}
	newest = f.newestAt(f.machines[0])
	if out := f.machines[0].refound(newest); !strings.Contains(out, "is not lost: machine 2 at ") {
		t.Fatalf("refounded while another one runs: %s", out)
	}
	f.machines[2].kill()
	f.machines[0].mustRefound(newest)
	if out := f.machines[0].refound(newest); !strings.Contains(out, "this machine alone keeps the configuration already") {
		t.Fatalf("refounded twice: %s", out)
	}
	f.machines[0].start()
	f.wait("the survivors to go on", func() bool {
		return slices.Equal(f.configuration().Machines, []rdma.MachineID{0, 3, 4})
	})
	f.keepers(3)
	for _, m := range []*machine{f.machines[0], f.machines[3], f.machines[4]} {
		l.verify(m)
	}
}

// hasNewest waits until a machine has logged that it keeps the configuration that the fleet has, and has applied it.
// Otherwise its memory may be of a later one than its log when it is killed.
func (f *fleet) hasNewest(m *machine) {
	f.t.Helper()
	f.wait("machine "+strconv.Itoa(m.id)+" to keep the newest configuration", func() bool {
		newest := f.configuration().Revision
		_, found := m.find(time.Time{}, func(e *event) bool { return e.Message == "configuration kept" && e.Revision >= newest })
		return found
	})
}

// newestAt returns the revision that a machine has which does not run.
func (f *fleet) newestAt(m *machine) uint64 {
	f.t.Helper()
	b, _ := exec.Command(f.program, "refound", "--data", m.data()).CombinedOutput() // the text says it
	out := string(b)
	_, rest, ok := strings.Cut(out, " has revision ")
	n, err := strconv.ParseUint(strings.Fields(rest + " ?")[0], 10, 64)
	if !ok || err != nil || !strings.Contains(out, "--newest is missing") {
		f.t.Fatalf("refound says: %s", out)
	}
	return n
}

// TestRefoundedFromOlder: the machine that is refounded does not have the newest configuration, of which the operator does
// not know. A machine that has been in that does not mix what it has with what the other has; the cluster goes on without it,
// as it was in the older configuration.
func TestRefoundedFromOlder(t *testing.T) {
	f := newJoiningFleet(t, 3, newPeers(t))
	f.start()
	f.awaitWhole()
	f.grow()
	l := &fleetLoad{t: t, fleet: f, seed: seedOf(t)}
	l.prepare()
	older, newer := f.machines[0], f.machines[3]
	f.hasNewest(older)
	older.kill()
	f.wait("the others to go on, with machine 3", func() bool {
		c := f.configuration()
		_, found := newer.find(time.Time{}, func(e *event) bool { return e.Message == "configuration applied" && e.ID == uint64(c.ID) })
		return len(c.Machines) == 3 && found
	})
	f.machines[1].kill()
	f.machines[2].kill()
	older.mustRefound(f.newestAt(older))
	f.machines = f.machines[:3] // machine 3 may end
	older.start()
	f.wait("machine 3 to end", func() bool { return newer.died() != nil })
	if last := newer.lines[len(newer.lines)-1]; !strings.Contains(last, "the memory of this machine is newer") {
		t.Errorf("it ends with: %s", last)
	}
	if older.serves() {
		t.Error("it goes on with half of the machines that it knows")
	}
	older.kill()
	if out := older.refound(f.newestAt(older), "--yes", "--lost", "3"); !strings.Contains(out, "alone keeps the configuration: start it") {
		t.Fatalf("not refounded: %s", out)
	}
	older.start()
	f.wait("it to go on alone", func() bool { return slices.Equal(f.configuration().Machines, []rdma.MachineID{0}) })
	f.wait("it to serve", older.serves)
	l.verify(older)
}

// TestRefoundOfThree: of the three machines that a cluster has, two are lost for good. The third goes on with all data,
// though it is no majority of those that were members. A new machine joins, gets a vote, and everything restarts. One of
// those that were lost is back with its old folder: it is refused, also after it has restarted, and becomes a member that
// asks the others.
func TestRefoundOfThree(t *testing.T) {
	f := newJoiningFleet(t, 3, newPeers(t))
	f.start()
	f.awaitWhole()
	l := &fleetLoad{t: t, fleet: f, seed: seedOf(t)}
	l.prepare()
	l.begin(l.transfer, l.replace)
	l.end()
	lost, survivor := f.machines[1], f.machines[0]
	f.hasNewest(survivor)
	f.killAll()
	survivor.mustRefound(f.newestAt(survivor))
	survivor.start()
	f.wait("the survivor to go on", func() bool { return slices.Equal(f.configuration().Machines, []rdma.MachineID{0}) })
	f.wait("it to serve", survivor.serves)
	l.verify(survivor)
	f.machines, f.replicas = []*machine{survivor}, 2 // as many as there will be machines
	joined := f.growAs(3)
	f.keepers(2)
	f.killAll()
	survivor.start()
	joined.start()
	f.awaitWhole()
	l.verify(joined)

	for range 2 {
		lost.start()
		f.wait("the machine that was lost to be a member", func() bool { return len(f.configuration().Machines) == 3 })
		lost.kill()
		f.wait("the others to go on", func() bool { return len(f.configuration().Machines) == 2 })
	}
	lost.says("this machine does not keep the configuration any more")
	if keepers := f.keepers(2); keepers.Has(1) || !slices.Equal(keepers.Removed, []rdma.MachineID{1, 2}) {
		t.Errorf("%+v", keepers)
	}
	if out := lost.refound(1<<62, "--older"); !strings.Contains(out, "goes on without this machine") {
		t.Errorf("a machine that was left behind is refounded: %s", out)
	}
	lost.start()
	f.wait("it to be a member again", func() bool { return len(f.configuration().Machines) == 3 })
	f.wait("it to serve", lost.serves)
	l.verify(lost)
	b, err := os.ReadFile(filepath.Join(lost.data(), "peer", "store", "store.json"))
	if err != nil || !strings.Contains(string(b), `"IsRemoved": true`) {
		t.Errorf("%s, %v", b, err)
	}
}

// TestRefoundedTwice: two operators refound two machines of three. The one that starts first goes on; the other one finds
// it before it has changed anything, and becomes a member that asks it, with all that it has.
func TestRefoundedTwice(t *testing.T) {
	f := newJoiningFleet(t, 3, newPeers(t))
	f.start()
	f.awaitWhole()
	l := &fleetLoad{t: t, fleet: f, seed: seedOf(t)}
	l.prepare()
	l.begin(l.transfer, l.replace)
	l.end()
	first, second := f.machines[0], f.machines[2]
	f.hasNewest(first)
	f.hasNewest(second)
	f.killAll()
	for _, m := range []*machine{first, second} {
		m.mustRefound(f.newestAt(m))
	}
	first.start()
	f.wait("the first to go on", func() bool { return slices.Equal(f.configuration().Machines, []rdma.MachineID{0}) })
	f.wait("it to serve", first.serves)
	f.wait("the status to say what is missing", func() bool {
		out, _ := exec.Command(f.program, "status", "--data", first.data()).Output()
		return strings.Contains(string(out), "machine 0 alone keeps the configuration; there should be 3")
	})
	second.start()
	second.says("this machine does not keep the configuration any more")
	f.wait("the second to be a member", func() bool { return slices.Equal(f.configuration().Machines, []rdma.MachineID{0, 2}) })
	f.wait("it to serve", second.serves)
	for _, m := range []*machine{first, second} {
		l.verify(m)
	}
	if keepers := f.keepers(1); !keepers.Has(0) || !slices.Equal(keepers.Removed, []rdma.MachineID{1, 2}) {
		t.Errorf("%+v", keepers)
	}
}
