// Package testcert makes authorities and certificates for tests.
package testcert

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// An Authority certifies machines.
type Authority struct {
	File   string // its certificate, in PEM
	folder string
	key    *ecdsa.PrivateKey
	own    *x509.Certificate
}

// New makes an authority, whose files are in the folder.
func New(t testing.TB, folder string) *Authority {
	t.Helper()
	a := &Authority{folder: folder, File: filepath.Join(folder, "ca.pem"), key: newKey(t)}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.own, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	write(t, a.File, "CERTIFICATE", der)
	return a
}

// Certify makes a certificate for an address, an IP address or a name, which is good for servers and
// clients for an hour, and its key. change, if not nil, changes it before it is signed. Certify returns
// the names of the files.
func (a *Authority) Certify(t testing.TB, host string, change func(*x509.Certificate)) (cert, key string) {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: host},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	if change != nil {
		change(template)
	}
	private := newKey(t)
	signed, err := x509.CreateCertificate(rand.Reader, template, a.own, &private.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(a.folder, host+".pem"), filepath.Join(a.folder, host+"-key.pem")
	write(t, cert, "CERTIFICATE", signed)
	write(t, key, "PRIVATE KEY", secret)
	return cert, key
}

// TLS returns the TLS configuration, for both ends of connections, of a machine that the authority certifies
// for an address, and that trusts no other authority.
func (a *Authority) TLS(t testing.TB, host string) *tls.Config {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(a.Certify(t, host, nil))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(a.own)
	return &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: pool, ClientCAs: pool}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func write(t testing.TB, path, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}
