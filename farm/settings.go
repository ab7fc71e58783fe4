package farm

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/rdma"
)

// ErrMismatch means that an instance is opened with other settings than it was made with.
var ErrMismatch = errors.New("farm: the instance was made with other settings")

// Stored returns, for the instance in a folder, the settings that do not change while all machines are in one process: the numbers of
// machines, replicas and workers, and the sizes of regions and logs. It returns false if the folder
// holds no instance.
func Stored(folder string) (Config, bool, error) {
	last, err := cluster.NewFileStore(configurationPath(folder)).Load()
	if err != nil || last == nil {
		return Config{}, false, err
	}
	present, err := machinesIn(folder, last.Cluster)
	if err != nil {
		return Config{}, false, err
	}
	return Config{
		Folder: folder, Machines: len(machinesOf(last, present)), Replicas: last.Replicas, Workers: last.Workers,
		RegionBytes: last.RegionBytes, LogBytes: last.LogBytes,
	}, true, nil
}

func configurationPath(folder string) string { return filepath.Join(folder, "configuration.json") }

const machinePrefix = "machine-"

func machineFolder(folder string, machine int) string {
	return filepath.Join(folder, fmt.Sprint(machinePrefix, machine))
}

// machinesIn returns the machines of an instance that have a subfolder in folder. It skips copies of
// machines' folders, and unrelated ones. A machine that was killed early has an identity that names
// no instance yet; it counts as a machine of this one.
func machinesIn(folder string, instance uint64) (machines []rdma.MachineID, err error) {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		digits, found := strings.CutPrefix(e.Name(), machinePrefix)
		n, err := strconv.ParseUint(digits, 10, 16)
		if err != nil || !found || !e.IsDir() {
			continue
		}
		id, err := ReadIdentity(filepath.Join(folder, e.Name(), IdentityFile))
		isOther := id.Cluster != 0 && id.Cluster != instance
		isCopy := id.IsKnown && id.Machine != rdma.MachineID(n)
		if err == nil && !isOther && !isCopy {
			machines = append(machines, rdma.MachineID(n))
		}
	}
	return machines, err
}

// machinesOf returns the machines of an instance, ascending: the members of c, the machines whose
// memory c waits for, and those in found, which have memory but may no longer be members.
func machinesOf(c *cluster.Configuration, found []rdma.MachineID) []rdma.MachineID {
	all := slices.Concat(c.Machines, found)
	for _, p := range c.Regions {
		for _, a := range p.Away {
			all = append(all, a.Machine)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// firstMachines returns the machines of a new instance.
func (c Config) firstMachines() (machines []rdma.MachineID) {
	for i := range c.Machines {
		machines = append(machines, rdma.MachineID(i))
	}
	return machines
}

// checkFixed returns ErrMismatch if a setting that cannot change differs from the existing instance's.
// last is the instance's last configuration, machines the number of its machines.
func (c Config) checkFixed(last *cluster.Configuration, machines int) error {
	differ := last.Settings().Differences(c.fixed())
	if machines != c.Machines {
		differ = slices.Insert(differ, 0, cluster.Difference{Name: "machines", Was: int64(machines), Now: int64(c.Machines)})
	}
	if len(differ) > 0 {
		d := differ[0]
		return fmt.Errorf("%w: %s was %d and is now %d; open it with %d, or give another folder", ErrMismatch, d.Name, d.Was, d.Now, d.Was)
	}
	return nil
}

// fixed returns the settings that all machines of an instance share.
func (c Config) fixed() cluster.Settings {
	return cluster.Settings{Replicas: c.Replicas, Workers: c.Workers, RegionBytes: c.RegionBytes, LogBytes: c.LogBytes}
}

// selfOf returns machine id's report about itself to an instance. c is the instance's last
// configuration, or nil for a new instance.
func selfOf(c *cluster.Configuration, id rdma.MachineID) cluster.Member {
	self := cluster.Member{Machine: id, FailureDomain: int(id)}
	if c != nil {
		was, _ := c.Member(id)
		self.FailureDomain = cmp.Or(was.FailureDomain, self.FailureDomain)
	}
	return self
}
