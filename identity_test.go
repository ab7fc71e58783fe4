package farmsql

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/cluster/join"
	"github.com/farmsql/farmsql/cluster/raftstore"
	"github.com/farmsql/farmsql/rdma"
)

// TestIdentitySettings: what a machine cannot be told that makes a cluster or joins one. Nothing is made
// before all settings are right.
func TestIdentitySettings(t *testing.T) {
	token := join.Token{Address: "127.0.0.1:1"}.String()
	for name, c := range map[string]struct {
		change func(*Config)
		says   string
	}{
		"no folder":       {func(c *Config) { c.Folder, c.Volatile = "", true }, "Folder (--data) is empty"},
		"both":            {func(c *Config) { c.Join = token }, "give one of them"},
		"another cluster": {func(c *Config) { c.Cluster, c.Join = "zk://h:1/x", token }, "Join (--join) is given, and Cluster (--cluster) zk://h:1/x"},
		"shared memory":   {func(c *Config) { c.Transport = TransportShm }, `Transport (--transport) is "shm"`},
		"certificates":    {func(c *Config) { c.PeerTLS = new(tls.Config) }, "certifies its machines itself"},
		"number":          {func(c *Config) { c.MachineID = 1 }, "numbers its machines itself"},
		"no address":      {func(c *Config) { c.Advertise = "" }, "Advertise (--advertise) is empty"},
		"no port":         {func(c *Config) { c.Advertise = "db1" }, "must be HOST:PORT"},
		"shared folder":   {func(c *Config) { c.SharedFolder = "/dev/shm/x" }, "SharedFolder (--shared-folder) is given"},
		"replicas":        {func(c *Config) { c.Replicas = 1000 }, "Replicas (--replicas) is 1000"},
		"no token":        {func(c *Config) { c.Cluster, c.Join = "", "secret" }, "farmsql: Join (--join): not a token"},
		"machines":        {func(c *Config) { c.Machines = 2 }, "this process is one machine"},
		"a database": {func(c *Config) {
			if err := os.WriteFile(filepath.Join(c.Folder, configurationName), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "has a database with a configuration of its own"},
	} {
		cfg := Config{Folder: t.TempDir(), Cluster: ClusterRaft, Advertise: "127.0.0.1:7070"}
		folder := cfg.Folder
		c.change(&cfg)
		_, err := OpenContext(t.Context(), cfg)
		if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "secret") && name == "no token" {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
		if id, err := join.Load(filepath.Join(folder, PeerFolder)); id != nil || err != nil {
			t.Errorf("%s: there is %+v, %v", name, id, err)
		}
	}
}

// TestIdentityStays: a folder that is of a machine of a cluster opens as that, whether or not it is said
// again, and as nothing else.
func TestIdentityStays(t *testing.T) {
	cfg := Config{Folder: t.TempDir()}
	id, token, err := join.Found(cfg.peerFolder(), "127.0.0.1:7070", join.Settings{Replicas: 3, Workers: 3, RegionBytes: 1 << 20, LogBytes: 1 << 16, Founders: 3}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*Config)
		says   string // "" if it opens
	}{
		"nothing":         {func(*Config) {}, ""},
		"again":           {func(c *Config) { c.Cluster, c.Advertise = ClusterRaft, "127.0.0.1:7070" }, ""},
		"its token":       {func(c *Config) { c.Join = token.String() }, ""},
		"another's token": {func(c *Config) { c.Join = join.Token{Address: "h:1"}.String() }, "a token of another cluster"},
		"no token":        {func(c *Config) { c.Join = "x" }, "not a token"},
		"other replicas":  {func(c *Config) { c.Replicas = 1 }, "Replicas (--replicas) is 1, and 3 in the cluster of this machine: leave it out"},
		"other workers":   {func(c *Config) { c.Workers = 1 }, "Workers (--workers) is 1, and 3 in the cluster of this machine"},
		"another log":     {func(c *Config) { c.LogSize = 2 * MiB }, "LogSize (--log-size) is 2MiB, and 64KiB in the cluster of this machine"},
		"the same":        {func(c *Config) { c.Replicas, c.RegionSize = 3, MiB }, ""},
		"another address": {func(c *Config) { c.Advertise = "127.0.0.1:7071" }, "was 127.0.0.1:7070 and is now 127.0.0.1:7071: as long as machines are missing"},
		"another cluster": {func(c *Config) { c.Cluster = "zk://h:1/x" }, "of a cluster that keeps its configuration itself"},
		"another number":  {func(c *Config) { c.MachineID = 2 }, "numbers its machines itself"},
	} {
		cfg := cfg
		c.change(&cfg)
		got, err := cfg.identify(t.Context())
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
		if err == nil && (got.Transport != TransportTCP || got.Replicas != 3 || got.Workers != 3 || got.PeerTLS == nil || got.identity.Cluster != id.Cluster) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	begun := *id
	begun.Store = map[rdma.MachineID]string{0: "127.0.0.1:7070"}
	for n, says := range map[int]string{1: "", 3: "", 1000: "Replicas (--replicas) is 1000: must be 1 to 64", -1: "must be 1 to 64"} { // they may have changed since
		if err := (Config{Replicas: n}).checkSettings(&begun); (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%d replicas, in a cluster that has begun: %v, want %q", n, err, says)
		}
	}
	if token, err := NewToken(cfg.Folder, 1, time.Hour); err != nil || !strings.HasPrefix(token, "farmsql-") {
		t.Errorf("token %q, %v", token, err)
	}
	if _, err := NewToken(t.TempDir(), 1, time.Hour); !errors.Is(err, join.ErrNotIssuer) {
		t.Errorf("token of no cluster: %v", err)
	}
}

// TestMovingWhileFoundersAreMissing: a machine that joined at a wrong address may change it, as long as
// machines are missing.
func TestMovingWhileFoundersAreMissing(t *testing.T) {
	first := Config{Folder: t.TempDir(), Cluster: ClusterRaft, Advertise: freePort(t), Replicas: 3, Workers: 1, RegionSize: MiB, LogSize: 64 * KiB}
	tokens := make(chan string, 1)
	first.Invite = func(token string, _ int) { tokens <- token }
	ctx, cancel := context.WithCancel(t.Context())
	opened := make(chan error, 1)
	go func() {
		_, err := OpenContext(ctx, first)
		opened <- err
	}()
	cfg := Config{Folder: t.TempDir(), Join: <-tokens, Logger: slog.New(slog.DiscardHandler)}
	for range 2 {
		cfg.Advertise = freePort(t)
		got, err := cfg.identify(t.Context()) // it waits until the first machine listens
		if err != nil {
			t.Fatal(err)
		}
		if known := got.identity; known.Machine != 1 || known.Advertise != cfg.Advertise {
			t.Errorf("the machine is %+v", known)
		}
	}
	cfg.Join = ""
	cfg.Advertise = freePort(t)
	if _, err := cfg.identify(t.Context()); err == nil || !strings.Contains(err.Error(), "with its token (--join)") {
		t.Errorf("without its token: %v", err)
	}
	cancel()
	if err := <-opened; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestLostStore: a founder whose part of the configuration is gone does not open, and does not begin anew.
func TestLostStore(t *testing.T) {
	cfg := Config{Folder: t.TempDir(), Cluster: ClusterRaft, Advertise: freePort(t), Workers: 1, RegionSize: MiB, LogSize: 64 * KiB}
	db, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	store := join.StoreFolder(cfg.peerFolder())
	if err := os.Rename(store, store+".away"); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(cfg); !errors.Is(err, raftstore.ErrNotCreated) {
		t.Errorf("without its store: %v", err)
	}
	if err := os.Rename(store+".away", store); err != nil {
		t.Fatal(err)
	}
	if db, err = Open(cfg); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

// TestIdentityBesideSaves: with Saves the identity is there, so that it outlives the power as the saves do,
// and a machine whose identity is gone does not begin anew beside a save.
func TestIdentityBesideSaves(t *testing.T) {
	cfg := Config{Folder: filepath.Join(t.TempDir(), "data"), Saves: t.TempDir(), Cluster: ClusterRaft, Advertise: freePort(t), Workers: 1, RegionSize: MiB, LogSize: 64 * KiB}
	for _, statement := range []string{"create database kept", "create table kept.t (a int primary key)"} {
		db, err := Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.SQL().ExecContext(t.Context(), statement); err != nil {
			t.Error(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(cfg.Folder); err != nil { // as a power cut does to a tmpfs
			t.Fatal(err)
		}
	}
	if err := os.RemoveAll(cfg.peerFolder()); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(cfg); !errors.Is(err, ErrOtherFolder) || !strings.Contains(err.Error(), "has a save of a machine") {
		t.Errorf("a new cluster beside a save: %v", err)
	}
}

// TestSettingsOfANewCluster: the configuration is kept by an odd number of machines.
func TestSettingsOfANewCluster(t *testing.T) {
	for replicas, want := range map[int]int{0: 1, 1: 1, 2: 3, 3: 3, 4: 5} {
		if got := (Config{Cluster: ClusterRaft, Replicas: replicas}).settings().Founders; got != want {
			t.Errorf("%d replicas: %d founders, want %d", replicas, got, want)
		}
	}
}

// freePort returns an address of this host at which nobody listens.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// TestClusterOfOne: a cluster of one machine begins by itself, and opens again. A machine that waits for
// others stops when its context ends.
func TestClusterOfOne(t *testing.T) {
	address := freePort(t)
	cfg := Config{
		Folder: t.TempDir(), Cluster: ClusterRaft, Advertise: address, Workers: 1, RegionSize: MiB, LogSize: 64 * KiB,
		Invite: func(string, int) { t.Error("it invites others") },
	}
	for range 2 {
		db, err := Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.SQL().ExecContext(t.Context(), "create database if not exists one"); err != nil {
			t.Error(err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	invited := 0
	cfg.Folder, cfg.Advertise, cfg.Replicas = t.TempDir(), freePort(t), 3
	cfg.Invite = func(_ string, machines int) { invited = machines; cancel() }
	if _, err := OpenContext(ctx, cfg); !errors.Is(err, context.Canceled) {
		t.Errorf("a machine that waits: %v", err)
	}
	if invited != 2 {
		t.Errorf("it has invited %d machines", invited)
	}
}

// A service that gives the number of replicas with which the instance was made is told when there is another one.
func TestReplicasGiven(t *testing.T) {
	for given, want := range map[int]bool{0: false, 2: true, 3: false} {
		var log bytes.Buffer
		c := Config{replicasGiven: given, Logger: slog.New(slog.NewTextHandler(&log, nil))}
		c.noteReplicas(&cluster.Configuration{Replicas: 3})
		if got := strings.Contains(log.String(), "--replicas) is ignored"); got != want {
			t.Errorf("%d replicas are given: %q", given, log.String())
		}
	}
}
