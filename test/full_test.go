package test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/farmsql/farmsql/nvram"
)

// useUp takes all free pages of a file system.
func useUp(t *testing.T, folder string) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(folder, "filler"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	for n := 1 << 20; n >= 4096; {
		if _, err := f.Write(make([]byte, n)); errors.Is(err, syscall.ENOSPC) {
			n /= 2
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if free, err := nvram.FreeBytes(folder); err != nil || free >= 4096 {
		t.Fatalf("%d bytes are free, %v", free, err)
	}
}

// TestMachineRestartsWithoutSpace: all machines of a cluster with a full file system are killed.
// They come back with their data, and rows can be deleted.
func TestMachineRestartsWithoutSpace(t *testing.T) {
	f := newFleet(t, 3, 3, "")
	f.more = []string{"--workers", "2"}
	full := f.machines[1]
	full.mountAt("64m")
	f.start()
	f.awaitWhole()
	do := func(m *machine, queries ...string) {
		db := (&fleetLoad{t: t, fleet: f}).connect(m, "")
		defer db.Close()
		exec1(t, db, queries...)
	}
	do(f.machines[0], "create database d", "create table d.t (a int primary key)", "insert into d.t values (1), (2), (3), (4), (5), (6)")
	for i := range 4 {
		useUp(t, full.folder())
		f.killAll()
		for _, m := range f.machines {
			m.start()
		}
		f.awaitWhole()
		do(full, fmt.Sprint("delete from d.t where a = ", i))
	}
	if err := os.Remove(filepath.Join(full.folder(), "filler")); err != nil {
		t.Fatal(err)
	}
	do(full, "drop table d.t") // the list of what is dropped needs a little
	f.killAll()
	f.check()
}

// TestMachineAwaitsRoom: a machine has no room for the logs of a new machine, and so begins another
// life in its process. It stays in this process until there is room, logs once what to do, and
// comes back.
func TestMachineAwaitsRoom(t *testing.T) {
	f := newFleet(t, 4, 3, "")
	f.more = []string{"--workers", "2"}
	full, later := f.machines[1], f.machines[3]
	full.mountAt("64m")
	f.machines = f.machines[:3]
	f.start()
	f.awaitWhole()
	useUp(t, full.folder())
	f.machines = append(f.machines, later)
	later.start()
	awaits := func() (n int) {
		full.mu.Lock()
		defer full.mu.Unlock()
		for i := range full.events {
			if strings.HasPrefix(full.events[i].Message, "cannot come back before there is room") {
				n++
			}
		}
		return n
	}
	f.wait("the full machine to ask for room", func() bool { return awaits() > 0 })
	f.wait("the new machine to serve", later.serves)
	time.Sleep(2500 * time.Millisecond) // it tries again every second
	if n := awaits(); n != 1 || full.died() != nil {
		t.Errorf("it asks for room %d times, %v", n, full.died())
	}
	if err := os.Remove(filepath.Join(full.folder(), "filler")); err != nil {
		t.Fatal(err)
	}
	f.awaitWhole()
}
