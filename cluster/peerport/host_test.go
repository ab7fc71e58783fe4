package peerport

import (
	"net"
	"os"
	"strings"
	"testing"
)

// TestCheckHost: only a name that leads to a loopback address is refused.
func TestCheckHost(t *testing.T) {
	for _, address := range []string{"127.0.0.1:7070", "[::1]:7070", "localhost:7070", "192.0.2.1:7070", "no-such-host.invalid:7070", "nonsense", ""} {
		if err := CheckHost(address); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{name, "ip6-localhost", "localhost.localdomain", "localhost4"} {
		at, err := net.ResolveTCPAddr("tcp", net.JoinHostPort(name, "7070"))
		if err != nil || !at.IP.IsLoopback() {
			continue
		}
		if err := CheckHost(name + ":7070"); err == nil || !strings.Contains(err.Error(), "/etc/hosts") {
			t.Errorf("%s, which is %s: %v", name, at.IP, err)
		}
		return
	}
	t.Skip("no name but localhost leads to a loopback address here")
}
