package verbs

import (
	"crypto/tls"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/farmsql/farmsql/internal/testcert"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/rdmatest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A fabric is machines of this process, with cards of its wire or, where join is Join, of the computer.
type fabric struct {
	wire     *wire // nil with real cards
	join     func(cfg Config) (*NIC, error)
	devices  []string // of real cards, which machines take in turn
	tls      *tls.Config
	receives int
	change   func(cfg *Config) // nil for none
	mu       sync.Mutex
	at       map[rdma.MachineID]string
	up       map[rdma.MachineID]*NIC
}

func newFabric(t testing.TB) *fabric {
	w := newWire(t)
	return &fabric{
		wire: w, at: map[rdma.MachineID]string{}, up: map[rdma.MachineID]*NIC{},
		join: func(cfg Config) (*NIC, error) { return join(cfg, w.card()) },
	}
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
	cfg := Config{Machine: m, Cluster: [16]byte{7}, Listen: at, Resolve: f.resolve, TLS: f.tls, GIDIndex: AnyGID, receives: f.receives}
	if f.change != nil {
		f.change(&cfg)
	}
	if len(f.devices) > 0 {
		cfg.Device = f.devices[int(m)%len(f.devices)]
	}
	return cfg
}

// Join implements rdmatest.Fabric: a machine that comes back has the address that it had.
func (f *fabric) Join(m rdma.MachineID) (rdma.NIC, error) {
	nic, err := f.join(f.config(m))
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

// needsMapping skips a test in race builds, where memory is on the Go heap, and no card uses it.
func needsMapping(t testing.TB) {
	t.Helper()
	if !nvram.NewMemory(nvram.WordBytes).IsMapped() {
		t.Skip("memory is on the Go heap in race builds")
	}
}

// certificates returns the configuration of machines of one cluster.
func certificates(t testing.TB) *tls.Config {
	t.Helper()
	return testcert.New(t, t.TempDir()).TLS(t, "127.0.0.1")
}

// All but what cards themselves do is the same with cards that are made of memory.
func TestConformanceWithoutACard(t *testing.T) {
	needsMapping(t)
	secured := certificates(t)
	for name, config := range map[string]*tls.Config{"plain": nil, "TLS": secured} {
		t.Run(name, func(t *testing.T) {
			rdmatest.Run(t, func(t *testing.T) rdmatest.Fabric {
				f := newFabric(t)
				f.tls = config
				return f
			})
		})
	}
}

const key rdma.Key = 7

// A machine of a test has memory under key, and worker 0.
type machine struct {
	*NIC
	t      testing.TB
	memory *nvram.Memory
	q      *Queue
	bells  atomic.Int32
}

func (f *fabric) machine(t testing.TB, m rdma.MachineID, bytes int64) *machine {
	t.Helper()
	nic, err := f.Join(m)
	if err != nil {
		t.Fatal(err)
	}
	x := &machine{NIC: nic.(*NIC), t: t, memory: nvram.NewMemory(bytes)}
	q, err := nic.Open(0, func() { x.bells.Add(1) })
	if err == nil {
		err = nic.Register(key, x.memory)
	}
	if err != nil {
		t.Fatal(err)
	}
	x.q = q.(*Queue)
	t.Cleanup(func() {
		if err := nic.Close(); err != nil {
			t.Error(err)
		}
	})
	return x
}

// write writes words and waits for that.
func (m *machine) write(to rdma.MachineID, off uint64, words int) error {
	m.t.Helper()
	if _, err := m.q.Write(to, key, off, make([]byte, 8*words), 1); err != nil {
		return err
	}
	return m.wait(1)
}

// wait flushes, waits for so many completions, and returns the first error.
func (m *machine) wait(n int) (err error) {
	m.t.Helper()
	m.q.Flush()
	cs := make([]rdma.Completion, n)
	eventually(m.t, "completions", func() bool {
		got := m.q.Poll(cs[:n])
		for _, c := range cs[:got] {
			if err == nil {
				err = c.Err
			}
		}
		n -= got
		return n == 0
	})
	return err
}
