package test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/internal/testnet"
)

// hosts are network namespaces that are joined by a bridge, as hosts are by a switch. This namespace
// is one of them.
type hosts struct {
	t    *testing.T
	name string // of the bridge, and the beginning of all other names
	net  string // the first three numbers of the addresses
}

// newHosts makes n hosts, which end with the test. Where it may not, the test is skipped.
func newHosts(t *testing.T, n int) *hosts {
	t.Helper()
	pid := os.Getpid()
	h := &hosts{t: t, name: fmt.Sprintf("fs%d", pid), net: fmt.Sprintf("198.%d.%d", 18+pid>>8&1, pid&0xff)}
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: only root may make network namespaces")
	}
	t.Cleanup(func() {
		for id := range n {
			_ = exec.Command("ip", "link", "delete", h.cable(id)).Run() // a namespace that ends removes its end some time later
			_ = exec.Command("ip", "netns", "delete", h.space(id)).Run()
		}
		_ = exec.Command("ip", "link", "delete", h.name).Run()
	})
	if out, err := exec.Command("ip", "link", "add", h.name, "type", "bridge").CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: network namespaces cannot be joined here (ip, of iproute2): %v: %s", err, out)
	}
	h.ip("address", "add", h.net+".254/24", "dev", h.name)
	h.ip("link", "set", h.name, "up")
	for id := range n {
		h.ip("netns", "add", h.space(id))
		h.ip("link", "add", h.cable(id), "type", "veth", "peer", "name", "eth0", "netns", h.space(id))
		h.ip("link", "set", h.cable(id), "master", h.name, "up")
		h.ip("-n", h.space(id), "address", "add", h.address(id)+"/24", "dev", "eth0")
		h.ip("-n", h.space(id), "link", "set", "eth0", "up")
		h.ip("-n", h.space(id), "link", "set", "lo", "up")
	}
	return h
}

func (h *hosts) space(id int) string   { return fmt.Sprintf("%s-%d", h.name, id) }
func (h *hosts) cable(id int) string   { return fmt.Sprintf("%sv%d", h.name, id) }
func (h *hosts) address(id int) string { return fmt.Sprintf("%s.%d", h.net, id+1) }

// here is the address of this namespace.
func (h *hosts) here() string { return h.net + ".254" }

func (h *hosts) ip(args ...string) {
	h.t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		h.t.Fatalf("ip %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// command returns a command that runs on a host.
func (h *hosts) command(id int, program string, args ...string) *exec.Cmd {
	return exec.Command("ip", append([]string{"netns", "exec", h.space(id), program}, args...)...)
}

// relay puts a relay between each of n hosts and the others, which know it by a name that leads them to the
// relay, and itself to its own address.
func (h *hosts) relay(p *peers, n int) {
	h.t.Helper()
	p.named = true
	through := func(id int) string { return fmt.Sprintf("%s.%d", h.net, 101+id) }
	for id := range n {
		h.ip("address", "add", through(id)+"/24", "dev", h.name)
		port := fmt.Sprint(p.port)
		testnet.Relay(h.t, net.JoinHostPort(through(id), port), net.JoinHostPort(h.address(id), port))
		folder := filepath.Join("/etc/netns", h.space(id)) // ip netns exec puts its files in the place of those in /etc
		if err := os.MkdirAll(folder, 0o755); err != nil {
			h.t.Fatal(err)
		}
		h.t.Cleanup(func() { os.RemoveAll(folder) })
		names := []byte("127.0.0.1 localhost\n")
		for other := range n {
			at := through(other)
			if other == id {
				at = h.address(id)
			}
			names = fmt.Appendf(names, "%s %s\n", at, p.host(other))
		}
		if err := os.WriteFile(filepath.Join(folder, "hosts"), names, 0o644); err != nil {
			h.t.Fatal(err)
		}
	}
}

// cut pulls out a host's cable, and returns a function that puts it back.
func (h *hosts) cut(id int) (mend func()) {
	h.ip("link", "set", h.cable(id), "down")
	return func() { h.ip("link", "set", h.cable(id), "up") }
}

// drop makes one host drop what it sends to another, and returns a function that ends that.
func (h *hosts) drop(from, to int) (mend func()) {
	route := []string{"-n", h.space(from), "route", "VERB", "blackhole", h.address(to) + "/32"}
	do := func(verb string) {
		route[3] = verb
		h.ip(route...)
	}
	do("add")
	return func() { do("delete") }
}

// dropDatagrams makes a host drop the datagrams that it sends, and returns a function that ends that.
func (h *hosts) dropDatagrams(from int) (mend func()) {
	do := func(verb string) { h.ip("-n", h.space(from), "rule", verb, "ipproto", "udp", "blackhole") }
	do("add")
	return func() { do("delete") }
}

// dropUnlessSame is drop, and does nothing if both are the same host.
func (h *hosts) dropUnlessSame(from, to int) (mend func()) {
	if from == to {
		return func() {}
	}
	return h.drop(from, to)
}

// unplug takes down the interface of a host itself, which then knows that it reaches nobody, and returns a
// function that brings it up again.
func (h *hosts) unplug(id int) (mend func()) {
	h.ip("-n", h.space(id), "link", "set", "eth0", "down")
	return func() { h.ip("-n", h.space(id), "link", "set", "eth0", "up") }
}

// letIn lets root of this namespace connect to a fleet on hosts, who could only from its own.
func (f *fleet) letIn() {
	f.t.Helper()
	_, port, err := net.SplitHostPort(f.machines[0].address())
	if err != nil {
		f.t.Fatal(err)
	}
	cmd := f.hosts.command(0, f.program, "sql", "--address", net.JoinHostPort("127.0.0.1", port),
		"-e", "create user root@'%'", "-e", "grant all on *.* to root@'%' with grant option")
	if out, err := cmd.CombinedOutput(); err != nil {
		f.t.Fatalf("%v: %s", err, out)
	}
}
