package test

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/protocol"
)

// An earlier is an earlier farmsql, which is built from the history of this repository.
type earlier struct {
	name, commit string
	// fleet makes a cluster of three machines in a way that the program knows.
	fleet func(t *testing.T) *fleet
}

// earliers are where a range of versions that programs speak has begun or ended.
var earliers = []earlier{
	{
		"the last that does not say what it speaks, on one host", "a67ffaa5a6e1699b3c1e0534ea76463421c6dbc0",
		func(t *testing.T) *fleet { return newFleet(t, 3, 2, "") },
	},
	{
		"the first whose formats have versions, on one host", "7543fb127eae954d90f320eef63058defd54e991",
		func(t *testing.T) *fleet { return newFleet(t, 3, 2, "") },
	},
	{
		"the last before moves, over TCP and with a store of its own", "26eb00667ae00e142f8b2afaa97474a559990fe7",
		func(t *testing.T) *fleet { return newJoiningFleet(t, 3, newPeers(t)) },
	},
	{
		"the last of version 3, over TCP and with a store of its own", "e1d2e0872c2c97aedf2e64aefe5afa06319ea3de",
		func(t *testing.T) *fleet { return newJoiningFleet(t, 3, newPeers(t)) },
	},
	{
		"the last of version 3, on one host", "e1d2e0872c2c97aedf2e64aefe5afa06319ea3de",
		func(t *testing.T) *fleet { return newFleet(t, 3, 2, "") },
	},
}

// TestRollingUpgrade replaces the program of each machine of a cluster by this one, machine by machine,
// while clients append to lists and transfer money at all of them. As long as a machine runs the
// earlier program, any other may go back to it, and what needs the new version of the protocol is
// refused; afterwards it is granted, and the earlier program is refused. Nothing that was acknowledged
// is missing, what the clients have seen is strictly serializable, and each of them gets answers again
// after each step. The earlier programs are built first, which takes a minute each: in the nightly mode.
func TestRollingUpgrade(t *testing.T) {
	if !nightly {
		t.Skip("builds earlier programs: only in the nightly mode")
	}
	for _, e := range earliers {
		t.Run(e.name, func(t *testing.T) {
			program := e.build(t)
			f := e.fleet(t)
			for _, m := range f.machines {
				m.program = program
			}
			(&upgrade{f: f, earlier: program}).run()
		})
	}
}

// build builds the program, and returns its file. The test fails where the history is not there: it would
// be the same as no test.
func (e earlier) build(t *testing.T) string {
	t.Helper()
	if out, err := exec.Command("git", "cat-file", "-e", e.commit+"^{commit}").CombinedOutput(); err != nil {
		t.Fatalf("commit %s, from which the earlier program is built, is not here: run the nightly mode in a full clone of the repository (git fetch --unshallow): %v %s", e.commit, err, out)
	}
	folder := t.TempDir()
	source, program := filepath.Join(folder, "source"), filepath.Join(folder, "farmsql")
	// Without the paths in it, the next run finds what this one has compiled.
	const script = `set -e; mkdir "$2"; (cd .. && git archive "$1") | tar -x -C "$2"; cd "$2"; go build -trimpath -pgo=off -tags gms_pure_go -o "$3" ./cmd/farmsql`
	if out, err := exec.Command("sh", "-c", script, "sh", e.commit, source, program).CombinedOutput(); err != nil {
		t.Fatalf("building commit %s: %v\n%s", e.commit, err, out)
	}
	return program
}

// An upgrade is a fleet whose machines run an earlier program at first.
type upgrade struct {
	f       *fleet
	earlier string // the file of the earlier program
	load    *listLoad
}

func (u *upgrade) run() {
	t, f := u.f.t, u.f
	t.Helper()
	// A machine that a busy computer keeps from renewing its lease is evicted: if it is the last of the
	// earlier program, there is no way back from then on.
	f.more = []string{"--lease", "3s"}
	f.keepLogs()
	f.start()
	f.awaitWhole()
	before := f.configuration().Version()
	u.load = newListLoad(t, f)
	l := u.load
	l.fleetLoad.begin(l.answers.noted(0, listOperation(l.lists.Single).onMachine), l.answers.noted(1, listOperation(l.lists.Several).onMachine), l.transfer, l.replace, l.read)
	l.awaitAnswers(time.Now(), hasClients)

	for i, m := range f.machines {
		u.restart(m, binary)
		if i == len(f.machines)-1 {
			break // the last: there is no way back from here
		}
		u.speaks(before)
		if before < protocol.Moves {
			u.refusesMoves()
		}
		u.refusesResizes()
		u.restart(m, u.earlier)
		u.restart(m, binary)
		u.speaks(before)
	}
	u.speaks(protocol.Own.Max)
	u.refusesEarlier(f.machines[1])
	u.resizes()
	u.moves()
	l.end()
	if t.Failed() {
		return // the machines have been killed
	}
	for _, m := range f.machines {
		l.verify(m)
	}
	l.judge()
}

// hasClients reports whether clients are connected to a machine: one that joins in the end has none.
func hasClients(machine int) bool { return machine < 3 }

// restart stops a machine and starts it with a program. It returns when everything is whole, and all
// clients have got answers since.
func (u *upgrade) restart(m *machine, program string) {
	u.f.t.Helper()
	m.stop()
	m.program = program
	m.start()
	u.f.awaitWhole()
	u.load.awaitAnswers(time.Now(), hasClients)
}

// speaks checks the version of the protocol that the instance speaks.
func (u *upgrade) speaks(want protocol.Version) {
	u.f.t.Helper()
	if got := u.f.configuration().Version(); got != want {
		u.f.t.Errorf("the instance speaks version %d, want %d\n%s", got, want, u.f.tails())
	}
}

// drain asks for all data of a machine to be taken off it, at another machine's folder, and returns what
// is printed.
func (u *upgrade) drain(at, m *machine, more ...string) (out string, code int) {
	u.f.t.Helper()
	args := append([]string{"drain", "--data", at.data(), "--machine", strconv.Itoa(m.id)}, more...)
	ctx, cancel := context.WithTimeout(u.f.t.Context(), startTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	b, _ := cmd.CombinedOutput() // the code says it
	return string(b), cmd.ProcessState.ExitCode()
}

// refusesMoves checks that no machine can be drained, whichever is asked, and that this says why.
func (u *upgrade) refusesMoves() {
	t := u.f.t
	t.Helper()
	for _, at := range u.f.machines {
		out, code := u.drain(at, u.f.machines[2])
		if code != 1 || !strings.Contains(out, "version 3 is needed") || !strings.Contains(out, "with this farmsql") {
			t.Errorf("drain, asked at machine %d: status %d: %s", at.id, code, out)
		}
	}
	if c := u.f.configuration(); len(c.Draining) > 0 {
		t.Errorf("machines %v are being drained", c.Draining)
	}
}

// resize asks for another number of replicas, at a machine's folder, and returns what is printed.
func (u *upgrade) resize(at *machine, n int) (out string, code int) {
	u.f.t.Helper()
	ctx, cancel := context.WithTimeout(u.f.t.Context(), startTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, "resize", "--data", at.data(), "--replicas", strconv.Itoa(n))
	b, _ := cmd.CombinedOutput() // the code says it
	return string(b), cmd.ProcessState.ExitCode()
}

// refusesResizes checks that the number of replicas cannot change, whichever machine is asked, and that this says why.
func (u *upgrade) refusesResizes() {
	t := u.f.t
	t.Helper()
	for _, at := range u.f.machines {
		if out, code := u.resize(at, 5-u.f.replicas); code != 1 || !strings.Contains(out, "version 4 is needed") || !strings.Contains(out, "with this farmsql") {
			t.Errorf("resize, asked at machine %d: status %d: %s", at.id, code, out)
		}
	}
}

// resizes checks that the number of replicas can change now, from two to three and back, or the other way round.
func (u *upgrade) resizes() {
	t, f := u.f.t, u.f
	t.Helper()
	for _, n := range []int{5 - f.replicas, f.replicas} {
		if out, code := u.resize(f.machines[1], n); code != 0 || !strings.Contains(out, fmt.Sprintf("regions have %d replicas\n", n)) {
			t.Errorf("resize to %d: status %d: %s", n, code, out)
		}
		f.haveReplicas(n)
	}
	u.load.awaitAnswers(time.Now(), hasClients)
}

// refusesEarlier checks that the earlier program is refused for a machine of an instance that has gone on
// to the next version, that this says why, and that the machine comes back with this one.
func (u *upgrade) refusesEarlier(m *machine) {
	u.f.t.Helper()
	m.stop()
	m.program = u.earlier
	m.refuse(1, "format 6", "use a newer farmsql")
	m.program = binary
	m.start()
	u.f.awaitWhole()
	u.load.awaitAnswers(time.Now(), hasClients)
}

// moves checks that a machine can be drained now.
func (u *upgrade) moves() {
	t, f := u.f.t, u.f
	t.Helper()
	if f.joining != nil {
		f.grow() // regions have as many replicas as there were machines
	}
	out, code := u.drain(f.machines[0], f.machines[2])
	if code != 0 || !strings.Contains(out, "machine 2 has no data") {
		t.Errorf("drain: status %d: %s", code, out)
	}
	if c := f.configuration(); !c.IsDraining(2) {
		t.Errorf("machine 2 has been drained: %+v", c)
	}
	// Its clients go on, and an array that one of them makes is in a region of machine 2 for a while.
	f.wait("machine 2 to have no data", func() bool {
		return !slices.ContainsFunc(f.configuration().Regions, func(p cluster.Placement) bool { return p.Has(2) })
	})
	u.load.awaitAnswers(time.Now(), hasClients)
}
