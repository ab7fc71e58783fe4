//go:build !race

package shm

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
)

// childEnv in the environment makes the test binary a machine: it holds the shared
// folder, the machine's name, and the folder of its non-volatile memory.
const childEnv = "FARMSQL_SHM_CHILD"

const (
	key      rdma.Key = 7
	nvBytes           = 1 << 20
	workers           = 2
	hammered          = 4096 // bytes that hammer writes at 0
	beside            = hammered
)

// commands are the commands of a child. The parent sends a command in a line, and gets a line back.
type commands struct {
	nic    *NIC
	memory *nvram.Memory
	queues [workers]rdma.Queue
	rung   atomic.Uint64
	server atomic.Pointer[end] // answers records
}

// runChild is the child's main function.
func runChild() {
	var path, memory string
	var id rdma.MachineID
	if _, err := fmt.Sscan(os.Getenv(childEnv), &path, &id, &memory); err != nil {
		panic(err)
	}
	c, err := newCommands(path, id, memory)
	fmt.Println(answer("", err))
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var verb string
		var n uint64
		_, _ = fmt.Sscan(in.Text(), &verb, &n)
		fmt.Println(answer(c.do(verb, n)))
	}
}

func answer(s string, err error) string {
	if err != nil {
		return "error: " + strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	return "ok " + s
}

func newCommands(path string, id rdma.MachineID, memory string) (*commands, error) {
	folder, err := nvram.OpenFolder(memory, nvram.Options{})
	if err != nil {
		return nil, err
	}
	c := &commands{}
	if c.memory, err = folder.Map("m", nvBytes); err != nil {
		return nil, err
	}
	if c.nic, err = Join(path, id); err != nil {
		return nil, err
	}
	c.nic.Datagrams(func(from rdma.MachineID, b []byte) { _ = c.nic.Datagram(from, append([]byte("echo of "), b...)) })
	for w := range c.queues {
		bell := func() {
			c.rung.Add(1)
			if e := c.server.Load(); e != nil {
				e.serve()
			}
		}
		if c.queues[w], err = c.nic.Open(w, bell); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (c *commands) do(verb string, n uint64) (string, error) {
	switch verb {
	case "register":
		return "", c.nic.Register(key, c.memory)
	case "load":
		return fmt.Sprint(c.memory.Load(n)), nil
	case "write": // to machine n
		_, err := c.queues[0].Write(rdma.MachineID(n), key, beside, pattern(64, 9), 1)
		return "", err
	case "ring":
		return "", c.queues[0].Ring(rdma.MachineID(n))
	case "rung":
		return fmt.Sprint(c.rung.Load()), nil
	case "hammer": // machine n, until the end
		go func() {
			for i := uint64(1); ; i++ {
				_, _ = c.queues[1].Write(rdma.MachineID(n), key, 0, pattern(hammered, byte(i)), 1)
			}
		}()
		return "", nil
	case "watch": // its memory, that does not change in n looks
		for range n {
			if one, two := c.memory.Load(0), c.memory.Load(0); one != two {
				return "", fmt.Errorf("memory changed")
			}
		}
		return fmt.Sprint(c.memory.Load(0)), nil
	case "begin", "begin-undescribed": // an operation on machine n, and not end it
		q := c.queues[0].(*Queue)
		q.count++
		active := activity(q.count, rdma.MachineID(n), key)
		if verb == "begin-undescribed" {
			active = uint64(q.count)
		}
		q.active.Store(active)
		return "", nil
	case "cpu":
		var u syscall.Rusage
		err := syscall.Getrusage(syscall.RUSAGE_SELF, &u)
		return fmt.Sprint(u.Utime.Nano() + u.Stime.Nano()), err
	case "calls": // answer them, as incarnation n
		call.New(c.nic, clock.System{}, n).Handle(1, func(_ call.Peer, arg []byte) ([]byte, error) {
			return append([]byte("reply to "), arg...), nil
		})
		return "", nil
	case "bench":
		e, err := newEnd(c.memory, c.queues[0], 1, 2, 1)
		c.server.Store(e)
		return "", err
	}
	return "", fmt.Errorf("unknown command %s", verb)
}

func pattern(n int, v byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = v
	}
	return b
}

// A child is a machine in a process of its own.
type child struct {
	t   testing.TB
	cmd *exec.Cmd
	in  io.Writer
	out *bufio.Scanner
}

// start starts machine id, with its memory in a folder that outlives it.
func start(t testing.TB, path string, id rdma.MachineID, memory string) *child {
	t.Helper()
	c, answer := tryStart(t, path, id, memory)
	if answer != "ok " {
		t.Fatalf("machine %d: %s", id, answer)
	}
	return c
}

// tryStart returns how it went as well.
func tryStart(t testing.TB, path string, id rdma.MachineID, memory string) (*child, string) {
	t.Helper()
	cmd := exec.CommandContext(context.Background(), os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %s", childEnv, path, id, memory))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{t, cmd, in, bufio.NewScanner(out)}
	t.Cleanup(c.kill)
	if !c.out.Scan() {
		t.Fatalf("machine %d said nothing", id)
	}
	return c, c.out.Text()
}

// do makes the child execute a command, which must succeed.
func (c *child) do(command string, args ...any) string {
	c.t.Helper()
	result, ok := strings.CutPrefix(c.ask(command, args...), "ok ")
	if !ok {
		c.t.Fatalf("%s: %s", command, result)
	}
	return result
}

func (c *child) ask(command string, args ...any) string {
	c.t.Helper()
	if _, err := fmt.Fprintln(c.in, append([]any{command}, args...)...); err != nil {
		c.t.Fatal(err)
	}
	if !c.out.Scan() {
		c.t.Fatalf("%s: the process has ended", command)
	}
	return c.out.Text()
}

// kill kills the process and waits for its end.
func (c *child) kill() {
	if c.cmd.ProcessState == nil {
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait()
	}
}

// signal stops or continues the process.
func (c *child) signal(s syscall.Signal) {
	c.t.Helper()
	if err := c.cmd.Process.Signal(s); err != nil {
		c.t.Fatal(err)
	}
}
