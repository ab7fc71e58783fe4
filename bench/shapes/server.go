package shapes

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/go-sql-driver/mysql"
	"golang.org/x/sys/unix"
)

// A Server is a server with MySQL's protocol, in a process of this computer.
type Server struct {
	Name    string
	Address string // host:port; root has no password
	Process int    // its number
	// Settings are the settings that matter for speed.
	Settings string

	command *exec.Cmd // nil if somebody else started it
	ended   chan error
	log     string // file
}

// ErrMissing means that a program is not installed.
var ErrMissing = errors.New("bench/shapes: a program is missing")

// readyPatience is how long a server may take to start.
const readyPatience = time.Minute

// StartFarmsql starts farmsql with a folder for its data.
func StartFarmsql(ctx context.Context, program, folder string) (*Server, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	s := &Server{Name: "farmsql", Address: address, Settings: "serve --no-tls, one machine"}
	return s, s.start(ctx, exec.Command(program, "serve", "--listen", address, "--data", filepath.Join(folder, "farmsql"), "--no-tls", "--log-level", "warn"), folder)
}

// mariaDBSettings keep MariaDB's data in memory, as farmsql's are: no log is written to a disk.
var mariaDBSettings = []string{
	"--innodb-buffer-pool-size=1G", "--innodb-log-file-size=256M", "--innodb-flush-log-at-trx-commit=0", "--innodb-doublewrite=0",
	"--skip-log-bin", "--performance-schema=0", "--query-cache-type=0", "--character-set-server=utf8mb4",
}

// StartMariaDB makes an empty database in a folder, and starts MariaDB there.
func StartMariaDB(ctx context.Context, folder string) (*Server, error) {
	install, err := find("mariadb-install-db")
	if err != nil {
		return nil, err
	}
	program, err := find("mariadbd")
	if err != nil {
		return nil, err
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(address) // no error: freeAddress has made the address
	data := filepath.Join(folder, "mariadb")
	out, err := exec.CommandContext(ctx, install, "--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db", "--datadir="+data).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("bench/shapes: mariadb-install-db: %w: %s", err, lastLine(out))
	}
	args := append([]string{"--no-defaults", "--datadir=" + data, "--socket=" + filepath.Join(folder, "s"), "--bind-address=127.0.0.1", "--port=" + port}, mariaDBSettings...)
	if os.Geteuid() == 0 {
		args = append(args, "--user=root")
	}
	s := &Server{Name: "MariaDB", Address: address, Settings: strings.Join(mariaDBSettings, " ")}
	return s, s.start(ctx, exec.Command(program, args...), folder)
}

// find finds a program in the PATH or in /usr/sbin, where Debian has programs for the administrator.
func find(program string) (string, error) {
	for _, name := range []string{program, filepath.Join("/usr/sbin", program)} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%w: %s is neither in the PATH nor in /usr/sbin; it is part of MariaDB's server (in Debian: mariadb-server-core)", ErrMissing, program)
}

// freeAddress returns an address of this computer at which no process listens.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("bench/shapes: %w", err)
	}
	return l.Addr().String(), l.Close()
}

// start starts a server, and waits until it is ready. Its output goes to a file in the folder.
func (s *Server) start(ctx context.Context, command *exec.Cmd, folder string) error {
	s.log, s.ended = filepath.Join(folder, s.Name+".log"), make(chan error, 1)
	log, err := os.Create(s.log)
	if err != nil {
		return fmt.Errorf("bench/shapes: %w", err)
	}
	defer log.Close()
	command.Stdout, command.Stderr = log, log
	// Ctrl-C must reach only this process, which then ends the server.
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := command.Start(); err != nil {
		return fmt.Errorf("bench/shapes: %s: %w", s.Name, err)
	}
	s.command, s.Process = command, command.Process.Pid
	go func() { s.ended <- command.Wait() }()
	if err := s.awaitReady(ctx); err != nil {
		return errors.Join(err, s.Stop())
	}
	return nil
}

func (s *Server) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyPatience, errors.New("it did not serve clients in time"))
	defer cancel()
	db, err := s.Open()
	if err != nil {
		return err
	}
	defer db.Close()
	for {
		err := db.PingContext(ctx)
		if err == nil {
			return nil
		}
		select {
		case end := <-s.ended:
			s.ended <- end // for Stop
			return fmt.Errorf("bench/shapes: %s ended while it started (%v): %s", s.Name, end, s.lastWords())
		case <-ctx.Done():
			return fmt.Errorf("bench/shapes: %s: %w (%w): %s", s.Name, context.Cause(ctx), err, s.lastWords())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// lastWords returns the last line that the server has printed.
func (s *Server) lastWords() string {
	text, err := os.ReadFile(s.log)
	if err != nil {
		return err.Error()
	}
	return lastLine(text)
}

func lastLine(text []byte) string {
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return string(lines[len(lines)-1])
}

// stopPatience is how long a server may take to stop before it is killed.
const stopPatience = 10 * time.Second

// Stop ends the server, if this process has started it.
func (s *Server) Stop() error {
	if s.command == nil {
		return nil
	}
	_ = s.command.Process.Signal(syscall.SIGTERM) // an error means that the process has ended
	select {
	case <-s.ended:
		return nil
	case <-time.After(stopPatience):
		err := s.command.Process.Kill()
		<-s.ended
		return err
	}
}

// Open opens the server for clients. The driver writes parameters into the text of statements that are not prepared.
func (s *Server) Open() (*sql.DB, error) {
	cfg := mysql.NewConfig()
	cfg.Net, cfg.Addr, cfg.User = "tcp", s.Address, "root"
	cfg.InterpolateParams = true
	cfg.Logger = &mysql.NopLogger{} // the driver returns errors, too
	c, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, fmt.Errorf("bench/shapes: %s: %w", s.Name, err)
	}
	return sql.OpenDB(c), nil
}

// Version returns the server's version, as the server states it.
func (s *Server) Version(ctx context.Context) (version string, err error) {
	db, err := s.Open()
	if err != nil {
		return "", err
	}
	defer db.Close()
	if err := db.QueryRowContext(ctx, "SELECT VERSION()").Scan(&version); err != nil {
		return "", fmt.Errorf("bench/shapes: %s: %w", s.Name, err)
	}
	return version, nil
}

// Processor returns the processor time that the server's process has taken, in all of its
// threads, including threads that have ended.
func (s *Server) Processor() (time.Duration, error) {
	// The clock of a process (clock_getcpuclockid): its number, inverted, and the kind of clock that
	// counts nanoseconds in user and in system mode.
	const scheduled = 2
	var t unix.Timespec
	if err := unix.ClockGettime(int32((^s.Process<<3)|scheduled), &t); err != nil {
		return 0, fmt.Errorf("bench/shapes: the processor time of %s, process %d: %w", s.Name, s.Process, err)
	}
	return time.Duration(t.Nano()), nil
}
