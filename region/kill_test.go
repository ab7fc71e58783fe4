//go:build !race

package region

import (
	"bufio"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/farmsql/farmsql/nvram"
)

// Race builds keep memory on the heap, where nothing outlives a killed process.

const (
	killFolder = "FARMSQL_KILL_TEST_FOLDER" // set in the child: the folder to work in
	killSize   = 1 << 20
)

// openPair maps primary and backup from a folder.
func openPair(t testing.TB, path string) (*nvram.Folder, *pair) {
	t.Helper()
	f, err := nvram.OpenFolder(path, nvram.Options{})
	if err != nil {
		t.Fatal(err)
	}
	replica := func(name string) *Region {
		m, err := f.Map(name, killSize)
		if err != nil {
			t.Fatal(err)
		}
		open := Open
		if !Formatted(m) {
			open = Format
		}
		r, err := open(1, m)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	return f, &pair{primary: replica("primary"), backup: replica("backup")}
}

// TestKilled kills a process that allocates, writes, frees and lets blocks change
// class, again and again at random moments, and goes on with what it left.
func TestKilled(t *testing.T) {
	if path := os.Getenv(killFolder); path != "" {
		workUntilKilled(t, path)
		return
	}
	path := t.TempDir()
	rng := rand.New(rand.NewPCG(1, 1))
	for range 8 {
		runAndKill(t, path, time.Duration(rng.IntN(20_000))*time.Microsecond)
		f, p := openPair(t, path)
		p.recoverTable()
		a := newAllocator(t, AllocatorConfig{Replicate: p.replicate}, p.primary)
		p.same(t)
		settle(t, p, a)
		checkPair(t, p, a)
		if err := f.Abandon(); err != nil {
			t.Fatal(err)
		}
	}
}

// runAndKill lets a child work on the folder for a while.
func runAndKill(t *testing.T, path string, while time.Duration) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilled$", "-test.v")
	cmd.Env = append(os.Environ(), killFolder+"="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	ready := false
	for !ready && lines.Scan() {
		ready = lines.Text() == "working"
	}
	time.Sleep(while)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	err = cmd.Wait()
	if exit := (*exec.ExitError)(nil); !ready || !errors.As(err, &exit) || exit.Exited() {
		t.Fatalf("child ended by itself: %v", err)
	}
}

func workUntilKilled(t *testing.T, path string) {
	_, p := openPair(t, path)
	p.recoverTable()
	a := newAllocator(t, AllocatorConfig{Replicate: p.replicate}, p.primary)
	rng := rand.New(rand.NewPCG(uint64(os.Getpid()), 1))
	var live []Ptr
	for q, h := range p.primary.Objects {
		if h.Allocated() {
			live = append(live, q)
		}
	}
	_, _ = os.Stdout.WriteString("working\n")
	for epoch := uint64(1); ; epoch++ {
		payload := rng.IntN(20_000)
		for {
			ptr, v, _, err := a.Alloc(Ordinary, 0, payload, 0)
			if errors.Is(err, ErrFull) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			p.commit(t, ptr, v, []byte{byte(v + 1)})
			live = append(live, ptr)
		}
		rng.Shuffle(len(live), func(i, j int) { live[i], live[j] = live[j], live[i] })
		keep := rng.IntN(10)
		for _, ptr := range live[min(keep, len(live)):] {
			p.free(t, a, ptr)
		}
		live = live[:min(keep, len(live))]
		a.Advance(2 * epoch)
	}
}

// recoverTable makes the block tables equal as a new primary does before anybody allocates: the
// child may have been killed when a change had reached only the backup, or half of the primary.
func (p *pair) recoverTable() {
	p.primary.Repair()
	off, n := p.primary.Table()
	table := make([]byte, n)
	p.primary.m.CopyOut(table, off)
	p.backup.m.CopyIn(off, table)
}

// settle frees objects that were locked, on both replicas, as the recovery of logs would. The
// backup may be one change behind.
func settle(t *testing.T, p *pair, a *Allocator) {
	t.Helper()
	locked := 0
	for q, h := range p.primary.Objects {
		off := q.Addr.Offset()
		if h.Locked() {
			locked++
			v, incarnation := h.Version()+2, q.Incarnation()+1
			p.primary.Write(q, nil, v, false, incarnation)
			p.backup.ApplyBackup(q, nil, v, false, incarnation)
			a.Release(MakePtr(q.Addr, q.Class(), incarnation))
		} else if b := p.backup.Header(off); b != h {
			locked++
			dst := make([]byte, q.Capacity())
			if h.Allocated() {
				if _, err := p.primary.ReadObject(q, dst); err != nil {
					t.Fatal(err)
				}
			}
			if !p.backup.ApplyBackup(q, dst, h.Version(), h.Allocated(), q.Incarnation()) {
				t.Errorf("%v: backup has %v, primary %v", q, b, h)
			}
		}
	}
	if locked > 1 {
		t.Errorf("%d objects were being changed by one goroutine", locked)
	}
}

// checkPair compares the replicas and looks for faults.
func checkPair(t *testing.T, p *pair, a *Allocator) {
	t.Helper()
	var live []Ptr
	for q, h := range p.primary.Objects {
		if !h.Allocated() {
			continue
		}
		live = append(live, q)
		for _, r := range []*Region{p.primary, p.backup} {
			dst := make([]byte, q.Capacity())
			if h, err := r.ReadObject(q, dst); err != nil || dst[0] != byte(h.Version()) {
				t.Fatalf("%v: %v %v, payload of version %d", q, h, err, dst[0])
			}
		}
	}
	for _, r := range []*Region{p.primary, p.backup} {
		if fs := r.Check(slices.Values(live)); len(fs) > 0 {
			t.Error(fs)
		}
	}
	if fs := a.Check(); len(fs) > 0 {
		t.Error(fs)
	}
}
