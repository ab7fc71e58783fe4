package tcp

import (
	"crypto/tls"
	"errors"
	"runtime"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/farmsql/farmsql/internal/testcert"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/rdmatest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A fabric is machines of this process that talk over the loopback interface.
type fabric struct {
	tls *tls.Config
	mu  sync.Mutex
	at  map[rdma.MachineID]string
	up  map[rdma.MachineID]*NIC
}

func newFabric(config *tls.Config) *fabric {
	return &fabric{tls: config, at: map[rdma.MachineID]string{}, up: map[rdma.MachineID]*NIC{}}
}

func (f *fabric) resolve(m rdma.MachineID) (string, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a, ok := f.at[m]
	return a, ok
}

func (f *fabric) config(m rdma.MachineID) Config {
	at, ok := f.resolve(m)
	if !ok {
		at = "127.0.0.1:0"
	}
	return Config{Machine: m, Cluster: [16]byte{7}, Listen: at, Resolve: f.resolve, TLS: f.tls}
}

// Join implements rdmatest.Fabric: a machine that comes back has the address that it had.
func (f *fabric) Join(m rdma.MachineID) (rdma.NIC, error) {
	nic, err := Join(f.config(m))
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at[m], f.up[m] = nic.Address(), nic
	return nic, nil
}

func (f *fabric) both(a, b rdma.MachineID, do func(nic *NIC, other rdma.MachineID)) {
	f.mu.Lock()
	x, y := f.up[a], f.up[b]
	f.mu.Unlock()
	if x != nil {
		do(x, b)
	}
	if y != nil {
		do(y, a)
	}
}

// Cut implements rdmatest.Fabric.
func (f *fabric) Cut(a, b rdma.MachineID) { f.both(a, b, (*NIC).Cut) }

// Mend implements rdmatest.Fabric.
func (f *fabric) Mend(a, b rdma.MachineID) { f.both(a, b, (*NIC).Mend) }

// certificates returns the configuration of machines of one cluster.
func certificates(t testing.TB) *tls.Config {
	t.Helper()
	return testcert.New(t, t.TempDir()).TLS(t, "127.0.0.1")
}

func TestConformance(t *testing.T) {
	secured := certificates(t)
	for name, config := range map[string]*tls.Config{"plain": nil, "TLS": secured} {
		t.Run(name, func(t *testing.T) {
			rdmatest.Run(t, func(*testing.T) rdmatest.Fabric { return newFabric(config) })
		})
	}
}

// serving joins a machine with memory, under key 7, and worker 0.
func (f *fabric) serving(t *testing.T, m rdma.MachineID) *NIC {
	t.Helper()
	nic, err := Join(f.config(m))
	if err == nil {
		_, err = nic.Open(0, nil)
	}
	if err == nil {
		err = nic.Register(7, nvram.NewMemory(64))
	}
	if err != nil {
		t.Fatal(err)
	}
	return nic
}

// readOnce reads a word of the memory that a machine has under key 7.
func readOnce(q rdma.Queue, from rdma.MachineID) error {
	var dst [8]byte
	done, err := q.Read(from, 7, 0, dst[:], 5)
	q.Flush()
	for !done && err == nil {
		var cs [1]rdma.Completion
		if q.Poll(cs[:]) == 1 {
			return cs[0].Err
		}
		runtime.Gosched()
	}
	return err
}

// A machine learns the address of one that connects to it, and asks Config.Resolve again when that
// machine cannot be reached there any more.
func TestAddressesAreTold(t *testing.T) {
	f := newFabric(nil)
	unreached := make(chan string, 100)
	cfg := f.config(1)
	var known sync.Map // what Resolve of machine 1 knows
	cfg.Resolve = func(m rdma.MachineID) (string, bool) {
		a, ok := known.Load(m)
		if !ok {
			return "", false
		}
		return a.(string), true
	}
	cfg.Unreached = func(_ rdma.MachineID, address string, _ error) {
		select {
		case unreached <- address:
		default:
		}
	}
	one, err := Join(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll(t, one)
	f.mu.Lock()
	f.at[1] = one.Address()
	f.mu.Unlock()
	q, err := one.Open(0, nil)
	if err != nil {
		t.Fatal(err)
	}
	reads := func() error { return readOnce(q, 2) }
	if err := reads(); !errors.Is(err, rdma.ErrBroken) {
		t.Fatalf("without an address: %v", err)
	}
	if a := <-unreached; a != "" {
		t.Errorf("tried at %q", a)
	}

	two := f.serving(t, 2)
	first := two.Address()
	if err := two.Datagram(1, []byte("hello")); err != nil { // connects for a key
		t.Fatal(err)
	}
	until(t, func() bool { return reads() == nil }, func() any { return "machine 2 has told no address" })

	closeAll(t, two)
	f.mu.Lock()
	f.at[2] = "127.0.0.1:0"
	f.mu.Unlock()
	for { // the system may give it the same port
		if two = f.serving(t, 2); two.Address() != first {
			break
		}
		closeAll(t, two)
	}
	defer func() { closeAll(t, two) }()
	known.Store(rdma.MachineID(2), two.Address())
	until(t, func() bool { return reads() == nil }, func() any { return "the old address is not forgotten" })
}

// A second process that is started as the same machine, elsewhere, is refused as long as the first one
// is connected; not after that.
func TestTwinIsRefused(t *testing.T) {
	f := newFabric(nil)
	g := guard(t, f, nil)
	first := f.serving(t, 2)
	q := first.mu.queues[0]
	reads := func(q *Queue) error { return readOnce(q, 1) }
	if err := g.Register(7, nvram.NewMemory(64)); err != nil {
		t.Fatal(err)
	}
	if err := reads(q); err != nil {
		t.Fatal(err)
	}
	twin := f.serving(t, 2)
	if err := reads(twin.mu.queues[0]); !errors.Is(err, rdma.ErrBroken) {
		t.Errorf("the twin reads: %v", err)
	}
	g.hasRefused(t, "another process")
	if err := reads(q); err != nil {
		t.Errorf("the first is disturbed: %v", err)
	}
	closeAll(t, first)
	until(t, func() bool { return reads(twin.mu.queues[0]) == nil }, func() any { return "the twin is refused still" })
	closeAll(t, twin)
}
