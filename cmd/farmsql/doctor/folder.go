package doctor

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/farmsql/farmsql/internal/host"
)

// Kinds of file systems, by their names in mount -t.
var (
	inMemory    = []string{"tmpfs", "ramfs"}
	overNetwork = []string{"nfs", "nfs4", "cifs", "smb3", "9p", "afs", "ceph", "glusterfs", "lustre"}
	byProgram   = []string{"virtiofs", "vboxsf"} // and fuse.NAME
	layered     = []string{"overlay", "aufs"}
	copying     = []string{"btrfs", "zfs", "bcachefs"}
)

// mountOf returns the mount of a folder that need not exist yet, or a finding that says why it is not
// known.
func (h Host) mountOf(folder string) (m host.Mount, place string, failed *Finding) {
	place, err := h.Place(folder)
	if err != nil {
		f := problem(err.Error(), "serve does not start", "choose another folder, or give its user the right to enter it")
		return m, "", &f
	}
	m, isKnown := h.MountOf(place)
	if !isKnown {
		f := notExamined("/proc/self/mountinfo does not say what file system has " + place)
		return m, place, &f
	}
	return m, place, nil
}

// checkFileSystem says what the memory of the data folder survives.
func checkFileSystem(h Host, p Plan) Finding {
	m, _, failed := h.mountOf(p.Data)
	if failed != nil {
		return *failed
	}
	found := fmt.Sprintf("%s is on %s (%s)", p.Data, m.Point, m.Type)
	switch {
	case m.Type == "hugetlbfs":
		return problem(found, "serve does not start: files of hugetlbfs cannot be written", "mount -t tmpfs -o size=SIZE,huge=always tmpfs FOLDER, and --data in it")
	case slices.Contains(overNetwork, m.Type):
		return problem(found, "a server that does not answer stops every statement, and nobody knows what it has when it comes back", "choose --data on a disk of this computer, or on a tmpfs")
	case strings.HasPrefix(m.Type, "fuse") || slices.Contains(byProgram, m.Type):
		return warning(found, "a program answers for this file system: if it ends, so does farmsql; what it keeps is not known", "choose --data on a disk of this computer, or on a tmpfs")
	case slices.Contains(layered, m.Type):
		return warning(found, "this is the layer of a container: the data are gone with the container", "mount a volume there (docker: --volume)")
	case slices.Contains(inMemory, m.Type) && p.Saves == "":
		return warning(found+": memory", "all is gone when the computer restarts, in good order or not", "--saves FOLDER, on a disk: SIGTERM and SIGPWR then save the memory there")
	case slices.Contains(inMemory, m.Type):
		return good(found + ": memory that survives a killed process, and, with --saves, a shutdown, but no power cut without a battery")
	case isDirect(m):
		return good(found + ", with DAX: memory that survives what the device survives")
	case slices.Contains(copying, m.Type):
		return warning(found+", which copies what is written", "storage that was reserved is not there when it is needed: if the file system is full, a store ends farmsql", "choose --data on ext4, xfs or a tmpfs, or keep a tenth of the file system free")
	}
	return good(found + ": survives a killed process and a shutdown, NOT A POWER CUT")
}

// isDirect reports whether stores to mapped files go to the device itself (DAX).
func isDirect(m host.Mount) bool {
	value, isSet := m.Option("dax")
	return isSet && value != "never" && value != "inode"
}

// From these shares of a file system in use, in percent, checkRoom reports a warning and a problem. The
// server logs warnings at the same shares.
const (
	fullWarning = 80
	fullProblem = 95
)

// checkRoom compares the free room with the room that logs need. A machine that starts again needs
// it twice, until it has recovered its last logs.
func checkRoom(h Host, p Plan) Finding {
	place, err := h.Place(p.Data)
	if err != nil {
		return notExamined(err.Error())
	}
	full, err := h.Fullness(place)
	if err != nil {
		return notExamined(err.Error())
	}
	logs := p.logs(p.machinesHere()) // of all machines here: mostly their folders are on one file system
	found := fmt.Sprintf("%s free, %d %% in use; logs take %s", size(full.Free), full.Percent, size(logs))
	const mend = "make room on the file system (a tmpfs: mount -o remount,size=SIZE), or begin the instance with fewer --workers or a smaller --log-size"
	switch {
	case !p.Exists && full.Free < logs:
		return problem(found, "serve does not start: the logs find no room", mend)
	case full.Percent >= fullProblem:
		return problem(found, "statements that need memory fail with error 1114", mend)
	case full.Percent >= fullWarning:
		return warning(found, "statements that need memory fail with error 1114 when it is full", mend)
	case !p.Exists && full.Free < 2*logs:
		return warning(found, "hardly any room is left for data, and for the logs of a machine that starts again", mend)
	}
	return good(found)
}

// checkReserving tries whether the file system can reserve storage and give it back.
func checkReserving(h Host, p Plan) Finding {
	place, err := h.Place(p.Data)
	if err != nil {
		return notExamined(err.Error())
	}
	trial, err := h.Try(place)
	switch {
	case errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.EROFS):
		return problem(fmt.Sprintf("no file can be made in %s: %v", place, err), "serve does not start", fmt.Sprintf("choose another --data, or chown USER %s", place))
	case err != nil:
		return problem(fmt.Sprintf("no file can be made in %s: %v", place, err), "serve does not start", "choose another --data")
	case trial.Reserve != nil:
		return warning(fmt.Sprintf("storage cannot be reserved in %s: %v", place, trial.Reserve),
			"if the file system is full, a store ends farmsql; elsewhere the statement would fail with error 1114", "choose --data on ext4, xfs or a tmpfs")
	case trial.Punch != nil:
		return warning(fmt.Sprintf("storage cannot be given back in %s: %v", place, trial.Punch),
			"what DELETE and DROP free stays taken on the file system", "choose --data on ext4, xfs or a tmpfs")
	}
	return good("storage can be reserved, and given back")
}

// checkHugePages checks whether the kernel gives huge pages to the files of the data folder. The
// mount options decide that; the kernel's setting for shared memory can overrule them.
func checkHugePages(h Host, p Plan) Finding {
	m, _, failed := h.mountOf(p.Data)
	if failed != nil {
		return *failed
	}
	if m.Type != "tmpfs" {
		return good(fmt.Sprintf("files on %s have none (a tmpfs can have them: huge=always)", m.Type))
	}
	const costs = "a cache miss costs up to twice as much"
	shared, err := h.Text("/sys/kernel/mm/transparent_hugepage/shmem_enabled")
	if err != nil {
		return warning("this kernel has none", costs, "install a kernel with CONFIG_TRANSPARENT_HUGEPAGE")
	}
	huge, _ := m.Option("huge")
	switch setting := chosen(shared); {
	case setting == "deny":
		return warning("shmem_enabled is deny", costs, "echo never > /sys/kernel/mm/transparent_hugepage/shmem_enabled (as root; then the mount decides)")
	case setting == "force":
		return good("shmem_enabled is force")
	case huge == "" || huge == "never":
		return warning(m.Point+" is mounted without huge=", costs, fmt.Sprintf("mount -o remount,huge=always %s (before farmsql starts)", m.Point))
	}
	return good(fmt.Sprintf("%s is mounted with huge=%s", m.Point, huge))
}

// chosen returns the word in brackets: "always [advise] never".
func chosen(text string) string {
	_, rest, _ := strings.Cut(text, "[")
	word, _, _ := strings.Cut(rest, "]")
	return word
}

// checkSaves checks whether the folder for saves survives what the data folder may not.
func checkSaves(h Host, p Plan) Finding {
	if p.Saves == "" {
		return good("none are made without --saves")
	}
	m, place, failed := h.mountOf(p.Saves)
	if failed != nil {
		return *failed
	}
	full, err := h.Fullness(place)
	if err != nil {
		return notExamined(err.Error())
	}
	found := fmt.Sprintf("%s is on %s (%s), with %s free", p.Saves, m.Point, m.Type, size(full.Free))
	switch {
	case slices.Contains(inMemory, m.Type):
		return problem(found, "saves are gone when the computer restarts, as the data are", "choose --saves on a disk")
	case slices.Contains(layered, m.Type):
		return warning(found, "saves are gone with the container", "mount a volume there (docker: --volume)")
	}
	return good(found + "; a save takes as much as is in use, beside the one before")
}
