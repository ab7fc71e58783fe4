package farmsql

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/cluster/lease"
	"github.com/farmsql/farmsql/cluster/peerport"
	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
	"github.com/farmsql/farmsql/recovery/membership"
	"github.com/farmsql/farmsql/txn/outcome"
	"github.com/farmsql/farmsql/txn/wait"
)

// An ownMachine is the one machine of a process whose peers are other processes.
type ownMachine struct {
	member *farm.Member
	folder *nvram.Folder
	nic    rdma.NIC
	watch  func() // ends the watch of the certificate; nil before it begins
	store  *addressBook
	door   net.Listener // accepts the NIC's connections; nil if the NIC has a listener of its own
	// saves is the folder into which close saves the memory; if it is empty, close saves nothing.
	saves string
	log   *slog.Logger
}

// ErrOtherProcesses says that an operation needs all machines of the instance in one
// process.
var ErrOtherProcesses = errors.New("farmsql: the other machines of the instance are other processes")

// close ends the machine and saves its memory. isOver says that the machine is no longer part of the
// instance: then its memory is not needed, and close does not save it.
func (l *ownMachine) close(isOver bool) error {
	var errs []error
	if l.member != nil {
		errs = append(errs, l.member.Close())
	}
	if l.watch != nil {
		l.watch()
	}
	if l.nic != nil {
		errs = append(errs, l.nic.Close())
	}
	if l.store != nil {
		errs = append(errs, l.store.Close())
	}
	if l.folder != nil {
		if !isOver {
			errs = append(errs, l.save())
		}
		errs = append(errs, l.folder.Close())
	}
	return errors.Join(errs...)
}

// save saves the memory. Nobody changes it any more: the machine is closed, and the peers cannot
// reach it.
func (l *ownMachine) save() error {
	if l.saves == "" {
		return nil
	}
	begin := clock.System{}.Now()
	if err := l.folder.Save(l.saves); err != nil {
		return err
	}
	l.log.Info("saved", "folder", l.saves, "took", clock.System{}.Now().Sub(begin))
	return nil
}

// openOwn starts this process's machine and waits until it is part of the
// instance.
func (in *instance) openOwn(ctx context.Context, cfg Config, o *Operator) error {
	l := &ownMachine{log: cfg.Logger}
	in.own = l
	err := l.open(ctx, cfg, o, in)
	if err == nil || ctx.Err() != nil { // also save a machine that was asked to stop while it waited for others
		l.saves = cfg.savesOf(cfg.MachineID)
	}
	if err != nil {
		return errors.Join(err, o.end(), in.Close())
	}
	in.members = []*farm.Member{l.member}
	return nil
}

// savesOf returns the folder into which a machine of a cluster saves its memory, or "" if the
// machine does not save it.
func (c Config) savesOf(machine int) string {
	if c.Saves == "" {
		return ""
	}
	return machineFolder(c.Saves, rdma.MachineID(machine))
}

// memoryOf returns the options for opening the folder of a machine of a cluster. Their Remedy must
// not advise to restore a save of this machine alone: the others would take its old state for the
// present one.
func (c Config) memoryOf(machine int) nvram.Options {
	o := nvram.Options{Trust: c.Trust, Saves: c.savesOf(machine), Filling: farm.LogFilling(c.Logger, machine)}
	remove := machineFolder(c.Folder, rdma.MachineID(machine))
	if o.Saves != "" {
		remove += " and " + o.Saves
	}
	o.Remedy = fmt.Sprintf("if the others have a majority, remove %s, and they fill this machine again; otherwise restore what farmsql save has saved of all of them (farmsql restore)", remove)
	return o
}

// openFolder opens the folder of a machine of a cluster. With Trust, it checks the folder first.
func (c Config) openFolder(machine int) (*nvram.Folder, error) {
	path, o := machineFolder(c.Folder, rdma.MachineID(machine)), c.memoryOf(machine)
	if err := farm.InspectTrusted(path, o); err != nil {
		return nil, err
	}
	return nvram.OpenFolder(path, o)
}

// open opens the store, the folder and the network, and starts the machine on them. If it fails, close
// closes the parts that are open.
func (l *ownMachine) open(ctx context.Context, cfg Config, o *Operator, in *instance) (err error) {
	if cfg.identity == nil {
		store, err := cluster.Open(cfg.Cluster)
		if err != nil {
			return fmt.Errorf("--cluster: %w", err)
		}
		l.store = newAddressBook(store)
	}
	if l.folder, err = cfg.openFolder(cfg.MachineID); err != nil {
		return err
	}
	if err := l.folder.MarkChecked(); err != nil {
		return err
	}
	if err := o.begin(); err != nil {
		return err
	}
	if cfg.identity != nil { // after Config.Opening, because openOwnStore waits for other machines
		store, err := cfg.openOwnStore(ctx, o)
		if err != nil {
			return err
		}
		l.store, l.door = newAddressBook(store), store.port.Listener(peerport.Operations)
		l.store.applied = func(c *cluster.Configuration) { store.applied.Store(c) }
		l.store.suspected = store.suspect
	}
	at, err := cfg.join(l.store, l.door)
	if err != nil {
		return err
	}
	l.nic = at.nic
	l.watch = watchCertificate(cfg.PeerTLS, clock.System{}, cfg.Logger)
	l.member, err = farm.OpenMember(ctx, farm.MemberConfig{
		Self: cluster.Member{
			Machine: rdma.MachineID(cfg.MachineID), FailureDomain: cfg.domain(),
			Address: at.address, Zone: zone(cfg.MachineID, cfg.FailureDomain),
		},
		Settings: cfg.farm(),
		Memory:   l.folder,
		Store:    l.store,
		NIC:      l.nic,
		Keeper: func(e *call.Endpoint, expired func(rdma.MachineID)) (lease.Keeper, error) {
			k, err := at.leases(e, lease.Config{Length: cfg.LeaseTime, Clock: clock.System{}, Expired: expired})
			if err == nil {
				cfg.Logger.Info("leases", "length", k.Length(), "kept by", k.Variant())
			}
			return k, err
		},
		Pace:     cfg.RecoveryPace.recovery(),
		Patience: cfg.UnavailableAfter,
		Unavailable: func(reason error) {
			cfg.Logger.Error("not available: statements fail, and clients are refused", "machine", cfg.MachineID, "reason", reason)
		},
		Available: func(after time.Duration) {
			cfg.Logger.Info("available again", "machine", cfg.MachineID, "after", after)
		},
		Begun:  o.member.Store,
		Ended:  in.onEnd,
		Events: l.store.listen(o.listen(in.listen(rdma.MachineID(cfg.MachineID), cfg.events(cfg.MachineID)))),
	})
	o.failed(nil) // the errors of earlier attempts no longer matter
	if err == nil {
		cfg.noteReplicas(l.member.Membership().Configuration())
	}
	return err
}

// noteReplicas logs if the number of replicas that was given is not the instance's. A service
// goes on giving the number with which the instance was made, even after that has changed.
func (c Config) noteReplicas(current *cluster.Configuration) {
	if c.replicasGiven != 0 && c.replicasGiven != current.Replicas {
		c.Logger.Info("Replicas (--replicas) is ignored: the instance has another number, which farmsql resize changes", "given", c.replicasGiven, "replicas", current.Replicas)
	}
}

// ErrOtherFolder means that a folder does not belong to the instance to be opened: the folder has
// another configuration, or its configuration is elsewhere.
var ErrOtherFolder = errors.New("farmsql: the folder is of another instance")

// checkFolder returns ErrOtherFolder if the folder belongs to another instance, before anything in it
// is changed: otherwise a new machine would overwrite that instance's memory.
func (c Config) checkFolder() error {
	if c.Folder == "" {
		return nil
	}
	if _, err := os.Stat(filepath.Join(c.Folder, farm.IdentityFile)); err == nil {
		return fmt.Errorf("%w: %s is what one machine of a cluster has; give the folder that it is in", ErrOtherFolder, c.Folder)
	}
	if c.Cluster != "" {
		return checkConfiguration(c.Folder, c.MachineID, c.Cluster)
	}
	if hasConfiguration(c.Folder) || (c.Saves != "" && hasConfiguration(c.Saves)) {
		return nil
	}
	return c.checkMemories()
}

// checkMemories returns ErrOtherFolder if a folder without a configuration has memory of machines: a
// new instance would overwrite it.
func (c Config) checkMemories() error {
	identities, err := filepath.Glob(filepath.Join(c.Folder, machinePrefix+"*", farm.IdentityFile))
	if err != nil {
		return withPrefix(c.Folder+": ", err)
	}
	back := fmt.Sprintf("if it was in %s, put it back, or restore a save of farmsql save (farmsql restore); or, to begin anew, without any of it, remove %s",
		filepath.Join(c.Folder, configurationName), c.Folder)
	for _, path := range identities {
		id, err := farm.ReadIdentity(path)
		if err != nil {
			return withPrefix("", err)
		}
		if id.Cluster != 0 {
			return fmt.Errorf("%w: %s is of a machine whose configuration is not here: if it is one of a cluster, --cluster must say where it is; %s", ErrOtherFolder, filepath.Dir(path), back)
		}
	}
	// An instance has regions only after it has stored a configuration. Memory of earlier versions
	// has no identity.
	regions, err := filepath.Glob(filepath.Join(c.Folder, machinePrefix+"*", farm.RegionFiles))
	if err == nil && len(regions) > 0 {
		err = fmt.Errorf("%w: %s is of an instance whose configuration is not here: %s", ErrOtherFolder, regions[0], back)
	}
	return err
}

// checkConfiguration returns ErrOtherFolder if a data folder has the memory of a machine and a
// configuration other than the one at url.
func checkConfiguration(data string, machine int, url string) error {
	folder := machineFolder(data, rdma.MachineID(machine))
	if _, err := os.Stat(folder); err != nil || !hasConfiguration(data) {
		return nil
	}
	own := filepath.Join(data, configurationName)
	if path, isFile := strings.CutPrefix(url, "file://"); isFile && isSameFile(own, path) {
		return nil
	}
	return fmt.Errorf("%w: the configuration of %s is in %s: give --cluster file://%s, or another folder", ErrOtherFolder, folder, own, own)
}

// hasConfiguration reports whether a folder holds the configuration of an instance.
func hasConfiguration(folder string) bool {
	_, err := os.Stat(filepath.Join(folder, configurationName))
	return err == nil
}

func isSameFile(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}

// domain returns the failure domain: the machine's own if none is set.
func (c Config) domain() int {
	if c.FailureDomain == 0 {
		return ownDomain(c.MachineID)
	}
	return c.FailureDomain
}

// zone returns the path of a machine's location: its host, and there its failure domain or, if
// domain is 0, the machine itself.
func zone(machine, domain int) string {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	if domain == 0 {
		return fmt.Sprintf("%s/machine %d", host, machine)
	}
	return fmt.Sprintf("%s/domain %d", host, domain)
}

// ownDomain returns the failure domain of a machine for which none is set.
func ownDomain(machine int) int { return failureDomainMax + 1 + machine }

// sharedParent is the folder in which each cluster of this host has its shared folder.
const sharedParent = "/dev/shm"

// sharedFolder returns the folder through which the machines of a cluster on one host reach
// each other. It is on a tmpfs.
func (c Config) sharedFolder() string {
	if c.SharedFolder != "" {
		return c.SharedFolder
	}
	return filepath.Join(sharedParent, fmt.Sprintf("farmsql-%d-%x", os.Getuid(), c.clusterHash()))
}

// clusterHash distinguishes this cluster from the other clusters of this host.
func (c Config) clusterHash() uint64 {
	h := fnv.New64a()
	h.Write([]byte(c.Cluster))
	return h.Sum64()
}

// events returns events that log the changes of a machine's membership.
func (c Config) events(machine int) membership.Events {
	log := c.Logger.With("machine", machine)
	return membership.Events{
		Suspected: func(m rdma.MachineID) { log.Warn("machine suspected", "suspect", m) },
		Stored: func(c *cluster.Configuration, r cluster.Remapped) {
			log.Info("configuration stored", "configuration", c.ID, "machines", c.Machines, "regions", r.String())
			for _, a := range absences(c, r.Unavailable) {
				log.Error("regions are unavailable: start one of the machines that have them, with its data folder; "+
					"only if the memory of each is gone for ever, give the regions up with farmsql forget", "regions", a.Regions, "start", a.Machines)
			}
			if len(r.Returned) > 0 {
				log.Info("regions are back, with all that was in them", "regions", r.Returned)
			}
			if len(r.Lost) > 0 {
				log.Error("regions are lost: nobody waits any more for the machines that had them", "regions", r.Lost)
			}
			if len(r.Short) > 0 {
				log.Warn("regions have fewer replicas than they should: no machine of another failure domain is there that has room", "regions", r.Short)
			}
		},
		Applied: func(c *cluster.Configuration) {
			log.Info("configuration applied", "configuration", c.ID, "revision", c.Revision, "machines", c.Machines, "cm", c.CM)
		},
		Reconfigured: func(t membership.Timeline) {
			attributes := []any{"configuration", t.ID, "dead", t.Dead, "took", t.AllActive.Sub(t.Suspect), "steps", t.String()}
			if t.IsJoin {
				attributes = append(attributes, "joined", t.Joined)
			}
			log.Info("reconfigured", attributes...)
		},
		Slow: func(c *cluster.Configuration, since time.Duration, progress string) {
			log.Warn("transactions are still being recovered", "configuration", c.ID, "since", since, "progress", progress)
		},
		Waiting: func(missing []rdma.MachineID) { log.Warn("waiting for a majority", "missing", missing) },
		Resumed: func() { log.Info("a majority answers") },
		Evicted: func(reason error) { log.Error("evicted", "reason", reason) },
		Failed:  func(what string, err error) { log.Debug("to be tried again", "what", what, "error", err) },
	}
}

// eventsTogether is like events, for machines in one process. These start together, so it is no
// news that one of them waits for a majority: events logs that at debug level only.
func (c Config) eventsTogether(machine int) membership.Events {
	e, log := c.events(machine), c.Logger.With("machine", machine)
	e.Waiting = func(missing []rdma.MachineID) { log.Debug("waiting for a majority", "missing", missing) }
	e.Resumed = func() { log.Debug("a majority answers") }
	return e
}

// Ended returns a channel that yields one error when a machine of this process leaves the instance:
// membership.ErrEvicted if the others have gone on without it, or membership.ErrRestart if it must
// start again, together with others or to make room. Operations in progress fail. The caller should
// then close the database and open it again.
func (db *DB) Ended() <-chan error { return db.instance.end }

// hasOtherProcesses reports whether the other machines are other processes.
func (db *DB) hasOtherProcesses() bool { return db.instance.hasOtherProcesses() }

// stopPatience bounds how long Close of a machine of a cluster waits for others. Without this bound
// it would never return while there is no majority.
const stopPatience = 3 * time.Second

// doNotWaitForever evicts the machine after stopPatience, so that operations that wait for absent
// machines fail, unless stop is called before.
func (db *DB) doNotWaitForever() (stop func()) {
	if !db.hasOtherProcesses() {
		return func() {}
	}
	t := clock.System{}.AfterFunc(stopPatience, db.Machine(0).Evict)
	return func() { t.Stop() }
}

// hurryPatience is how long statements still wait for other machines after Hurry.
const hurryPatience = 500 * time.Millisecond

// Hurry says that the database will be closed soon: statements that wait for absent machines of a
// cluster fail after at most half a second. Others finish. Hurry also tells the other machines of
// the cluster: if this machine is the configuration manager, one of them takes its place, and if
// all are about to close, none evicts another.
func (db *DB) Hurry() {
	for _, m := range db.instance.members {
		m.Transactions().WaitAtMost(hurryPatience)
		if db.hasOtherProcesses() {
			m.Membership().AnnounceLeave()
		}
	}
}

// leave ends the machine's part in a cluster's reconfigurations. It is called when the machine's
// statements have ended, and first waits for the statements of machines that are stopped at the same
// time. From now on the machine evicts no other machine, since others may be stopping, too, and
// waits less than a lease for recoveries to end.
func (db *DB) leave() {
	for _, m := range db.instance.members {
		m.Membership().AwaitLeavers()
		m.Membership().Leave()
		m.Transactions().WaitAtMost(m.Leases().Length() / 2)
	}
}

// available returns wire.Config.Available: a function that returns an error while clients cannot be
// served. It returns nil if they always can.
func (db *DB) available() func(context.Context) error {
	if !db.hasOtherProcesses() {
		return nil
	}
	return func(ctx context.Context) error {
		return db.Machine(0).Available(ctx, db.instance.root().Addr)
	}
}

// startRetry is the time between two attempts at a step of starting.
const startRetry = 50 * time.Millisecond

// persist repeats a step of the start as long as it fails because the cluster is unavailable or
// changing. If the machine has left the cluster meanwhile, persist returns the reason for that, so
// that the caller can start another life of the machine.
func (db *DB) persist(ctx context.Context, step func() error) error {
	for {
		err := step()
		if err == nil {
			return nil
		}
		if over := db.instance.whyOver(); over != nil {
			return fmt.Errorf("%w (%v)", over, err)
		}
		isPassing := errors.Is(err, wait.ErrUnavailable) || errors.Is(err, outcome.ErrInDoubt) || errors.Is(err, outcome.ErrConflict)
		if !db.hasOtherProcesses() || !isPassing || ctx.Err() != nil {
			return err
		}
		db.operator.failed(err)
		db.cfg.Logger.Debug("to be tried again", "what", "start", "error", err)
		clock.System{}.Sleep(startRetry)
	}
}

// unfinished drops harmless errors from errs, the errors of closing, and logs them instead. They
// are harmless if the machine has been evicted or killed, or the others are absent: the only
// consequence is that some numbers of sequences remain unused.
func (db *DB) unfinished(errs []error) []error {
	wasKilled := db.instance.killed.Load()
	if !db.hasOtherProcesses() && !wasKilled && db.instance.whyOver() == nil {
		return errs
	}
	return slices.DeleteFunc(errs, func(err error) bool {
		isHarmless := errors.Is(err, outcome.ErrEvicted) || errors.Is(err, outcome.ErrInDoubt) || errors.Is(err, wait.ErrUnavailable) ||
			(wasKilled && errors.Is(err, outcome.ErrClosed))
		if isHarmless {
			db.cfg.Logger.Warn("not finished", "error", err)
		}
		return isHarmless
	})
}
