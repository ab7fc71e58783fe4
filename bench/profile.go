package bench

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"time"
)

// Suffixes of further profiles. The profile of processor time is in the file Options.Profile
// itself.
const (
	ProfileAllocs     = ".allocs"      // allocations since the process began
	ProfileAllocsBase = ".allocs.base" // allocations until the profile begins
	ProfileMutex      = ".mutex"       // contended waits for locks
	ProfileBlock      = ".block"       // waits for locks, channels and anything else
)

// ProfilesOf returns the profiles of a kind, one of the suffixes above, that were written beside
// the given profiles of processor time.
func ProfilesOf(files []string, kind string) []string {
	profiles := make([]string, len(files))
	for i, file := range files {
		profiles[i] = file + kind
	}
	return profiles
}

// While profiles are taken, the runtime records every tenth wait for a lock (ProfileMutex). For
// ProfileBlock it records all waits of 10 µs and more, and of shorter waits a share in proportion to
// their length. These are few enough not to change the processor time. Both profiles are scaled up to
// all waits.
const (
	mutexFraction = 10
	blockRate     = 10 * time.Microsecond
)

// A profiler takes the profiles of the time between beginProfile and end.
type profiler struct {
	file string
	// taken has the profiles, each under the suffix of its file's name. The files are written at
	// the end, because runtime/pprof hides their errors.
	taken map[string]*bytes.Buffer
	// mutexFraction is the runtime's earlier setting, which end restores.
	mutexFraction int
}

// beginProfile begins to take profiles, if there is a file for them.
func beginProfile(file string) (end func() error, err error) {
	if file == "" {
		return func() error { return nil }, nil
	}
	p := &profiler{file: file, taken: make(map[string]*bytes.Buffer)}
	for _, suffix := range []string{"", ProfileAllocs, ProfileAllocsBase, ProfileMutex, ProfileBlock} {
		p.taken[suffix] = new(bytes.Buffer)
	}
	// Find out now, not after the measurement, whether the file can be written.
	if err := p.write(); err != nil {
		return nil, err
	}
	p.takeAllocs(ProfileAllocsBase)
	if err := pprof.StartCPUProfile(p.taken[""]); err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	p.mutexFraction = runtime.SetMutexProfileFraction(mutexFraction)
	runtime.SetBlockProfileRate(int(blockRate))
	return p.end, nil
}

// end takes the profiles and writes them.
func (p *profiler) end() error {
	pprof.StopCPUProfile()
	runtime.SetBlockProfileRate(0)
	runtime.SetMutexProfileFraction(p.mutexFraction)
	p.takeAllocs(ProfileAllocs) // before the other profiles, because taking those allocates
	p.take("mutex", ProfileMutex)
	p.take("block", ProfileBlock)
	return p.write()
}

// takeAllocs takes the profile of all allocations from the start of the process to the last
// garbage collection.
func (p *profiler) takeAllocs(suffix string) {
	runtime.GC()
	p.take("allocs", suffix)
}

func (p *profiler) take(name, suffix string) {
	_ = pprof.Lookup(name).WriteTo(p.taken[suffix], 0) // cannot fail: it writes to memory
}

// write writes all that has been taken.
func (p *profiler) write() error {
	for suffix, b := range p.taken {
		if err := os.WriteFile(p.file+suffix, b.Bytes(), 0o666); err != nil {
			return fmt.Errorf("bench: %w", err)
		}
	}
	return nil
}
