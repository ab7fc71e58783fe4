package farmsql

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"

	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/recovery/membership"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// An instance holds the machines that a DB runs on: either all machines of the instance, which live
// and end with this process, or one machine, whose peers are other processes.
type instance struct {
	members []*farm.Member
	// local is set if all machines are in this process. Otherwise own is this process's one machine,
	// and the others are other processes.
	local *farm.Local
	own   *ownMachine

	// reconfigured holds a listener for each machine, which is called after the machine, as the CM,
	// has led a reconfiguration.
	reconfigured map[rdma.MachineID]*listener
	end          chan error  // the reason why a machine is no longer part of the instance
	isOver       atomic.Bool // a machine is no longer part of the instance
	killed       atomic.Bool // a test has killed a machine
}

func newInstance() *instance {
	return &instance{reconfigured: make(map[rdma.MachineID]*listener), end: make(chan error, 1)}
}

// openInstance opens the machines of the database.
func (c Config) openInstance(ctx context.Context, o *Operator) (*instance, error) {
	in := newInstance()
	if c.Cluster != "" {
		return in, in.openOwn(ctx, c, o)
	}
	cfg := in.localConfig(c, o)
	listen := cfg.Each
	cfg.Each = func(m *farm.MemberConfig) {
		id := int(m.Self.Machine)
		m.Self.FailureDomain = ownDomain(id) // each machine is a domain, although all are in one process
		m.Self.Address, m.Self.Zone = fmt.Sprintf("local:%d", id), zone(id, 0)
		listen(m)
	}
	local, err := farm.OpenContext(ctx, cfg)
	if err != nil {
		return in, err
	}
	in.adoptLocal(local, o)
	if err := o.begin(); err != nil {
		return in, errors.Join(err, in.Close())
	}
	return in, nil
}

// localConfig returns the config of machines that are all in this process, and whose events go to in
// and o.
func (in *instance) localConfig(c Config, o *Operator) farm.Config {
	cfg := c.farm()
	cfg.Each = func(m *farm.MemberConfig) {
		id := m.Self.Machine
		m.Events = o.listen(in.listen(id, c.eventsTogether(int(id))))
		m.Begun, m.Ended = o.member.Store, in.onEnd
	}
	return cfg
}

// adoptLocal makes the instance use the machines of local.
func (in *instance) adoptLocal(local *farm.Local, o *Operator) {
	in.local = local
	for i := range local.Machines() {
		in.members = append(in.members, local.Member(i))
	}
	o.local.Store(local)
	o.failed(nil) // the errors of earlier attempts no longer matter
}

// listen returns e extended so that a reconfiguration led by the machine also calls its listener.
func (in *instance) listen(id rdma.MachineID, e membership.Events) membership.Events {
	own := new(listener)
	in.reconfigured[id] = own
	next := e.Reconfigured
	e.Reconfigured = func(t membership.Timeline) {
		next(t)
		own.tell()
	}
	return e
}

// onEnd is called when a machine has ended. It keeps the first reason for DB.Ended.
func (in *instance) onEnd(reason error) {
	in.isOver.Store(true)
	select {
	case in.end <- reason:
	default:
	}
}

// hasOtherProcesses reports whether the other machines are other processes.
func (in *instance) hasOtherProcesses() bool { return in.own != nil }

func (in *instance) machine(i int) *txn.Machine { return in.members[i].Transactions() }
func (in *instance) machines() int              { return len(in.members) }
func (in *instance) root() region.Ptr           { return in.members[0].Root() }

// whyOver returns the reason why a machine of this process is no longer a member, or nil.
func (in *instance) whyOver() error {
	for _, m := range in.members {
		if err := m.Membership().Err(); err != nil {
			return err
		}
	}
	return nil
}

// check calls farm.Local.Check. It needs all machines in this process, because nobody may write
// while it runs.
func (in *instance) check(ctx context.Context, reachable iter.Seq[region.Ptr]) ([]farm.Fault, error) {
	if in.hasOtherProcesses() {
		return nil, ErrOtherProcesses
	}
	return in.local.Check(ctx, reachable)
}

// uncheckedError returns the errors of nvram.Folder.UncheckedError of all machines. If the other
// machines are other processes, it returns nil: ownMachine.open has already checked this machine's
// folder.
func (in *instance) uncheckedError() error {
	if in.hasOtherProcesses() {
		return nil
	}
	return in.local.UncheckedError()
}

// markChecked calls nvram.Folder.MarkChecked for all machines.
func (in *instance) markChecked() error {
	if in.hasOtherProcesses() {
		return nil
	}
	return in.local.MarkChecked()
}

// Close closes the machines.
func (in *instance) Close() error {
	switch {
	case in.own != nil:
		return in.own.close(in.isOver.Load())
	case in.local != nil:
		return in.local.Close()
	}
	return nil
}
