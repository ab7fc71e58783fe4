package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"
)

// A server without a certificate from an authority creates a self-signed one in its data
// folder. Clients that do not verify certificates then use TLS without further steps. Clients
// that do must be given this certificate (--tls-ca).
const (
	certificateFile = "server-cert.pem"
	keyFile         = "server-key.pem"

	certificateLife = 10 * 365 * 24 * time.Hour
	// certificateRenewal is how long a certificate must still be valid when the server starts, since
	// the server may run for that long. Otherwise the server replaces it.
	certificateRenewal = 365 * 24 * time.Hour
)

// An ownCertificate is the certificate of a data folder, loaded once this process has locked
// the folder.
type ownCertificate struct {
	loaded atomic.Pointer[tls.Certificate]
}

// config returns the TLS configuration of a server that shows the certificate.
func (o *ownCertificate) config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		if c := o.loaded.Load(); c != nil {
			return c, nil
		}
		return nil, errors.New("no certificate yet")
	}}
}

// load reads the certificate of a folder. If there is no usable one, load creates one that is valid for
// the address listen.
func (o *ownCertificate) load(folder, listen string, log *slog.Logger) error {
	pair, err := readCertificate(folder, time.Now())
	if err == nil {
		o.loaded.Store(&pair)
		logCertificate(log, filepath.Join(folder, certificateFile), pair)
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		log.Warn("the TLS certificate cannot be used: another one is made, and clients that know the old one will not know it",
			"file", filepath.Join(folder, certificateFile), "reason", err)
	}
	if err := makeCertificate(folder, listen, time.Now()); err != nil {
		return fmt.Errorf("TLS certificate: %w (--tls-cert gives another, --no-tls does without)", err)
	}
	if pair, err = readCertificate(folder, time.Now()); err != nil {
		return fmt.Errorf("TLS certificate: %w", err)
	}
	o.loaded.Store(&pair)
	logCertificate(log, filepath.Join(folder, certificateFile), pair)
	return nil
}

// readCertificate returns the certificate in a folder, which must be valid at now, and for
// certificateRenewal from then on.
func readCertificate(folder string, now time.Time) (tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(filepath.Join(folder, certificateFile), filepath.Join(folder, keyFile))
	if err != nil {
		return pair, err
	}
	if now.Before(pair.Leaf.NotBefore) || !now.Add(certificateRenewal).Before(pair.Leaf.NotAfter) {
		return pair, fmt.Errorf("it is valid from %s to %s", pair.Leaf.NotBefore.Format(time.RFC3339), pair.Leaf.NotAfter.Format(time.RFC3339))
	}
	return pair, nil
}

// makeCertificate writes a new certificate and its key. It writes the certificate last: a key
// without a certificate does not count.
func makeCertificate(folder, listen string, now time.Time) error {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "farmsql, made by itself"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(certificateLife), // begins earlier because clocks differ
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true, IsCA: true, // so that a client can be told to trust it
	}
	nameServer(template, listen)
	signed, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		return err
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return err
	}
	return errors.Join(
		writePEM(filepath.Join(folder, keyFile), "PRIVATE KEY", pkcs8),
		writePEM(filepath.Join(folder, certificateFile), "CERTIFICATE", signed),
	)
}

// nameServer adds this computer's names and addresses to a certificate.
func nameServer(c *x509.Certificate, listen string) {
	c.DNSNames = []string{"localhost"}
	c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	if name, err := os.Hostname(); err == nil {
		c.DNSNames = append(c.DNSNames, name)
	}
	host, _, _ := net.SplitHostPort(listen) // cannot fail: the server listens at this address
	if ip := net.ParseIP(host); ip == nil && host != "" {
		c.DNSNames = append(c.DNSNames, host)
	} else if ip != nil && !ip.IsUnspecified() && !ip.IsLoopback() {
		c.IPAddresses = append(c.IPAddresses, ip)
	}
}

// writePEM writes a file that nobody else can read, whole or not at all.
func writePEM(path, kind string, der []byte) error {
	next := path + ".new"
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(pem.Encode(f, &pem.Block{Type: kind, Bytes: der}), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(next, path)
}

// logCertificate logs how clients can verify the server.
func logCertificate(log *slog.Logger, file string, c tls.Certificate) {
	sum := sha256.Sum256(c.Certificate[0])
	log.Info("TLS certificate", "file", file, "sha256", hex.EncodeToString(sum[:]), "until", c.Leaf.NotAfter.Format(time.RFC3339))
}
