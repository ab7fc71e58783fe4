package bench

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// overHosts is clusterOf, with a network namespace for each machine.
func overHosts(machines int) (ClusterConfig, *testLog) {
	cfg, log := clusterOf(machines, "")
	command := cfg.Command
	cfg.Target.Transport = TransportHosts
	cfg.Command = func(machine int, folder string) *exec.Cmd {
		p := command(machine, folder)
		p.Env = append(p.Env, asOver+"="+TransportHosts)
		return p
	}
	return cfg, log
}

// TestHosts runs three machines that reach each other only between network namespaces.
func TestHosts(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: only root may make network namespaces")
	}
	for _, program := range []string{"ip", "nsenter"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("SKIPPED: network namespaces cannot be joined here: %v", err)
		}
	}
	cfg, log := overHosts(3)
	c, err := OpenCluster(t.Context(), cfg)
	if err != nil {
		t.Fatalf("%v\n%v", err, log)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := c.Load(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	res, err := c.Run(t.Context(), Options{Threads: 2, Duration: 200 * time.Millisecond})
	if err != nil {
		t.Fatalf("%v\n%v", err, log)
	}
	if err := c.Compare(t.Context(), res); err != nil || res.Total.Count == 0 || res.ReplicasCompared || res.Conditions.Transport != TransportHosts {
		t.Errorf("%v, %d transactions, compared %v, %s", err, res.Total.Count, res.ReplicasCompared, res.Conditions.Transport)
	}
	if _, err := c.Kill(2); err != nil {
		t.Fatal(err)
	}
	if err := c.Restart(t.Context(), 2); err == nil || !strings.Contains(err.Error(), "its network namespace has ended with it") {
		t.Errorf("a killed machine starts again: %v", err)
	}
}

// A machine to which no network comes says what it has waited for.
func TestHostWithoutANetwork(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	cfg := MachineConfig{Target: shared(1), Folder: t.TempDir()}
	cfg.Target.Transport = TransportHosts
	if _, err := openMember(ctx, &cfg); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "its address 198.18.0.1") {
		t.Error(err)
	}
}

func TestNamespacesThatCannotBeJoined(t *testing.T) {
	if err := ipIn(-1, "link show"); err == nil || !strings.Contains(err.Error(), "ip link show") {
		t.Error(err)
	}
}
