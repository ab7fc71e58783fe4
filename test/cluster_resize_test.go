package test

import (
	"context"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/farmsql/farmsql/cluster"
)

// TestResize: the number of replicas grows from two to three and shrinks to one while clients write at all machines.
// One of them is killed while regions grow, and all are killed when their number has just been noted; their command
// lines give the number with which the cluster was made all the time. Whoever asks for what is impossible is told why.
// Nothing that was acknowledged is missing, and all replicas are equal in the end.
func TestResize(t *testing.T) {
	f := newFleet(t, 4, 2, "")
	f.start()
	l := &fleetLoad{t: t, fleet: f, seed: seedOf(t)}
	l.prepare()
	f.awaitWhole()
	l.begin(l.transfer, l.replace, l.read)
	resize := func(text string, more ...string) {
		t.Helper()
		if out, code := f.farmsql("", append([]string{"resize"}, more...)...); code != 0 || !strings.Contains(out, text) {
			t.Fatalf("resize %v: status %d: %s", more, code, out)
		}
	}
	for n, text := range map[string]string{"5": "in 4 failure domains, and 5 replicas need as many", "65": "must be 1 to 64", "-1": "must be 1 to 64", "1": "not confirmed"} {
		if out, code := f.farmsql("", "resize", "--replicas="+n); code != 1 || !strings.Contains(out, text) {
			t.Errorf("to %s: status %d: %s", n, code, out)
		}
	}

	resize("regions have 3 replicas\n", "--replicas", "3")
	f.haveReplicas(3)
	victim := f.machines[3]
	resize("regions get 4 replicas\n", "--replicas", "4", "--no-wait")
	victim.kill()
	f.wait("the others to go on", func() bool { return !f.isMember(victim) })
	victim.start()
	resize("regions have 4 replicas\n", "--replicas", "4")
	f.haveReplicas(4)
	l.end()
	for _, m := range f.machines {
		l.verify(m)
	}

	resize("regions get 3 replicas\n", "--replicas", "3", "--no-wait")
	killed := time.Now()
	for _, m := range f.machines {
		m.kill()
	}
	for _, m := range f.machines {
		m.start()
	}
	f.awaitServing()
	resize("regions have 3 replicas\n", "--replicas", "3")
	f.haveReplicas(3)
	resize("regions have 1 replica\n", "--replicas", "1", "--yes")
	f.haveReplicas(1)
	for _, m := range f.machines {
		l.verify(m)
		f.wait("the log to say that the number given is another one", func() bool {
			_, found := m.find(killed, func(e *event) bool { return strings.Contains(e.Message, "(--replicas) is ignored") })
			return found
		})
	}
	resize("regions have 2 replicas\n", "--replicas", "2")
	f.haveReplicas(2)
	f.terminate()
	f.check()
}

// TestResizeOfAClusterOfOne: a cluster that one machine has begun, with one replica, alone keeps the configuration. Two
// machines join it, and regions get three replicas: then all three keep the configuration, and the first may be lost. As
// long as it is away nobody is told that all regions have three replicas.
func TestResizeOfAClusterOfOne(t *testing.T) {
	f := newJoiningFleet(t, 1, newPeers(t))
	f.joining.replicas = 1
	f.start()
	f.awaitWhole()
	f.grow()
	f.grow()
	l := &fleetLoad{t: t, fleet: f, seed: seedOf(t)}
	l.prepare()
	l.begin(l.transfer, l.replace)
	out, err := f.machines[0].resize(3)
	if err != nil || !strings.Contains(out, "regions have 3 replicas\n") || !strings.HasSuffix(out, "3 machines keep the configuration\n") {
		t.Fatalf("%v: %s", err, out)
	}
	l.end()
	f.haveReplicas(3)
	if keepers := f.keepers(3); keepers.Wanted != 3 {
		t.Errorf("%+v", keepers)
	}
	f.machines[0].kill()
	f.wait("the others to go on", func() bool { return !f.isMember(f.machines[0]) })
	for _, m := range f.machines[1:] {
		l.verify(m)
	}
	if out, err := f.machines[1].resize(3); err == nil || !strings.Contains(out, "fewer than 3 replicas, since machines are away") {
		t.Errorf("%v: %s", err, out)
	}
	f.machines[0].start()
	f.replicas = 3
	f.awaitWhole()
	if out, err := f.cm().resize(3); err != nil { // it is told at once that regions are filled
		t.Errorf("%v: %s", err, out)
	}
}

// resize asks a machine for another number of replicas, and returns what farmsql prints.
func (m *machine) resize(replicas int) (string, error) {
	ctx, cancel := context.WithTimeout(m.fleet.t.Context(), startTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, m.fleet.program, "resize", "--data", m.data(), "--replicas", strconv.Itoa(replicas)).CombinedOutput()
	return string(out), err
}

// haveReplicas checks that all regions have n replicas, all of them filled.
func (f *fleet) haveReplicas(n int) {
	f.t.Helper()
	c := f.configuration()
	isOther := func(p cluster.Placement) bool { return len(p.Replicas()) != n || len(p.Filling) > 0 || p.Had != 0 }
	if c.Replicas != n || slices.ContainsFunc(c.Regions, isOther) {
		f.t.Errorf("regions have other than %d replicas: %+v", n, c)
	}
}
