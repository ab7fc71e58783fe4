package doctor

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
)

const devicesFolder = "/sys/class/infiniband"

// checkRDMA lists the network cards for RDMA. They are never a problem: the server does not use them.
func checkRDMA(h Host, _ Plan) Finding {
	const unused = "this build's server does not use RDMA devices yet: its machines use shared memory or TCP"
	ports, _ := filepath.Glob(h.Path(devicesFolder + "/*/ports/*")) // the pattern is good
	if len(ports) == 0 {
		return good("no devices; " + unused)
	}
	var all []string
	for _, port := range ports {
		all = append(all, h.portText(strings.TrimPrefix(port, h.Path(devicesFolder))))
	}
	return good(strings.Join(all, "; ") + "; " + unused)
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
