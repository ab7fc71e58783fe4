package bench

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/farmsql/farmsql"
	"github.com/farmsql/farmsql/txn"
)

// plant changes one byte of a text in one replica: in the last file under a folder that contains
// the text. The given number of files must contain it.
func plant(t *testing.T, folder, text string, replicas int) {
	t.Helper()
	last, at, found := "", 0, 0
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if i := bytes.Index(b, []byte(text)); i >= 0 {
			last, at, found = path, i, found+1
		}
		return err
	})
	if err != nil || found < replicas {
		t.Fatalf("%q is in %d files, of %d replicas: %v", text, found, replicas, err)
	}
	f, err := os.OpenFile(last, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte("X"), int64(at)); err != nil {
		t.Fatal(err)
	}
}

// A run on several machines of one process ends with a comparison of their replicas. If one
// differs, the run has no result.
func TestReplicasAreCompared(t *testing.T) {
	cfg := smallTarget
	cfg.Machines, cfg.Replicas, cfg.RegionSize, cfg.DataFolder = 3, 3, 4*farmsql.MiB, t.TempDir()
	tg, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := tg.Close(); err != nil {
			t.Error(err)
		}
	}()
	const text = "that all replicas have" // within one line
	err = tg.Machine(0).Run(t.Context(), func(tx *txn.Tx) error {
		_, row, err := tx.Alloc(len(text), 0) // nothing leads to it, which is no difference
		copy(row, text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	run := func() (*Result, error) {
		return Run(t.Context(), tg, &toy{do: alternate}, Options{Transactions: 10, AnyBuild: true})
	}
	res, err := run()
	if err != nil || !res.ReplicasCompared || !strings.Contains(res.remarks(), "\nreplicas: compared after the run, and alike") {
		t.Fatalf("%v, %+v", err, res)
	}
	plant(t, cfg.DataFolder, text, cfg.Replicas)
	if _, err := run(); !errors.Is(err, ErrReplicasDiffer) || !strings.Contains(err.Error(), ": 1 problem: machine ") {
		t.Errorf("error %v", err)
	}
}

// One machine has nothing to compare.
func TestNothingToCompare(t *testing.T) {
	tg, err := Open(t.Context(), smallTarget)
	if err != nil {
		t.Fatal(err)
	}
	compared, err := tg.compareReplicas(context.Background())
	if err := errors.Join(err, tg.Close()); compared || err != nil {
		t.Errorf("%v, %v", compared, err)
	}
}

// Replicas of machines that are processes are compared when these have ended.
func TestReplicasOfProcessesAreCompared(t *testing.T) {
	for _, isPlanted := range []bool{false, true} {
		c, _ := openCluster(t, 3, "")
		if err := c.Load(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		res, err := c.Run(t.Context(), Options{Threads: 2, Transactions: 100, Seed: 1, AnyBuild: true})
		if err != nil {
			t.Fatal(err)
		}
		if res.ReplicasCompared || !strings.Contains(res.remarks(), "NOT COMPARED") {
			t.Errorf("compared already: %s", res.remarks())
		}
		if isPlanted {
			if err := c.halt(); err != nil {
				t.Fatal(err)
			}
			plant(t, c.folder, "loaded 77", c.Machines())
		}
		err = c.Compare(t.Context(), res)
		if isPlanted != errors.Is(err, ErrReplicasDiffer) || isPlanted == res.ReplicasCompared || !isPlanted && err != nil {
			t.Errorf("planted: %v; compared: %v, error %v", isPlanted, res.ReplicasCompared, err)
		}
	}
}
