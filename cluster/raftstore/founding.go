package raftstore

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"go.etcd.io/raft/v3/raftpb"
	"golang.org/x/sys/unix"

	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
)

// The files of a folder.
const (
	foundingFile = "store.json"
	logName      = "log"
)

const (
	// programName marks the files of this program.
	programName = "farmsql"
	// foundingFormat is the version of foundingFile. Version 2 is written by successors, which have Joined,
	// and version 3 by machines whose part has ended for good: no program may open it again.
	foundingFormat = 3
)

// A Founding says what a store is made of. It is the same at all machines of the store, except
// for Machine. Machines that were founded with other machines or addresses refuse each other,
// because each side could have a majority of its own. It does not change when founders are
// replaced.
type Founding struct {
	// Cluster is the identity of the instance: see cluster.Configuration. Machines of other
	// instances are refused.
	Cluster uint64
	// Machine is the machine that the folder belongs to.
	Machine rdma.MachineID
	// Machines are the machines that founded the store, an odd number, with the addresses at which the others
	// dial them.
	Machines map[rdma.MachineID]string
	// Joined is set at a machine that has become a founder later: the founders at that time, whose Next it is.
	Joined *Founders `json:",omitempty"`
}

// storedFounding is the content of foundingFile.
type storedFounding struct {
	Program string
	Format  int
	Founding
	// IsRemoved says that the others go on without the machine: ErrRemoved.
	IsRemoved bool `json:",omitempty"`
	// IsGivenUp says that another machine was refounded, too, and this one is given up: ErrSplit.
	IsGivenUp bool `json:",omitempty"`
}

// check refuses a founding whose store could not work, and one with an even number of machines, because a
// store with one machine less survives as many failures. A successor is not in Machines, and its founders were
// checked when they were changed.
func (f *Founding) check() error {
	if f.Joined != nil && f.Joined.Next != nil && f.Joined.Next.Machine == f.Machine && f.Cluster != 0 && len(f.Machines) > 0 {
		return nil
	}
	address, isMember := f.Machines[f.Machine]
	switch {
	case f.Cluster == 0:
		return errors.New("cluster: the configuration store needs the identity of an instance")
	case len(f.Machines)%2 == 0:
		return fmt.Errorf("cluster: the configuration store has %d machines: make it an odd number, because one more does not survive more failures", len(f.Machines))
	case !isMember:
		return fmt.Errorf("cluster: machine %d is not one of the configuration store", f.Machine)
	case address == "":
		return fmt.Errorf("cluster: machine %d of the configuration store has no address", f.Machine)
	}
	for m, other := range f.Machines {
		if m != f.Machine && (other == "" || other == address) {
			return fmt.Errorf("cluster: machine %d of the configuration store has the address %q: each needs its own", m, other)
		}
	}
	return nil
}

// raftID returns the number of a machine in the library, for which 0 is nobody.
func raftID(m rdma.MachineID) uint64 { return uint64(m) + 1 }

// machineOf returns the machine that has a number in the library.
func machineOf(id uint64) rdma.MachineID { return rdma.MachineID(id - 1) }

// voters returns all machines, in order: each machine must begin with the same.
func (f *Founding) voters() (ids []uint64) {
	for m := range f.Machines {
		ids = append(ids, raftID(m))
	}
	slices.Sort(ids)
	return ids
}

// digest returns a number that no other store has: a store of another cluster, or one that other machines have founded, or the
// same ones at other addresses, has another.
func (f *Founding) digest() uint64 {
	b := binary.LittleEndian.AppendUint64([]byte("farmsql configuration store"), f.Cluster)
	for _, id := range f.voters() {
		address := f.Machines[machineOf(id)]
		b = binary.LittleEndian.AppendUint64(b, id)
		b = binary.LittleEndian.AppendUint64(b, uint64(len(address)))
		b = append(b, address...)
	}
	sum := sha256.Sum256(b)
	return binary.LittleEndian.Uint64(sum[:])
}

// founders returns the founders as the machine knew them when its folder was made.
func (f Founding) founders() Founders {
	if f.Joined != nil {
		return f.Joined.clone()
	}
	return Founders{Machines: f.Machines}.clone()
}

// Create makes the part of a store that machine f.Machine keeps, in folder, which it creates if it
// does not exist. It fails with ErrCreated if the folder has one. Call it once in the life of a
// store at each of its machines: a machine that has lost its folder has lost its vote.
func Create(folder string, f Founding) error {
	if err := f.check(); err != nil {
		return err
	}
	if err := makeFolder(folder); err != nil {
		return fmt.Errorf("cluster: create the configuration store: %w", err)
	}
	unlock, err := lockFolder(folder)
	if err != nil {
		return err
	}
	defer unlock()
	path := filepath.Join(folder, foundingFile)
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(fmt.Errorf("%w in %s", ErrCreated, folder), err)
	}
	// The log first: the store exists when foundingFile does.
	format, create := 2, createEmptyLog
	if f.Joined == nil {
		format, create = 1, func(path string) error { return createLog(path, f.voters()) }
	}
	if err := create(filepath.Join(folder, logName)); err != nil {
		return fmt.Errorf("cluster: create the configuration store: %w", err)
	}
	if err := (storedFounding{Program: programName, Format: format, Founding: f}).save(path); err != nil {
		return fmt.Errorf("cluster: create the configuration store: %w", err)
	}
	return nil
}

func (f storedFounding) save(path string) error {
	b, err := json.MarshalIndent(f, "", "\t")
	if err != nil {
		return err
	}
	return nvram.ReplaceFile(path, ".new", b)
}

// saveEnd notes in a folder that its part has ended for good: with ErrSplit, or because the
// machine was removed. From then on the part cannot be opened. Otherwise it could be part of a
// majority, of the machines that it knows, with others that have ended; and it must not begin
// again while it cannot reach the machine that goes on.
func (f Founding) saveEnd(folder string, reason error) error {
	isSplit := errors.Is(reason, ErrSplit)
	err := storedFounding{Program: programName, Format: foundingFormat, Founding: f, IsRemoved: !isSplit, IsGivenUp: isSplit}.save(filepath.Join(folder, foundingFile))
	if err != nil {
		return fmt.Errorf("cluster: note that this machine's part of the configuration store has ended for good: %w", err)
	}
	return nil
}

// makeFolder creates a folder durably: a machine whose folder a power cut takes away has lost its vote.
func makeFolder(folder string) error {
	if err := os.MkdirAll(folder, nvram.PrivateFolder); err != nil {
		return err
	}
	parent, err := os.Open(filepath.Dir(folder))
	if err != nil {
		return err
	}
	return errors.Join(parent.Sync(), parent.Close())
}

// createLog makes the log of a new store. It begins with a snapshot that has no configuration and
// says who votes.
func createLog(path string, voters []uint64) error {
	snapshot := &raftpb.Snapshot{
		Data:     (&state{}).encode(),
		Metadata: &raftpb.SnapshotMetadata{Index: new(uint64(1)), Term: new(uint64(1)), ConfState: &raftpb.ConfState{Voters: voters}},
	}
	hard := &raftpb.HardState{Term: new(uint64(1)), Commit: new(uint64(1))}
	b, err := encodeLog(record(hard, snapshot, nil))
	if err != nil {
		return err
	}
	return nvram.ReplaceFile(path, ".new", b)
}

// createEmptyLog makes the log of a successor, which gets a snapshot from the leader.
func createEmptyLog(path string) error {
	b, err := encodeLog(record(&raftpb.HardState{Term: new(uint64(1))}, nil, nil))
	if err != nil {
		return err
	}
	return nvram.ReplaceFile(path, ".new", b)
}

// readFounding reads what the store in folder was created with. It fails with ErrNotCreated, ErrDamaged or
// ErrNewer, and with ErrRemoved or ErrSplit if the part has ended for good since.
func readFounding(folder string) (f Founding, err error) {
	path := filepath.Join(folder, foundingFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, fmt.Errorf("%w in %s: it has not been created there, or the folder is another one", ErrNotCreated, folder)
	}
	if err != nil {
		return f, fmt.Errorf("cluster: open the configuration store: %w", err)
	}
	var stored storedFounding
	err = json.Unmarshal(b, &stored)
	switch {
	case err != nil || stored.Program != programName || stored.Format < 1:
		return f, fmt.Errorf("%w: %s was not written by farmsql", ErrDamaged, path)
	case stored.Format > foundingFormat:
		return f, fmt.Errorf("%w: %s has format %d, this program knows formats up to %d: use a newer farmsql", ErrNewer, path, stored.Format, foundingFormat)
	}
	if err := stored.check(); err != nil {
		return f, fmt.Errorf("%w: %s: %w", ErrDamaged, path, err)
	}
	switch {
	case stored.IsRemoved:
		return f, fmt.Errorf("%w (%s)", ErrRemoved, path)
	case stored.IsGivenUp:
		return f, fmt.Errorf("%w: this one is given up; let it join again with an empty data folder (%s)", ErrSplit, path)
	}
	return stored.Founding, nil
}

// lockFolder locks a folder until unlock is called or the process ends. It fails with ErrInUse if it
// is locked, and with ErrNotCreated if there is none.
func lockFolder(folder string) (unlock func(), err error) {
	d, err := os.Open(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w in %s: the folder does not exist", ErrNotCreated, folder)
	}
	if err != nil {
		return nil, fmt.Errorf("cluster: open the configuration store: %w", err)
	}
	if err := unix.Flock(int(d.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = d.Close()
		return nil, fmt.Errorf("%w: %s: is another process of this machine running?", ErrInUse, folder)
	}
	return func() { _ = d.Close() }, nil
}
