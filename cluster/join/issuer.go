package join

import (
	"context"
	"crypto"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/farmsql/farmsql/rdma"
)

const (
	// requestMax is how long a connection may take to ask and to take the answer.
	requestMax = 10 * time.Second
	// reachMax is how long the issuer tries to reach a machine that joins.
	reachMax = 3 * time.Second
	// requestsMax is how many connections are served at a time.
	requestsMax = 16
	// askAgain is how long a machine waits before it asks again for founders that are missing.
	askAgain = 500 * time.Millisecond
)

// Found makes a new cluster whose first machine, the issuer, is the one with this folder, and
// is reached at advertise. It returns a token with which as many machines can join within life
// as founders are missing; the token is the zero Token if none is. If it was interrupted, call
// it again: the cluster exists when Load finds the identity.
func Found(folder, advertise string, s Settings, life time.Duration) (*Identity, Token, error) {
	id := &Identity{Cluster: newCluster(), Machine: 0, Advertise: advertise, Issuer: advertise, Settings: s}
	t, err := id.found(folder, life)
	if err != nil {
		return nil, Token{}, fmt.Errorf("join: make the cluster in %s: %w", folder, err)
	}
	return id, t, nil
}

// newCluster draws the number that tells a cluster from others.
func newCluster() uint64 {
	for {
		if c := rand.Uint64(); c != 0 {
			return c
		}
	}
}

// found writes the files of a new cluster's issuer, the identity last, and returns Found's token.
func (id *Identity) found(folder string, life time.Duration) (t Token, err error) {
	if err := prepareFolder(folder); err != nil {
		return t, err
	}
	a, err := newAuthority(fmt.Sprintf("farmsql %016x", id.Cluster))
	if err != nil {
		return t, err
	}
	if err := a.save(folder); err != nil {
		return t, err
	}
	key, err := newKey()
	if err != nil {
		return t, err
	}
	if err := saveKey(filepath.Join(folder, keyFile), key); err != nil {
		return t, err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return t, err
	}
	der, err := a.certify(key.Public(), machineName(0), hostOf(id.Advertise))
	if err != nil {
		return t, err
	}
	if err := savePEM(filepath.Join(folder, certificateFile), certificateType, der); err != nil {
		return t, err
	}
	if err := createRegistry(folder, id.Advertise, hashOf(public)); err != nil {
		return t, err
	}
	if missing := id.Founders - 1; missing > 0 {
		t = Token{Address: id.Advertise, Authority: sha256.Sum256(a.certificate.Raw), Secret: newSecret()}
		if err := saveToken(folder, t, missing, time.Now().Add(life)); err != nil {
			return t, err
		}
	}
	return t, id.Save(folder) // now the cluster exists
}

func machineName(m rdma.MachineID) string { return fmt.Sprintf("machine %d", m) }

// hostOf returns the host of an address that has been checked.
func hostOf(address string) string {
	host, _, _ := net.SplitHostPort(address)
	return host
}

// ErrNotIssuer means that a machine cannot admit others.
var ErrNotIssuer = errors.New("join: only the machine that made the cluster can admit others")

// NewToken makes a token in the issuer's folder, with which uses machines can join within life. The
// issuer may be running.
func NewToken(folder string, uses int, life time.Duration) (Token, error) {
	id, err := Load(folder)
	switch {
	case err != nil:
		return Token{}, err
	case id == nil:
		return Token{}, fmt.Errorf("%w: there is no cluster in %s", ErrNotIssuer, folder)
	case !IsIssuer(folder):
		return Token{}, fmt.Errorf("%w: %s is of machine %d; that machine is at %s", ErrNotIssuer, folder, id.Machine, id.Issuer)
	}
	a, err := loadAuthority(folder)
	if err != nil {
		return Token{}, err
	}
	t := Token{Address: id.Advertise, Authority: sha256.Sum256(a.certificate.Raw), Secret: newSecret()}
	return t, saveToken(folder, t, uses, time.Now().Add(life))
}

// An Issuer admits machines to its cluster.
type Issuer struct {
	id        *Identity
	authority *authority
	registry  *registry
	events    Events
	current   atomic.Pointer[json.RawMessage] // see Announce
	running   sync.WaitGroup
	ctx       context.Context // ends when Serve ends
	cancel    context.CancelFunc
}

// Events are told of what an Issuer does. They must not wait.
type Events struct {
	// Admitted is called when a machine has been admitted, and when it asks again.
	Admitted func(m rdma.MachineID, address string)
	// Refused is called for each request that is refused.
	Refused func(from net.Addr, reason error)
}

// OpenIssuer opens the issuer of a folder, whose machine has the identity id. It fails with fs.ErrNotExist
// if the folder does not have the authority's key.
func OpenIssuer(folder string, id *Identity, e Events) (*Issuer, error) {
	a, err := loadAuthority(folder)
	if err != nil {
		return nil, err
	}
	r, err := openRegistry(folder, id.Founders)
	if err != nil {
		return nil, err
	}
	if !r.isOf(id) {
		return nil, fmt.Errorf("%w: %s is not the newest list of the cluster's machines: with it, two machines would get one number; put the newest there, or remove %s, and this machine admits no others",
			ErrDamaged, filepath.Join(folder, machinesFile), authorityKeyFile)
	}
	i := &Issuer{id: id, authority: a, registry: r, events: e}
	i.ctx, i.cancel = context.WithCancel(context.Background())
	return i, nil
}

// Reserve makes sure that no machine gets the number m, or a lower one: the configuration may have
// machines that the list of this issuer, if it is a copy, lacks.
func (i *Issuer) Reserve(m rdma.MachineID) { i.registry.reserve(m) }

// Announce sets what machines that ask from now on get as their Identity.Current.
func (i *Issuer) Announce(current json.RawMessage) { i.current.Store(&current) }

// Store returns the founders, or nil and how many are missing.
func (i *Issuer) Store() (founders map[rdma.MachineID]string, missing int) { return i.registry.store() }

// Serve admits the machines that connect to l, whose connections are *tls.Conn after the
// handshake, until l is closed. Then it ends the requests that are under way, and returns. It is called
// once.
func (i *Issuer) Serve(l net.Listener) {
	requests := make(chan struct{}, requestsMax)
	defer i.running.Wait()
	defer i.cancel()
	for {
		requests <- struct{}{}
		c, err := l.Accept()
		if err != nil {
			return // Accept fails only when the listener is closed
		}
		i.running.Go(func() {
			defer func() { <-requests }()
			defer c.Close()
			defer context.AfterFunc(i.ctx, func() { _ = c.(*tls.Conn).NetConn().Close() })()
			if err := i.serve(c.(*tls.Conn)); err != nil {
				i.events.Refused(c.RemoteAddr(), err)
			}
		})
	}
}

// serve answers one request. An error says why the request was refused.
func (i *Issuer) serve(c *tls.Conn) error {
	if err := c.SetDeadline(time.Now().Add(requestMax)); err != nil {
		return err
	}
	var q request
	if err := receive(c, &q); err != nil {
		return err
	}
	r, err := i.answer(c, q)
	if err != nil {
		return errors.Join(err, send(c, reply{Error: err.Error()}))
	}
	return send(c, r)
}

var errStranger = errors.New("whoever asks for the founders must show the certificate of a machine that has joined")

// answer returns the reply to a request. With a secret, the request is to admit a machine; without one it must
// come from a machine that was admitted. An error says why the request is refused.
func (i *Issuer) answer(c *tls.Conn, q request) (r reply, err error) {
	if q.Format != messageFormat {
		return r, fmt.Errorf("the request has format %d, the machine that admits others knows format %d: use the same farmsql", q.Format, messageFormat)
	}
	r = reply{Cluster: i.id.Cluster, Issuer: i.id.Advertise, Settings: i.id.Settings}
	if len(q.Secret) > 0 {
		if err := i.admit(&r, q); err != nil {
			return r, err
		}
	} else if !i.isMember(c) {
		return r, errStranger
	}
	r.Founders, r.Missing = i.registry.store()
	if current := i.current.Load(); current != nil {
		r.Current = *current
	}
	return r, nil
}

// isMember reports whether the other side has shown the certificate of a machine that was admitted.
func (i *Issuer) isMember(c *tls.Conn) bool {
	shown := c.ConnectionState().VerifiedChains // the chains that the handshake has verified
	if len(shown) == 0 {
		return false
	}
	public, err := x509.MarshalPKIXPublicKey(shown[0][0].PublicKey)
	return err == nil && i.registry.knows(hashOf(public))
}

// admit admits a machine, and fills in its number and certificate.
func (i *Issuer) admit(r *reply, q request) error {
	public, err := checkRequest(q)
	if err != nil {
		return err
	}
	if q.Address == i.id.Advertise {
		return fmt.Errorf("%s is the address of the machine that admits others: give another with --advertise", q.Address)
	}
	// Check the secret first, so that a stranger learns nothing of the addresses that this
	// machine reaches.
	if err := i.registry.check(q.Secret, hashOf(q.Key), time.Now()); err != nil {
		return err
	}
	if err := reach(i.ctx, q.Address); err != nil {
		return fmt.Errorf("the machine that admits others cannot connect to %s, where this machine says that the others reach it: see --advertise and the firewall: %w", q.Address, err)
	}
	if r.Machine, err = i.registry.admit(q.Secret, q.Address, hashOf(q.Key), time.Now()); err != nil {
		return err
	}
	if r.Certificate, err = i.authority.certify(public, machineName(r.Machine), hostOf(q.Address)); err != nil {
		return err
	}
	r.Authority = i.authority.certificate.Raw
	i.events.Admitted(r.Machine, q.Address)
	return nil
}

// checkRequest checks the parts of a request that come from a machine that is not known yet.
func checkRequest(q request) (public crypto.PublicKey, err error) {
	if public, err = x509.ParsePKIXPublicKey(q.Key); err != nil {
		return nil, fmt.Errorf("its public key: %w", err)
	}
	if host, port, err := net.SplitHostPort(q.Address); err != nil || host == "" || port == "" || len(q.Address) > addressMax {
		return nil, fmt.Errorf("its address is %.255q, not HOST:PORT", q.Address)
	}
	return public, nil
}

// reach checks that a connection to an address can be made.
func reach(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, reachMax)
	defer cancel()
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return c.Close()
}
