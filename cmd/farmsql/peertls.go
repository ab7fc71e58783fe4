package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/farmsql/farmsql/internal/cli"
)

// peerTLS returns the TLS configuration of connections between machines, made from these files;
// nil if no file is given. It refuses a certificate that the other machines would refuse, because
// they would report that only in their own logs.
func peerTLS(ca, cert, key, advertise string) (*tls.Config, error) {
	if ca == "" && cert == "" && key == "" {
		return nil, nil
	}
	if ca == "" || cert == "" || key == "" {
		return nil, cli.UsageError("--peer-ca, --peer-cert and --peer-key belong together")
	}
	pem, err := os.ReadFile(ca)
	if err != nil {
		return nil, fmt.Errorf("--peer-ca: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("--peer-ca: no certificates in %s", ca)
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("--peer-cert: %w", err)
	}
	if err := checkPeerCertificate(pair, pool, advertise); err != nil {
		return nil, fmt.Errorf("--peer-cert %s: %w", cert, err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: pool, ClientCAs: pool, MinVersion: tls.VersionTLS13}, nil
}

// checkPeerCertificate checks a machine's certificate as the other machines do, when they connect
// to this one and when it connects to them.
func checkPeerCertificate(pair tls.Certificate, authorities *x509.CertPool, advertise string) error {
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return err
	}
	intermediates := x509.NewCertPool()
	for _, der := range pair.Certificate[1:] {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return err
		}
		intermediates.AddCert(c)
	}
	host, _, err := net.SplitHostPort(advertise)
	if err != nil {
		return nil // no error here: Config.Validate reports what is wrong
	}
	host, _, _ = strings.Cut(host, "%") // certificates know no zones
	for _, use := range []struct {
		name, host string
		usage      x509.ExtKeyUsage
	}{{"a server's, for the host of --advertise", host, x509.ExtKeyUsageServerAuth}, {"a client's", "", x509.ExtKeyUsageClientAuth}} {
		o := x509.VerifyOptions{Roots: authorities, Intermediates: intermediates, DNSName: use.host, KeyUsages: []x509.ExtKeyUsage{use.usage}}
		if _, err := leaf.Verify(o); err != nil {
			return fmt.Errorf("the others would refuse it as %s: %w%s", use.name, err, mendOf(err))
		}
	}
	return nil
}

// mendOf returns advice for a certificate that is expired or not valid yet; nothing for other errors.
func mendOf(err error) string {
	var invalid x509.CertificateInvalidError
	if !errors.As(err, &invalid) || invalid.Reason != x509.Expired {
		return ""
	}
	return " (make another one, or set the clock of this host if that is wrong)"
}
