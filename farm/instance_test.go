package farm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/invariant"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma/local"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConfigValidate(t *testing.T) {
	for name, c := range map[string]struct {
		cfg  Config
		says string
	}{
		"machines below":    {Config{Machines: -1}, "machines is -1"},
		"machines above":    {Config{Machines: 1001}, "machines is 1001"},
		"replicas below":    {Config{Replicas: -1}, "replicas is -1"},
		"replicas above":    {Config{Machines: 2, Replicas: 3}, "replicas is 3"},
		"workers below":     {Config{Workers: -1}, "workers is -1"},
		"workers above":     {Config{Workers: WorkersMax + 1}, "workers is 128"},
		"region small":      {Config{RegionBytes: 1 << 19}, "region size is 524288"},
		"region large":      {Config{RegionBytes: 1 << 33}, "region size"},
		"region odd":        {Config{RegionBytes: 3 << 20}, "region size"},
		"log small":         {Config{LogBytes: 32 << 10}, "log size is 32768"},
		"log large":         {Config{LogBytes: 2 << 30}, "log size"},
		"log odd":           {Config{LogBytes: 64<<10 + 8}, "log size"},
		"messages small":    {Config{MessageBytes: 4096}, "message queue size is 4096"},
		"messages large":    {Config{MessageBytes: 2 << 30}, "message queue size"},
		"messages odd":      {Config{MessageBytes: 16<<10 + 8}, "message queue size"},
		"regions max below": {Config{RegionsMax: -1}, "regions"},
	} {
		err := c.cfg.Validate()
		if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
		if _, opened := Open(c.cfg); opened == nil || opened.Error() != err.Error() {
			t.Errorf("%s: opened: %v", name, opened)
		}
	}
	for _, cfg := range []Config{{}, {Machines: 1000, Replicas: 1000}, {RegionBytes: 1 << 20}, {RegionBytes: 4 << 30}, {LogBytes: 64 << 10, MessageBytes: 16 << 10}} {
		if err := cfg.Validate(); err != nil {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

// tree returns the content of a folder.
func tree(t *testing.T, folder string) map[string]string {
	files := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		files[path] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func sameTree(t *testing.T, name, folder string, before map[string]string) {
	t.Helper()
	after := tree(t, folder)
	for path := range maps.Keys(after) {
		if was, ok := before[path]; !ok || was != after[path] {
			t.Errorf("%s: %s has changed, or is new", name, path)
		}
	}
	if len(after) < len(before) {
		t.Errorf("%s: files are gone", name)
	}
}

// An instance is opened with the settings that it was made with, or refused and not changed.
func TestOtherSettings(t *testing.T) {
	cfg := Config{Machines: 2, Replicas: 1, Workers: 1, RegionBytes: 1 << 20, LogBytes: 64 << 10, MessageBytes: 16 << 10, Folder: t.TempDir()}
	bump(t, cfg, 0)
	before := tree(t, cfg.Folder)
	for name, change := range map[string]func(c *Config){
		"machines":    func(c *Config) { c.Machines = 3 },
		"replicas":    func(c *Config) { c.Replicas = 2 },
		"workers":     func(c *Config) { c.Workers = 2 },
		"region size": func(c *Config) { c.RegionBytes = 2 << 20 },
		"log size":    func(c *Config) { c.LogBytes = 128 << 10 },
	} {
		other := cfg
		change(&other)
		_, err := Open(other)
		if !errors.Is(err, ErrMismatch) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		sameTree(t, name, cfg.Folder, before)
	}
	path := filepath.Join(cfg.Folder, "configuration.json")
	newer := regexp.MustCompile(`"Format": \d+`).ReplaceAll([]byte(before[path]), []byte(`"Format": 99`))
	if err := os.WriteFile(path, newer, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(cfg); !errors.Is(err, cluster.ErrBadConfiguration) || !strings.Contains(err.Error(), "format 99") {
		t.Errorf("newer format: %v", err)
	}
	if err := os.WriteFile(path, []byte(before[path]), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg.MessageBytes = 32 << 10 // may change
	bump(t, cfg, 1)
}

func TestOpenedTwice(t *testing.T) {
	cfg := small(1, 1)
	cfg.Folder = t.TempDir()
	open(t, cfg)
	if _, err := Open(cfg); err == nil {
		t.Error("opened twice")
	}
}

// A region that was being made when everything stopped is in no configuration. Its memory is freed.
func TestRegionLeftBehind(t *testing.T) {
	cfg := small(2, 2)
	cfg.Volatile = NewVolatile()
	bump(t, cfg, 0)
	shelf := cfg.Volatile.shelf(1)
	for _, name := range []string{"region-77", "region-x", "other"} {
		if _, err := shelf.Map(name, 1<<20); err != nil {
			t.Fatal(err)
		}
	}
	bump(t, cfg, 1)
	names, err := shelf.Names()
	if err != nil || slices.Contains(names, "region-77") || !slices.Contains(names, "region-x") || !slices.Contains(names, "other") {
		t.Errorf("%v, %v", names, err)
	}
}

// oldLogOf returns the log that the first worker of a machine wrote to the last life that
// had the shelf.
func oldLogOf(t *testing.T, s *shelf, sender int) *nvram.Memory {
	t.Helper()
	for name, m := range s.m {
		if strings.HasPrefix(name, fmt.Sprintf("%s%d-0-", logPrefix, sender)) {
			return m
		}
	}
	t.Fatal("there is no log")
	return nil
}

// When Open fails, it stops everything that it has started: goleak would notice the rest.
func TestOpenFails(t *testing.T) {
	for name, damage := range map[string]func(v *Volatile){
		"root in no region": func(v *Volatile) {
			c, _ := v.store.Load()
			next := c.Revise()
			next.Root = region.MakePtr(region.MakeAddr(50, 640), c.Root.Class(), 0)
			if err := v.store.CompareAndSwap(c.Revision, next); err != nil {
				t.Fatal(err)
			}
		},
		"region is gone": func(v *Volatile) { v.shelf(0).m["region-1"] = nvram.NewMemory(1 << 20) },
		"log is damaged": func(v *Volatile) { oldLogOf(t, v.shelf(1), 0).Store(24, 12345*8) },
		"other size":     func(v *Volatile) { v.shelf(0).m["region-1"] = nvram.NewMemory(2 << 20) },
	} {
		cfg := small(2, 2)
		cfg.Network = local.Options{Async: true}
		cfg.Volatile = NewVolatile()
		bump(t, cfg, 0)
		sound := cfg.Volatile.Clone()
		damage(cfg.Volatile)
		if c, err := Open(cfg); err == nil {
			t.Errorf("%s: opened", name)
			c.Close()
		}
		cfg.Volatile = sound
		bump(t, cfg, 1)
	}
}

// fillUp allocates objects until there is no room, and returns them.
func fillUp(t *testing.T, c *Local, payload int) (ptrs []region.Ptr) {
	t.Helper()
	for {
		n := len(ptrs)
		err := c.Machine(0).Run(context.Background(), func(tx *txn.Tx) error {
			ptrs = ptrs[:n]
			for range 8 {
				p, b, err := tx.Alloc(payload, 0)
				if err != nil {
					return err
				}
				b[0], ptrs = 1, append(ptrs, p)
			}
			return nil
		})
		if errors.Is(err, region.ErrFull) {
			return ptrs[:n]
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(ptrs) > 100_000 {
			t.Fatal("never full")
		}
	}
}

func freeAll(t *testing.T, c *Local, ptrs []region.Ptr) {
	t.Helper()
	for chunk := range slices.Chunk(ptrs, 50) {
		err := c.Machine(0).Run(context.Background(), func(tx *txn.Tx) error {
			for _, p := range chunk {
				if err := tx.Free(p); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// When all regions are full, memory freed by objects of one size is used for another size, again
// and again, but not while a reader may still look at the freed objects.
func TestMemoryChangesItsUse(t *testing.T) {
	shapes := []Config{small(1, 1), small(3, 2)}
	if invariant.Enabled { // slow
		shapes = shapes[:1]
	}
	for _, cfg := range shapes {
		t.Run(fmt.Sprintf("machines=%d", cfg.Machines), func(t *testing.T) {
			cfg.RegionsMax = 1
			c := open(t, cfg)
			var all []region.Ptr
			for round, payload := range []int{100, 5000, 900, 100} {
				reader := c.Machine(c.Machines() - 1).Begin() // holds its epoch open
				old := slices.Clone(all)
				freeAll(t, c, all)
				if round > 0 {
					if got := fillUp(t, c, payload); len(got)*payload > 1<<20/3 {
						t.Errorf("round %d: %d objects although a transaction is open", round, len(got))
					} else {
						freeAll(t, c, got)
					}
					time.Sleep(30 * time.Millisecond) // for the timer to try
					b := make([]byte, old[0].Capacity())
					for _, p := range old {
						if _, err := c.Machine(0).Read(p, b); !errors.Is(err, region.ErrFreed) {
							t.Fatalf("round %d: %v, freed: %v", round, p, err)
						}
					}
				}
				reader.Abort()
				all = nil
				for deadline := time.Now().Add(10 * time.Second); len(all)*payload < 1<<20/2; time.Sleep(time.Millisecond) {
					all = append(all, fillUp(t, c, payload)...)
					if time.Now().After(deadline) {
						t.Fatalf("round %d: %d objects of %d bytes", round, len(all), payload)
					}
				}
				checkCluster(t, fmt.Sprintf("round %d", round), c, all)
			}
		})
	}
}
