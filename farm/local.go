package farm

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/cluster/lease"
	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
	"github.com/farmsql/farmsql/rdma/local"
	"github.com/farmsql/farmsql/recovery/data"
	"github.com/farmsql/farmsql/recovery/membership"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// A Local is an instance all of whose machines run in this process. It is safe for
// concurrent use.
type Local struct {
	cfg      Config
	store    cluster.Store
	machines []LocalMachine
	nics     []rdma.NIC
	leases   lease.Together
	members  []*Member
	// killed[i] says that Kill has ended members[i].
	killed []bool
	mu     lockrank.Mutex[lockrank.Killed] // guards killed; never held across a wait
	// saves is where the configuration is saved; nil if nowhere.
	saves cluster.Store
	// isTorn says that Unowned has found a fault: nothing is saved then.
	isTorn bool
}

// A LocalMachine is one machine of an instance whose machines run in one process.
type LocalMachine struct {
	// Self is MemberConfig.Self.
	Self cluster.Member
	// Memory is the machine's memory. The Local closes it.
	Memory Memories
	// Saves, if not empty, is where Close saves the memory, an nvram.Folder.
	Saves string
}

// Open opens the instance that cfg describes, or makes it.
func Open(cfg Config) (*Local, error) { return OpenContext(context.Background(), cfg) }

// OpenContext is like Open, but gives up when ctx ends. If ctx never ends, it may wait for ever
// for a region whose memory is at a machine that this process does not have.
func OpenContext(ctx context.Context, cfg Config) (*Local, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	for attempt := 1; ; attempt++ {
		l, err := openLocal(ctx, cfg)
		if attempt == openingsMax || !errors.Is(err, membership.ErrRestart) {
			return l, err
		}
	}
}

// openingsMax bounds the attempts to open. A machine that finds no room for its logs ends its life
// during the opening. Its next life makes room (see reserve.go), or returns an error that says there
// is none.
const openingsMax = 3

// openLocal makes one attempt to open the instance. If it fails, nothing stays open.
func openLocal(ctx context.Context, cfg Config) (*Local, error) {
	l := &Local{cfg: cfg.withDefaults()}
	err := l.openMemory()
	if err == nil {
		err = l.open(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, l.closeNICs(), l.closeMemory())
	}
	return l, nil
}

// OpenMachines opens an instance of machines whose memory is open already, and whose configuration
// is in the store. It uses cfg only for settings that are not stored. Even if it fails, store and
// memory belong to the Local, which closes them.
func OpenMachines(ctx context.Context, cfg Config, store cluster.Store, machines []LocalMachine) (*Local, error) {
	l := &Local{cfg: cfg.withDefaults(), store: store, machines: machines}
	if err := l.open(ctx); err != nil {
		return nil, errors.Join(err, l.closeNICs(), l.closeMemory())
	}
	return l, nil
}

// openMemory opens each machine's memory, and the store.
func (l *Local) openMemory() error {
	if l.cfg.Folder == "" {
		l.store = &l.cfg.Volatile.store
	} else {
		l.store = cluster.NewFileStore(configurationPath(l.cfg.Folder))
	}
	last, saved, err := l.loadConfiguration()
	if err != nil {
		return err
	}
	machines := l.cfg.firstMachines()
	if last != nil {
		present, err := l.cfg.machinesThere(last)
		if err != nil {
			return err
		}
		machines = machinesOf(last, present)
		// Check the settings before openMachine creates memory by them.
		if err := l.cfg.checkFixed(last, len(machines)); err != nil {
			return err
		}
	}
	if err := l.cfg.checkPresent(last); err != nil {
		return err
	}
	for _, id := range machines {
		m, err := l.cfg.openMachine(id)
		if err != nil {
			return err
		}
		m.Self = selfOf(last, id)
		l.machines = append(l.machines, m)
	}
	if saved {
		return l.store.CompareAndSwap(0, last)
	}
	return nil
}

// checkPresent returns an error if a member of the last configuration has neither a folder nor a save
// here. last is nil for a new instance.
func (c Config) checkPresent(last *cluster.Configuration) error {
	if last == nil || c.Folder == "" {
		return nil
	}
	for _, id := range last.Machines {
		folder := machineFolder(c.Folder, int(id))
		if _, err := os.Stat(folder); err == nil {
			continue
		}
		if c.Saves != "" {
			if _, err := os.Stat(machineFolder(c.Saves, int(id))); err == nil {
				continue
			}
		}
		return fmt.Errorf("%w: machine %d is in the configuration, and there is no %s; %s", nvram.ErrLost, id, folder, c.remedy())
	}
	return nil
}

// machinesThere returns the instance's machines that have memory here.
func (c Config) machinesThere(last *cluster.Configuration) ([]rdma.MachineID, error) {
	if c.Folder == "" {
		return c.Volatile.machines(), nil
	}
	return machinesIn(c.Folder, last.Cluster)
}

// openMachine opens a machine's memory.
func (c Config) openMachine(id rdma.MachineID) (m LocalMachine, err error) {
	if c.Folder == "" {
		m.Memory = c.Volatile.shelf(int(id))
		return m, nil
	}
	f, err := c.openFolder(int(id))
	if err != nil {
		return m, err
	}
	m.Memory = f
	if c.Saves != "" {
		m.Saves = machineFolder(c.Saves, int(id))
	}
	return m, nil
}

// open starts the machines, which begin or restart together.
func (l *Local) open(ctx context.Context) (err error) {
	network := local.NewNetwork(l.cfg.Network)
	var cfgs []MemberConfig
	for _, m := range l.machines {
		nic, err := network.Join(m.Self.Machine)
		if err != nil {
			return err
		}
		l.nics = append(l.nics, nic)
		m.Self.Incarnation = call.AnyLife
		cfg := MemberConfig{
			Self: m.Self, Settings: l.cfg, Memory: m.Memory, Store: l.store, NIC: nic,
			Founders: l.cfg.firstMachines(), Pace: data.Aggressive,
		}
		if l.cfg.Each != nil {
			l.cfg.Each(&cfg)
		}
		cfgs = append(cfgs, cfg)
	}
	begin := l.cfg.Clock.Now()
	if l.members, err = openMembers(ctx, &l.leases, cfgs); err != nil {
		return err
	}
	l.killed = make([]bool, len(l.members))
	if err := l.readRoot(ctx); err != nil {
		return errors.Join(l.members[0].opening(err), l.stop())
	}
	c := l.members[0].membership.Configuration()
	l.cfg.Logger.Info("recovered", "configuration", c.ID, "regions", len(c.Regions), "took", l.cfg.Clock.Now().Sub(begin))
	return nil
}

// readRoot checks that the root object exists where the configuration says. It makes the object if
// an earlier program version was killed before it had made it.
func (l *Local) readRoot(ctx context.Context) error {
	root := l.Root()
	_, err := l.Machine(0).Read(root, make([]byte, root.Capacity()))
	if errors.Is(err, region.ErrFreed) && l.isEmpty() {
		err = l.replaceRoot(ctx)
	}
	if err != nil {
		return fmt.Errorf("root object: %w", err)
	}
	return nil
}

// isEmpty reports whether no region holds an object. Only then was the root object never made; in an
// instance with objects it must have been lost.
func (l *Local) isEmpty() bool {
	for _, m := range l.members {
		for _, p := range m.membership.Configuration().Regions {
			if p.Primary != m.id {
				continue
			}
			r := m.replica(p.Region)
			if r == nil {
				return false // the region has just moved, so it is not new
			}
			for _, h := range r.Objects {
				if h.Allocated() {
					return false
				}
			}
		}
	}
	return true
}

// replaceRoot makes a root object for an instance whose configuration names one that was never made:
// earlier program versions stored the address before they made the object.
func (l *Local) replaceRoot(ctx context.Context) error {
	for _, m := range l.members {
		if !m.Lives().Leads() {
			continue
		}
		made, err := m.makeRoot(ctx)
		if err == nil {
			err = m.membership.ReplaceRoot(m.root, made)
		}
		if err != nil {
			return err
		}
		for _, x := range l.members {
			x.root = made
		}
		return nil
	}
	return errors.New("farm: no machine leads")
}

// Machine returns the transactions of machine i, from 0.
func (l *Local) Machine(i int) *txn.Machine { return l.members[i].txn }

// Member returns machine i, from 0.
func (l *Local) Member(i int) *Member { return l.members[i] }

// Machines returns the number of machines.
func (l *Local) Machines() int { return len(l.members) }

// Root returns the instance's root object, of rootBytes bytes, from which all other objects are found.
// It is made with the instance.
func (l *Local) Root() region.Ptr { return l.members[0].root }

// Status returns the status of the instance, as the first living machine sees it; if none lives, as
// the first machine saw it last.
func (l *Local) Status() Status { return append(l.living(), l.members...)[0].Status() }

// living returns the members that have not been killed and still take part in the instance.
func (l *Local) living() (members []*Member) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, m := range l.members {
		if !l.killed[i] && m.membership.Err() == nil {
			members = append(members, m)
		}
	}
	return members
}

// Check walks every region and returns the faults: leaks, orphans, overlaps, disagreements between
// allocators and headers, and backups that differ from their primaries. reachable yields every
// pointer in use; it may leave out the root object's. Check first waits, as long as ctx lasts, until
// everything is recovered and all backups are filled. No transaction may run.
func (l *Local) Check(ctx context.Context, reachable iter.Seq[region.Ptr]) ([]Fault, error) {
	members := l.living()
	if len(members) == 0 {
		return nil, errors.New("farm: check: no machine lives")
	}
	defer HoldMoves(members)()
	c, err := awaitWhole(ctx, members)
	if err != nil {
		return nil, err
	}
	return CheckMembers(c, members, reachable)
}

// Unowned waits, as long as ctx lasts, until all transactions are recovered and all backups filled.
// Then it returns ErrTorn, with the places, if an object is still locked at its primary. No
// transaction may be running, so nobody is left who could release such a lock.
func (l *Local) Unowned(ctx context.Context) error {
	defer HoldMoves(l.members)()
	c, err := awaitWhole(ctx, l.members)
	if err != nil {
		return err
	}
	err = unowned(c, l.members)
	l.isTorn = l.isTorn || err != nil
	return err
}

// Kill ends machine i as if its process were killed, and the others go on without it. Its
// operations in progress fail.
func (l *Local) Kill(i int) error {
	l.mu.Lock()
	l.killed[i] = true
	l.mu.Unlock()
	return errors.Join(l.members[i].Close(), l.nics[i].Close())
}

// UncheckedError returns the reason why a machine's folder would have been refused if it were not
// trusted; nil if there is none, or after MarkChecked.
func (l *Local) UncheckedError() error {
	for _, m := range l.machines {
		if f, ok := m.Memory.(*nvram.Folder); ok && f.UncheckedError() != nil {
			return f.UncheckedError()
		}
	}
	return nil
}

// MarkChecked records that all memory has been checked and found sound.
func (l *Local) MarkChecked() error {
	var errs []error
	for _, m := range l.machines {
		if f, ok := m.Memory.(*nvram.Folder); ok {
			errs = append(errs, f.MarkChecked())
		}
	}
	return errors.Join(errs...)
}

// Close ends the instance: what has been committed is applied at all replicas.
// No transaction may be running.
func (l *Local) Close() error {
	err := l.quiesce()
	if err = errors.Join(err, l.stop()); err == nil {
		err = l.save()
	}
	return errors.Join(err, l.closeMemory())
}

// quiesce waits until everything is applied at the living machines. If they are not a majority,
// a commit that needs a killed machine can end only in their next lives, so quiesce does not
// wait long. It calls Leave, after which the machines suspect no other, only at the end: until
// then, a commit that needs a machine that was just killed can end, because the others go on
// without that machine.
func (l *Local) quiesce() error {
	members := l.living()
	patience, minority := closePatience, minorityOf(members)
	if minority != nil {
		patience = min(closePatience, minorityPatience)
	}
	var errs []error
	for _, m := range members {
		err := m.txn.Quiesce(patience)
		if err != nil && minority != nil {
			err = fmt.Errorf("farm: machine %d: %w", m.id, minority)
		}
		errs = append(errs, err)
	}
	for _, m := range members {
		m.membership.Leave()
	}
	return errors.Join(errs...)
}

// minorityPatience is how long quiesce waits if the living machines are not a majority: long enough
// for commits that need only these machines.
const minorityPatience = 200 * time.Millisecond

// minorityOf returns an error if the living machines of an instance are not a majority.
func minorityOf(living []*Member) error {
	for _, m := range living {
		if n := len(m.membership.Configuration().Machines); 2*len(living) <= n {
			return fmt.Errorf("of %d machines %d are left, which is no majority: what is not committed everywhere is decided when the instance is opened again", n, len(living))
		}
	}
	return nil
}

// stop ends the machines: first the users of memory, then the NICs and endpoints that access it.
func (l *Local) stop() error {
	l.leases.End()
	return errors.Join(closeMembers(l.members), l.closeNICs())
}

func (l *Local) closeNICs() error {
	var errs []error
	for _, nic := range l.nics {
		errs = append(errs, nic.Close())
	}
	return errors.Join(errs...)
}

// closeMemory closes the memory of all machines, and the store.
func (l *Local) closeMemory() error {
	var errs []error
	for _, m := range l.machines {
		errs = append(errs, m.Memory.Close())
	}
	if l.store != nil {
		errs = append(errs, l.store.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("farm: close: %w", err)
	}
	return nil
}
