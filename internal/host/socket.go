package host

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A Process is a running program.
type Process struct {
	ID   int
	Name string
}

// ListenerOf returns the process that listens on a TCP port. isKnown is false if no process is
// found; without root's rights only processes of the same user are.
func (r Root) ListenerOf(port int) (p Process, isKnown bool) {
	sockets := make(map[string]bool)
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, _ := r.Text(table) // a kernel without IPv6 has no tcp6
		for line := range strings.Lines(text) {
			if inode, ok := listeningSocket(line, port); ok {
				sockets[fmt.Sprintf("socket:[%s]", inode)] = true
			}
		}
	}
	if len(sockets) == 0 {
		return p, false
	}
	files, _ := filepath.Glob(r.Path("/proc/[0-9]*/fd/*")) // the pattern is good
	for _, file := range files {
		if target, err := os.Readlink(file); err == nil && sockets[target] {
			process := filepath.Dir(filepath.Dir(file))
			p.ID, _ = strconv.Atoi(filepath.Base(process)) // the pattern asks for digits
			name, _ := os.ReadFile(filepath.Join(process, "comm"))
			p.Name = strings.TrimSpace(string(name))
			return p, true
		}
	}
	return p, false
}

// listeningSocket returns the inode of the socket in a line of /proc/net/tcp, if it listens on port:
//
//	sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
//	0: 0100007F:0CEA 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 23456
func listeningSocket(line string, port int) (inode string, ok bool) {
	const listening = "0A"
	fields := strings.Fields(line)
	if len(fields) < 10 || fields[3] != listening {
		return "", false
	}
	_, local, _ := strings.Cut(fields[1], ":")
	n, err := strconv.ParseUint(local, 16, 16)
	return fields[9], err == nil && int(n) == port
}
