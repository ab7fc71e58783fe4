package farmsql

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
)

// A save is a folder with a configuration and the memory of every machine of it:
//
//	SAVE/configuration.json
//	SAVE/machine-0           as package nvram writes it
//	SAVE/machine-1           ...
//
// No machine runs during a save, so it holds the memory of all machines at one moment. Starting
// from a save is like starting after all machines were killed at that moment. Save writes the
// folder under another name, and renames it when it is complete.
const (
	configurationName = "configuration.json"
	unfinishedSuffix  = ".unfinished"
	machinePrefix     = "machine-"
	// identityImage is farm.IdentityFile in a save.
	identityImage = "identity.img"
)

// Reasons why a save, or the folder for it, is refused.
var (
	// ErrNotASave means that a folder holds no save, or an incomplete one.
	ErrNotASave = errors.New("farmsql: not a complete save")
	// ErrOtherCluster means that a save, a folder and a configuration do not all belong to the same
	// instance.
	ErrOtherCluster = errors.New("farmsql: of another cluster")
	// ErrGoneOn means that an instance has run since it was saved.
	ErrGoneOn = errors.New("farmsql: the instance has gone on since it was saved")
	// ErrNotThere means that a machine of the instance has no folder in the given data folders.
	ErrNotThere = errors.New("farmsql: a machine has no folder here")
)

// An Offline names the files of an instance that has no running process.
type Offline struct {
	// Data are the data folders. Machine N has the folder machine-N in one of them.
	Data []string
	// Cluster is Config.Cluster: the place of the configuration, if the machines are separate
	// processes. If it is empty, the configuration is in the only data folder.
	Cluster string
	// SharedFolder is Config.SharedFolder.
	SharedFolder string
	// Trust is Config.Trust.
	Trust bool
	// Progress, if not nil, is called with the number of bytes processed so far and the total, by
	// several goroutines at a time.
	Progress func(done, total int64)
}

// A SaveReport describes what was saved or restored.
type SaveReport struct {
	Cluster       string
	Configuration int
	Machines      int
	Bytes         Size // how many bytes were read
}

// ours returns err with this package's name as a prefix, exactly once.
func ours(err error) error {
	if err == nil || strings.HasPrefix(err.Error(), "farmsql: ") {
		return err
	}
	return withPrefix("", err)
}

func (o Offline) validate() error {
	switch {
	case len(o.Data) == 0:
		return errors.New("farmsql: no data folder is given")
	case o.Cluster == "" && len(o.Data) > 1:
		return errors.New("farmsql: several data folders are given, and no Cluster (--cluster)")
	}
	return nil
}

// openStore opens the store of the instance's configuration.
func (o Offline) openStore() (cluster.Store, error) {
	if o.Cluster == "" {
		return cluster.NewFileStore(filepath.Join(o.Data[0], configurationName)), nil
	}
	s, err := cluster.Open(o.Cluster)
	if err != nil {
		return nil, fmt.Errorf("--cluster: %w", err)
	}
	return s, nil
}

// location returns where the configuration is, for messages.
func (o Offline) location() string {
	if o.Cluster == "" {
		return o.Data[0]
	}
	return o.Cluster
}

// counter returns a function that adds to the bytes done and calls Progress, or nil if Progress is
// nil.
func (o Offline) counter(total int64) func(int64) {
	if o.Progress == nil {
		return nil
	}
	var done atomic.Int64
	return func(n int64) { o.Progress(done.Add(n), total) }
}

// Save writes the memory of all machines of an instance into a save at path, which must not exist.
// No machine may be running, and Save prevents machines from starting meanwhile. It does not change
// the instance. If it fails, it leaves no save behind.
//
// Errors: nvram.ErrInUse and those of nvram.HoldFolder, nvram.ErrNoSpace, ErrNotThere, ErrAway,
// ErrOtherCluster, ErrOtherFolder, fs.ErrExist, and the store's.
func Save(o Offline, path string) (SaveReport, error) {
	if err := o.validate(); err != nil {
		return SaveReport{}, err
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return SaveReport{}, withPrefix("", errors.Join(err, &fs.PathError{Op: "save", Path: path, Err: fs.ErrExist}))
	}
	store, err := o.openStore()
	if err != nil {
		return SaveReport{}, ours(err)
	}
	defer store.Close()
	h, err := o.hold(store)
	if err != nil {
		return SaveReport{}, ours(err)
	}
	report, err := h.save(o, path)
	if err = errors.Join(err, h.release()); err != nil {
		return SaveReport{}, ours(err)
	}
	return report, nil
}

// A heldInstance is a stopped instance whose folders this process holds, so that no other process can
// start a machine on them.
type heldInstance struct {
	configuration *cluster.Configuration
	folders       []*nvram.Folder // one for each machine of the configuration
}

// hold takes the folders of all machines of an instance.
func (o Offline) hold(store cluster.Store) (*heldInstance, error) {
	c, err := store.Load()
	if err != nil {
		return nil, err
	}
	if c == nil {
		return nil, fmt.Errorf("there is no configuration at %s, so nothing is there to be saved or checked", o.location())
	}
	if err := checkAway(c); err != nil {
		return nil, err
	}
	h := &heldInstance{configuration: c}
	if err := h.holdFolders(o, store); err != nil {
		return nil, errors.Join(err, h.release())
	}
	return h, nil
}

// ErrAway means that regions wait for machines that are not members: an operation on the members
// alone would miss these regions.
var ErrAway = errors.New("farmsql: regions are unavailable")

// checkAway returns ErrAway if the members of c together do not have all regions.
func checkAway(c *cluster.Configuration) error {
	var waits []string
	for _, a := range absences(c, c.Unavailable()) {
		verb := "wait"
		if len(a.Regions) == 1 {
			verb = "waits"
		}
		waits = append(waits, fmt.Sprintf("%s %s for %s", regionNames(a.Regions), verb, alternatives(a.Machines)))
	}
	if len(waits) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s, whose memory is not part of the configuration: start the cluster with it first", ErrAway, strings.Join(waits, "; "))
}

// holdFolders takes the folder of each machine. It fails if the configuration changes before it has
// them all.
func (h *heldInstance) holdFolders(o Offline, store cluster.Store) error {
	c := h.configuration
	for _, m := range c.Machines {
		folder, err := o.folderOf(m)
		if err != nil {
			return err
		}
		if err := o.checkIdentity(folder, m, c.Cluster); err != nil {
			return err
		}
		f, err := nvram.HoldFolder(folder, nvram.Options{Trust: o.Trust})
		if err != nil {
			return fmt.Errorf("machine %d: %w", m, err)
		}
		h.folders = append(h.folders, f)
	}
	// From now on no member can run and change the configuration. Has it changed before?
	now, err := store.Load()
	if err == nil && (now == nil || now.Cluster != c.Cluster || now.Revision != c.Revision) {
		err = cluster.ErrMoved
	}
	return err
}

func (h *heldInstance) release() error {
	var errs []error
	for _, f := range h.folders {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// folderOf returns the folder of a machine.
func (o Offline) folderOf(m rdma.MachineID) (string, error) {
	var found []string
	for _, d := range o.Data {
		folder := machineFolder(d, m)
		if _, err := os.Stat(folder); err == nil {
			found = append(found, folder)
		}
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("%w: machine %d is in the configuration, and not in %s", ErrNotThere, m, strings.Join(o.Data, " or "))
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("machine %d has several folders: %s", m, strings.Join(found, " and "))
}

func machineFolder(data string, m rdma.MachineID) string {
	return filepath.Join(data, machinePrefix+strconv.Itoa(int(m)))
}

// checkIdentity checks that a folder belongs to machine m of this instance.
func (o Offline) checkIdentity(folder string, m rdma.MachineID, instance uint64) error {
	if o.Cluster != "" {
		if err := checkConfiguration(filepath.Dir(folder), int(m), o.Cluster); err != nil {
			return err
		}
	}
	identity := filepath.Join(folder, farm.IdentityFile)
	if _, err := os.Stat(identity); err != nil { // folders of earlier versions have none
		return nil
	}
	return checkMember(identity, m, instance)
}

// checkMember checks that the identity in a file belongs to machine m of the instance.
func checkMember(path string, m rdma.MachineID, instance uint64) error {
	id, err := farm.ReadIdentity(path)
	switch {
	case err != nil:
		return err
	case id.IsKnown && id.Machine != m:
		return fmt.Errorf("%w: %s is of machine %d, not %d", farm.ErrOtherMachine, path, id.Machine, m)
	case id.Cluster != 0 && id.Cluster != instance:
		return fmt.Errorf("%w: %s is of cluster %016x, not %016x", ErrOtherCluster, path, id.Cluster, instance)
	}
	return nil
}

// save writes the save at path.
func (h *heldInstance) save(o Offline, path string) (SaveReport, error) {
	var total int64
	for _, f := range h.folders {
		n, err := f.DataBytes()
		if err != nil {
			return SaveReport{}, err
		}
		total += n
	}
	if err := checkRoom(path, total); err != nil {
		return SaveReport{}, err
	}
	unfinished := path + unfinishedSuffix
	err := os.MkdirAll(filepath.Dir(path), nvram.PrivateFolder)
	if err == nil {
		err = os.RemoveAll(unfinished) // left by a process that was killed
	}
	if err == nil {
		err = os.Mkdir(unfinished, nvram.PrivateFolder)
	}
	if err != nil {
		return SaveReport{}, fmt.Errorf("%w: %w", nvram.ErrUnwritable, err)
	}
	err = h.write(unfinished, o.counter(total))
	if err == nil {
		err = os.Rename(unfinished, path)
	}
	if err != nil {
		return SaveReport{}, errors.Join(err, os.RemoveAll(unfinished))
	}
	return reportOf(h.configuration, total), syncFolder(filepath.Dir(path))
}

func (h *heldInstance) write(path string, moved func(int64)) error {
	for i, f := range h.folders {
		m := h.configuration.Machines[i]
		if err := f.SaveAs(machineFolder(path, m), moved); err != nil {
			return fmt.Errorf("machine %d: %w", m, err)
		}
	}
	err := cluster.NewFileStore(filepath.Join(path, configurationName)).CompareAndSwap(0, h.configuration)
	return errors.Join(err, syncFolder(path))
}

func reportOf(c *cluster.Configuration, bytes int64) SaveReport {
	return SaveReport{Cluster: fmt.Sprintf("%016x", c.Cluster), Configuration: int(c.ID), Machines: len(c.Machines), Bytes: Size(bytes)}
}

// checkRoom returns nvram.ErrNoSpace if there is no room for bytes at path.
func checkRoom(path string, bytes int64) error {
	free, err := nvram.FreeBytes(path)
	if err == nil && free < bytes {
		err = fmt.Errorf("%w at %s: %v are free, and up to %v are needed", nvram.ErrNoSpace, path, Size(free), Size(bytes))
	}
	return err
}

// syncFolder makes the entries of a folder durable.
func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
