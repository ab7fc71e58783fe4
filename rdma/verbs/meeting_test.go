package verbs

import (
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"testing"

	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/hosts"
)

// told is what a machine is told of others.
type told struct {
	mu                 sync.Mutex
	refused, unreached []error
}

func (l *told) listen(cfg *Config) {
	cfg.Refused = func(_ net.Addr, reason error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.refused = append(l.refused, reason)
	}
	cfg.Unreached = func(_ rdma.MachineID, _ string, reason error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.unreached = append(l.unreached, reason)
	}
}

func (l *told) has(t *testing.T, what string, of *[]error, want error) {
	t.Helper()
	eventually(t, what, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, err := range *of {
			if errors.Is(err, want) {
				return true
			}
		}
		return false
	})
}

// TestUnauthorized: the owner of a certificate acts only as the machine that it is for, and both ends say why not.
func TestUnauthorized(t *testing.T) {
	needsMapping(t)
	f := newFabric(t)
	f.tls = certificates(t)
	a := new(told)
	f.change = func(cfg *Config) { a.listen(cfg) }
	one := f.machine(t, 1, 1<<12)
	b := new(told)
	f.change = func(cfg *Config) {
		b.listen(cfg)
		cfg.Authorize = func(m rdma.MachineID, _ tls.ConnectionState) error {
			if m == 1 {
				return hosts.Refusals[hosts.NotAuthorized]
			}
			return nil
		}
	}
	f.machine(t, 2, 1<<12)
	if err := one.write(2, 0, 1); !errors.Is(err, hosts.Refusals[hosts.NotAuthorized]) {
		t.Errorf("%v, want %v", err, hosts.Refusals[hosts.NotAuthorized])
	}
	a.has(t, "machine 1 is told that it is refused", &a.unreached, hosts.Refusals[hosts.NotAuthorized])
	b.has(t, "machine 2 is told whom it has refused", &b.refused, hosts.Refusals[hosts.NotAuthorized])
}

// TestToldAddress: a machine that nobody knows is reached where it has told that it is, through the listener that it was given.
func TestToldAddress(t *testing.T) {
	needsMapping(t)
	f := newFabric(t)
	known := new(told)
	f.change = func(cfg *Config) { known.listen(cfg) }
	one := f.machine(t, 1, 1<<12)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.change = func(cfg *Config) { cfg.Listen, cfg.Listener, cfg.Advertise = "", l, l.Addr().String() }
	two := f.machine(t, 2, 1<<12)
	f.mu.Lock()
	delete(f.at, 2)
	f.mu.Unlock()
	if err := one.write(2, 0, 1); !errors.Is(err, errNoAddress) {
		t.Errorf("before it has told: %v, want %v", err, errNoAddress)
	}
	known.has(t, "machine 1 is told that it knows no address", &known.unreached, errNoAddress)
	if err := two.write(1, 0, 1); err != nil {
		t.Fatal(err)
	}
	if err := one.write(2, 0, 1); err != nil {
		t.Errorf("after it has told: %v", err)
	}
}
