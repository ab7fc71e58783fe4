package join

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/farmsql/farmsql/nvram"
)

// The files of an authority and of a machine's certificate.
const (
	authorityFile    = "ca.pem"
	authorityKeyFile = "ca-key.pem"
	certificateFile  = "cert.pem"
	keyFile          = "key.pem"
)

const (
	authorityLife   = 20 * 365 * 24 * time.Hour
	certificateLife = 10 * 365 * 24 * time.Hour
	// clockSkew is how far the clocks of two hosts may differ when a machine joins.
	clockSkew = 24 * time.Hour

	certificateType = "CERTIFICATE"
	keyType         = "PRIVATE KEY"
)

// An authority certifies the machines of one cluster.
type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

// newAuthority makes the authority of a new cluster.
func newAuthority(name string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-clockSkew), NotAfter: time.Now().Add(authorityLife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	c, err := x509.ParseCertificate(der)
	return &authority{c, key}, err
}

// serial draws the serial number of a certificate.
func serial() *big.Int {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[0] &= 0x7f           // a positive number
	return new(big.Int).SetBytes(b[:])
}

// certify returns the certificate (DER) of a machine's key for the host at which others reach the
// machine. It is good for both ends of a connection.
func (a *authority) certify(key crypto.PublicKey, name, host string) ([]byte, error) {
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-clockSkew), NotAfter: time.Now().Add(certificateLife),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	host, _, _ = strings.Cut(host, "%") // certificates know no zones
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	return x509.CreateCertificate(rand.Reader, template, a.certificate, key, a.key)
}

// save writes the authority to a folder, the key first: the authority exists when its certificate does.
func (a *authority) save(folder string) error {
	if err := saveKey(filepath.Join(folder, authorityKeyFile), a.key); err != nil {
		return err
	}
	return savePEM(filepath.Join(folder, authorityFile), certificateType, a.certificate.Raw)
}

// loadAuthority reads the authority of a folder. It fails with fs.ErrNotExist if the machine is not
// the issuer.
func loadAuthority(folder string) (*authority, error) {
	key, err := loadKey(filepath.Join(folder, authorityKeyFile))
	if err != nil {
		return nil, err
	}
	c, err := loadCertificate(filepath.Join(folder, authorityFile))
	if err != nil {
		return nil, err
	}
	if !sameKey(c, key) {
		return nil, fmt.Errorf("%w: %s is the key of another cluster's authority: remove it, and %s", ErrDamaged, filepath.Join(folder, authorityKeyFile), machinesFile)
	}
	return &authority{c, key}, nil
}

// newKey makes the key of a machine.
func newKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

func saveKey(path string, key crypto.Signer) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return savePEM(path, keyType, der)
}

// loadKey reads a key that saveKey has written. It fails with fs.ErrNotExist if there is none.
func loadKey(path string) (crypto.Signer, error) {
	der, err := loadPEM(path, keyType)
	if err != nil {
		return nil, err
	}
	parsed, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, fmt.Errorf("join: %s: %w", path, err)
	}
	key, ok := parsed.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("join: %s: not a key that can sign", path)
	}
	return key, nil
}

func loadCertificate(path string) (*x509.Certificate, error) {
	der, err := loadPEM(path, certificateType)
	if err != nil {
		return nil, err
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("join: %s: %w", path, err)
	}
	return c, nil
}

func savePEM(path, kind string, der []byte) error {
	return nvram.ReplaceFile(path, spareSuffix, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func loadPEM(path, kind string) ([]byte, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("join: %w", err)
	}
	block, _ := pem.Decode(b)
	if block == nil || block.Type != kind {
		return nil, fmt.Errorf("%w: %s has no %s", ErrDamaged, path, strings.ToLower(kind))
	}
	return block.Bytes, nil
}
