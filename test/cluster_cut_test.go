package test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// drilled builds a farmsql whose cables can be taken out.
func drilled(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "farmsql")
	build := exec.Command("go", "build", "-pgo=off", "-tags", "gms_pure_go,drills", "-o", program, "../cmd/farmsql")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building farmsql: %v\n%s", err, out)
	}
	return program
}

// cutLink takes out the cable between two machines, and returns a function that puts it back.
func (f *fleet) cutLink(a, b *machine) (mend func()) {
	f.t.Helper()
	// shm.DrillFile, which this program is not built with.
	file := filepath.Join(f.folder, "shared", fmt.Sprintf("cut-%d-%d", min(a.id, b.id), max(a.id, b.id)))
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		f.t.Fatal(err)
	}
	return func() {
		if err := os.Remove(file); err != nil {
			f.t.Error(err)
		}
	}
}

// TestCutLinkBounds: the link between two machines breaks while clients change rows at all
// machines. One of the two may be the CM. One of the two is left out as fast as a failed machine,
// and clients of the others wait no longer than for that. When the link is mended, it comes back.
// Each round has an instance of its own, because the CM makes machines wait whose links break again
// and again.
func TestCutLinkBounds(t *testing.T) {
	rounds := 1
	if nightly {
		rounds = 10
	}
	program := drilled(t)
	all := make(map[bool][]bounds)
	var length time.Duration
	for range rounds {
		f := newFleet(t, 3, 3, "")
		f.program = program
		f.keepLogs()
		f.start()
		f.awaitWhole()
		var ok bool
		if length, ok = f.leases(); !ok {
			t.Skip("leases are not kept by a thread of their own")
		}
		l := &fleetLoad{t: t, fleet: f, seed: seedOf(t), regionsWait: true}
		l.prepare()
		b := &ballast{t: t, load: l}
		b.prepare(1 << 20)
		for _, withCM := range []bool{false, true} {
			all[withCM] = append(all[withCM], b.cut(withCM, length))
		}
		for _, m := range f.machines {
			b.verify(m)
		}
		f.killAll()
	}
	for _, withCM := range []bool{false, true} {
		t.Logf("leases of %v\n%s", length, boundsTable(fault{name: "a link is cut"}, withCM, all[withCM]))
	}
}

// cut takes out the cable between two machines, and returns when everything is whole
// again.
func (b *ballast) cut(withCM bool, lease time.Duration) (got bounds) {
	t, f, w := b.t, b.load.fleet, &waits{}
	t.Helper()
	cm := f.cm().id
	ends := []*machine{f.machines[(cm+1)%3], f.machines[(cm+2)%3]}
	if withCM {
		ends[1] = f.machines[cm]
	}
	upsets := []int{ends[0].upsets(), ends[1].upsets()}
	b.load.begin(w.timed(b.touch), w.timed(b.touch))
	time.Sleep(500 * time.Millisecond) // of undisturbed work
	begun := time.Now()
	mend := f.cutLink(ends[0], ends[1])
	var victim *machine
	f.wait("all regions to be active without one of the two", func() bool {
		i := slices.IndexFunc(ends, func(m *machine) bool { return !f.isMember(m) })
		if i < 0 {
			return false
		}
		var active bool
		victim = ends[i]
		got.active, active = f.activeWithout(victim, begun)
		return active
	})
	got.suspected = f.suspectedAfter(victim, begun, got.active)
	time.Sleep(500 * time.Millisecond) // the clients that wait get their answers
	mend()
	f.wait("the machine to notice", func() bool { return victim.upsets() > upsets[slices.Index(ends, victim)] })
	f.awaitWhole()
	b.load.end()
	got.longest = w.longest(begun, victim)
	// Two machines that cannot reach each other suspect nobody: the CM leaves one of them out.
	if got.active > 10*lease+slack || got.longest > 10*lease+2*slack {
		t.Errorf("a link is cut (to the CM: %v), leases of %v: all regions active after %v; a client of another machine waited %v", withCM, lease, got.active, got.longest)
	}
	return got
}
