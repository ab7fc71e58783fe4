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

// TestTLS: a server that requires TLS serves the clients that use TLS, and the shell accepts the
// server's certificate and no other.
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

// TestNoTLS: a server without TLS does not count as one with a certificate of a known authority.
func TestNoTLS(t *testing.T) {
	cert, _ := certificate(t)
	folder := t.TempDir()
	s := start(t, folder, append(layouts[0].flags(), "--no-tls")...)
	refuse(t, 1, []string{"sql", "--address", s.addr, "--tls-ca", cert, "-e", "select 1"}, "TLS")
	if _, err := os.Stat(filepath.Join(folder, "server-key.pem")); err == nil {
		t.Error("a key for nothing")
	}
	exec1(t, s.connect(t, ""), "select 1")
}

// TestTLSByDefault: by default a server offers TLS with a certificate of its own. It keeps the
// certificate, and clients can verify the server with it.
func TestTLSByDefault(t *testing.T) {
	folder := t.TempDir()
	ca := filepath.Join(folder, "server-cert.pem")
	for range 2 { // the second time it is there
		s, err := launch(folder, append(layouts[0].flags(), "--require-tls")...)
		if err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(binary, "sql", "--address", s.addr, "--tls-ca", ca, "-e", "show status like 'Ssl_version'").CombinedOutput()
		if err != nil || !strings.Contains(string(out), "TLSv1.3") {
			t.Errorf("%q, %v", out, err)
		}
		saved, err := os.ReadFile(ca)
		s.stop(t)
		if again, err2 := os.ReadFile(ca); err != nil || err2 != nil || string(saved) != string(again) {
			t.Errorf("the certificate has changed, or gone: %v, %v", err, err2)
		}
	}
}

// TestClientsUseTLS: MariaDB's programs use TLS, show its version, show the server's state, and
// shut it down if the user may.
func TestClientsUseTLS(t *testing.T) {
	needs(t, "mariadb")
	needs(t, "mariadb-admin")
	s, err := launch(t.TempDir(), layouts[0].flags()...)
	if err != nil {
		t.Fatal(err)
	}
	exec1(t, s.connect(t, ""), "create user u@localhost")
	host, port := s.hostPort()
	run := func(program, user string, args ...string) string {
		t.Helper()
		out, _ := exec.Command(program, append([]string{"--no-defaults", "-h", host, "-P", port, "-u", user}, args...)...).CombinedOutput()
		return string(out)
	}
	for _, tc := range []struct{ program, user, args, want string }{
		{"mariadb", "root", "--ssl -e status", "Cipher in use is TLS_"},
		{"mariadb", "root", "--ssl -e status", "  Questions: "},
		{"mariadb", "root", "--skip-ssl -e status", "Not in use"},
		{"mariadb-admin", "root", "--ssl status", "Queries per second avg: "},
		{"mariadb-admin", "u", "--ssl shutdown", "you need (at least one of) the SHUTDOWN privilege"},
		{"mariadb-admin", "u", "--ssl ping", "is alive"},
	} {
		if out := run(tc.program, tc.user, strings.Fields(tc.args)...); !strings.Contains(out, tc.want) {
			t.Errorf("%s %s as %s: %s", tc.program, tc.args, tc.user, out)
		}
	}
	if out := run("mariadb-admin", "root", "--ssl", "shutdown"); out != "" {
		t.Error(out)
	}
	select {
	case <-s.exited:
		if s.err != nil {
			t.Errorf("%v\n%s", s.err, s.stderr)
		}
	case <-time.After(startTimeout):
		s.kill()
		t.Error("it has not ended")
	}
}
