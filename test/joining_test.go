package test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/cluster/join"
	"github.com/farmsql/farmsql/cluster/peerport"
	"github.com/farmsql/farmsql/cluster/raftstore"
	"github.com/farmsql/farmsql/rdma"
)

// joining is what a fleet has whose machines keep the configuration themselves: machine 0 makes the
// cluster, and the others join with the token that it prints.
type joining struct {
	peers  *peers
	tokens chan string // that machines have printed
	token  string      // of all machines that join
	// replicas is the number with which machine 0 makes the cluster.
	replicas int
}

// newJoiningFleet makes a fleet of as many machines as a region has replicas.
func newJoiningFleet(t *testing.T, replicas int, p *peers) *fleet {
	t.Helper()
	folder, err := os.MkdirTemp("/dev/shm", "farmsql-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	f := &fleet{t: t, folder: folder, replicas: replicas, program: binary, patience: startTimeout}
	f.joining = &joining{peers: p, tokens: make(chan string, 10), replicas: 3}
	for id := range replicas {
		f.machines = append(f.machines, &machine{fleet: f, id: id})
	}
	t.Cleanup(func() {
		if f.store != nil {
			f.store.Close()
		}
	})
	return f
}

// flags are those of a machine's process. They stay the same in its later lives.
func (j *joining) flags(m *machine) []string {
	flags := []string{
		"serve", "--data", m.data(), "--listen", net.JoinHostPort(m.listen(), "0"), "--log-format", "json",
		"--advertise", j.peers.address(m.id),
	}
	if m.id == 0 {
		return append(flags, "--cluster", "raft:", "--replicas", strconv.Itoa(j.replicas), "--region-size", "16MiB", "--log-size", "1MiB", "--workers", "2")
	}
	if j.token == "" {
		j.token = <-j.tokens
	}
	return append(flags, "--join", j.token)
}

// hasJoined reports whether a machine has its number.
func (m *machine) hasJoined() bool {
	id, err := join.Load(filepath.Join(m.data(), "peer"))
	if err != nil {
		m.fleet.t.Fatal(err)
	}
	return id != nil
}

// store returns the configuration store of a fleet, for which this process asks as a machine does.
func (j *joining) store(f *fleet) cluster.Store {
	f.t.Helper()
	folder := filepath.Join(f.machines[0].data(), "peer")
	id, err := join.Load(folder)
	if err != nil || id == nil {
		f.t.Fatalf("identity of machine 0: %v, %v", id, err)
	}
	config, err := join.TLS(folder)
	if err != nil {
		f.t.Fatal(err)
	}
	s, err := raftstore.NewClient(raftstore.ClientConfig{
		Cluster: id.Cluster, Machines: id.Store, TLS: peerport.ClientConfig(config, peerport.Store),
		Dial: func(ctx context.Context, address string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "tcp", address)
		},
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return s
}

// grow lets one more machine join, with a token of its own, while the others run.
func (f *fleet) grow() { f.growAs(len(f.machines)) }

// growAs lets a machine join that gets a number, and waits until all regions have their replicas.
func (f *fleet) growAs(id int) *machine {
	f.t.Helper()
	out, err := exec.Command(f.program, "token", "--data", f.machines[0].data()).Output()
	if err != nil {
		f.t.Fatal(err)
	}
	_, token, ok := strings.Cut(strings.TrimSpace(string(out)), " --join ")
	if !ok {
		f.t.Fatalf("farmsql token printed %q", out)
	}
	f.joining.token = token
	m := &machine{fleet: f, id: id}
	f.machines = append(f.machines, m)
	m.start()
	f.awaitWhole()
	return m
}

// TestJoining: three machines form a cluster with one token, which is used up then. All are killed at
// once, and start again with the same flags; a machine of the minority waits. A fourth joins with another
// token, and asks the three for the configuration.
func TestJoining(t *testing.T) {
	f := newJoiningFleet(t, 3, newPeers(t))
	f.start()
	f.awaitWhole()
	l := &fleetLoad{t: t, fleet: f, seed: seedOf(t)}
	l.prepare()
	l.begin(l.transfer, l.replace)

	stranger := &machine{fleet: f, id: 8}
	stranger.refuse(1, "the token has been used by other machines")

	l.end()
	f.killAll()
	f.machines[1].start()
	f.wait("a machine without the others to wait", func() bool {
		_, found := f.machines[1].find(time.Time{}, func(e *event) bool {
			return strings.HasPrefix(e.Message, "waiting for a majority of the machines that keep the configuration")
		})
		return found
	})
	f.machines[0].start()
	f.machines[2].start()
	f.awaitWhole()
	f.grow()
	l.begin(l.transfer, l.replace)
	f.machines[0].kill() // the issuer, and a founder
	f.wait("the others to go on", func() bool { return len(f.configuration().Machines) == 3 })
	f.machines[0].start()
	f.awaitWhole()
	l.end()
	for _, m := range f.machines {
		l.verify(m)
	}
	f.machines[0].more = []string{"--cluster", "zk://127.0.0.1:1/x", "--transport", "tcp"}
	f.machines[0].refuse(1, "of a cluster that keeps its configuration itself")
	f.machines[0].more = nil
}

// TestFoundersReplaced: two of the three machines that keep the configuration are lost for good, one after the
// other. Others take their places, so the second loss does not stop the cluster, and a restart of everything
// works without them. The first, back with its old folder, is told, and goes on as a machine that asks the others.
func TestFoundersReplaced(t *testing.T) {
	f := newJoiningFleet(t, 3, newPeers(t))
	f.start()
	f.awaitWhole()
	f.grow()
	f.grow()
	l := &fleetLoad{t: t, fleet: f, seed: seedOf(t)}
	l.prepare()
	l.begin(l.transfer, l.replace)
	f.loseFounder(1, 0)
	f.loseFounder(2, 0)
	l.end()
	f.killAll()
	survivors := []*machine{f.machines[0], f.machines[3], f.machines[4]}
	for _, m := range survivors {
		m.start()
	}
	f.wait("the survivors to go on", func() bool { return len(f.configuration().Machines) == 3 })
	f.machines[1].start()
	f.wait("the machine that was replaced to be told", func() bool {
		_, found := f.machines[1].find(time.Time{}, func(e *event) bool {
			return strings.HasPrefix(e.Message, "this machine does not keep the configuration any more")
		})
		return found
	})
	f.wait("it to be a member again", func() bool { return len(f.configuration().Machines) == 4 })
	for _, m := range append(survivors, f.machines[1]) {
		l.verify(m)
	}
}

// loseFounder kills a machine and has another one forget it; the others choose who keeps the configuration
// instead.
func (f *fleet) loseFounder(lost, at int) {
	f.t.Helper()
	f.machines[lost].kill()
	f.wait("the others to go on", func() bool {
		_, isMember := f.configuration().Member(rdma.MachineID(lost))
		return !isMember
	})
	out, err := exec.Command(f.program, "forget", "--yes", "--machine", strconv.Itoa(lost), "--data", f.machines[at].data()).CombinedOutput()
	if err != nil {
		f.t.Fatalf("forget machine %d: %v: %s", lost, err, out)
	}
	f.wait("another machine to keep the configuration", func() bool {
		founders, err := f.store.(*raftstore.Client).Founders()
		return err == nil && len(founders.Machines) == 3 && !founders.Has(rdma.MachineID(lost))
	})
}
