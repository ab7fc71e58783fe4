package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/farmsql/farmsql"
	"github.com/farmsql/farmsql/index/hash"
)

var smallTarget = TargetConfig{Workers: 1, RegionSize: 16 * farmsql.MiB, LogSize: farmsql.MiB}

func TestTargetIsRefused(t *testing.T) {
	for name, cfg := range map[string]TargetConfig{
		"API":       {API: "telepathy"},
		"DSN":       {DSN: "root@tcp(x)/"},
		"machines":  {API: SQL, DSN: "root@tcp(x)/", Machines: 2},
		"transport": {Transport: "pigeons"},
		"processes": {Transport: TransportSHM},
		"domains":   {Machines: 3, Replicas: 3, Domains: 2},
		"replicas":  {Machines: 2, Replicas: 3},
		"syntax":    {API: SQL, DSN: "no dsn"},
		"scheme":    {API: SQL, DSN: "oracle://x/"},
		"URL":       {API: SQL, DSN: "postgres://x:port/"},
		"nothing":   {ServerProcesses: []int{1}},
		"process":   {API: SQL, DSN: "root@tcp(x)/", ServerProcesses: []int{-1}},
	} {
		if _, err := Open(t.Context(), cfg); !errors.Is(err, ErrTarget) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, dsn := range []string{"root@tcp(127.0.0.1:1)/", "postgres://root:secret@127.0.0.1:1/x"} {
		_, err := Open(t.Context(), TargetConfig{API: SQL, DSN: dsn})
		if err == nil || errors.Is(err, ErrTarget) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s, where nobody listens: %v", dsn, err)
		}
	}
	if _, err := Open(t.Context(), TargetConfig{RegionSize: 3}); err == nil {
		t.Error("regions of 3 bytes")
	}
}

// spread puts keys into a table that is spread over the machines, and reads them at each machine.
// It counts the machines that are primaries of some keys.
func spread(t *testing.T, target *Target) {
	t.Helper()
	ctx := t.Context()
	places, err := target.Places(ctx)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := target.Hash(ctx, "spread", hash.Config{Buckets: 8}, places)
	if err != nil {
		t.Fatal(err)
	}
	if err := tables[0].Reserve(ctx, 400); err != nil {
		t.Fatal(err)
	}
	before := target.sample()
	for m, tb := range tables {
		key := fmt.Appendf(nil, "key %d", m)
		if err := tb.PutNow(ctx, key, key); err != nil {
			t.Fatal(err)
		}
	}
	for m, tb := range tables {
		for i := range tables {
			key := fmt.Appendf(nil, "key %d", i)
			if v, ok, err := tb.Lookup(key, nil); !ok || err != nil || string(v) != string(key) {
				t.Errorf("machine %d: %q, %v, %v", m, v, ok, err)
			}
		}
	}
	primaries := make(map[any]bool)
	for _, p := range places {
		m, err := target.Machine(0).Primary(p)
		if err != nil {
			t.Fatal(err)
		}
		primaries[m] = true
	}
	if len(primaries) != target.Machines() || len(tables) != target.Machines() {
		t.Errorf("places at %d of %d machines", len(primaries), target.Machines())
	}
	if n := target.sample().txn.Sub(before.txn).Commits; n != uint64(target.Machines()) {
		t.Errorf("%d commits counted", n)
	}
}

func TestTargetInOneProcess(t *testing.T) {
	cfg := smallTarget
	cfg.Machines, cfg.Replicas = 3, 2
	target, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	spread(t, target)
	if target.SQL() != nil || target.API() != Native {
		t.Error("SQL was not asked for")
	}
	if err := target.Close(); err != nil {
		t.Error(err)
	}
}

// Clients reach the same server within the process and by a DSN.
func TestTargetSQL(t *testing.T) {
	cfg := smallTarget
	cfg.API = SQL
	target, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	if _, err := target.SQL().ExecContext(t.Context(), "CREATE DATABASE there"); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := target.dbs[0].Serve(ctx, l); err != nil {
			t.Error(err)
		}
	})
	defer serving.Wait()
	defer cancel()
	away, err := Open(ctx, TargetConfig{API: SQL, DSN: fmt.Sprintf("root@tcp(%s)/there", l.Addr())})
	if err != nil {
		t.Fatal(err)
	}
	var name string
	if err := away.SQL().QueryRow("SELECT DATABASE()").Scan(&name); err != nil || name != "there" || away.server == "" || away.Machines() != 0 {
		t.Errorf("%q, %v, server %q", name, err, away.server)
	}
	if err := away.Close(); err != nil {
		t.Error(err)
	}
}
