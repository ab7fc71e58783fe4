package farm

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/txn"
)

// die ends the machines of c as a kill does.
func die(t *testing.T, c *Local) {
	t.Helper()
	err := c.stop()
	for _, m := range c.machines {
		if f, ok := m.Memory.(*nvram.Folder); ok {
			err = errors.Join(err, f.Abandon())
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// reboot has the folders of killed machines be of an earlier start of the computer.
func reboot(t *testing.T, cfg Config) {
	t.Helper()
	setBoot(t, cfg.Folder, cfg.Machines, "earlier")
}

// setBoot has the folders of machines be of a start of the computer.
func setBoot(t *testing.T, folder string, machines int, boot string) {
	t.Helper()
	for i := range machines {
		path := filepath.Join(machineFolder(folder, i), "FARMSQL")
		b, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, regexp.MustCompile(`(?m)^boot .*$`).ReplaceAll(b, []byte("boot "+boot)), 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// says returns what the root object says.
func says(t *testing.T, cfg Config) (value byte) {
	t.Helper()
	c, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	err = c.Machine(0).Run(context.Background(), func(tx *txn.Tx) error {
		b, err := tx.Read(c.Root())
		if err == nil {
			value = b[0]
		}
		return err
	})
	if err := errors.Join(err, c.Close()); err != nil {
		t.Fatal(err)
	}
	return value
}

var advice = map[string]*regexp.Regexp{
	"go back": regexp.MustCompile(`to go back to [^;]*, without what was committed after it, remove ([^;]*)(;|$)`),
	"anew":    regexp.MustCompile(`to begin anew, without any of it, remove ([^;]*)(;|$)`),
}

// An error about a lost instance says what a person can do: who removes literally what it
// says has the newest save, or nothing.
func TestAdviceWorks(t *testing.T) {
	rebooted := func(t *testing.T, cfg Config) { reboot(t, cfg) }
	gone := func(t *testing.T, cfg Config) {
		if err := os.RemoveAll(cfg.Folder); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name  string
		saves int // made before the instance is lost
		lose  func(*testing.T, Config)
		do    string
		want  byte
	}{
		{"rebooted, back", 2, rebooted, "go back", 2},
		{"rebooted, anew", 2, rebooted, "anew", 0},
		{"gone, back", 2, gone, "go back", 2},
		{"gone, anew", 2, gone, "anew", 0},
		{"never saved, rebooted, anew", 0, rebooted, "anew", 0},
		{"no saves, rebooted, anew", -1, rebooted, "anew", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := small(3, 2)
			cfg.Folder = filepath.Join(t.TempDir(), "data")
			if c.saves >= 0 {
				cfg.Saves = filepath.Join(t.TempDir(), "saves")
			}
			for i := range byte(max(c.saves, 0)) {
				bump(t, cfg, i)
			}
			x, err := Open(cfg)
			if err != nil {
				t.Fatal(err)
			}
			die(t, x)
			c.lose(t, cfg)
			_, err = Open(cfg)
			if !errors.Is(err, nvram.ErrLost) {
				t.Fatalf("a lost instance: %v", err)
			}
			said := advice[c.do].FindStringSubmatch(err.Error())
			if said == nil {
				t.Fatalf("no advice in: %v", err)
			}
			for _, path := range strings.Split(said[1], " and ") {
				if err := os.RemoveAll(path); err != nil {
					t.Fatal(err)
				}
			}
			if got := says(t, cfg); got != c.want {
				t.Errorf("after what is said in %q the instance says %d, want %d", err, got, c.want)
			}
		})
	}
}
