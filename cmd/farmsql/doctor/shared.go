package doctor

import (
	"fmt"

	"github.com/farmsql/farmsql/rdma/shm"
)

// checkShared looks at the folder in which the machines of a cluster meet. Each machine has a
// state file there. Its storage is allocated as it is used: a write that finds no storage left
// ends the machine.
func checkShared(h Host, p Plan) Finding {
	place, err := h.Place(p.Shared)
	if err != nil {
		return problem(err.Error(), "serve does not start", "choose a --shared-folder on a tmpfs")
	}
	mount, isKnown := h.MountOf(place)
	full, err := h.Fullness(place)
	if err != nil || !isKnown {
		return notExamined(fmt.Sprintf("the file system of %s is not known", place))
	}
	needed := int64(p.Peers) * shm.StateBytes
	found := fmt.Sprintf("%s, on %s (%s), has %s free; %d machines take %s at most", p.Shared, mount.Point, mount.Type, size(full.Free), p.Peers, size(needed))
	mend := fmt.Sprintf("mount -o remount,size=%dm %s (docker: --shm-size)", (full.Size+4*needed)>>20, mount.Point)
	switch {
	case full.Free < shm.StateBytes:
		return problem(found, "a machine that finds no room for its state file there ends", mend)
	case full.Free < needed:
		return warning(found, "a machine that finds no room for its state file there ends", mend)
	case mount.Type != "tmpfs":
		return warning(found, "the kernel writes what machines tell each other to the disk, and they wait for that now and then", "choose a --shared-folder on a tmpfs, such as /dev/shm")
	}
	return good(found)
}

// checkDatagrams compares the kernel's queue for datagrams with the number of machines.
func checkDatagrams(h Host, p Plan) Finding {
	room, err := h.Number("/proc/sys/net/unix/max_dgram_qlen")
	if err != nil {
		return notExamined(err.Error())
	}
	found := fmt.Sprintf("the kernel queues %d for a machine, and there are %d machines", room, p.Peers)
	if room >= int64(p.Peers) {
		return good(found)
	}
	return warning(found, "when all others answer at once, answers are lost and asked for again; the configuration manager wakes for each of them",
		"sysctl -w net.unix.max_dgram_qlen=512")
}

// checkDumpable checks whether the machines of a cluster may map each other's message queues,
// which they open as /proc/PID/fd/N.
func checkDumpable(h Host, _ Plan) Finding {
	dumpable, err := h.IsDumpable()
	switch {
	case err != nil:
		return notExamined(err.Error())
	case dumpable:
		return good("machines of one user may map each other's memory")
	}
	return problem("the kernel hides this program's files from other processes, as it does with programs that have capabilities of their own (setcap) or another user's rights (setuid)",
		"machines cannot map each other's message queues: none gets further than connecting",
		"setcap -r on the program's file, chmod u-s, and rights by limits of the user instead (LimitRTPRIO=, limits.conf)")
}
