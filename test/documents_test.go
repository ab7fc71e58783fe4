package test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/farmsql/farmsql/cluster/join"
	"github.com/farmsql/farmsql/cluster/zookeepertest"
)

// A block is an indented block of commands in a document, and the hosts on which the text before it says
// that they are run.
type block struct {
	hosts    []string
	commands []string
}

// onHosts matches the words that name hosts, in the paragraph before a block.
var onHosts = regexp.MustCompile(`\bOn (db\d(?:,? (?:and )?(?:then )?(?:on )?db\d)*)`)

// blocksOf returns the blocks of the sections of a document that have these headings, in the order of the
// document. A section ends at the next heading.
func blocksOf(t *testing.T, document string, headings ...string) (blocks []block) {
	t.Helper()
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	var paragraph strings.Builder
	var open *block // that the lines belong to, if the last one did
	isIn := false
	missing := slices.Clone(headings)
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		command, isCommand := strings.CutPrefix(line, "    ")
		switch {
		case strings.HasPrefix(line, "#"):
			i := slices.Index(missing, strings.TrimLeft(line, "# "))
			if isIn = i >= 0; isIn {
				missing = slices.Delete(missing, i, i+1)
			}
			paragraph.Reset()
			open = nil
		case !isIn || line == "":
		case !isCommand:
			if open != nil {
				paragraph.Reset()
				open = nil
			}
			paragraph.WriteString(line + " ")
		case open == nil:
			found := onHosts.FindAllStringSubmatch(paragraph.String(), -1)
			if found == nil {
				t.Fatalf("%s: the text before this command does not say on which hosts it is run (On db1 ...): %s", document, line)
			}
			hosts := regexp.MustCompile(`db\d`).FindAllString(found[len(found)-1][1], -1)
			blocks = append(blocks, block{hosts: hosts, commands: []string{command}})
			open = &blocks[len(blocks)-1]
		default:
			open.add(command)
		}
	}
	if len(missing) > 0 {
		t.Fatalf("%s has no sections %q", document, missing)
	}
	return blocks
}

// add takes a further line of a block, which begins a command or goes on with the last one.
func (b *block) add(line string) {
	last := &b.commands[len(b.commands)-1]
	if strings.HasSuffix(*last, "\\") || strings.HasPrefix(line, " ") || line == "done" {
		*last += "\n" + line
		return
	}
	b.commands = append(b.commands, line)
}

// A reader does what a document says, on hosts that have nothing but the program: /srv is empty on each,
// and all know their names, db1, db2 and so on.
type reader struct {
	t      *testing.T
	hosts  *hosts
	folder string // with a folder for each host
	token  string // that was printed last
	runs   map[string]*running
}

// running is a server in the foreground of a host.
type running struct {
	command  string
	cmd      *exec.Cmd
	out, log *lockedBuffer
	exited   chan struct{}
	err      error // of Wait, after exited
}

// newReader makes n hosts.
func newReader(t *testing.T, n int) *reader {
	t.Helper()
	r := &reader{t: t, hosts: newHosts(t, n), runs: make(map[string]*running)}
	var err error
	if r.folder, err = os.MkdirTemp("/dev/shm", "farmsql-test-"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.killAll()
		os.RemoveAll(r.folder)
	})
	r.knows("127.0.0.1 localhost")
	for id := range n {
		name := fmt.Sprintf("db%d", id+1)
		r.knows(r.hosts.address(id) + " " + name)
		for _, folder := range []string{"srv", "home"} {
			if err := os.MkdirAll(filepath.Join(r.folder, name, folder), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	return r
}

// knows adds a line to /etc/hosts of all hosts.
func (r *reader) knows(line string) {
	r.t.Helper()
	f, err := os.OpenFile(r.file("hosts"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		r.t.Fatal(err)
	}
	_, err = f.WriteString(line + "\n")
	if err := errors.Join(err, f.Close()); err != nil {
		r.t.Fatal(err)
	}
}

// copy copies files from one host's home to another's, as scp does.
func (r *reader) copy(from, to string, names ...string) {
	r.t.Helper()
	for _, name := range names {
		b, err := os.ReadFile(r.file(from, "home", name))
		if err == nil {
			err = os.WriteFile(r.file(to, "home", name), b, 0o600)
		}
		if err != nil {
			r.t.Fatal(err)
		}
	}
}

func (r *reader) file(parts ...string) string {
	return filepath.Join(append([]string{r.folder}, parts...)...)
}

// command returns a command line for the shell of a host, which has the folders of that host in its own
// namespace of mounts.
func (r *reader) command(host, line string) *exec.Cmd {
	number, err := strconv.Atoi(strings.TrimPrefix(host, "db"))
	if err != nil {
		r.t.Fatal(err)
	}
	const enter = `mount --bind "$1" /srv && mount --bind "$2" /etc/hosts && exec sh -c "$3"`
	cmd := r.hosts.command(number-1, "sh", "-c", enter, "sh", r.file(host, "srv"), r.file("hosts"), line)
	cmd.Dir = r.file(host, "home")
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // a test that dies leaves no server behind
	return cmd
}

// placeholder is the token of the documents, in whose place a reader puts the one that was printed.
var placeholder = regexp.MustCompile(`farmsql-\w+\.\.\.`)

// do runs a block on its hosts, one after the other, and returns what the last command has printed.
func (r *reader) do(b block) (out string) {
	r.t.Helper()
	for _, host := range b.hosts {
		for _, command := range b.commands {
			if placeholder.MatchString(command) && r.token == "" {
				r.t.Fatalf("%s: no command before this one has printed a token: %s", host, command)
			}
			command = placeholder.ReplaceAllLiteralString(command, r.token)
			if strings.HasPrefix(command, "farmsql serve ") {
				r.serve(host, command)
				continue
			}
			out = r.run(host, command)
		}
	}
	return out
}

// run runs a command that ends, on a cluster whose machines all serve.
func (r *reader) run(host, command string) string {
	r.t.Helper()
	r.awaitReady()
	out, errs, code := r.try(host, command)
	// A busy computer may evict machines, which come back: a reader tries again then.
	for deadline := time.Now().Add(startTimeout); code != 0 && passing.MatchString(errs) && time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		r.t.Logf("%s: again after %s", host, errs)
		out, errs, code = r.try(host, strings.Replace(command, "farmsql sql ", "farmsql sql --force ", 1))
		if code != 0 && repeated.MatchString(errs) && !passing.MatchString(errs) {
			code = 0
		}
	}
	if strings.HasPrefix(command, "farmsql doctor ") && code == 1 {
		r.t.Logf("%s: %s\n%s%s", host, command, out, errs) // this computer has a problem, and the command none
		code = 0
	}
	if code != 0 {
		r.t.Fatalf("%s: %s: status %d\n%s%s\n%s", host, command, code, out, errs, r.logs())
	}
	if printed := invited.FindStringSubmatch(out); printed != nil {
		r.token = printed[1]
	}
	return out
}

// passing matches errors of a machine that has been evicted and comes back, repeated those of a statement
// that had been executed before its machine was evicted.
var (
	passing  = regexp.MustCompile(`(?i)error (1047|1053|1180|1213) |connection refused|connection reset|invalid connection|EOF`)
	repeated = regexp.MustCompile(`(?i)error (1007|1050|1062|1396) `)
)

// try runs a command once.
func (r *reader) try(host, command string) (out, errs string, code int) {
	r.t.Helper()
	cmd := r.command(host, command)
	cmd.Stdin = strings.NewReader("forget machine 1\n") // which docs/deploy.md says that forget asks for
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		r.t.Fatal(err)
	}
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

// invited matches the token that a machine has printed.
var invited = regexp.MustCompile(`farmsql serve --data FOLDER --listen 0\.0\.0\.0:3306 --join (\S+)\n`)

// longLease is all that is added to a command of the documents: on a computer on which other tests run, machines that
// are well are late for the usual lease.
const longLease = " --lease 5s"

// serve starts a server. It returns when that has said what the reader needs to go on: the token, the
// machine that has joined, or nothing if the machines have no tokens.
func (r *reader) serve(host, command string) {
	r.t.Helper()
	s := &running{command: command, cmd: r.command(host, "exec "+command+longLease), out: &lockedBuffer{}, log: &lockedBuffer{}, exited: make(chan struct{})}
	s.cmd.Stdout, s.cmd.Stderr = s.out, s.log
	if err := s.cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	go func() {
		s.err = s.cmd.Wait()
		close(s.exited)
	}()
	r.runs[host] = s
	switch {
	case strings.Contains(command, "--cluster raft:") && r.token == "":
		r.wait(host+" to print a token", func() bool {
			printed := invited.FindStringSubmatch(s.out.String())
			if printed != nil {
				r.token = printed[1]
			}
			return printed != nil
		})
	case strings.Contains(command, "--join"):
		r.wait(host+" to join", func() bool {
			id, err := join.Load(r.file(host, "srv", "farmsql", "peer"))
			return err == nil && id != nil
		})
	}
}

func (r *reader) awaitReady() {
	r.t.Helper()
	for host, s := range r.runs {
		r.wait(host+" to serve", func() bool { return strings.Contains(s.out.String(), "farmsql is ready on ") })
	}
}

// wait waits until a condition holds, while all servers run.
func (r *reader) wait(what string, holds func() bool) {
	r.t.Helper()
	for deadline := time.Now().Add(startTimeout); !holds(); time.Sleep(5 * time.Millisecond) {
		for host, s := range r.runs {
			select {
			case <-s.exited:
				r.t.Fatalf("%s: %s has ended: %v\n%s%s", host, s.command, s.err, s.out, s.log)
			default:
			}
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("waited %v for %s\n%s", startTimeout, what, r.logs())
		}
	}
}

// interrupt ends a server as Ctrl-C does.
func (r *reader) interrupt(host string) {
	r.t.Helper()
	s := r.runs[host]
	delete(r.runs, host)
	_ = s.cmd.Process.Signal(syscall.SIGINT)
	select {
	case <-s.exited:
		if s.err != nil {
			r.t.Fatalf("%s: %s: %v\n%s", host, s.command, s.err, s.log)
		}
	case <-time.After(startTimeout):
		r.t.Fatalf("%s does not end\n%s", host, s.log)
	}
}

// killAll kills all servers, and returns the commands that had started them.
func (r *reader) killAll() map[string]string {
	commands := make(map[string]string)
	for host, s := range r.runs {
		commands[host] = s.command
		_ = s.cmd.Process.Kill()
	}
	for _, s := range r.runs {
		<-s.exited
	}
	clear(r.runs)
	return commands
}

// logs returns what the servers have said, for failures.
func (r *reader) logs() string {
	var b strings.Builder
	for host, s := range r.runs {
		fmt.Fprintf(&b, "%s: %s\n%s%s\n", host, s.command, s.out, s.log)
	}
	return b.String()
}

// TestReadmeOnThreeHosts follows the README word by word, on three hosts that have nothing.
func TestReadmeOnThreeHosts(t *testing.T) {
	blocks := blocksOf(t, "../README.md", "Three hosts")
	r := newReader(t, 3)
	for _, b := range blocks {
		r.do(b)
	}
	for host := range r.runs {
		if out := r.run(host, "farmsql sql -e 'show databases'"); len(r.runs) != 3 || !strings.Contains(out, "shop") {
			t.Errorf("%s, of %d machines: %q", host, len(r.runs), out)
		}
	}
}

// TestDeployOnSeveralHosts follows docs/deploy.md word by word: three hosts, one more, one that goes. All
// are killed then, and the same commands start those that are left.
func TestDeployOnSeveralHosts(t *testing.T) {
	r := newReader(t, 4)
	commands := 0
	for _, b := range blocksOf(t, "../docs/deploy.md", "Three hosts in ten commands") {
		commands += len(b.hosts) * len(b.commands)
		out := r.do(b)
		if last := b.commands[len(b.commands)-1]; strings.Contains(last, "SELECT * FROM item") && !strings.Contains(out, "lamp") {
			t.Errorf("%s: %q", last, out)
		}
	}
	if commands != 10 {
		t.Errorf("%d commands make a cluster of three hosts, and the heading says ten", commands)
	}
	for _, b := range blocksOf(t, "../docs/deploy.md", "A fourth host, and a host less") {
		r.do(b)
		if strings.HasPrefix(b.commands[0], "farmsql drain ") {
			r.interrupt("db2")
			listed := regexp.MustCompile(`(?m)^1 .*:7070$`)
			r.wait("the others to go on", func() bool { return !listed.MatchString(r.run("db1", "farmsql status --data /srv/farmsql")) })
		}
	}
	founders := regexp.MustCompile(`founders: +machines 0 2 3 `)
	r.wait("the fourth to keep the configuration", func() bool {
		return founders.MatchString(r.run("db1", "farmsql status --data /srv/farmsql"))
	})
	for host, command := range r.killAll() {
		r.serve(host, command)
	}
	for host := range r.runs {
		if out := r.run(host, "farmsql sql -D shop -e 'select name from item'"); len(r.runs) != 3 || !strings.Contains(out, "lamp") {
			t.Errorf("%s, of %d machines: %q", host, len(r.runs), out)
		}
	}
}

// skipWithout skips the test without a program that CI does not install.
func skipWithout(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("SKIPPED: %s is not installed", program)
	}
}

// TestDeployWithZooKeeper follows docs/deploy.md on three hosts with certificates made by OpenSSL.
func TestDeployWithZooKeeper(t *testing.T) {
	skipWithout(t, "openssl")
	blocks := blocksOf(t, "../docs/deploy.md", "With ZooKeeper, and certificates of your own")
	r := newReader(t, 3)
	zookeepertest.StartOn(t, r.hosts.here()+":2181")
	r.knows(r.hosts.here() + " zoo1 zoo2 zoo3")
	for _, b := range blocks {
		if !strings.HasPrefix(b.commands[0], "farmsql serve ") {
			r.do(b)
			continue
		}
		for id, host := range b.hosts { // each has its own name, number and files
			r.copy(b.hosts[0], host, "ca.pem", host+".pem", host+"-key.pem")
			own := strings.NewReplacer("db1", host, "--machine-id 0", fmt.Sprintf("--machine-id %d", id))
			r.serve(host, own.Replace(b.commands[0]))
		}
	}
	for host := range r.runs {
		if out := r.run(host, "farmsql sql -e 'select 40 + 2'"); len(r.runs) != 3 || !strings.Contains(out, "42") {
			t.Errorf("%s, of %d machines: %q", host, len(r.runs), out)
		}
	}
}

// TestDeployAsAService has systemd judge the unit of docs/deploy.md.
func TestDeployAsAService(t *testing.T) {
	skipWithout(t, "systemd-analyze")
	text, err := os.ReadFile("../docs/deploy.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\n    [Unit]\n")
	unit, _, found := strings.Cut(rest, "\n    WantedBy=multi-user.target\n")
	if !found {
		t.Fatal("docs/deploy.md has no unit of systemd")
	}
	unit = strings.ReplaceAll("[Unit]\n"+unit+"\nWantedBy=multi-user.target\n", "\n    ", "\n")
	unit = strings.ReplaceAll(unit, "/usr/local/bin/farmsql", binary)
	file := filepath.Join(t.TempDir(), "farmsql.service")
	if err := os.WriteFile(file, []byte(unit), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("systemd-analyze", "verify", "--man=no", file).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}
