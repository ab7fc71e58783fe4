package test

import (
	"fmt"
	"net"
	"os"
	"testing"

	"github.com/farmsql/farmsql/internal/testcert"
)

// overTCP is the variable that makes all fleets talk over TCP, if it is not empty.
const overTCP = "FARMSQL_OVER_TCP"

// peers are the addresses and certificates of a fleet whose machines talk over TCP with TLS. Each has
// a loopback address of its own.
type peers struct {
	net       string // the first three numbers of the addresses
	port      int
	authority *testcert.Authority
	certified map[int][2]string // certificate and key
	named     bool              // the addresses have names in place of numbers
}

// newPeers returns the addresses of machines of this host.
func newPeers(t *testing.T) *peers {
	t.Helper()
	pid := os.Getpid()
	return newPeersAt(t, fmt.Sprintf("127.%d.%d", 1+pid>>8&0x7f, pid&0xff))
}

func newPeersAt(t *testing.T, net3 string) *peers {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") // a port that nobody else is given soon
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return &peers{net: net3, port: port, authority: testcert.New(t, t.TempDir()), certified: make(map[int][2]string)}
}

func (p *peers) host(id int) string {
	if p.named {
		return fmt.Sprintf("machine%d.test", id)
	}
	return fmt.Sprintf("%s.%d", p.net, id+1)
}

func (p *peers) address(id int) string { return net.JoinHostPort(p.host(id), fmt.Sprint(p.port)) }

// flags are those of a machine.
func (p *peers) flags(t *testing.T, id int) []string {
	t.Helper()
	files, ok := p.certified[id]
	if !ok {
		files[0], files[1] = p.authority.Certify(t, p.host(id), nil)
		p.certified[id] = files
	}
	return []string{
		"--transport", "tcp", "--advertise", p.address(id),
		"--peer-ca", p.authority.File, "--peer-cert", files[0], "--peer-key", files[1],
	}
}
