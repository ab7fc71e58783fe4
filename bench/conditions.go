package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Conditions describe the circumstances of a measurement, without which a figure
// means nothing.
type Conditions struct {
	// The computer.
	CPU         string `json:"cpu"`
	Processors  int    `json:"processors"` // processors that Go uses
	MemoryBytes uint64 `json:"memoryBytes"`
	Kernel      string `json:"kernel"`
	Go          string `json:"go"`
	// Others is how many processors other processes kept busy meanwhile; -1 if
	// unknown.
	Others float64 `json:"others"`

	// The database.
	Commit    string `json:"commit"`
	API       API    `json:"api"`
	Server    string `json:"server,omitempty"` // the server at a DSN
	Transport string `json:"transport,omitempty"`
	Machines  int    `json:"machines,omitempty"`
	Processes int    `json:"processes,omitempty"` // processes of the machines; 0 means that they are in the benchmark's own
	Replicas  int    `json:"replicas,omitempty"`
	Workers   int    `json:"workers,omitempty"` // workers of a machine; 0 means the default
	Memory    string `json:"memory,omitempty"`  // the kind of memory that regions are in
	// Durability says what the data survive.
	Durability Durability `json:"durability,omitempty"`

	// The workload.
	Workload string    `json:"workload"`
	Scale    Scale     `json:"scale"`
	Seed     uint64    `json:"seed"`
	Threads  int       `json:"threads"`        // clients at each machine
	Rate     float64   `json:"rate,omitempty"` // rate of the open loop; 0 means the closed loop
	WarmUp   float64   `json:"warmUpSeconds"`
	Duration float64   `json:"durationSeconds,omitempty"` // measured time, after the warm-up
	Began    time.Time `json:"began"`
}

// Commit is the program's revision, as the go command has noted it.
func Commit() string {
	info, _ := debug.ReadBuildInfo()
	return commitOf(info)
}

const commitDigits = 12

// commitOf returns the revision in info, and whether the source was modified.
func commitOf(info *debug.BuildInfo) string {
	revision, modified := "unknown", ""
	if info == nil {
		return revision
	}
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value[:min(commitDigits, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = " modified"
		}
	}
	return revision + modified
}

// Computer returns the conditions that describe the computer and the program.
func Computer() Conditions {
	return Conditions{
		CPU: cpuModel(), Processors: runtime.GOMAXPROCS(0), MemoryBytes: memoryBytes(), Kernel: kernel(), Go: runtime.Version(),
		Others: -1, Commit: Commit(),
	}
}

// conditions returns the conditions of a run, without Others.
func conditions(cfg *TargetConfig, o *Options, workload string, scale Scale, began time.Time) Conditions {
	c := Computer()
	c.API, c.Workload, c.Scale, c.Began = cfg.API, workload, scale, began
	c.Seed, c.Threads, c.Rate, c.WarmUp = o.Seed, o.Threads, o.Rate, o.WarmUp.Seconds()
	c.Duration = o.Duration.Seconds()
	c.Durability = cfg.durability()
	if cfg.DSN != "" {
		return c
	}
	c.Transport, c.Machines, c.Replicas, c.Workers, c.Memory = cfg.Transport, cfg.Machines, cfg.Replicas, cfg.Workers, "anonymous memory"
	switch {
	case cfg.HasProcesses():
		c.Memory = "files in " + memoryFolder
	case cfg.DataFolder != "":
		c.Memory = "files in " + cfg.DataFolder
	}
	return c
}

// cpuModel returns the processor's name.
func cpuModel() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "unknown"
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

// memoryBytes returns the size of the computer's memory; 0 if the system does not tell it.
func memoryBytes() uint64 {
	var s unix.Sysinfo_t
	if unix.Sysinfo(&s) != nil {
		return 0
	}
	return uint64(s.Totalram) * uint64(s.Unit)
}

// kernel returns the name and version of the operating system's kernel.
func kernel() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return "unknown"
	}
	text := func(b []byte) string { return string(b[:max(0, bytes.IndexByte(b, 0))]) }
	return text(u.Sysname[:]) + " " + text(u.Release[:])
}

// title describes the run in one line.
func (c *Conditions) title() string {
	s := c.Workload + ", " + string(c.API)
	switch {
	case c.Server != "":
		s += ", " + c.Server
	case c.Machines > 1:
		s += ", " + strconv.Itoa(c.Machines) + " machines, " + plural(c.Replicas, "replica") + " over " + c.Transport
	default:
		s += ", 1 machine"
	}
	s += ", " + count(float64(c.Scale.N)) + " " + c.Scale.Unit + ", " + plural(c.Threads, "thread")
	if c.Machines > 1 {
		s += " each"
	}
	return s
}

// SetUp describes the machines and clients in a few words.
func (c *Conditions) SetUp() string {
	each := ""
	if c.Machines > 1 {
		each = " each"
	}
	workers := "workers by default"
	if c.Workers > 0 {
		workers = plural(c.Workers, "worker") + each
	}
	return fmt.Sprintf("%s, %s, transport %s, %s, %s%s", plural(c.Machines, "machine"), plural(c.Replicas, "replica"), c.Transport,
		workers, plural(c.Threads, "thread"), each)
}

// loop describes the arrival of transactions.
func (c *Conditions) loop() string {
	s := "closed loop"
	if c.Rate > 0 {
		s = "open loop, " + count(c.Rate) + " transactions a second arrive"
	}
	if c.Duration > 0 {
		s += fmt.Sprintf(", %g s", c.Duration)
	}
	return s + fmt.Sprintf(" after %g s of warm-up", c.WarmUp)
}
