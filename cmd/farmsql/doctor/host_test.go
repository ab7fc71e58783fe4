package doctor

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Every check ends on this computer, and leaves no file.
func TestThisComputer(t *testing.T) {
	folder := t.TempDir()
	p := healthy().Plan
	p.Data, p.Saves, p.Listen = filepath.Join(folder, "data"), filepath.Join(folder, "saves"), "127.0.0.1:0"
	onHosts := p
	onHosts.IsTCP, onHosts.Advertise, onHosts.Identity, onHosts.Issuer = true, "localhost:0", filepath.Join(folder, "peer"), "127.0.0.1:1"
	r := append(Examine(This(), p), Examine(This(), onHosts)...)
	for _, c := range checks {
		if r.of(c.name).Check == "" {
			t.Errorf("%s was not run", c.name)
		}
	}
	for _, f := range r {
		isBad := f.Result == Warning || f.Result == Problem
		if f.Check == "" || f.Found == "" || isBad != (f.Costs != "") || isBad != (f.Mend != "") {
			t.Errorf("%+v", f)
		}
		if f.Result == NotExamined {
			t.Logf("%s is not examined here: %s", f.Check, f.Found)
		}
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

func TestPlace(t *testing.T) {
	folder, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(folder, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{folder, link, filepath.Join(link, "not", "there")} {
		if got, err := place(path); got != folder || err != nil {
			t.Errorf("%s: %s, %v", path, got, err)
		}
	}
	if _, err := place("no\x00name"); err == nil {
		t.Error("a name that cannot be")
	}
}

func TestTry(t *testing.T) {
	if _, err := try(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func TestListen(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	address := l.Addr().String()
	if err := listen(address); !errors.Is(err, syscall.EADDRINUSE) {
		t.Error(err)
	}
	if err := listenPacket("192.0.2.1:1"); !errors.Is(err, syscall.EADDRNOTAVAIL) {
		t.Error(err)
	}
	f := This().taken(address, "--listen")
	if f.Result != Problem {
		t.Errorf("%+v", f)
	}
}

func TestPin(t *testing.T) {
	if err := pin(-1); err == nil {
		t.Error("a negative size")
	}
}

// A machine is reached if somebody accepts connections; datagrams are refused where nobody takes them, and where
// somebody does, no answer means that they were not.
func TestReach(t *testing.T) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(reach(tcp.Addr().String()), reachPacket(udp.LocalAddr().String())); err != nil {
		t.Error(err)
	}
	if err := errors.Join(tcp.Close(), udp.Close()); err != nil {
		t.Fatal(err)
	}
	if err := reach(tcp.Addr().String()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Error(err)
	}
	if err := reachPacket(udp.LocalAddr().String()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Error(err)
	}
	if reachPacket("127.0.0.1:none") == nil {
		t.Error("a port that is none")
	}
}
