package farmsql

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/cluster/join"
	"github.com/farmsql/farmsql/cluster/peerport"
	"github.com/farmsql/farmsql/cluster/raftstore"
	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
)

// A Refounding makes one machine the only one that keeps the configuration (ClusterRaft),
// because a majority of the machines that keep it is lost for good. The machine must not be
// running. Nothing is changed before Refound.
type Refounding struct {
	Machine int
	// Others are the other machines that keep the configuration, as far as this one knows:
	// after Refound they never do again. Next is a machine that was about to keep it, nil if
	// there is none: after Refound it does not, but it stays a member.
	Others []int
	Next   *int
	// Configuration and Revision are those of the newest configuration that this machine has. Newer ones are lost.
	Configuration int
	Revision      uint64
	// Members are the machines of that configuration. Left are the members with which the
	// instance goes on: all except Others and the other lost machines.
	Members, Left []int
	// Unavailable are the regions that wait from then on for the memory of machines that are not in Left.
	Unavailable []int
	// Newer names what the machine's own memory, or a save of it, has that can only be of a
	// later configuration; empty if there is no such thing.
	Newer string

	store *raftstore.Refounding
	lost  []rdma.MachineID // machines that the operator says are lost
	next  *cluster.Configuration
	reach raftstore.Config
}

// A LostFounder is one of Refounding.Others that was not found.
type LostFounder struct {
	Machine int
	Address string
	Reason  error // why the machine is taken for absent
}

// Reasons why a machine is not made the only one that keeps the configuration.
var (
	// ErrNotLost means that another machine that keeps the configuration answers.
	ErrNotLost = errors.New("farmsql: another machine that keeps the configuration is not lost")
	// ErrOlder means that there has been a newer configuration than the machine has.
	ErrOlder = errors.New("farmsql: this machine does not have the newest configuration")
	// ErrNoFounder means that the machine has nothing to go on with.
	ErrNoFounder = errors.New("farmsql: this machine does not keep the configuration, and cannot be refounded")
	// ErrOnlyFounder means that nothing would change.
	ErrOnlyFounder = errors.New("farmsql: this machine alone keeps the configuration already")
	// ErrNotNewest means that the machine has a newer configuration than the one that is said to be the newest.
	ErrNotNewest = errors.New("farmsql: there is a newer configuration than the one that is said to be the newest")
)

// refoundPatience is how long each of the other machines has to answer.
const refoundPatience = 3 * time.Second

// BeginRefounding reads what a machine knows of the configuration. data and saves are its Config.Folder and
// Config.Saves. lost are the machines of which the operator says that they are lost for good:
// machines that do not keep the configuration, and machines that keep it but cannot be asked
// from here. Close ends the Refounding. Errors: ErrNoFounder; raftstore.ErrInUse while the machine runs;
// raftstore.ErrRemoved if the others have gone on without it; raftstore.ErrSplit if another
// machine was refounded; cluster.ErrNobodyLeft if no member is left.
func BeginRefounding(data, saves string, lost []int) (_ *Refounding, err error) {
	c := Config{Folder: data, Saves: saves}
	id, err := join.Load(c.peerFolder())
	if err == nil && id == nil {
		err = fmt.Errorf("%s is not there: the folder is not of a machine of a cluster that keeps its configuration itself, or that machine has --saves, which must be given here, too", c.peerFolder())
	}
	if err != nil {
		return nil, withPrefix("", err)
	}
	secured, err := join.TLS(c.peerFolder())
	if err != nil {
		return nil, withPrefix("", err)
	}
	var known raftstore.Founders
	_ = json.Unmarshal(id.Current, &known) // fails if nobody has told the machine any founders yet
	store, err := raftstore.BeginRefounding(join.StoreFolder(c.peerFolder()), known)
	if errors.Is(err, raftstore.ErrNotCreated) && !id.IsFounder() && !id.IsSuccessor {
		if known.Machines == nil {
			known.Machines = id.Store
		}
		return nil, withPrefix("", fmt.Errorf("%w: machine %d, whose folder this is, only asks those that do, which are machines %d", ErrNoFounder, id.Machine, slices.Sorted(maps.Keys(known.Machines))))
	}
	if err != nil {
		return nil, withPrefix("", err)
	}
	r := &Refounding{Machine: int(id.Machine), store: store}
	r.reach = raftstore.Config{Dial: dialPeer, TLS: peerport.ClientConfig(secured, peerport.Store), Authorize: join.Authorize}
	config, err := r.store.Configuration()
	if err == nil {
		err = r.prepare(config, lost)
	}
	if err == nil {
		r.Newer, err = c.newerMemory(id.Machine, config)
	}
	if err != nil {
		store.Close()
		return nil, withPrefix("", err)
	}
	return r, nil
}

// prepare makes the configuration with which the instance is to go on after c, and fills in what the Refounding shows
// of both. It fails if one of lost is this machine, or neither a member of c nor a founder.
func (r *Refounding) prepare(c *cluster.Configuration, lost []int) error {
	f := r.store.Founders()
	for _, m := range slices.Sorted(maps.Keys(f.Machines)) {
		if int(m) != r.Machine {
			r.Others = append(r.Others, int(m))
		}
	}
	if f.Next != nil {
		r.Next = new(int(f.Next.Machine))
	}
	r.Configuration, r.Revision, r.Members = int(c.ID), c.Revision, ints(c.Machines)
	for _, m := range lost {
		if m == r.Machine || (!slices.Contains(r.Members, m) && !slices.Contains(r.Others, m)) {
			return fmt.Errorf("machine %d cannot be given as lost: it is this one, or not one of configuration %d, which has machines %d", m, c.ID, c.Machines)
		}
		r.lost = append(r.lost, rdma.MachineID(m))
	}
	gone := slices.Clone(r.lost)
	for _, m := range r.Others {
		gone = append(gone, rdma.MachineID(m))
	}
	c = c.Clone()
	c.Line = f.Line // an earlier program may have dropped the line
	next, report, err := c.Refounded(gone, rdma.MachineID(r.Machine), clock.System{}.Uint64())
	if err != nil {
		return err
	}
	r.next, r.Left = next, ints(next.Machines)
	for _, id := range report.Unavailable {
		r.Unavailable = append(r.Unavailable, int(id))
	}
	return nil
}

// newerMemory looks in the machine's memory, and then in its newest save, for something that can
// only be of a configuration after current. It returns the first such thing, or "" if there is none.
// After a power cut, the save may be all that is left; as long as the memory is there, the save may
// be older.
func (c Config) newerMemory(machine rdma.MachineID, current *cluster.Configuration) (what string, err error) {
	what, err = newerIn(machineFolder(c.Folder, machine), current)
	if what != "" || err != nil || c.Saves == "" {
		return what, err
	}
	save, err := nvram.NewestSave(machineFolder(c.Saves, machine))
	if save == "" || err != nil {
		return "", err
	}
	return newerIn(save, current)
}

// newerIn returns what a machine's memory, or a save of it, has that can only be of a later
// configuration than c; nothing if there is no memory.
func newerIn(folder string, c *cluster.Configuration) (what string, err error) {
	for _, name := range []string{farm.IdentityFile, identityImage} {
		id, err := farm.ReadIdentity(filepath.Join(folder, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		if id.Applied > c.ID {
			return fmt.Sprintf("configuration %d", id.Applied), nil
		}
	}
	regions, err := farm.RegionsIn(folder)
	if i := slices.IndexFunc(regions, func(r region.ID) bool { return r >= c.NextRegion }); i >= 0 {
		return fmt.Sprintf("region %d", regions[i]), err
	}
	return "", err
}

// Close gives the folder back.
func (r *Refounding) Close() { r.store.Close() }

// Check reports whether Refound would go on, and returns the results of asking for Others.
// newest is the revision of the newest configuration that any machine has ever known. Check
// fails with ErrOlder if the machine does not have that configuration, or its own memory is of
// a newer one, unless older says that what was committed since may be lost. It fails with
// ErrNotNewest if newest is below Revision, and with ErrNotLost if one of Others may be there.
// It fails with ErrOnlyFounder if there are neither Others nor lost machines, unless older is
// to let in machines with newer memory.
func (r *Refounding) Check(ctx context.Context, newest uint64, older bool) ([]LostFounder, error) {
	if len(r.Others) == 0 && len(r.lost) == 0 && !older {
		return nil, fmt.Errorf("%w: machine %d; if it waits for members that are lost for good, give them with --lost", ErrOnlyFounder, r.Machine)
	}
	if err := r.checkRevision(newest, older); err != nil {
		return nil, err
	}
	absent, err := r.store.Absent(ctx, r.reach, refoundPatience, r.lost)
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("farmsql: %w", ctx.Err())
	case errors.Is(err, raftstore.ErrNotAsked):
		return nil, fmt.Errorf("%w: %w; if it is switched off for good, give it with --lost", ErrNotLost, err)
	case err != nil:
		return nil, fmt.Errorf("%w: %w; if a majority of those that keep the configuration can be started, start them, and they go on; if not, stop that machine, too: it never keeps the configuration again", ErrNotLost, err)
	}
	var all []LostFounder
	for _, a := range absent {
		all = append(all, LostFounder{int(a.Machine), a.Address, a.Reason})
	}
	return all, nil
}

func (r *Refounding) checkRevision(newest uint64, older bool) error {
	switch {
	case newest < r.Revision:
		return fmt.Errorf("%w: machine %d has revision %d, and the newest is said to be %d: look at all machines again", ErrNotNewest, r.Machine, r.Revision, newest)
	case newest > r.Revision && !older:
		return fmt.Errorf("%w: machine %d has revision %d, and the newest is %d", ErrOlder, r.Machine, r.Revision, newest)
	case r.Newer != "" && !older:
		return fmt.Errorf("%w: machine %d has revision %d, and its own memory has %s, which is of a later one", ErrOlder, r.Machine, r.Revision, r.Newer)
	}
	return nil
}

// Refound makes the machine the only one that keeps the configuration. It calls Check first,
// and fails if Check does: that may have changed since the last call.
func (r *Refounding) Refound(ctx context.Context, newest uint64, older bool) error {
	if _, err := r.Check(ctx, newest, older); err != nil {
		return err
	}
	if older {
		r.next.Gaps = nil // machines that have been in one of them may come back with that memory
	}
	return ours(r.store.Refound(r.next))
}

// UndoRefounding takes back what Refound has done to a machine, whose Config.Folder and Config.Saves are given: the others
// are back, and it keeps the configuration with them again. It is refused once the machine has kept a configuration alone.
func UndoRefounding(data, saves string) error {
	c := Config{Folder: data, Saves: saves}
	return ours(raftstore.UndoRefounding(join.StoreFolder(c.peerFolder())))
}
