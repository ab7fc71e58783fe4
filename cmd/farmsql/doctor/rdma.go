package doctor

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const devicesFolder = "/sys/class/infiniband"

// checkRDMA lists the RDMA cards, and the limit of the memory that they may pin. It reports a
// problem only if the machine is to use a card.
func checkRDMA(h Host, p Plan) Finding {
	ports, _ := filepath.Glob(h.Path(devicesFolder + "/*/ports/*")) // the pattern is good
	var all []string
	isActive := false
	for _, port := range ports {
		port = strings.TrimPrefix(port, h.Path(devicesFolder))
		text := h.portText(port)
		all = append(all, text)
		isActive = isActive || (p.isOwnPort(port) && strings.Contains(text, ": ACTIVE,"))
	}
	found := strings.Join(append(all, h.pinText()), "; ")
	if len(ports) == 0 {
		found = "no devices"
	}
	if !p.IsVerbs {
		return good(found + "; used only with --transport verbs")
	}
	const start = "the machine does not start with --transport verbs"
	switch now, err := h.Limit(unix.RLIMIT_MEMLOCK); {
	case len(ports) == 0:
		return problem(found, start, "install the card's driver (rdma-core) and ibverbs-providers, or leave --transport verbs out")
	case !isActive:
		return problem(found, start, "connect the port, and bring its interface up (ip link set); --rdma-device and --rdma-port say which one")
	case err == nil && now != unix.RLIM_INFINITY && !h.has(unix.CAP_IPC_LOCK):
		return problem(found, "cards pin all memory that other machines use: connections break once it is more than the limit", "LimitMEMLOCK=infinity in the service's unit; or ulimit -l unlimited as root")
	}
	return good(found)
}

// isOwnPort reports whether a port, /mlx5_0/ports/1, is one that the machine may use.
func (p Plan) isOwnPort(port string) bool {
	device, number := strings.Split(port, "/")[1], path.Base(port)
	return (p.Device == "" || device == p.Device) && number == strconv.Itoa(max(p.Port, 1))
}

// pinText says how much memory a card may pin.
func (h Host) pinText() string {
	now, err := h.Limit(unix.RLIMIT_MEMLOCK)
	switch {
	case err != nil:
		return "the limit of pinned memory is unknown: " + err.Error()
	case now == unix.RLIM_INFINITY || h.has(unix.CAP_IPC_LOCK):
		return "memory may be pinned without limit"
	}
	return "memory may be pinned up to " + size(int64(now)) + " (RLIMIT_MEMLOCK)"
}

// portText describes a port of a device: /mlx5_0/ports/1.
func (h Host) portText(port string) string {
	device, number := strings.Split(port, "/")[1], path.Base(port)
	read := func(name string) string {
		text, err := h.Text(devicesFolder + port + "/" + name)
		if err != nil || text == "" {
			return "unknown"
		}
		return text
	}
	_, state, _ := strings.Cut(read("state"), ": ") // "4: ACTIVE"
	if state == "" {
		state = "state unknown"
	}
	return fmt.Sprintf("%s port %s: %s, link layer %s, GIDs %s", device, number, state, read("link_layer"), h.gids(port))
}

// gids lists the addresses of a port that are set.
func (h Host) gids(port string) string {
	folder := devicesFolder + port + "/gids"
	entries, err := os.ReadDir(h.Path(folder))
	if err != nil {
		return "unknown"
	}
	var all []string
	for _, e := range entries {
		gid, err := h.Text(folder + "/" + e.Name()) // an entry that is not set cannot be read, or is zero
		if err == nil && strings.Trim(gid, "0:") != "" {
			all = append(all, gid)
		}
	}
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, " ")
}
