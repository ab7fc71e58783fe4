package test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// certificate writes a certificate for 127.0.0.1, signed by itself, and its key.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "farmsql"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), BasicConstraintsValid: true, IsCA: true,
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return write("cert.pem", "CERTIFICATE", signed), write("key.pem", "PRIVATE KEY", pkcs8)
}

// TestTLS: a server that requires TLS serves the clients that use it, and the
// shell knows the server's certificate from another.
func TestTLS(t *testing.T) {
	cert, key := certificate(t)
	other, _ := certificate(t)
	folder := t.TempDir()
	s := start(t, folder, append(layouts[0].flags(), "--tls-cert", cert, "--tls-key", key, "--require-tls")...)
	shell := func(more ...string) []string {
		return append([]string{"sql", "--address", s.addr, "-e", "select 6 * 7 n"}, more...)
	}
	for _, args := range [][]string{shell(), shell("--tls-ca", cert)} {
		if out, err := exec.Command(binary, args...).CombinedOutput(); err != nil || string(out) != "n\n42\n" {
			t.Errorf("%v: %q, %v", args, out, err)
		}
	}
	refuse(t, 1, shell("--tls-ca", other), "certificate")
	refuse(t, 1, shell("--tls-ca", key), "no certificates in")
	refuse(t, 1, shell("--tls-ca", filepath.Join(folder, "none")), "--tls-ca", "no such file")
	refuse(t, 1, serveArgs(t.TempDir(), "--tls-cert", cert, "--tls-key", cert), "--tls-cert")
	if err := s.connect(t, "").Ping(); err == nil || !strings.Contains(err.Error(), "TLS") {
		t.Errorf("without TLS: %v", err)
	}
}

// TestNoTLS: a server without a certificate is not one by a known authority.
func TestNoTLS(t *testing.T) {
	cert, _ := certificate(t)
	s := start(t, t.TempDir(), layouts[0].flags()...)
	refuse(t, 1, []string{"sql", "--address", s.addr, "--tls-ca", cert, "-e", "select 1"}, "TLS")
}
