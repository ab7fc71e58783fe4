// Package zookeepertest starts ZooKeeper for tests: Debian's package, one server
// in the foreground, on a free port of this host, with its data in
// a temporary folder.
package zookeepertest

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// jar is where Debian's package puts the program.
const jar = "/usr/share/java/zookeeper.jar"

// patience is how long a server may take to start or to end.
const patience = 60 * time.Second

// A Server is one ZooKeeper. It ends with the test.
type Server struct {
	// Address is HOST:PORT.
	Address string

	t      testing.TB
	folder string
	cmd    *exec.Cmd
	output *bytes.Buffer
}

// Start starts a server on the loopback interface and returns when it answers. Without ZooKeeper
// installed the test is skipped, or fails if REQUIRE_ZOOKEEPER is set.
func Start(t testing.TB) *Server {
	t.Helper()
	return StartAt(t, "127.0.0.1")
}

// StartAt is Start for a server at another IP address of this host.
func StartAt(t testing.TB, host string) *Server {
	t.Helper()
	return start(t, func() string { return freePort(t, host) })
}

// StartOn is Start for a server at HOST:PORT.
func StartOn(t testing.TB, address string) *Server {
	t.Helper()
	return start(t, func() string { return address })
}

// start starts a server at an address that it asks for once it is certain that there is ZooKeeper.
func start(t testing.TB, address func() string) *Server {
	t.Helper()
	if _, err := os.Stat(jar); err != nil {
		if os.Getenv("REQUIRE_ZOOKEEPER") != "" {
			t.Fatalf("ZooKeeper is required and not installed (apt install zookeeper): %v", err)
		}
		t.Skipf("SKIPPED: ZooKeeper is not installed (apt install zookeeper): %v", err)
	}
	s := &Server{t: t, folder: t.TempDir(), Address: address()}
	t.Cleanup(s.Kill)
	s.Start()
	return s
}

// freePort returns an address that nobody listens at now.
func freePort(t testing.TB, host string) string {
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// Start starts the server again after Kill, with the data that it had.
func (s *Server) Start() {
	s.t.Helper()
	host, port, _ := net.SplitHostPort(s.Address)
	configuration := filepath.Join(s.folder, "zoo.cfg")
	text := fmt.Sprintf("tickTime=2000\ndataDir=%s/data\nclientPort=%s\nclientPortAddress=%s\nadmin.enableServer=false\n4lw.commands.whitelist=srvr\n", s.folder, port, host)
	if err := os.WriteFile(configuration, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.output = new(bytes.Buffer)
	s.cmd = exec.Command("java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", jar, "org.apache.zookeeper.server.ZooKeeperServerMain", configuration)
	s.cmd.Stdout, s.cmd.Stderr = s.output, s.output
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // a killed test leaves no server behind
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	for begin := time.Now(); !s.ok(); time.Sleep(20 * time.Millisecond) {
		if time.Since(begin) > patience {
			s.Kill()
			s.t.Fatalf("ZooKeeper has not started: %s", s.output)
		}
	}
}

// ok reports whether the server accepts requests: a server that listens may not do so yet.
func (s *Server) ok() bool {
	c, err := net.DialTimeout("tcp", s.Address, time.Second)
	if err != nil {
		return false
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Second))
	if _, err := c.Write([]byte("srvr")); err != nil {
		return false
	}
	answer, _ := io.ReadAll(c)
	return bytes.Contains(answer, []byte("Mode: "))
}

// Kill ends the server as a crash would, if it runs.
func (s *Server) Kill() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	s.cmd = nil
}
