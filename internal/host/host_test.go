package host

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// rootWith returns a root with these files.
func rootWith(t *testing.T, files map[string]string) Root {
	t.Helper()
	r := Root(t.TempDir())
	for path, text := range files { // any order
		if err := os.MkdirAll(filepath.Dir(r.Path(path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(r.Path(path), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func TestFiles(t *testing.T) {
	r := rootWith(t, map[string]string{"/n": "12\n", "/word": "max\n", "/fields": "A: 3 kB\nB:\t0000ff\nC: 4\nD: x kB\n"})
	if n, err := r.Number("/n"); n != 12 || err != nil {
		t.Error(n, err)
	}
	for _, path := range []string{"/word", "/none"} {
		if n, err := r.Number(path); err == nil {
			t.Errorf("%s: %d", path, n)
		}
	}
	for name, want := range map[string]int64{"A": 3 << 10, "B": 0, "C": 0, "D": 0, "E": 0} {
		if got := r.Bytes("/fields", name); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
	if got := r.Field("/fields", "B"); got != "0000ff" {
		t.Errorf("B is %q", got)
	}
	if got := r.Field("/none", "B"); got != "" {
		t.Errorf("B of no file is %q", got)
	}
}

func TestMemory(t *testing.T) {
	const meminfo = "MemTotal:       1000 kB\n"
	for name, c := range map[string]struct {
		files           map[string]string
		limit, computer int64
	}{
		"unknown":  {nil, 0, 0},
		"no group": {map[string]string{"/proc/meminfo": meminfo}, 1000 << 10, 1000 << 10},
		"version 2": {map[string]string{
			"/proc/meminfo": meminfo, "/proc/self/cgroup": "0::/a/b\n",
			"/sys/fs/cgroup/a/b/memory.max": "max\n", "/sys/fs/cgroup/a/memory.max": "5000\n",
		}, 5000, 1000 << 10},
		"version 1": {map[string]string{
			"/proc/meminfo": meminfo, "/proc/self/cgroup": "nonsense\n3:cpu:/\n2:hugetlb,memory:/a\n",
			"/sys/fs/cgroup/memory/a/memory.limit_in_bytes": "7000\n", "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
		}, 7000, 1000 << 10},
		"outside of a container": {map[string]string{
			"/proc/meminfo": meminfo, "/proc/self/cgroup": "4:memory:/not/here\n", "/sys/fs/cgroup/memory/memory.limit_in_bytes": "6000\n",
		}, 6000, 1000 << 10},
	} {
		if limit, computer := rootWith(t, c.files).Memory(); limit != c.limit || computer != c.computer {
			t.Errorf("%s: %d of %d, want %d of %d", name, limit, computer, c.limit, c.computer)
		}
	}
}

func TestMaySwap(t *testing.T) {
	for text, want := range map[string]bool{"0\n": false, "max\n": true, "4096\n": true} {
		r := rootWith(t, map[string]string{"/proc/self/cgroup": "0::/a\n", "/sys/fs/cgroup/a/memory.swap.max": text})
		if got := r.MaySwap(); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
	if !Root(t.TempDir()).MaySwap() {
		t.Error("without a control group")
	}
}

func TestProcessorQuota(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  float64
	}{
		"none": {nil, 0},
		"version 2": {map[string]string{
			"/proc/self/cgroup": "0::/a/b\n", "/sys/fs/cgroup/a/b/cpu.max": "max 100000\n", "/sys/fs/cgroup/a/cpu.max": "150000 100000\n",
		}, 1.5},
		"version 1": {map[string]string{
			"/proc/self/cgroup":                      "4:cpu,cpuacct:/a\n5:cpuset:/\n",
			"/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us":  "50000\n",
			"/sys/fs/cgroup/cpu/a/cpu.cfs_period_us": "100000\n",
			"/sys/fs/cgroup/cpu/cpu.cfs_quota_us":    "-1\n",
			"/sys/fs/cgroup/cpu/cpu.cfs_period_us":   "100000\n",
		}, 0.5},
		"no period": {map[string]string{"/proc/self/cgroup": "4:cpu:/\n", "/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "50000\n"}, 0},
	} {
		if got := rootWith(t, c.files).ProcessorQuota(); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestMountOf(t *testing.T) {
	r := rootWith(t, map[string]string{"/proc/self/mountinfo": `22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/root rw,errors=continue
23 22 0:21 / /srv rw - tmpfs tmpfs rw,size=4k,huge=never
24 22 0:22 / /srv rw - tmpfs tmpfs rw,size=8k,huge=always
25 24 0:23 / /srv/a\040b rw master:2 - xfs /dev/x rw,dax
26 24 nonsense
27 24 0:24 / /srv/short rw -
`})
	for path, want := range map[string]Mount{
		"/":          {"/", "ext4", []string{"rw", "relatime", "rw", "errors=continue"}},
		"/srvx":      {"/", "ext4", []string{"rw", "relatime", "rw", "errors=continue"}},
		"/srv":       {"/srv", "tmpfs", []string{"rw", "rw", "size=8k", "huge=always"}},
		"/srv/short": {"/srv", "tmpfs", []string{"rw", "rw", "size=8k", "huge=always"}},
		"/srv/a b/c": {"/srv/a b", "xfs", []string{"rw", "rw", "dax"}},
	} {
		if got, isKnown := r.MountOf(path); !isKnown || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", path, got, isKnown)
		}
	}
	m, _ := r.MountOf("/srv")
	if huge, isSet := m.Option("huge"); huge != "always" || !isSet {
		t.Errorf("huge=%s, %v", huge, isSet)
	}
	if _, isSet := m.Option("hug"); isSet {
		t.Error("an option is taken for one that begins like it")
	}
	if value, isSet := m.Option("rw"); value != "" || !isSet {
		t.Errorf("rw is %q, %v", value, isSet)
	}
	if _, isKnown := Root(t.TempDir()).MountOf("/"); isKnown {
		t.Error("a mount is known without mountinfo")
	}
}

func TestListenerOf(t *testing.T) {
	const header = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
	r := rootWith(t, map[string]string{
		"/proc/net/tcp": header +
			"   0: 0100007F:0CEA 0100007F:1234 01 00000000:00000000 00:00000000 00000000     0        0 111 1\n" + // a connection
			"   1: 0100007F:0CEA 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 222 1\n",
		"/proc/net/tcp6": header +
			"   0: 00000000000000000000000000000000:0CEB 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 333 1\n",
		"/proc/42/comm": "mysqld\n",
		"/proc/42/fd/x": "",
		"/proc/43/fd/x": "",
	})
	for file, target := range map[string]string{"/proc/42/fd/3": "socket:[222]", "/proc/43/fd/4": "socket:[111]"} {
		if err := os.Symlink(target, r.Path(file)); err != nil {
			t.Fatal(err)
		}
	}
	if p, isKnown := r.ListenerOf(3306); !isKnown || p != (Process{42, "mysqld"}) {
		t.Errorf("3306: %+v, %v", p, isKnown)
	}
	for _, port := range []int{3307, 3308} { // of another user's process, and of nobody
		if p, isKnown := r.ListenerOf(port); isKnown {
			t.Errorf("%d: %+v", port, p)
		}
	}
}
