package rdma

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/local"
	"github.com/farmsql/farmsql/rdma/shm"
	"github.com/farmsql/farmsql/rdma/tcp"
	"github.com/farmsql/farmsql/rdma/verbs"
)

// A provider makes networks.
type provider struct {
	name   string
	isHere func() bool
	// open creates an empty network. Call shut after all machines have left: it frees the rest.
	open func() (join func(m rdma.MachineID) (rdma.NIC, error), shut func() error, err error)
}

var providers = []provider{
	{"local", always, openLocal},
	{"shm", always, openShm},
	{"tcp", always, openTCP},
	{"verbs", func() bool { return len(devices()) > 0 }, openVerbs},
}

func always() bool { return true }

// devices returns the RDMA devices of this computer.
func devices() (names []string) {
	found, _ := os.ReadDir("/sys/class/infiniband") // without the folder there are none
	for _, d := range found {
		names = append(names, d.Name())
	}
	return names
}

// isSoft reports whether the first device, which stands for all, is soft-RoCE, whose figures say nothing
// of a card.
func isSoft() bool {
	return len(devices()) > 0 && strings.HasPrefix(devices()[0], "rxe")
}

func nothing() error { return nil }

func openLocal() (func(rdma.MachineID) (rdma.NIC, error), func() error, error) {
	network := local.NewNetwork(local.Options{})
	return func(m rdma.MachineID) (rdma.NIC, error) {
		nic, err := network.Join(m)
		if err != nil {
			return nil, err
		}
		return nic, nil
	}, nothing, nil
}

func openShm() (func(rdma.MachineID) (rdma.NIC, error), func() error, error) {
	folder, err := os.MkdirTemp("/dev/shm", "farmsql-bench-rdma-")
	if err != nil {
		return nil, nil, err
	}
	return func(m rdma.MachineID) (rdma.NIC, error) {
		nic, err := shm.Join(folder, m)
		if err != nil {
			return nil, err
		}
		return nic, nil
	}, func() error { return os.RemoveAll(folder) }, nil
}

// addresses has the address at which each machine listens.
type addresses struct{ sync.Map }

func (a *addresses) resolve(m rdma.MachineID) (string, bool) {
	at, ok := a.Load(m)
	if !ok {
		return "", false
	}
	return at.(string), true
}

func openTCP() (func(rdma.MachineID) (rdma.NIC, error), func() error, error) {
	at := new(addresses)
	return func(m rdma.MachineID) (rdma.NIC, error) {
		nic, err := tcp.Join(tcp.Config{Machine: m, Cluster: [16]byte{1}, Listen: "127.0.0.1:0", Resolve: at.resolve})
		if err != nil {
			return nil, err
		}
		at.Store(m, nic.Address())
		return nic, nil
	}, nothing, nil
}

// openVerbs shares the host's devices out among the machines.
func openVerbs() (func(rdma.MachineID) (rdma.NIC, error), func() error, error) {
	at, all := new(addresses), devices()
	return func(m rdma.MachineID) (rdma.NIC, error) {
		nic, err := verbs.Join(verbs.Config{
			Machine: m, Cluster: [16]byte{1}, Listen: "127.0.0.1:0", Resolve: at.resolve, Device: all[int(m)%len(all)], GIDIndex: verbs.AnyGID,
		})
		if err != nil {
			return nil, err
		}
		at.Store(m, nic.Address())
		return nic, nil
	}, nothing, nil
}

// ErrConfig means that a Config cannot be measured.
var ErrConfig = errors.New("bench/rdma: not to be measured")

// Providers returns the names of the providers that can be measured on this computer.
func Providers() (names []string) {
	for _, p := range providers {
		if p.isHere() {
			names = append(names, p.name)
		}
	}
	return names
}

func providerOf(name string) (provider, error) {
	for _, p := range providers {
		if p.name == name && p.isHere() {
			return p, nil
		}
	}
	return provider{}, fmt.Errorf("%w: provider %s; here there are %s", ErrConfig, name, strings.Join(Providers(), ", "))
}
