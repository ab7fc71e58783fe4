package bench

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/farmsql/farmsql"
	"github.com/farmsql/farmsql/cluster/join"
)

// Over TransportHosts each machine's process has a network namespace of its own, as if it ran on a
// host of its own. Machine 0's namespace has the bridge that joins the namespaces, as a switch
// joins hosts. A namespace ends with its process and takes all its devices with it, so nothing is
// left however the processes end.

const (
	hostsMax  = 250
	hostsPort = 7070
	bridge    = "switch"
	// hostPatience is how long a machine waits until its namespace is joined with the others', and then
	// for the machine before it.
	hostPatience = time.Minute
)

// hostAddress returns the IP address of a machine. It is in the network that is reserved for benchmarks (RFC 2544).
func hostAddress(machine int) string { return fmt.Sprintf("198.18.0.%d", 1+machine) }

// hostFolder is the folder of a machine that has a host of its own.
func hostFolder(folder string, machine int) string {
	return filepath.Join(folder, fmt.Sprint("host-", machine))
}

// setHost prepares the configuration of a machine with a host of its own. Machine 0 creates a
// cluster whose machines keep the configuration themselves. The others join it one after another,
// so that each gets its own number.
func setHost(ctx context.Context, cfg *MachineConfig, c *farmsql.Config) error {
	ctx, cancel := context.WithTimeout(ctx, hostPatience)
	defer cancel()
	host := hostAddress(cfg.Machine)
	// MachineID is 0, because joining gives a machine its number.
	c.Cluster, c.MachineID, c.Folder = farmsql.ClusterRaft, 0, hostFolder(cfg.Folder, cfg.Machine)
	c.Advertise = fmt.Sprint(host, ":", hostsPort)
	if err := Poll(ctx, "its address "+host, func() (bool, error) { return hasAddress(host), nil }); err != nil || cfg.Machine == 0 {
		return err
	}
	before := filepath.Join(hostFolder(cfg.Folder, cfg.Machine-1), farmsql.PeerFolder)
	err := Poll(ctx, fmt.Sprint("machine ", cfg.Machine-1, " to join"), func() (bool, error) {
		id, err := join.Load(before)
		return id != nil, err
	})
	if err != nil {
		return err
	}
	c.Cluster = ""
	c.Join, err = farmsql.NewToken(hostFolder(cfg.Folder, 0), 1, hostPatience)
	return err
}

// hasAddress reports whether this process's network namespace has an address: joinHosts gives it
// the address last. An attempt to listen does not show that, because a new namespace without any
// address lets a socket bind to any.
func hasAddress(address string) bool {
	all, err := net.InterfaceAddrs()
	return err == nil && slices.ContainsFunc(all, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		return ok && n.IP.String() == address
	})
}

// joinHosts joins the network namespaces of machines' processes.
func joinHosts(machines []*process) error {
	first := machines[0].command.Process.Pid
	if err := ipIn(first, "link add "+bridge+" type bridge", "link set "+bridge+" up"); err != nil {
		return err
	}
	for i, p := range machines {
		pid := p.command.Process.Pid
		cable := "cable" + strconv.Itoa(i)
		err := ipIn(first,
			"link add "+cable+" type veth peer name eth0 netns "+strconv.Itoa(pid),
			"link set "+cable+" master "+bridge+" up")
		if err != nil {
			return err
		}
		// The address comes last: the machine waits for it.
		err = ipIn(pid, "link set lo up", "link set eth0 up", "address add "+hostAddress(i)+"/24 dev eth0")
		if err != nil {
			return err
		}
	}
	return nil
}

// ipIn executes commands of ip (iproute2) in the network namespace of a process.
func ipIn(pid int, commands ...string) error {
	for _, c := range commands {
		args := append([]string{"--net=/proc/" + strconv.Itoa(pid) + "/ns/net", "ip"}, strings.Fields(c)...)
		if out, err := exec.Command("nsenter", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("bench: network namespaces cannot be joined: ip %s: %w: %s", c, err, out)
		}
	}
	return nil
}
