package bench

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// A shell's children count while they run, when nobody has waited for them yet, and after they have
// ended. The shell itself does nothing.
func TestProcessorTime(t *testing.T) {
	const spin = `(i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo spun; read -r end)`
	shell := exec.Command("sh", "-c", spin+"; echo waited; read -r end")
	in, err := shell.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := shell.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	var last time.Duration
	for _, want := range []string{"spun", "waited"} {
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("the shell says %q, %v", lines.Text(), lines.Err())
		}
		taken, err := processorTime([]int{shell.Process.Pid})
		if err != nil || taken == 0 || taken < last {
			t.Errorf("%s: %v, %v; before %v", want, taken, err, last)
		}
		last = taken
		if _, err := in.Write([]byte("end\n")); err != nil {
			t.Fatal(err)
		}
	}
	if err := shell.Wait(); err != nil {
		t.Fatal(err)
	}
	if _, err := processorTime([]int{os.Getpid(), shell.Process.Pid}); err == nil || !strings.Contains(err.Error(), "is not there") {
		t.Errorf("of a process that has ended: %v", err)
	}
	if taken, err := processorTime(nil); taken != 0 || err != nil {
		t.Errorf("of no process: %v, %v", taken, err)
	}
}

func TestParseStat(t *testing.T) {
	pid, p, err := parseStat([]byte("42 (a) (b 7) S 7 42 42 0 -1 4194560 1 2 3 4 10 20 30 40 20 0 1 0 99\n"))
	if pid != 42 || p.parent != 7 || p.taken != time.Second || err != nil {
		t.Errorf("%d, %+v, %v", pid, p, err)
	}
	for _, stat := range []string{"", "42 a S 7", "42 )a( S 7", "42 (a) S 7 42", "42 (a) S x 42 42 0 -1 0 1 2 3 4 10 20 30 40", "x (a) S 7 42 42 0 -1 0 1 2 3 4 10 20 30 40"} {
		if _, _, err := parseStat([]byte(stat)); err == nil {
			t.Errorf("%q is accepted", stat)
		}
	}
}

func TestDescends(t *testing.T) {
	all := map[int]processStat{1: {}, 2: {parent: 1}, 3: {parent: 2}, 4: {parent: 5}, 5: {parent: 4}}
	for pid, want := range map[int]bool{1: false, 2: true, 3: true, 4: false, 6: false} {
		if descends(all, pid, map[int]bool{2: true}) != want {
			t.Errorf("process %d: want %v", pid, want)
		}
	}
}

// A server's processor time is divided among transactions, and does not count as the work of
// others.
func TestServerProcessor(t *testing.T) {
	own := []int{os.Getpid()} // in the place of a server
	spin := func(context.Context, *Thread, int) (int, error) {
		begin, err := processorTime(own)
		for end := begin; end < begin+5*tick && err == nil; {
			end, err = processorTime(own)
		}
		return 0, err
	}
	target := &Target{cfg: TargetConfig{API: SQL, DSN: "x", ServerProcesses: own}}
	res, err := Run(t.Context(), target, &toy{do: spin}, Options{Transactions: 4, AnyBuild: true})
	if err != nil {
		t.Fatal(err)
	}
	if res.ServerProcessor < float64(5*tick/time.Microsecond) || !strings.Contains(res.remarks(), "of processor time of the server") {
		t.Errorf("%v µs of the server; %s", res.ServerProcessor, res.remarks())
	}
}

// A run has no result if the server has gone by its end.
func TestServerIsGone(t *testing.T) {
	server := exec.Command("sleep", "100")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	target := &Target{cfg: TargetConfig{API: SQL, DSN: "x", ServerProcesses: []int{server.Process.Pid}}}
	end := func(context.Context, *Thread, int) (int, error) {
		if err := server.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Error(err)
		}
		_ = server.Wait() // it was killed, and is waited for once
		return 0, nil
	}
	_, err := Run(t.Context(), target, &toy{do: end}, Options{Transactions: 2, AnyBuild: true})
	if err == nil || !strings.Contains(err.Error(), "is not there") {
		t.Errorf("%v", err)
	}
}
