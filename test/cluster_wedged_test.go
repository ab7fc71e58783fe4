package test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestWedgedMachine stops all threads of a machine except its lease thread; then the same of the
// CM. The others notice that within two leases and go on, and the machine comes back by itself.
func TestWedgedMachine(t *testing.T) {
	for _, isCM := range []bool{false, true} {
		t.Run(fmt.Sprintf("CM=%v", isCM), func(t *testing.T) { wedge(t, isCM) })
	}
}

// slack is the time that a busy computer may add.
const slack = 2 * time.Second

func wedge(t *testing.T, isCM bool) {
	f := newFleet(t, 3, 3, "")
	f.start()
	f.awaitWhole()
	lease, ok := f.machines[0].find(time.Time{}, func(e *event) bool { return e.Message == "leases" })
	if !ok || lease.KeptBy == "goroutine" {
		t.Skip("leases are not kept by a thread of their own")
	}
	length := time.Duration(lease.Length)
	victim := f.machines[(f.cm().id+1)%3]
	if isCM {
		victim = f.cm()
	}
	other := f.machines[(victim.id+1)%3]
	l := &fleetLoad{t: t, fleet: f}
	db, its := l.connect(other, ""), l.connect(victim, "")
	defer db.Close()
	defer its.Close()
	// A machine inserts rows into regions of which it is the primary.
	for _, q := range []string{"CREATE DATABASE wedge", "CREATE TABLE wedge.t (id INT PRIMARY KEY, n INT)", "INSERT INTO wedge.t VALUES (1, 0)"} {
		if _, err := its.Exec(q); err != nil {
			t.Fatal(err)
		}
	}
	update := func() error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_, err := db.ExecContext(ctx, "UPDATE wedge.t SET n = n + 1 WHERE id = 1")
		return err
	}
	upsets := victim.upsets()
	release := stopAllButLeases(t, victim.cmd.Process.Pid)
	wedged := time.Now()
	// The update may have to wait until the wedged machine has been evicted.
	if err := update(); err != nil {
		t.Error("an update while a machine is wedged:", err)
	}
	updated := time.Since(wedged)
	f.wait("the wedged machine to be evicted", func() bool { return !f.isMember(victim) })
	evicted := time.Since(wedged)
	if updated < length/2 {
		t.Errorf("an update took %v: it did not wait for the wedged machine", updated)
	}
	suspected := time.Hour
	for _, m := range f.machines {
		e, ok := m.find(wedged, func(e *event) bool {
			return e.Message == "machine suspected" && e.Suspect != nil && *e.Suspect == victim.id
		})
		if ok {
			suspected = min(suspected, e.Time.Sub(wedged))
		}
	}
	t.Logf("lease %v: suspected after %v, evicted after %v; an update took %v", length, suspected, evicted, updated)
	// A suspicion may take two leases, and slack for other work on this computer. The update also
	// waits for the next configuration.
	if most := 2*length + slack; suspected > most {
		t.Errorf("suspected after %v, want at most %v", suspected, most)
	}
	if most := 5*length + 2*slack; updated > most || evicted > most {
		t.Errorf("an update took %v, evicted after %v, want at most %v", updated, evicted, most)
	}
	release()
	f.wait("the wedged machine to notice", func() bool { return victim.upsets() > upsets })
	f.awaitWhole()
	if err := update(); err != nil {
		t.Error(err)
	}
}

// stopAllButLeases stops every thread of a process but the lease thread, until release
// is called.
func stopAllButLeases(t *testing.T, pid int) (release func()) {
	t.Helper()
	stopped, end, released := make(chan error), make(chan bool), make(chan bool)
	go func() {
		defer close(released)
		// A tracer is a thread. It must not end, since that would kill the processes that it has
		// started.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		tids := make(map[int]bool)
		stopped <- attachAll(pid, tids)
		<-end
		for tid := range tids {
			if unix.PtraceDetach(tid) != nil && tid != pid {
				reap(tid)
			}
		}
	}()
	if err := <-stopped; err != nil {
		close(end)
		if errors.Is(err, unix.EPERM) {
			t.Skip("tracing of processes is not permitted here:", err)
		}
		t.Fatal(err)
	}
	once := false
	release = func() {
		if !once {
			once = true
			close(end)
			<-released
		}
	}
	t.Cleanup(release)
	return release
}

// reap awaits a thread that was killed while it was traced. Its process does not end
// before.
func reap(tid int) {
	for range 100 {
		if got, err := syscall.Wait4(tid, nil, syscall.WALL|syscall.WNOHANG, nil); got == tid || err == syscall.ECHILD {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// attachAll attaches to threads until none is left: a thread that still runs may start others.
func attachAll(pid int, tids map[int]bool) error {
	for found := true; found; {
		found = false
		tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		if err != nil {
			return err
		}
		for _, task := range tasks {
			tid, _ := strconv.Atoi(task.Name())
			name, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/comm", pid, tid))
			if err != nil || tids[tid] || strings.HasPrefix(string(name), "farmsql-lease") {
				continue
			}
			if err := unix.PtraceAttach(tid); err != nil {
				if err == unix.ESRCH {
					continue // it has ended
				}
				return fmt.Errorf("attach to thread %d: %w", tid, err)
			}
			tids[tid], found = true, true
			var status syscall.WaitStatus
			if _, err := syscall.Wait4(tid, &status, syscall.WALL, nil); err != nil {
				return fmt.Errorf("wait for thread %d: %w", tid, err)
			}
		}
	}
	return nil
}
