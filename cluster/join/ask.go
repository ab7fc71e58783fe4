package join

import (
	"context"
	"crypto"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"time"

	"github.com/farmsql/farmsql/cluster/peerport"
	"github.com/farmsql/farmsql/rdma"
)

// DefaultPort is the port at which a machine that joins is reached, unless its address is given.
const DefaultPort = "7070"

var (
	// ErrRefused means that the issuer has refused to admit the machine. The error's text has
	// the reason.
	ErrRefused = errors.New("join: the machine that admits others has refused this one")
	// ErrUnreachable means that the issuer does not answer.
	ErrUnreachable = errors.New("join: the machine that admits others does not answer")
	// ErrImpostor means that a machine other than the issuer answers.
	ErrImpostor = errors.New("join: whoever answers is not the machine that made the token")
)

// Ask joins the cluster of a token, and keeps the identity in folder. advertise is the address at which
// the others reach this machine, on which it must be able to listen; if it is empty, it is DefaultPort at the host's
// address towards the issuer. An issuer that does not answer may be starting, as when all machines are started at
// once: Ask calls waiting with the reason, and asks again. It returns within some seconds, or when ctx is done.
func Ask(ctx context.Context, folder string, t Token, advertise string, waiting func(reason error)) (*Identity, error) {
	if IsIssuer(folder) {
		return nil, fmt.Errorf("join: %s has the key of an authority: it has begun to make a cluster; remove it, and join again", folder)
	}
	if err := prepareFolder(folder); err != nil {
		return nil, err
	}
	key, err := ownKey(folder)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, requestMax)
	defer cancel()
	var last error // why the issuer did not answer
	for {
		id, err := askOnce(ctx, folder, t, key, advertise)
		if !errors.Is(err, ErrUnreachable) {
			return id, err
		}
		if last == nil {
			waiting(err)
		}
		if last == nil || ctx.Err() == nil { // an error after the end of ctx only says that
			last = err
		}
		if pause(ctx) != nil {
			return nil, last
		}
	}
}

// askOnce asks once. If the issuer has admitted the machine before, and that answer was lost,
// it knows the machine by its key, and gives it the same number again.
func askOnce(ctx context.Context, folder string, t Token, key crypto.Signer, advertise string) (*Identity, error) {
	c, err := connect(ctx, t.Address, t.config())
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if advertise == "" {
		advertise = net.JoinHostPort(hostOf(c.LocalAddr().String()), DefaultPort)
	}
	if err := peerport.CheckHost(advertise); err != nil {
		return nil, fmt.Errorf("join: this machine cannot be reached (--advertise): %w", err)
	}
	// The issuer connects to the address, to see that the others will be able to.
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", advertise)
	if err != nil {
		return nil, fmt.Errorf("join: this machine cannot listen at %s (--advertise): %w", advertise, err)
	}
	defer l.Close()
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, err
	}
	r, err := exchange(ctx, c, request{Format: messageFormat, Secret: t.Secret[:], Address: advertise, Key: public})
	if err != nil {
		return nil, err
	}
	id := &Identity{Cluster: r.Cluster, Machine: r.Machine, Advertise: advertise, Issuer: r.Issuer, Settings: r.Settings}
	return id, id.keep(folder, t, key, r)
}

// ownKey returns the key of the machine, and makes it if there is none. It is kept before the
// machine asks, so that a machine that is killed asks again with the same key.
func ownKey(folder string) (crypto.Signer, error) {
	path := filepath.Join(folder, keyFile)
	key, err := loadKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	made, err := newKey()
	if err != nil {
		return nil, err
	}
	if err := saveKey(path, made); err != nil {
		return nil, fmt.Errorf("join: %w", err)
	}
	return made, nil
}

// config returns the TLS configuration for a connection to the token's issuer: it accepts only the
// authority whose hash the token has.
func (t Token) config() *tls.Config {
	return &tls.Config{
		InsecureSkipVerify: true, // VerifyConnection verifies: the authority's certificate is not known yet, only its hash
		VerifyConnection: func(s tls.ConnectionState) error {
			for _, c := range s.PeerCertificates {
				if sha256.Sum256(c.Raw) == t.Authority {
					return verify(s.PeerCertificates[0], c, hostOf(t.Address))
				}
			}
			return fmt.Errorf("%w: it does not show the authority of the token", ErrImpostor)
		},
	}
}

// verify checks that an authority has certified a machine at host.
func verify(machine, authority *x509.Certificate, host string) error {
	pool := x509.NewCertPool()
	pool.AddCert(authority)
	_, err := machine.Verify(x509.VerifyOptions{Roots: pool, DNSName: host, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	return err
}

// connect opens a connection to the issuer. It fails with ErrImpostor or ErrUnreachable.
func connect(ctx context.Context, address string, config *tls.Config) (*tls.Conn, error) {
	d := tls.Dialer{Config: peerport.ClientConfig(config, peerport.Join)}
	c, err := d.DialContext(ctx, "tcp", address)
	if errors.Is(err, ErrImpostor) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("%w at %s: %w", ErrUnreachable, address, err)
	}
	return c.(*tls.Conn), nil
}

// exchange sends a request and returns the reply. It fails with ErrRefused, or with ErrUnreachable if no reply
// comes before ctx is done.
func exchange(ctx context.Context, c net.Conn, q request) (r reply, err error) {
	if deadline, ok := ctx.Deadline(); ok {
		if err := c.SetDeadline(deadline); err != nil {
			return r, err
		}
	}
	defer context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })() // a time that has passed ends the waiting
	if err := send(c, q); err != nil {
		return r, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	if err := receive(c, &r); err != nil {
		return r, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	if r.Error != "" {
		return r, fmt.Errorf("%w: %s", ErrRefused, r.Error)
	}
	return r, nil
}

// keep writes the identity and the certificate to folder, the identity last: the machine has joined when
// Load finds it.
func (id *Identity) keep(folder string, t Token, key crypto.Signer, r reply) error {
	own, err := x509.ParseCertificate(r.Certificate)
	if err != nil {
		return fmt.Errorf("join: the certificate that was sent: %w", err)
	}
	authority, err := x509.ParseCertificate(r.Authority)
	if err != nil || sha256.Sum256(r.Authority) != t.Authority {
		return fmt.Errorf("%w: it has sent another authority", ErrImpostor)
	}
	if err := verify(own, authority, hostOf(id.Advertise)); err != nil {
		return fmt.Errorf("join: the certificate that was sent: %w", err)
	}
	if !sameKey(own, key) {
		return fmt.Errorf("%w: it has sent the certificate of another machine", ErrImpostor)
	}
	if err := savePEM(filepath.Join(folder, authorityFile), certificateType, r.Authority); err != nil {
		return fmt.Errorf("join: %w", err)
	}
	if err := savePEM(filepath.Join(folder, certificateFile), certificateType, r.Certificate); err != nil {
		return fmt.Errorf("join: %w", err)
	}
	return id.Save(folder)
}

// AwaitFounders asks the issuer, as the machine whose TLS configuration is config, until all founders
// have joined, and returns their addresses. It calls waiting when it begins to wait, and when the reason
// changes. It also learns Current. It fails only when ctx is done.
func (id *Identity) AwaitFounders(ctx context.Context, config *tls.Config, waiting func(reason string)) (map[rdma.MachineID]string, error) {
	for last := ""; ; {
		founders, reason := id.askFounders(ctx, config)
		if founders != nil {
			return founders, nil
		}
		if reason != last && ctx.Err() == nil {
			waiting(reason)
			last = reason
		}
		if err := pause(ctx); err != nil {
			return nil, err
		}
	}
}

// AwaitFounders waits until all founders have joined, and returns their addresses. It calls waiting as
// Identity.AwaitFounders does.
func (i *Issuer) AwaitFounders(ctx context.Context, waiting func(reason string)) (map[rdma.MachineID]string, error) {
	for last := 0; ; {
		founders, missing := i.Store()
		if founders != nil {
			return founders, nil
		}
		if missing != last {
			waiting(missingText(missing) + "; farmsql token makes tokens")
			last = missing
		}
		if err := pause(ctx); err != nil {
			return nil, err
		}
	}
}

// pause waits for askAgain. It fails when ctx is done.
func pause(ctx context.Context) error {
	timer := time.NewTimer(askAgain)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func missingText(n int) string {
	if n == 1 {
		return "1 machine has yet to join before the cluster begins"
	}
	return fmt.Sprintf("%d machines have yet to join before the cluster begins", n)
}

// askFounders asks once, and notes in Current who keeps the configuration. If there is no answer, founders are
// missing, or another founder has this machine's place, it returns nil and the reason.
func (id *Identity) askFounders(ctx context.Context, config *tls.Config) (map[rdma.MachineID]string, string) {
	ctx, cancel := context.WithTimeout(ctx, requestMax)
	defer cancel()
	c, err := connect(ctx, id.Issuer, config)
	if err != nil {
		return nil, err.Error()
	}
	defer c.Close()
	r, err := exchange(ctx, c, request{Format: messageFormat})
	switch {
	case err != nil:
		return nil, err.Error()
	case r.Founders == nil:
		return nil, missingText(r.Missing)
	case r.Founders[id.Machine] != id.Advertise && id.IsFounder():
		return nil, fmt.Sprintf("the list of machines has %q as the address of this machine: another has taken its place", r.Founders[id.Machine])
	}
	id.Current = r.Current
	return r.Founders, ""
}

// AskCurrent asks the issuer once who keeps the configuration at present, and notes it in Current. It reports
// whether that is known.
func (id *Identity) AskCurrent(ctx context.Context, config *tls.Config) bool {
	asking := *id // a copy: an answer without Current must not remove what is known
	founders, _ := asking.askFounders(ctx, config)
	if founders == nil || asking.Current == nil {
		return false
	}
	id.Current = asking.Current
	return true
}
