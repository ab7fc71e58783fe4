package farm

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/nvram"
)

var _ memories = (*nvram.Folder)(nil)

func machineFolder(folder string, machine int) string {
	return filepath.Join(folder, fmt.Sprintf("machine-%d", machine))
}

// LogFilling warns that the file system of a machine's memory is filling up. Without a
// logger nobody is told.
func LogFilling(log *slog.Logger, machine int) func(nvram.Fullness) {
	if log == nil {
		return nil
	}
	return func(f nvram.Fullness) {
		log.Warn("memory is filling up: delete rows, or give its file system more room", "machine", machine,
			"used_percent", f.Percent, "free_bytes", f.Free)
	}
}

// openFolder opens one machine's folder, or restores it from its newest save.
func (c *Cluster) openFolder(machine int) (*nvram.Folder, error) {
	o := nvram.Options{Trust: c.cfg.Trust, Remedy: c.remedy(), Filling: LogFilling(c.cfg.Logger, machine)}
	if c.cfg.Saves != "" {
		o.Saves = machineFolder(c.cfg.Saves, machine)
	}
	path := machineFolder(c.cfg.Folder, machine)
	if err := InspectTrusted(path, o); err != nil {
		return nil, err
	}
	return nvram.OpenFolder(path, o)
}

// remedy says what a person can do about a lost folder of a machine: the instance
// goes back, or begins anew, as a whole.
func (c *Cluster) remedy() string {
	if c.cfg.Saves == "" {
		return fmt.Sprintf("restore a save of farmsql save (farmsql restore); or, to begin anew, without any of it, remove %s", c.cfg.Folder)
	}
	anew := fmt.Sprintf("to begin anew, without any of it, remove %s and %s", c.cfg.Folder, c.cfg.Saves)
	var used []string
	for i := range c.cfg.Machines {
		saves := machineFolder(c.cfg.Saves, i)
		if save, err := nvram.NewestSave(saves); err != nil || save == "" {
			return fmt.Sprintf("there is no save in %s; %s", saves, anew)
		}
		used = append(used, filepath.Join(saves, nvram.UsedFile))
	}
	return fmt.Sprintf("to go back to the newest save in %s, without what was committed after it, remove %s and %s; %s",
		c.cfg.Saves, c.cfg.Folder, strings.Join(used, " and "), anew)
}

// restoreConfiguration brings the configuration back from the saves if it is
// gone from the folder, as after a power cut from a tmpfs.
func (c *Cluster) restoreConfiguration() error {
	if c.cfg.Saves == "" {
		return nil
	}
	current, err := c.store.Load()
	if current != nil || err != nil {
		return err
	}
	saved, err := cluster.NewFileStore(configurationPath(c.cfg.Saves)).Load()
	if saved == nil || err != nil {
		return err
	}
	return c.store.CompareAndSwap(0, saved)
}

// save saves the configuration and then every machine's memory, all machines at
// once. Nothing runs any more. A save that was cut short is none: a machine that
// has no newer one than when it was last in use refuses to start from it.
func (c *Cluster) save() error {
	if c.cfg.Saves == "" || c.cfg.Folder == "" {
		return nil
	}
	begin := c.cfg.Clock.Now()
	if err := os.MkdirAll(c.cfg.Saves, nvram.PrivateFolder); err != nil {
		return fmt.Errorf("farm: make the folder of saves: %w", err)
	}
	store := cluster.NewFileStore(configurationPath(c.cfg.Saves))
	old, err := store.Load()
	if err != nil {
		return err
	}
	var revision uint64
	if old != nil {
		revision = old.Revision
	}
	if err := store.CompareAndSwap(revision, c.mu.configuration); err != nil {
		return fmt.Errorf("farm: save the configuration: %w", err)
	}
	errs := make([]error, len(c.machines))
	var wg sync.WaitGroup
	for i, m := range c.machines {
		if f, ok := m.memory.(*nvram.Folder); ok {
			wg.Go(func() { errs[i] = f.Save(machineFolder(c.cfg.Saves, i)) })
		}
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	c.cfg.Logger.Info("saved", "folder", c.cfg.Saves, "took", c.cfg.Clock.Now().Sub(begin))
	return nil
}
