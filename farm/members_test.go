package farm

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/cluster/lease"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/local"
	"github.com/farmsql/farmsql/recovery/membership"
	"github.com/farmsql/farmsql/region"
)

// openTogether opens n machines with the memory in v, and returns how to close them.
func openTogether(t *testing.T, v *Volatile, n int) (members []*Member, closeAll func(), err error) {
	t.Helper()
	cfg := small(n, 2)
	network := local.NewNetwork(local.Options{})
	var nics []rdma.NIC
	var founders []rdma.MachineID
	for i := range n {
		nic, err := network.Join(rdma.MachineID(i))
		if err != nil {
			t.Fatal(err)
		}
		nics, founders = append(nics, nic), append(founders, rdma.MachineID(i))
	}
	var cfgs []MemberConfig
	for i := range n {
		cfgs = append(cfgs, MemberConfig{
			Self: cluster.Member{Machine: founders[i], FailureDomain: i}, Settings: cfg, Memory: v.shelf(i), Store: &v.store, NIC: nics[i], Founders: founders,
		})
	}
	leases := new(lease.Together)
	members, err = openMembers(t.Context(), leases, cfgs)
	return members, func() {
		leases.End()
		errs := []error{closeMembers(members)}
		for _, nic := range nics {
			errs = append(errs, nic.Close())
		}
		if err := errors.Join(errs...); err != nil {
			t.Error(err)
		}
	}, err
}

// Machines of one process begin in one configuration, and meet in the next; one makes the
// root object, which takes one region.
func TestMembersBeginTogether(t *testing.T) {
	v := NewVolatile()
	for life := range 3 {
		members, closeAll, err := openTogether(t, v, 3)
		if err != nil {
			t.Fatal(err)
		}
		for i, m := range members {
			c := m.Membership().Configuration()
			if int(c.ID) != life+1 || len(c.Machines) != 3 {
				t.Errorf("life %d: machine %d is in configuration %d of %v", life, i, c.ID, c.Machines)
			}
		}
		if stored, _ := v.store.Load(); int(stored.ID) != life+1 || len(stored.Regions) != 1 || stored.Root.IsNil() {
			t.Errorf("life %d: configuration %d with regions %v", life, stored.ID, stored.Regions)
		}
		if c, err := awaitWhole(context.Background(), members); err != nil {
			t.Error(err)
		} else if faults, err := CheckMembers(c, members, slices.Values([]region.Ptr(nil))); err != nil || len(faults) > 0 {
			t.Errorf("life %d: %v, %v", life, faults, err)
		}
		closeAll()
	}
}

// If one machine cannot be opened, all are closed, and the configuration is what it was.
func TestMembersFailTogether(t *testing.T) {
	v := NewVolatile()
	_, closeAll, err := openTogether(t, v, 3)
	if err != nil {
		t.Fatal(err)
	}
	closeAll()
	before, _ := v.store.Load()
	for word, want := range map[uint64]error{identityMachine: ErrOtherMachine, identityCluster: membership.ErrOtherCluster} {
		damaged := v.Clone()
		damaged.shelf(2).m[identityName].Store(word, 9)
		members, closeAll, err := openTogether(t, damaged, 3)
		if !errors.Is(err, want) || !strings.Contains(err.Error(), "machine 2") || members != nil {
			t.Errorf("%v, not %v", err, want)
		}
		closeAll()
		if c, _ := damaged.store.Load(); !slices.Equal(c.Machines, before.Machines) {
			t.Errorf("%v: the others have gone on: %v", want, c.Machines)
		}
	}
}

// A root object of which nobody has heard before its machine was killed is the instance's.
func TestRootIsLeftBehind(t *testing.T) {
	cfg := small(3, 2)
	cfg.Volatile = NewVolatile()
	if err := open(t, cfg).Close(); err != nil {
		t.Fatal(err)
	}
	was, err := cfg.Volatile.store.Load()
	if err != nil {
		t.Fatal(err)
	}
	next := was.Revise()
	next.Root = region.Ptr{}
	if err := cfg.Volatile.store.CompareAndSwap(was.Revision, next); err != nil {
		t.Fatal(err)
	}
	c := open(t, cfg)
	if c.Root() != was.Root {
		t.Errorf("the root object is %v, not %v", c.Root(), was.Root)
	}
	checkCluster(t, "after the kill", c, nil)
}
