package test

import (
	"bytes"
	"context"
	stdsql "database/sql"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
)

// apart makes a fleet in which every region has one replica at machine 0 and one at another
// machine. Neither can be replaced: all other machines are in one failure domain.
func apart(t *testing.T) *fleet {
	f := newFleet(t, 4, 2, "")
	for _, m := range f.machines {
		m.more = []string{"--failure-domain", fmt.Sprint(1 + min(m.id, 1))}
	}
	f.start()
	f.awaitWhole()
	return f
}

// keptAt returns the regions with a replica at a machine.
func (f *fleet) keptAt(m *machine) (ids []region.ID) {
	c := f.configuration()
	for _, p := range c.Regions {
		if p.Has(rdma.MachineID(m.id)) {
			ids = append(ids, p.Region)
		}
	}
	return ids
}

// takeAway kills machine 0, and then m. The regions of m are then unavailable.
func (f *fleet) takeAway(m *machine) (unavailable []region.ID) {
	f.t.Helper()
	for _, victim := range []*machine{f.machines[0], m} {
		unavailable = f.keptAt(m)
		victim.kill()
		f.wait("the killed machine to be evicted", func() bool { return !f.isMember(victim) })
		// Until then, perhaps nobody has gone on without machine 0, and the regions may wait for it
		// as well.
		f.wait("the others to know that they go on without it", func() bool { return f.goesOnWithout(victim) })
	}
	if now := f.configuration().Unavailable(); len(unavailable) == 0 || !slices.Equal(now, unavailable) {
		f.t.Fatalf("regions %v are unavailable, not %v\n%s", now, unavailable, f.tails())
	}
	return unavailable
}

// goesOnWithout reports whether dead is not in the configuration, and all of the configuration's
// machines know that all of its regions are active.
func (f *fleet) goesOnWithout(dead *machine) bool {
	c := f.configuration()
	for _, id := range c.Machines {
		var s struct {
			Configuration cluster.ID
			Recovery      struct{ Going bool }
		}
		out, code := f.farmsql("", "status", "--json", "--machine-id", fmt.Sprint(id))
		if code != 0 || json.Unmarshal([]byte(out), &s) != nil || s.Configuration != c.ID || s.Recovery.Going || int(id) == dead.id {
			return false
		}
	}
	return true
}

// farmsql runs a command on the fleet's folder.
func (f *fleet) farmsql(in string, args ...string) (out string, code int) {
	f.t.Helper()
	var b bytes.Buffer
	ctx, cancel := context.WithTimeout(f.t.Context(), startTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, append(args, "--data", f.folder)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(in), &b, &b
	_ = cmd.Run() // the code says it
	return b.String(), cmd.ProcessState.ExitCode()
}

// numbers prints regions as the commands do.
func numbers(ids []region.ID) string { return strings.Trim(fmt.Sprint(ids), "[]") }

// table makes a table whose rows are in regions of m, and returns a reader of them
// at another machine.
func (f *fleet) table(m, at *machine) (read func() error) {
	f.t.Helper()
	c := openOne(f.t, m, "")
	for _, q := range []string{"create database kept", "create table kept.t (id int primary key, n int)", "insert into kept.t values (1, 42)"} {
		if _, err := c.ExecContext(f.t.Context(), q); err != nil {
			f.t.Fatal(err)
		}
	}
	reader, err := stdsql.Open("mysql", "root@tcp("+at.address()+")/kept")
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = reader.Close() })
	return func() error {
		var n int
		err := reader.QueryRowContext(f.t.Context(), "select n from t where id = 1").Scan(&n)
		if err == nil && n != 42 {
			err = fmt.Errorf("n is %d", n)
		}
		return err
	}
}

// notRoots returns two machines other than machine 0. The first has regions, but not the root's
// region.
func (f *fleet) notRoots() (m, other *machine) {
	c := f.configuration()
	p, _ := c.Placement(c.Root.Addr.Region())
	for _, x := range f.machines[1:] {
		switch {
		case p.Has(rdma.MachineID(x.id)):
			other = x
		case m == nil:
			m = x
		}
	}
	return m, other
}

// TestUnavailableRegions: the status shows regions whose machines are away, and they wait. The
// machine brings them back with its folder. Only an operator gives them up.
func TestUnavailableRegions(t *testing.T) {
	f := apart(t)
	m, other := f.notRoots()
	read := f.table(m, other)
	if err := read(); err != nil {
		t.Fatal(err)
	}
	f.awaitWhole()
	before := other.lineCount()
	gone := f.takeAway(m)
	f.isUnavailable(m, gone, read)
	logged := 0
	for _, x := range f.machines[1:] {
		logged += x.countSince(0, "regions are unavailable: start one of the machines")
	}
	if logged != 1 {
		t.Errorf("logged %d times, since line %d of machine %d", logged, before, other.id)
	}
	f.refusesToForget(m, other)

	m.start() // with its folder
	f.wait("the regions to be back", func() bool { return len(f.configuration().Unavailable()) == 0 && read() == nil })
	f.machines[0].start()
	f.awaitWhole()
	if c := f.configuration(); len(c.Lost) > 0 {
		t.Fatalf("lost %v", c.Lost)
	}

	gone = f.takeAway(m)
	f.comesWithoutMemory(m)
	out, code := f.farmsql("", "forget", "--machine", fmt.Sprint(m.id), "--yes")
	if want := "LOST: " + numbers(gone); code != 0 || !strings.Contains(out, want) {
		t.Fatalf("forget --yes: %d, %q is not in\n%s", code, want, out)
	}
	if out, _ := f.farmsql("", "status"); !strings.Contains(out, "LOST, with all their replicas: "+numbers(gone)) || strings.Contains(out, "UNAVAILABLE") {
		t.Errorf("status:\n%s", out)
	}
	if err := read(); err == nil {
		t.Error("what is lost can be read")
	}
	m.start()
	f.wait("the machine to be back", func() bool { return f.isMember(m) })
}

// isUnavailable checks the reports while regions wait for m.
func (f *fleet) isUnavailable(m *machine, gone []region.ID, read func() error) {
	f.t.Helper()
	out, code := f.farmsql("", "status")
	want := fmt.Sprintf("UNAVAILABLE until machine %d is back with its memory: region", m.id)
	if code != 0 || !strings.Contains(out, want) || !strings.Contains(out, " "+numbers(gone)+"\n") {
		f.t.Errorf("status: %d, %q of %v is not in\n%s", code, want, gone, out)
	}
	quick(f.t, "a statement", func() {
		if err := read(); numberOf(err) != errUnavailable || !strings.Contains(err.Error(), fmt.Sprintf("machine %d is, with its memory", m.id)) {
			f.t.Errorf("reading: %v", err)
		}
	})
}

// refusesToForget checks that nothing is given up without the right confirmation.
func (f *fleet) refusesToForget(m, member *machine) {
	f.t.Helper()
	before := f.configuration()
	for _, in := range []string{"", "yes\n", "forget\n", fmt.Sprintf("forget machine %d\n", member.id)} {
		out, code := f.farmsql(in, "forget", "--machine", fmt.Sprint(m.id))
		if code != 1 || !strings.Contains(out, "LOST FOR EVER") || !strings.Contains(out, fmt.Sprintf("Try first: start machine %d", m.id)) || !strings.Contains(out, "nothing was done") {
			f.t.Errorf("after %q: %d\n%s", in, code, out)
		}
	}
	for id, want := range map[int]string{member.id: "is a member", 0: "nobody waits for machine 0", 17: "nobody waits for machine 17"} {
		if out, code := f.farmsql("", "forget", "--machine", fmt.Sprint(id), "--yes"); code != 1 || !strings.Contains(out, want) {
			f.t.Errorf("machine %d: %d, %q is not in\n%s", id, code, want, out)
		}
	}
	if now := f.configuration(); !slices.Equal(now.Unavailable(), before.Unavailable()) || len(now.Lost) > 0 {
		f.t.Errorf("unavailable %v, lost %v", now.Unavailable(), now.Lost)
	}
}

// comesWithoutMemory starts m with an empty folder. The process must end.
func (f *fleet) comesWithoutMemory(m *machine) {
	f.t.Helper()
	if err := os.RemoveAll(filepath.Join(f.folder, fmt.Sprintf("machine-%d", m.id))); err != nil {
		f.t.Fatal(err)
	}
	before := m.lineCount()
	m.start()
	m.mu.Lock()
	m.killed = true // it is to end
	m.mu.Unlock()
	select {
	case <-m.exited:
	case <-time.After(startTimeout):
		f.t.Fatalf("machine %d goes on\n%s", m.id, f.tails())
	}
	if m.err == nil || m.countSince(before, "regions wait for the memory that this machine had before") != 1 {
		f.t.Errorf("machine %d: %v\n%s", m.id, m.err, f.tails())
	}
}

// TestStartingIsShown: a machine that cannot serve without unavailable regions reports that it
// waits for them. An operator can give them up meanwhile.
func TestStartingIsShown(t *testing.T) {
	f := apart(t)
	c := f.configuration()
	p, _ := c.Placement(c.Root.Addr.Region())
	at := slices.IndexFunc(f.machines, func(x *machine) bool { return x.id > 0 && p.Has(rdma.MachineID(x.id)) })
	holder := f.machines[at]
	gone := f.takeAway(holder)
	f.machines[0].start()
	f.wait("machine 0 to be a member again", func() bool { return f.isMember(f.machines[0]) })
	want := fmt.Sprintf("starting: machine 0 waits for regions that are unavailable until machine %d is back with its memory: region", holder.id)
	var out string
	f.wait("machine 0 to say what it waits for", func() bool {
		out, _ = f.farmsql("", "status", "--machine-id", "0")
		return strings.Contains(out, want)
	})
	mode, err := os.Stat(filepath.Join(f.folder, "machine-0", "operator.sock"))
	if err != nil || mode.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", mode, err)
	}
	if f.machines[0].serves() {
		t.Fatal("machine 0 serves")
	}
	for _, x := range f.machines[1:] { // nobody but machine 0 can be asked
		if x != holder {
			if err := os.Remove(filepath.Join(f.folder, fmt.Sprintf("machine-%d", x.id), "status.sock")); err != nil {
				t.Fatal(err)
			}
		}
	}
	out, code := f.farmsql(fmt.Sprintf("forget machine %d\n", holder.id), "forget", "--machine", fmt.Sprint(holder.id))
	if code != 0 || !strings.Contains(out, "THE WHOLE DATABASE IS LOST") || !strings.Contains(out, "LOST: "+numbers(gone)) {
		t.Errorf("forget: %d\n%s", code, out)
	}
	if lost := f.configuration().Lost; !slices.Equal(lost, gone) {
		t.Errorf("lost %v, not %v", lost, gone)
	}
}
