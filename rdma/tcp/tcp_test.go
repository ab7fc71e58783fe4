package tcp

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

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
func certificates(t testing.TB, host string) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "farmsql"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, IPAddresses: []net.IP{net.ParseIP(host)},
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}},
		RootCAs:      pool, ClientCAs: pool,
	}
}

func TestConformance(t *testing.T) {
	secured := certificates(t, "127.0.0.1")
	for name, config := range map[string]*tls.Config{"plain": nil, "TLS": secured} {
		t.Run(name, func(t *testing.T) {
			rdmatest.Run(t, func(*testing.T) rdmatest.Fabric { return newFabric(config) })
		})
	}
}
