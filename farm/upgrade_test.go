package farm

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// testdata/one-process.tar.gz is the folder of an instance of three machines with two replicas,
// made by commit c403f8d (farm.Open), and killed while six goroutines transferred between twelve
// accounts of 1000 each, whose pointers the root object has. Its machines have no identity, and
// their logs no life in their names.
func earlierFolder(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	if out, err := exec.Command("tar", "-xzf", "testdata/one-process.tar.gz", "-C", folder).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	setBoot(t, folder, earlier.Machines, strings.TrimSpace(string(boot)))
	return folder
}

// earlier is how the instance was made.
var earlier = Config{Machines: 3, Replicas: 2, Workers: 1, RegionBytes: 1 << 20, LogBytes: 64 << 10, MessageBytes: 16 << 10}

// accountsOf returns the pointers in the root object.
func accountsOf(t *testing.T, c *Local) (ptrs []region.Ptr) {
	t.Helper()
	b := make([]byte, c.Root().Capacity())
	if _, err := c.Machine(0).Read(c.Root(), b); err != nil {
		t.Fatal(err)
	}
	for ; len(ptrs) < 12; b = b[region.PtrBytes:] {
		p, err := region.DecodePtr(b)
		if err != nil {
			t.Fatal(err)
		}
		ptrs = append(ptrs, p)
	}
	return ptrs
}

// The folder of an earlier version is recovered, and is from then on like one that this version has made.
func TestFolderOfAnEarlierVersion(t *testing.T) {
	cfg := earlier
	cfg.Folder = earlierFolder(t)
	stored, exists, err := Stored(cfg.Folder)
	if err != nil || !exists || stored.Machines != 3 || stored.Replicas != 2 || stored.Workers != 1 || stored.LogBytes != 64<<10 {
		t.Errorf("%+v, %v, %v", stored, exists, err)
	}
	for life := range 3 {
		c := open(t, cfg)
		ptrs := accountsOf(t, c)
		for i := range 3 {
			if err := checkTotal(c.Machine(i), ptrs, 12*1000); err != nil {
				t.Errorf("life %d: machine %d: %v", life, i, err)
			}
			if now := c.Member(i).Membership().Configuration(); len(now.Machines) != 3 || now.ID < 2 {
				t.Errorf("life %d: machine %d is in configuration %d of %v", life, i, now.ID, now.Machines)
			}
		}
		checkCluster(t, "an earlier version's", c, ptrs)
		if life == 1 {
			if err := c.Kill(2); err != nil {
				t.Error(err)
			}
		}
		err := c.Machine(life%2).Run(context.Background(), func(tx *txn.Tx) error {
			_, err := tx.Write(ptrs[life])
			return err
		})
		if err := errors.Join(err, c.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// A crash while the memory is given its identity leaves it to be done again.
func TestUpgradeIsCutShort(t *testing.T) {
	cfg := earlier
	cfg.Folder = earlierFolder(t)
	for machine, words := range [][]uint64{{identityToken, identityCluster}, {identityToken, identityLives + 8, identityLives}} {
		f, err := nvram.OpenFolder(machineFolder(cfg.Folder, machine), nvram.Options{})
		if err != nil {
			t.Fatal(err)
		}
		id, err := f.Map(identityName, identityBytes)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range words {
			id.Store(word, 1)
		}
		if err := errors.Join(id.Reserve(0, id.Size()), f.Abandon()); err != nil {
			t.Fatal(err)
		}
	}
	c := open(t, cfg)
	ptrs := accountsOf(t, c)
	if err := checkTotal(c.Machine(1), ptrs, 12*1000); err != nil {
		t.Error(err)
	}
	checkCluster(t, "cut short", c, ptrs)
}

// Earlier versions stored where the root object is before they made it. If nothing else is there
// either, it is made; otherwise it has been lost.
func TestRootIsNotMade(t *testing.T) {
	for _, isEmpty := range []bool{true, false} {
		cfg := small(3, 3)
		cfg.Volatile = NewVolatile()
		c, err := Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		err = c.Machine(0).Run(t.Context(), func(tx *txn.Tx) error {
			err := tx.Free(c.Root())
			if err == nil && !isEmpty {
				_, _, err = tx.Alloc(100, 0)
			}
			return err
		})
		if err := errors.Join(err, c.Close()); err != nil {
			t.Fatal(err)
		}
		if !isEmpty {
			if _, err := Open(cfg); !errors.Is(err, region.ErrFreed) {
				t.Errorf("the root object is lost: %v", err)
			}
			continue
		}
		for range 2 {
			c, err := Open(cfg)
			if err != nil {
				t.Fatal(err)
			}
			for i := range 3 {
				if _, err := c.Machine(i).Read(c.Root(), make([]byte, c.Root().Capacity())); err != nil {
					t.Error(err)
				}
			}
			checkCluster(t, "made anew", c, nil)
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
