package doctor

import (
	"errors"
	"math"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/farmsql/farmsql/nvram"
)

// Each case spoils one thing of a host on which all is well.
func TestChecks(t *testing.T) {
	const (
		clock     = "/sys/devices/system/clocksource/clocksource0/"
		meminfo   = "/proc/meminfo"
		mounts    = "/proc/self/mountinfo"
		rt        = "/proc/sys/kernel/sched_rt_runtime_us"
		huge      = "/sys/kernel/mm/transparent_hugepage/shmem_enabled"
		group     = "/sys/fs/cgroup/farmsql.service/"
		swap      = "MemTotal: 33554432 kB\nSwapTotal: 2097152 kB\nSwapFree: 1048576 kB\nHugetlb: 0 kB\n"
		gib       = 1 << 30
		listening = "0: 00000000:0CEA 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 77 1\n"
		denied    = "not permitted"
	)
	sets := func(path, text string) func(*fake) { return func(f *fake) { f.files[path] = text } }
	lacks := func(path string) func(*fake) { return func(f *fake) { delete(f.files, path) } }
	fails := func(function string, err error) func(*fake) { return func(f *fake) { f.err[function] = err } }
	dataOn := func(system string) func(*fake) {
		return sets(mounts, "1 0 8:1 / / rw - ext4 /dev/root rw\n3 1 0:6 / /mnt/farmsql rw - "+system+"\n")
	}
	all := func(changes ...func(*fake)) func(*fake) {
		return func(f *fake) {
			for _, change := range changes {
				change(f)
			}
		}
	}
	joins := func(change func(*fake)) func(*fake) {
		return all((*fake).onHosts, func(f *fake) { f.Issuer = "db1:7070" }, change)
	}
	active := sets("/sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n")
	onVerbs := func(changes ...func(*fake)) func(*fake) {
		return all(append([]func(*fake){(*fake).onHosts, func(f *fake) { f.IsVerbs = true }}, changes...)...)
	}
	onHosts := func(change func(*fake)) func(*fake) { return all((*fake).onHosts, change) }
	broken := errors.New("broken")
	for _, c := range []struct {
		check string
		spoil func(*fake)
		want  Result
		texts string // in found, costs or mend; separated by |
	}{
		{"kernel", sets("/proc/sys/kernel/osrelease", "4.11.0\n"), OK, "4.11.0"},
		{"kernel", sets("/proc/sys/kernel/osrelease", "4.4.0-generic\n"), Problem, "Linux 4.4.0-generic|statx|Linux 4.11 or newer"},
		{"kernel", sets("/proc/sys/kernel/osrelease", "3.99\n"), Problem, "3.99"},
		{"kernel", sets("/proc/sys/kernel/osrelease", "plan9\n"), NotExamined, `"plan9"`},
		{"kernel", lacks("/proc/sys/kernel/osrelease"), NotExamined, "osrelease"},

		{"processors", sets(group+"cpu.max", "800000 100000\n"), OK, "8, 8 workers"},
		{"processors", sets(group+"cpu.max", "150000 100000\n"), Warning, "a quota of 1.50|100 ms|CPUQuota="},
		{"stolen time", sets("/proc/stat", "cpu  70 0 20 870 0 0 0 40 0 0\n"), Warning, "4.0 %|hypervisor|processors of its own"},
		{"stolen time", sets("/proc/stat", "cpu  70 0 20\n"), NotExamined, "does not say"},
		{"stolen time", sets("/proc/stat", "cpu  1 2 3 4 5 6 7 x 9\n"), NotExamined, "does not say"},
		{"stolen time", lacks("/proc/stat"), NotExamined, "stat"},

		{"clock", sets(clock+"current_clocksource", "kvm-clock\n"), OK, "kvm-clock"},
		{"clock", sets(clock+"current_clocksource", "hpet\n"), Warning, "hpet|system call|echo tsc > " + clock},
		{"clock", all(sets(clock+"current_clocksource", "acpi_pm\n"), lacks(clock+"available_clocksource")), Warning, "acpi_pm|tsc=reliable"},
		{"clock", lacks(clock + "current_clocksource"), NotExamined, "current_clocksource"},

		{"memory", sets(group+"memory.max", "8589934592\n"), OK, "8.0 GiB by the limit of the control group (of 32.0 GiB)|768.0 MiB for logs|4.0 GiB at most"},
		{"memory", func(f *fake) { f.HeapLimit = func(memory, mapped int64) int64 { return memory/5*4 - mapped } }, Warning,
			"in each of 3 processes|more than there is|GOMEMLIMIT=7970MiB"},
		{"memory", func(f *fake) { f.HeapLimit = func(int64, int64) int64 { return math.MaxInt64 } }, Warning, "32.0 GiB at most|hardly any memory"},
		{"memory", func(f *fake) { f.Peers, f.LogBytes = 20, 1<<30 }, Problem, "in each of 20 processes|logs alone"},
		{"memory", sets(group+"memory.max", "1073741824\n"), Warning, "hardly any memory|MemoryMax="},
		{"memory", sets(group+"memory.max", "536870912\n"), Problem, "logs alone|--log-size"},
		{"memory", lacks(meminfo), NotExamined, "how much memory"},
		{"hugetlb", sets(meminfo, "MemTotal: 33554432 kB\nHugetlb: 2097152 kB\n"), Warning, "2.0 GiB|GOMEMLIMIT|vm.nr_hugepages=0"},
		{"hugetlb", lacks(meminfo), NotExamined, "hugetlbfs"},
		{"swap", sets(meminfo, swap), Warning, "2.0 GiB, of which 1.0 GiB are in use, swappiness 60|evicted|vm.swappiness=1"},
		{"swap", all(sets(meminfo, swap), sets("/proc/sys/vm/swappiness", "1\n")), OK, "swappiness 1"},
		{"swap", all(sets(meminfo, swap), sets(group+"memory.swap.max", "0\n")), OK, "may not use"},
		{"swap", all(sets(meminfo, swap), lacks("/proc/sys/vm/swappiness")), NotExamined, "swappiness"},
		{"swap", lacks(meminfo), NotExamined, "swap space"},

		{"open files", func(f *fake) { f.limit[unix.RLIMIT_NOFILE] = unix.RLIM_INFINITY }, OK, "unlimited"},
		{"open files", func(f *fake) { f.limit[unix.RLIMIT_NOFILE] = 1024 }, Warning, "1024 may be open, and serve needs 2529|fewer clients|LimitNOFILE=2529"},
		{"open files", func(f *fake) { f.limit[unix.RLIMIT_NOFILE] = 256 }, Problem, "does not start|LimitNOFILE=2529"},
		{"open files", fails("limit", broken), NotExamined, "broken"},

		{"file system", dataOn("ext4 /dev/x rw"), OK, "NOT A POWER CUT"},
		{"file system", dataOn("ext4 /dev/x rw,dax=always"), OK, "DAX"},
		{"file system", dataOn("xfs /dev/x rw,dax=never"), OK, "NOT A POWER CUT"},
		{"file system", func(f *fake) { f.Saves = "" }, Warning, "memory|restarts|--saves"},
		{"file system", dataOn("hugetlbfs none rw"), Problem, "hugetlbfs|does not start|huge=always"},
		{"file system", dataOn("nfs4 there:/x rw"), Problem, "nfs4|stops every statement|a disk of this computer"},
		{"file system", dataOn("fuse.sshfs there:/x rw"), Warning, "fuse.sshfs|a program answers"},
		{"file system", dataOn("virtiofs x rw"), Warning, "virtiofs|a program answers"},
		{"file system", dataOn("overlay overlay rw"), Warning, "gone with the container|--volume"},
		{"file system", dataOn("btrfs /dev/x rw"), Warning, "copies|ext4, xfs"},
		{"file system", fails("place", broken), Problem, "broken|does not start"},
		{"file system", lacks(mounts), NotExamined, "/mnt/farmsql/data"},

		{"room", func(f *fake) { f.room[f.Data] = nvram.Fullness{Free: 1 << 20} }, Problem, "1.0 MiB free|the logs find no room|remount"},
		{"room", func(f *fake) { f.room[f.Data] = nvram.Fullness{Free: 3 * gib} }, Warning, "3.0 GiB free|logs take 2.2 GiB|starts again"},
		{"room", func(f *fake) { f.Exists, f.room[f.Data] = true, nvram.Fullness{Percent: 50, Free: 1 << 20} }, OK, "50 %"},
		{"room", func(f *fake) { f.room[f.Data] = nvram.Fullness{Percent: 80, Free: 9 * gib} }, Warning, "80 %|1114"},
		{"room", func(f *fake) { f.room[f.Data] = nvram.Fullness{Percent: 95, Free: 9 * gib} }, Problem, "95 %|1114"},
		{"room", fails("place", broken), NotExamined, "broken"},
		{"room", fails("fullness", broken), NotExamined, "broken"},

		{"reserving", fails("try", syscall.EACCES), Problem, "no file can be made in /mnt/farmsql/data|chown"},
		{"reserving", fails("try", broken), Problem, "broken|another --data"},
		{"reserving", func(f *fake) { f.trial.Reserve = syscall.EOPNOTSUPP }, Warning, "cannot be reserved|a store ends farmsql"},
		{"reserving", func(f *fake) { f.trial.Punch = syscall.EOPNOTSUPP }, Warning, "cannot be given back|stays taken"},
		{"reserving", fails("place", broken), NotExamined, "broken"},

		{"huge pages", dataOn("ext4 /dev/x rw"), OK, "files on ext4 have none"},
		{"huge pages", dataOn("tmpfs tmpfs rw"), Warning, "without huge=|cache miss|remount,huge=always /mnt/farmsql"},
		{"huge pages", dataOn("tmpfs tmpfs rw,huge=never"), Warning, "remount"},
		{"huge pages", sets(huge, "always [deny] force\n"), Warning, "deny|echo never"},
		{"huge pages", all(dataOn("tmpfs tmpfs rw"), sets(huge, "always deny [force]\n")), OK, "force"},
		{"huge pages", lacks(huge), Warning, "CONFIG_TRANSPARENT_HUGEPAGE"},
		{"huge pages", lacks(mounts), NotExamined, "mountinfo"},

		{"saves", func(f *fake) { f.Saves = "" }, OK, "--saves"},
		{"saves", func(f *fake) { f.Saves = "/dev/shm/saves" }, Problem, "tmpfs|as the data are|on a disk"},
		{"saves", sets(mounts, "1 0 8:1 / / rw - overlay o rw\n"), Warning, "with the container"},
		{"saves", fails("fullness", broken), NotExamined, "broken"},
		{"saves", lacks(mounts), NotExamined, "/var/lib/farmsql"},

		{"listening", fails("listen", syscall.EADDRINUSE), Problem, "in use by a process that only root can find out|stop that process"},
		{"listening", all(fails("listen", syscall.EADDRINUSE), sets("/proc/net/tcp", listening), sets("/proc/42/comm", "mysqld\n"),
			func(f *fake) { f.links["/proc/42/fd/3"] = "socket:[77]" }), Problem, "process 42 (mysqld)"},
		{"listening", all(fails("listen", syscall.EADDRINUSE), sets("/proc/net/tcp", listening), sets("/proc/42/comm", "farmsql\n"),
			func(f *fake) { f.links["/proc/42/fd/3"] = "socket:[77]" }), Warning, "process 42 (farmsql)"},
		{"listening", fails("listen", syscall.EACCES), Problem, "for root only|ip_unprivileged_port_start"},
		{"listening", fails("listen", syscall.EADDRNOTAVAIL), Problem, "no address of this computer"},
		{"listening", fails("listen", broken), Problem, "broken"},
		{"firewall", func(f *fake) {}, NotExamined, "only root"},
		{"firewall", func(f *fake) { f.Plan.Listen = "localhost:3306" }, OK, "from outside"},
		{"firewall", func(f *fake) { f.Plan.Listen = "[::1]:3306" }, OK, "from outside"},

		{"RDMA", all(
			sets("/sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n"), sets("/sys/class/infiniband/mlx5_0/ports/1/link_layer", "Ethernet\n"),
			sets("/sys/class/infiniband/mlx5_0/ports/1/gids/0", "fe80:0000:0000:0000:0000:0000:0000:0001\n"),
			sets("/sys/class/infiniband/mlx5_0/ports/1/gids/1", "0000:0000:0000:0000:0000:0000:0000:0000\n"),
			sets("/sys/class/infiniband/rxe0/ports/1/gids/0", "0000:0000:0000:0000:0000:0000:0000:0000\n"),
			sets("/sys/class/infiniband/rxe1/ports/2/state", "1: DOWN\n"),
		), OK, "mlx5_0 port 1: ACTIVE, link layer Ethernet, GIDs fe80:0000:0000:0000:0000:0000:0000:0001; |" +
			"rxe0 port 1: state unknown, link layer unknown, GIDs none; |rxe1 port 2: DOWN, link layer unknown, GIDs unknown; |pinned|used only with --transport verbs"},
		{"RDMA", onVerbs(func(*fake) {}), Problem, "no devices|does not start with --transport verbs|ibverbs-providers"},
		{"RDMA", onVerbs(sets("/sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN\n")), Problem, "mlx5_0 port 1: DOWN|does not start|--rdma-port"},
		{"RDMA", onVerbs(active, func(f *fake) { f.Device = "mlx5_1" }), Problem, "does not start"},
		{"RDMA", onVerbs(active, func(f *fake) { f.Port = 2 }), Problem, "does not start"},
		{"RDMA", onVerbs(active, func(f *fake) { f.limit[unix.RLIMIT_MEMLOCK] = 8 << 20 }), Problem, "up to 8.0 MiB|connections break|LimitMEMLOCK=infinity"},
		{"RDMA", onVerbs(active, func(f *fake) { f.limit[unix.RLIMIT_MEMLOCK] = unix.RLIM_INFINITY }), OK, "mlx5_0 port 1: ACTIVE|without limit"},
		{"RDMA", onVerbs(active, sets("/proc/self/status", "CapEff:\t0000000000004000\n")), OK, "without limit"},
		{"RDMA", onVerbs(active, fails("limit", broken)), OK, "the limit of pinned memory is unknown: broken"},

		{"real time", sets("/proc/self/status", "CapEff:\t0000000000800000\n"), OK, "priority 98|CAP_SYS_NICE held"},
		{"real time", all(fails("realtime", broken), func(f *fake) { f.limit[unix.RLIMIT_RTPRIO] = 0 }), Warning,
			"RLIMIT_RTPRIO 0, CAP_SYS_NICE not held|200ms, not 150ms|LimitRTPRIO=98"},
		{"real time", fails("realtime", broken), Warning, "a container or control group forbids it"},
		{"real time", onHosts(fails("realtime", broken)), Warning, "waits for a processor as others do"},
		{"real time", all(fails("realtime", broken), sets(rt, "0\n")), Warning, "kernel.sched_rt_runtime_us=950000"},
		{"real time", func(f *fake) { f.HasThread = false }, Warning, "no lease thread|800ms|cgo"},
		{"real time", lacks(rt), NotExamined, "sched_rt_runtime_us"},
		{"real time", fails("limit", broken), NotExamined, "broken"},
		{"pinning", fails("pin", errors.New(denied)), Warning, "768.0 KiB at most, RLIMIT_MEMLOCK is 8.0 MiB: not permitted|paged out|LimitMEMLOCK=1572864|ulimit -l 1536"},
		{"pinning", func(f *fake) { f.limit[unix.RLIMIT_MEMLOCK] = unix.RLIM_INFINITY }, OK, "unlimited"},
		{"pinning", func(f *fake) { f.HasThread = false }, OK, "pins nothing"},
		{"pinning", fails("limit", broken), NotExamined, "broken"},

		{"shared folder", func(f *fake) { f.room["/dev/shm"] = nvram.Fullness{Free: 4 << 20, Size: 64 << 20} }, Problem, "4.0 MiB free|ends|remount,size=160m |--shm-size"},
		{"shared folder", func(f *fake) { f.room["/dev/shm"] = nvram.Fullness{Free: 16 << 20} }, Warning, "16.0 MiB free; 3 machines take 24.1 MiB"},
		{"shared folder", func(f *fake) { f.Shared = "/srv/shared" }, Warning, "ext4|--shared-folder on a tmpfs"},
		{"shared folder", fails("place", broken), Problem, "broken"},
		{"shared folder", fails("fullness", broken), NotExamined, "/dev/shm"},
		{"datagrams", sets("/proc/sys/net/unix/max_dgram_qlen", "2\n"), Warning, "queues 2|max_dgram_qlen=512"},
		{"datagrams", lacks("/proc/sys/net/unix/max_dgram_qlen"), NotExamined, "max_dgram_qlen"},
		{"processes", fails("hidden", broken), Problem, "setcap|message queues|setcap -r"},
		{"processes", fails("dumpable", broken), NotExamined, "broken"},

		{"peers", (*fake).onHosts, OK, "db1:7070 is free, on TCP and UDP"},
		{"peers", onVerbs(fails("listen packet", syscall.EADDRINUSE)), OK, "db1:7070 is free, on TCP;"},
		{"peers", onHosts(fails("host", errors.New("db1 is 127.0.1.1 on this host"))), Problem, "127.0.1.1|/etc/hosts"},
		{"peers", onHosts(fails("listen", &net.DNSError{Err: "no such host", Name: "db1"})), Problem, "no such host|/etc/hosts"},
		{"peers", onHosts(fails("listen", syscall.EADDRNOTAVAIL)), Problem, "no address of this computer|ip address"},
		{"peers", onHosts(fails("listen", syscall.EADDRINUSE)), Problem, "in use by a process|another --advertise"},
		{"peers", onHosts(fails("listen packet", syscall.EADDRINUSE)), Problem, "in use on UDP|ss -ulnp"},
		{"peers", onHosts(fails("listen packet", broken)), Problem, "broken|another --advertise"},
		{"first machine", joins(func(*fake) {}), OK, "db1:7070 answers over TCP|drops them"},
		{"first machine", joins(fails("reach", &net.DNSError{Err: "no such host", Name: "db1"})), Problem, "no such host|/etc/hosts"},
		{"first machine", joins(fails("reach", syscall.ECONNREFUSED)), Problem, "not reached over TCP|refused|start the first machine"},
		{"first machine", joins(fails("reach packet", syscall.ECONNREFUSED)), Problem, "refuses datagrams|let UDP through"},
		{"identity", (*fake).onHosts, OK, "/var/lib/farmsql/peer is on / (ext4)"},
		{"identity", onHosts(func(f *fake) { f.Identity = "" }), OK, "flags"},
		{"identity", onHosts(func(f *fake) { f.Identity = "/dev/shm/peer" }), Warning, "tmpfs|forgotten who it is|--saves"},
		{"identity", onHosts(sets(mounts, "1 0 8:1 / / rw - overlay o rw\n")), Warning, "with the container|--volume"},
		{"identity", onHosts(fails("place", broken)), Problem, "broken"},
		{"time of day", (*fake).onHosts, OK, "is synchronised"},
		{"time of day", onHosts(fails("drifts", broken)), Warning, "nothing synchronises|certificates|set-ntp"},
		{"time of day", onHosts(fails("adjtimex", broken)), NotExamined, "broken"},
		{"memory", onHosts(func(f *fake) { f.HeapLimit = func(memory, mapped int64) int64 { return memory/5*4 - mapped } }), OK, "768.0 MiB for logs"},
		{"room", onHosts(func(f *fake) { f.room["/mnt/farmsql/data"] = nvram.Fullness{Free: 2 << 30} }), OK, "logs take 768.0 MiB"},
	} {
		f := healthy()
		c.spoil(f)
		got := f.examine(t).of(c.check)
		if got.Result != c.want || (got.Costs == "") != (c.want == OK || c.want == NotExamined) || (got.Mend == "") != (got.Costs == "") {
			t.Errorf("%s: %+v, want %s", c.check, got, c.want)
		}
		for text := range strings.SplitSeq(c.texts, "|") {
			if !strings.Contains(got.Found+"\n"+got.Costs+"\n"+got.Mend, text) {
				t.Errorf("%s: %q is not in %+v", c.check, text, got)
			}
		}
	}
}

// of returns the finding of a check.
func (r Report) of(check string) (f Finding) {
	for _, f := range r {
		if f.Check == check {
			return f
		}
	}
	return f
}

// Nothing is examined that only other machines use.
func TestUsers(t *testing.T) {
	for _, c := range []struct {
		name string
		plan func(*fake)
		want []users
	}{
		{"a process that has all machines", func(f *fake) { f.IsCluster = false }, []users{all}},
		{"machines that share memory", func(*fake) {}, []users{all, clusters, sharing}},
		{"machines of several hosts", (*fake).onHosts, []users{all, clusters, hosts}},
	} {
		f := healthy()
		c.plan(f)
		r := f.examine(t)
		for _, check := range checks {
			if is := r.of(check.name).Check != ""; is != slices.Contains(c.want, check.by) {
				t.Errorf("%s: %s: examined: %v", c.name, check.name, is)
			}
		}
	}
}

func TestSize(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1 << 10: "1.0 KiB", 1536 << 20: "1.5 GiB", 1 << 62: "4.0 EiB"} {
		if got := size(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
