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

// LogFilling returns a function that logs a warning: the file system of a machine's memory is filling
// up. It returns nil if log is nil.
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
func (c Config) openFolder(machine int) (*nvram.Folder, error) {
	o := nvram.Options{Trust: c.Trust, Remedy: c.remedy(), Filling: LogFilling(c.Logger, machine)}
	if c.Saves != "" {
		o.Saves = machineFolder(c.Saves, machine)
	}
	path := machineFolder(c.Folder, machine)
	if err := InspectTrusted(path, o); err != nil {
		return nil, err
	}
	return nvram.OpenFolder(path, o)
}

// remedy returns the advice to the user when a machine's folder is lost: either the whole instance
// goes back to a save, or it begins anew.
func (c Config) remedy() string {
	if c.Saves == "" {
		return fmt.Sprintf("restore a save of farmsql save (farmsql restore); or, to begin anew, without any of it, remove %s", c.Folder)
	}
	anew := fmt.Sprintf("to begin anew, without any of it, remove %s and %s", c.Folder, c.Saves)
	var used []string
	for i := range c.Machines {
		saves := machineFolder(c.Saves, i)
		if save, err := nvram.NewestSave(saves); err != nil || save == "" {
			return fmt.Sprintf("there is no save in %s; %s", saves, anew)
		}
		used = append(used, filepath.Join(saves, nvram.UsedFile))
	}
	return fmt.Sprintf("to go back to the newest save in %s, without what was committed after it, remove %s and %s; %s",
		c.Saves, c.Folder, strings.Join(used, " and "), anew)
}

// loadConfiguration returns the last configuration, or the saved one if the folder has none, as
// after a power cut with the folder on a tmpfs. It also opens the store of saved configurations, if
// there is a folder for them.
func (l *Local) loadConfiguration() (last *cluster.Configuration, isSaved bool, err error) {
	if l.cfg.Saves != "" && l.cfg.Folder != "" {
		l.saves = cluster.NewFileStore(configurationPath(l.cfg.Saves))
	}
	if last, err = l.store.Load(); last != nil || err != nil || l.saves == nil {
		return last, false, err
	}
	last, err = l.saves.Load()
	return last, last != nil, err
}

// save saves the configuration, and then the memory of all machines concurrently. Nothing else may
// be running. An interrupted save does no harm: a machine refuses to start from a save that is older
// than its last use. save writes nothing if a folder is unchecked or the instance is torn.
func (l *Local) save() error {
	begin := l.cfg.Clock.Now()
	if l.UncheckedError() != nil || l.isTorn {
		return nil
	}
	if err := l.saveConfiguration(); err != nil {
		return err
	}
	errs := make([]error, len(l.machines))
	saved := false
	var wg sync.WaitGroup
	for i, m := range l.machines {
		if f, ok := m.Memory.(*nvram.Folder); ok && m.Saves != "" {
			saved = true
			wg.Go(func() { errs[i] = f.Save(m.Saves) })
		}
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil || !saved {
		return err
	}
	l.cfg.Logger.Info("saved", "folder", l.cfg.Saves, "took", l.cfg.Clock.Now().Sub(begin))
	return nil
}

// saveConfiguration saves the configuration, if there is a folder for saves.
func (l *Local) saveConfiguration() error {
	if l.saves == nil {
		return nil
	}
	if err := os.MkdirAll(l.cfg.Saves, nvram.PrivateFolder); err != nil {
		return fmt.Errorf("farm: make the folder of saves: %w", err)
	}
	last, err := l.store.Load()
	if err != nil {
		return err
	}
	old, err := l.saves.Load()
	if err != nil {
		return err
	}
	var revision uint64
	if old != nil {
		revision = old.Revision
	}
	if err := l.saves.CompareAndSwap(revision, last); err != nil {
		return fmt.Errorf("farm: save the configuration: %w", err)
	}
	return nil
}
