package join

import (
	"bytes"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
)

const (
	identityFile = "identity.json"
	spareSuffix  = ".new"
	programName  = "farmsql"
	// identityFormat is the version of identityFile.
	identityFormat = 1
)

var (
	// ErrDamaged means that a file of the folder cannot be used.
	ErrDamaged = errors.New("join: damaged")
	// ErrNewer means that a newer program has written a file of the folder.
	ErrNewer = errors.New("join: written by a newer program")
)

// Settings are the settings of a cluster that its first machine decides.
type Settings struct {
	Replicas, Workers     int
	RegionBytes, LogBytes int64
	// Founders is how many machines keep the configuration.
	Founders int
}

// An Identity is a machine's place in a cluster, which it has founded or joined.
type Identity struct {
	// Cluster tells clusters apart; a random number.
	Cluster uint64
	Machine rdma.MachineID
	// Advertise is the address, HOST:PORT, at which the others reach the machine.
	Advertise string
	// Issuer is the address of the machine that admits others.
	Issuer string
	Settings
	// Store has the addresses of the founders. It is nil until the last of them has joined.
	Store map[rdma.MachineID]string `json:",omitempty"`
	// IsSuccessor says that the machine has taken the place of a founder, or is about to.
	IsSuccessor bool `json:",omitempty"`
	// Current says who keeps the configuration at present, in the store's encoding, as far as
	// the machine knows; nil as long as the founders keep it.
	Current json.RawMessage `json:",omitempty"`
}

// storedIdentity is the content of identityFile.
type storedIdentity struct {
	Program string
	Format  int
	Identity
}

// IsIssuer reports whether the machine of a folder admits others: it has the authority's key.
func IsIssuer(folder string) bool {
	_, err := os.Stat(filepath.Join(folder, authorityKeyFile))
	return err == nil
}

// IsFounder reports whether the machine has founded the store of the configuration. Numbers are given in
// turn, so the founders are the machines with the lowest.
func (id *Identity) IsFounder() bool { return int(id.Machine) < id.Founders }

// Load returns the identity that is kept in folder, or nil if there is none.
func Load(folder string) (*Identity, error) {
	path := filepath.Join(folder, identityFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("join: %w", err)
	}
	var s storedIdentity
	if err := json.Unmarshal(b, &s); err != nil || s.Program != programName || s.Format < 1 {
		return nil, fmt.Errorf("%w: %s was not written by farmsql", ErrDamaged, path)
	}
	if s.Format > identityFormat {
		return nil, fmt.Errorf("%w: %s has format %d, this program knows formats up to %d: use a newer farmsql", ErrNewer, path, s.Format, identityFormat)
	}
	if s.Cluster == 0 || s.Advertise == "" || s.Issuer == "" || s.Founders < 1 {
		return nil, fmt.Errorf("%w: %s lacks the cluster, an address or the founders", ErrDamaged, path)
	}
	return &s.Identity, nil
}

// Save keeps the identity in folder.
func (id *Identity) Save(folder string) error {
	return saveJSON(filepath.Join(folder, identityFile), storedIdentity{programName, identityFormat, *id})
}

// saveJSON makes value the content of a file, durably.
func saveJSON(path string, value any) error {
	b, err := json.MarshalIndent(value, "", "\t")
	if err == nil {
		err = nvram.ReplaceFile(path, spareSuffix, append(b, '\n'))
	}
	if err != nil {
		return fmt.Errorf("join: %w", err)
	}
	return nil
}

// TLS returns the TLS configuration of the machine with this folder, for both ends of
// connections with other machines.
func TLS(folder string) (*tls.Config, error) {
	key, err := loadKey(filepath.Join(folder, keyFile))
	if err != nil {
		return nil, err
	}
	own, err := loadCertificate(filepath.Join(folder, certificateFile))
	if err != nil {
		return nil, err
	}
	authority, err := loadCertificate(filepath.Join(folder, authorityFile))
	if err != nil {
		return nil, err
	}
	return tlsOf(own, authority, key), nil
}

// tlsOf returns the TLS configuration of a machine. The machine shows the authority's
// certificate, too: a machine that joins knows the cluster by the hash of that certificate.
func tlsOf(own, authority *x509.Certificate, key crypto.Signer) *tls.Config {
	pool := x509.NewCertPool()
	pool.AddCert(authority)
	pair := tls.Certificate{Certificate: [][]byte{own.Raw, authority.Raw}, PrivateKey: key, Leaf: own}
	return &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: pool, ClientCAs: pool, MinVersion: tls.VersionTLS13}
}

// Authorize reports an error unless the certificate that a machine has shown is machine m's: the issuer
// writes the number into it.
func Authorize(m rdma.MachineID, shown tls.ConnectionState) error {
	if len(shown.PeerCertificates) == 0 {
		return fmt.Errorf("join: machine %d has shown no certificate", m)
	}
	if name := shown.PeerCertificates[0].Subject.CommonName; name != machineName(m) {
		return fmt.Errorf("join: the certificate of %q was shown by machine %d", name, m)
	}
	return nil
}

// makeFolder creates a folder, and its name, durably.
func makeFolder(path string) error {
	if err := os.MkdirAll(path, nvram.PrivateFolder); err != nil {
		return fmt.Errorf("join: %w", err)
	}
	parent, err := os.Open(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("join: %w", err)
	}
	return errors.Join(parent.Sync(), parent.Close())
}

// storeFolder is the folder, in a machine's, of its part of the configuration store.
const storeFolder = "store"

// StoreFolder returns where a machine keeps its part of the configuration store.
func StoreFolder(folder string) string { return filepath.Join(folder, storeFolder) }

// prepareFolder makes a folder for a new machine. It refuses a folder that another machine has
// used, because that machine's votes are there.
func prepareFolder(folder string) error {
	if _, err := os.Stat(StoreFolder(folder)); err == nil {
		return fmt.Errorf("%w: %s is of a machine whose %s is gone: put it back, or remove the data folder, and the machine joins as another", ErrDamaged, StoreFolder(folder), identityFile)
	}
	return makeFolder(folder)
}

// sameKey reports whether a certificate is for the given key.
func sameKey(c *x509.Certificate, key crypto.Signer) bool {
	a, errA := x509.MarshalPKIXPublicKey(c.PublicKey)
	b, errB := x509.MarshalPKIXPublicKey(key.Public())
	return errA == nil && errB == nil && bytes.Equal(a, b)
}
