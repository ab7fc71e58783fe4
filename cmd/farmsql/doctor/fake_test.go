package doctor

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/farmsql/farmsql/internal/host"
	"github.com/farmsql/farmsql/nvram"
)

// A fake is a host that tests make up, and a plan for it.
type fake struct {
	Host
	Plan
	files map[string]string // of /proc and /sys
	links map[string]string
	limit map[int]uint64
	room  map[string]nvram.Fullness // by folder; "" is for all others
	trial Trial
	err   map[string]error // that functions of the host return, by their names
}

// healthy returns a host that has all that a cluster of three machines needs.
func healthy() *fake {
	const gib = 1 << 30
	f := &fake{
		files: map[string]string{
			"/proc/sys/kernel/osrelease": "6.8.0-31-generic\n",
			"/proc/stat":                 "cpu  700 0 200 9000 90 0 5 5 50 0\ncpu0 1 2\n",
			"/sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
			"/proc/meminfo":        "MemTotal:       33554432 kB\nSwapTotal:      0 kB\nSwapFree:       0 kB\nHugetlb:        0 kB\n",
			"/proc/self/cgroup":    "0::/farmsql.service\n",
			"/proc/self/mountinfo": "1 0 8:1 / / rw - ext4 /dev/root rw\n2 1 0:5 / /dev/shm rw - tmpfs tmpfs rw\n3 1 0:6 / /mnt/farmsql rw - tmpfs tmpfs rw,huge=always\n",
			"/proc/self/status":    "Name: farmsql\nCapEff:\t0000000000000000\n",
			"/sys/kernel/mm/transparent_hugepage/shmem_enabled":                  "always within_size advise [never] deny force\n",
			"/proc/sys/kernel/sched_rt_runtime_us":                               "950000\n",
			"/proc/sys/net/unix/max_dgram_qlen":                                  "512\n",
			"/proc/sys/vm/swappiness":                                            "60\n",
			"/sys/devices/system/clocksource/clocksource0/available_clocksource": "tsc hpet acpi_pm\n",
		},
		links: map[string]string{},
		limit: map[int]uint64{unix.RLIMIT_NOFILE: 524288, unix.RLIMIT_RTPRIO: 98, unix.RLIMIT_MEMLOCK: 8 << 20},
		room:  map[string]nvram.Fullness{"": {Percent: 3, Free: 20 * gib}},
		err:   map[string]error{},
		Plan: Plan{
			Data: "/mnt/farmsql/data", Saves: "/var/lib/farmsql", Listen: "10.0.0.7:3306", IsCluster: true, Shared: "/dev/shm",
			Machines: 1, Peers: 3, Workers: 8, LogBytes: 32 << 20, Files: 2529, FilesLeast: 546,
			HeapLimit: func(int64, int64) int64 { return 4 * gib }, // as if GOMEMLIMIT were set
		},
	}
	f.Host = Host{
		Processors: func() int { return 8 }, HasThread: true,
		Limit:       func(r int) (uint64, error) { return f.limit[r], f.err["limit"] },
		MayRealtime: func() bool { return f.err["realtime"] == nil },
		Pin:         func(int) error { return f.err["pin"] },
		IsDumpable:  func() (bool, error) { return f.err["hidden"] == nil, f.err["dumpable"] },
		Place:       func(folder string) (string, error) { return folder, f.err["place"] },
		Fullness: func(folder string) (nvram.Fullness, error) {
			full, found := f.room[folder]
			if !found {
				full = f.room[""]
			}
			return full, f.err["fullness"]
		},
		Try:            func(string) (Trial, error) { return f.trial, f.err["try"] },
		Listen:         func(string) error { return f.err["listen"] },
		ListenPacket:   func(string) error { return f.err["listen packet"] },
		Reach:          func(string) error { return f.err["reach"] },
		ReachPacket:    func(string) error { return f.err["reach packet"] },
		CheckHost:      func(string) error { return f.err["host"] },
		IsSynchronised: func() (bool, error) { return f.err["drifts"] == nil, f.err["adjtimex"] },
	}
	return f
}

// onHosts makes the plan that of a machine of three hosts.
func (f *fake) onHosts() {
	f.Shared, f.IsTCP, f.Advertise, f.Identity = "", true, "db1:7070", "/var/lib/farmsql/peer"
}

// examine runs all checks on the fake.
func (f *fake) examine(t *testing.T) Report {
	t.Helper()
	f.Root = host.Root(t.TempDir())
	write := func(path string, make func(path string) error) {
		path = f.Root.Path(path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := make(path); err != nil {
			t.Fatal(err)
		}
	}
	for path, text := range f.files { // any order
		write(path, func(path string) error { return os.WriteFile(path, []byte(text), 0o644) })
	}
	for path, target := range f.links { // any order
		write(path, func(path string) error { return os.Symlink(target, path) })
	}
	return Examine(f.Host, f.Plan)
}
