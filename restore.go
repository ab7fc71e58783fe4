package farmsql

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/shm"
)

// Restore restores an instance from the save at path: the folders of all its machines, which no
// process may be using, and its configuration. o.Data is one folder, or one for each machine of the
// save, in the order of their numbers. Restore replaces folders that hold memory, or an instance that
// has gone on since the save, only with overwrite. It never replaces folders or configurations of
// other instances.
//
// Restore first reads and checks everything and writes it next to the existing files. An error until
// then leaves everything as it was. Then it replaces the old files. After that the machines are in
// the state that they would have if all had been killed when they were saved.
//
// Errors: ErrNotASave, ErrOtherCluster, ErrOtherFolder, ErrGoneOn, those of nvram.OpenSave and
// nvram.BeginRestore, nvram.ErrNoSpace, rdma.ErrMachineTaken, and the store's.
func Restore(o Offline, path string, overwrite bool) (SaveReport, error) {
	if err := o.validate(); err != nil {
		return SaveReport{}, err
	}
	r := restorer{o: o, path: path, overwrite: overwrite}
	report, err := r.run()
	if err != nil {
		return SaveReport{}, ours(err)
	}
	return report, nil
}

// A restorer restores one instance.
type restorer struct {
	o         Offline
	path      string
	overwrite bool

	saved   *cluster.Configuration
	saves   []*nvram.Saved // one for each saved machine
	folders []string       // one for each saved machine
	store   cluster.Store
	stored  *cluster.Configuration // the present configuration, or nil
	begun   []*nvram.Restoration
	made    []string   // data folders that Restore has made
	names   []rdma.NIC // NICs under the machines' names: while they exist, no process can start the machines
}

// run reads the save, compares it with the present instance, stages the restored memory next to the
// old, and only then replaces the old.
func (r *restorer) run() (SaveReport, error) {
	if err := r.open(); err != nil {
		return SaveReport{}, err
	}
	store, err := r.o.openStore()
	if err != nil {
		return SaveReport{}, err
	}
	r.store = store
	defer store.Close()
	if err := r.compare(); err != nil {
		return SaveReport{}, err
	}
	total, err := r.stage()
	if err != nil {
		return SaveReport{}, errors.Join(err, r.cancel())
	}
	if err := errors.Join(r.replace(), r.releaseNames()); err != nil {
		return SaveReport{}, fmt.Errorf("%w; what is not restored now is refused when it is started: restore it again", err)
	}
	return reportOf(r.saved, total), nil
}

// open reads the save's configuration and the indexes of its memories.
func (r *restorer) open() (err error) {
	if r.saved, err = cluster.NewFileStore(filepath.Join(r.path, configurationName)).Load(); err != nil {
		return err
	}
	if r.saved == nil {
		return fmt.Errorf("%w: %s has no %s", ErrNotASave, r.path, configurationName)
	}
	for _, m := range r.saved.Machines {
		folder := machineFolder(r.path, m)
		s, err := nvram.OpenSave(folder)
		if err != nil {
			return fmt.Errorf("%w: machine %d: %w%s", ErrNotASave, m, err, r.hint(folder))
		}
		if err := r.checkIdentity(folder, m); err != nil {
			return err
		}
		r.saves = append(r.saves, s)
	}
	return r.place()
}

// hint returns an addition to an error message if a folder looks like a save but is none.
func (r *restorer) hint(folder string) string {
	if found, _ := filepath.Glob(filepath.Join(folder, "save-*")); len(found) > 0 { // fails only for a bad pattern
		return "; it is a folder for --saves: farmsql serve restores from it by itself"
	}
	return ""
}

// checkIdentity checks that the memory in a save belongs to the instance and to machine m.
func (r *restorer) checkIdentity(folder string, m rdma.MachineID) error {
	identity := filepath.Join(folder, identityImage)
	if _, err := os.Stat(identity); err != nil { // saves of earlier versions have none
		return nil
	}
	return checkMember(identity, m, r.saved.Cluster)
}

// place chooses the folder of each machine.
func (r *restorer) place() error {
	n := len(r.saved.Machines)
	if len(r.o.Data) != 1 && len(r.o.Data) != n {
		return fmt.Errorf("%d data folders are given, for %d machines: give one for all, or one for each", len(r.o.Data), n)
	}
	for i, m := range r.saved.Machines {
		folder := machineFolder(r.o.Data[min(i, len(r.o.Data)-1)], m)
		if err := r.o.checkIdentity(folder, m, r.saved.Cluster); err != nil {
			return err
		}
		r.folders = append(r.folders, folder)
	}
	return nil
}

// compare compares the save with the present configuration, if there is one. It fails with ErrOtherCluster, or
// with ErrGoneOn if what has been done since the save must not be given up.
func (r *restorer) compare() (err error) {
	if r.stored, err = r.store.Load(); err != nil || r.stored == nil {
		return err
	}
	switch {
	case r.stored.Cluster != r.saved.Cluster:
		return fmt.Errorf("%w: the save is of cluster %016x, the configuration at %s of cluster %016x", ErrOtherCluster, r.saved.Cluster, r.o.location(), r.stored.Cluster)
	case !r.hasGoneOn():
		return nil
	case !r.overwrite:
		return fmt.Errorf("%w: its configuration is %d (revision %d), that of the save %d (revision %d); with --overwrite what it has done since is given up",
			ErrGoneOn, r.stored.ID, r.stored.Revision, r.saved.ID, r.saved.Revision)
	}
	return nil
}

// hasGoneOn reports whether the store has a later configuration than the save: it has if the machines
// have been started since, because each start makes new configurations.
func (r *restorer) hasGoneOn() bool { return r.stored != nil && r.stored.Revision > r.saved.Revision }

// stage checks everything, and writes the restored memory next to the existing files, where replace
// takes it from. It returns the number of bytes.
func (r *restorer) stage() (total int64, err error) {
	if err := r.takeNames(); err != nil {
		return 0, err
	}
	for _, d := range r.o.Data {
		if _, err := os.Stat(d); err != nil {
			r.made = append(r.made, d)
		}
	}
	for i, s := range r.saves {
		b, err := nvram.BeginRestore(r.folders[i], s, r.overwrite, nvram.Options{Trust: r.o.Trust})
		if errors.Is(err, nvram.ErrNotEmpty) {
			err = fmt.Errorf("%w; with --overwrite it is replaced", err)
		}
		if err != nil {
			return 0, fmt.Errorf("machine %d: %w", r.saved.Machines[i], err)
		}
		r.begun = append(r.begun, b)
		total += s.DataBytes()
	}
	if err := errors.Join(r.checkRoom(), r.checkStore()); err != nil {
		return 0, err
	}
	moved := r.o.counter(total)
	for i, b := range r.begun {
		if err := b.Stage(moved); err != nil {
			return 0, fmt.Errorf("machine %d: %w", r.saved.Machines[i], err)
		}
	}
	return total, nil
}

// takeNames joins the network under the names of the present machines, if the instance goes back to
// an earlier configuration. So none of these machines can start meanwhile, wherever its memory is.
func (r *restorer) takeNames() error {
	if r.o.Cluster == "" || !r.hasGoneOn() {
		return nil
	}
	shared := Config{Cluster: r.o.Cluster, SharedFolder: r.o.SharedFolder}.sharedFolder()
	for _, m := range r.stored.Machines {
		nic, err := shm.Join(shared, m)
		if err != nil {
			return fmt.Errorf("machine %d: %w", m, err)
		}
		r.names = append(r.names, nic)
	}
	return nil
}

func (r *restorer) releaseNames() error {
	var errs []error
	for _, nic := range r.names {
		errs = append(errs, nic.Close())
	}
	r.names = nil
	return errors.Join(errs...)
}

// checkRoom checks that each file system has room for the machines that are restored to it.
func (r *restorer) checkRoom() error {
	need := make(map[uint64]int64)
	for i, s := range r.saves {
		device, err := nvram.Device(r.folders[i])
		if err != nil {
			return err
		}
		need[device] += s.DataBytes()
		if err := checkRoom(r.folders[i], need[device]); err != nil {
			return err
		}
	}
	return nil
}

// checkStore checks that the folder of the configuration exists, if the configuration is in a file.
func (r *restorer) checkStore() error {
	path, isFile := strings.CutPrefix(r.o.Cluster, "file://")
	if !isFile {
		return nil
	}
	if _, err := os.Stat(filepath.Dir(path)); err != nil {
		return fmt.Errorf("the folder of the configuration (--cluster): %w", err)
	}
	return nil
}

// cancel removes everything that stage has made.
func (r *restorer) cancel() error {
	errs := []error{r.releaseNames()}
	for _, b := range r.begun {
		errs = append(errs, b.Cancel())
	}
	for _, d := range r.made {
		_ = os.Remove(d) // fails if another process uses it by now
	}
	return errors.Join(errs...)
}

// replace puts the staged memory into place, stores the configuration, and only then (Finish) lets
// machines start with their new memory. If something fails in between, the memory stays unusable
// until it is restored again.
func (r *restorer) replace() error {
	var errs []error
	for _, b := range r.begun {
		errs = append(errs, b.Replace())
	}
	err := errors.Join(errs...)
	if err == nil {
		err = r.configure()
	}
	for _, b := range r.begun {
		if err != nil {
			_ = b.Leave() // err already says that the restore failed
			continue
		}
		errs = append(errs, b.Finish())
	}
	return errors.Join(append(errs, err)...)
}

// configure stores the saved configuration. If the store has a later configuration, the saved one
// becomes a new revision after it: identifiers and revisions only grow.
func (r *restorer) configure() error {
	switch {
	case r.stored == nil:
		return r.store.CompareAndSwap(0, r.saved)
	case !r.hasGoneOn():
		return nil
	}
	next := r.saved.Clone()
	next.ID, next.Revision = max(r.saved.ID, r.stored.ID), r.stored.Revision+1
	return r.store.CompareAndSwap(r.stored.Revision, next)
}
