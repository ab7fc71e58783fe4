package farm

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// files returns the content of the files in and below a folder, except locks.
func files(t *testing.T, folder string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "LOCK" {
			return err
		}
		b, err := os.ReadFile(path)
		all[path] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// change stores a word into the file of a region, and returns the previous word.
func change(t *testing.T, cfg Config, machine int, id region.ID, off uint64, word uint64) (was uint64) {
	t.Helper()
	f, err := nvram.HoldFolder(machineFolder(cfg.Folder, machine), nvram.Options{Trust: true})
	if err != nil {
		t.Fatal(err)
	}
	m, err := f.Map(regionName(id), cfg.RegionBytes)
	if err != nil {
		t.Fatal(err)
	}
	was = m.Load(off)
	m.Store(off, word)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return was
}

// A folder is checked before it is trusted. If, at any machine, an object is torn, or a block table
// or a header is garbage, the folder is refused with the places of the faults and not changed. A
// lock that a transaction has left is no fault.
func TestTrustIsChecked(t *testing.T) {
	if nvramOnHeap(t) {
		t.Skip("race builds map a folder that is held privately")
	}
	cfg := small(2, 2)
	cfg.Folder = filepath.Join(t.TempDir(), "data")
	cfg = cfg.withDefaults()
	c, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var p region.Ptr
	err = c.Machine(0).Run(t.Context(), func(tx *txn.Tx) (err error) {
		p, _, err = tx.Alloc(500, 0)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.quiesce(); err != nil { // so that the backup has the object, too
		t.Fatal(err)
	}
	die(t, c)
	reboot(t, cfg)
	if _, err := Open(cfg); !errors.Is(err, nvram.ErrLost) {
		t.Fatalf("not trusted: %v", err)
	}
	cfg.Trust = true
	id, off := p.Addr.Region(), uint64(p.Addr.Offset())
	for machine := range 2 {
		for name, bad := range map[string]struct {
			off, word uint64
			text      string
		}{
			"line":   {off + 2*64, 0xbad, fmt.Sprintf("torn: %v", p)},
			"header": {off, uint64(1)<<61 | 1, "damaged: "},
			"table":  {64, 0xffffffff, "damaged: "},
			"magic":  {0, 0xbad, "no region header"},
		} {
			was := change(t, cfg, machine, id, bad.off, bad.word)
			before := files(t, cfg.Folder)
			_, err := Open(cfg)
			if !errors.Is(err, ErrTorn) || !strings.Contains(err.Error(), bad.text) || !strings.Contains(err.Error(), fmt.Sprintf("region %d", id)) ||
				!strings.Contains(err.Error(), machineFolder(cfg.Folder, machine)) {
				t.Errorf("machine %d, %s: %v", machine, name, err)
			}
			if after := files(t, machineFolder(cfg.Folder, machine)); !isPartOf(after, before) {
				t.Errorf("machine %d, %s: the folder was changed", machine, name)
			}
			change(t, cfg, machine, id, bad.off, was)
		}
	}
	header := change(t, cfg, 0, id, off, 0)
	change(t, cfg, 0, id, off, header|1<<63) // a lock
	c = open(t, cfg)
	if c.UncheckedError() == nil {
		t.Error("there is no doubt about a trusted folder")
	}
	if err := c.MarkChecked(); err != nil || c.UncheckedError() != nil {
		t.Error(err, c.UncheckedError())
	}
}

func isPartOf(part, all map[string]string) bool {
	for name, b := range part { // any order
		if all[name] != b {
			return false
		}
	}
	return true
}

// nvramOnHeap reports whether stores to a memory reach its file only later.
func nvramOnHeap(t *testing.T) bool {
	m, err := nvram.NewShared(4096)
	if err != nil {
		t.Fatal(err)
	}
	_, shared := m.Location()
	return !shared
}
