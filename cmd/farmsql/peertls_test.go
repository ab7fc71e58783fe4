package main

import (
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/farmsql/farmsql/internal/testcert"
)

// serve refuses certificates that the other machines would refuse, and says why.
func TestPeerTLS(t *testing.T) {
	const at = "192.0.2.7:7070"
	ours, folder := testcert.New(t, t.TempDir()), t.TempDir()
	others := testcert.New(t, t.TempDir())
	cert, key := ours.Certify(t, "192.0.2.7", nil)
	garbage := filepath.Join(folder, "garbage.pem")
	if err := os.WriteFile(garbage, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}

	if c, err := peerTLS("", "", "", at); c != nil || err != nil {
		t.Errorf("without files: %v, %v", c, err)
	}
	c, err := peerTLS(ours.File, cert, key, at)
	if err != nil || c.RootCAs == nil || c.ClientCAs == nil || len(c.Certificates) != 1 {
		t.Fatalf("%v, %v", c, err)
	}
	certify := func(a *testcert.Authority, host string, change func(*x509.Certificate)) [2]string {
		cert, key := a.Certify(t, host, change)
		return [2]string{cert, key}
	}
	for name, c := range map[string]struct {
		ca   string
		pair [2]string
		says []string
	}{
		"without the authority": {"", [2]string{cert, key}, []string{"--peer-ca, --peer-cert and --peer-key belong together"}},
		"no authority":          {filepath.Join(folder, "none"), [2]string{cert, key}, []string{"--peer-ca", "no such file"}},
		"a bad authority":       {garbage, [2]string{cert, key}, []string{"--peer-ca", "no certificates in"}},
		"no key":                {ours.File, [2]string{cert, filepath.Join(folder, "none")}, []string{"--peer-cert", "no such file"}},
		"a bad certificate":     {ours.File, [2]string{garbage, key}, []string{"--peer-cert", "PEM"}},
		"another authority":     {ours.File, certify(others, "192.0.2.7", nil), []string{"--peer-cert", "a server's", "unknown authority"}},
		"another host":          {ours.File, certify(ours, "192.0.2.8", nil), []string{"a server's, for the host of --advertise", "192.0.2.8, not 192.0.2.7"}},
		"expired":               {ours.File, certify(ours, "expired", func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }), []string{"expired", "is after", "make another one"}},
		"not yet valid":         {ours.File, certify(ours, "early", func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Minute) }), []string{"not yet valid", "is before", "make another one"}},
		"only a server's": {ours.File, certify(ours, "server", func(c *x509.Certificate) {
			c.IPAddresses, c.ExtKeyUsage = []net.IP{net.ParseIP("192.0.2.7")}, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		}), []string{"refuse it as a client's", "incompatible key usage"}},
	} {
		_, err := peerTLS(c.ca, c.pair[0], c.pair[1], at)
		for _, want := range c.says {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", name, err, want)
			}
		}
	}
}
