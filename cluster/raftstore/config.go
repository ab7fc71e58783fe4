package raftstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"
)

const (
	// patienceDefault is Config.Patience if that is not set.
	patienceDefault = 5 * time.Second
	// tickDefault is the unit in which the library counts time, and this package too.
	tickDefault = 100 * time.Millisecond
)

// A Config says how a machine takes part in the store that its folder was created for.
type Config struct {
	// Folder is where Create has made this machine's part of the store.
	Folder string
	// Listener accepts the connections of the other machines. The Store closes it.
	Listener net.Listener
	// Dial connects to the address of another machine, as Founding.Machines has it. It must end when ctx
	// is done.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	// TLS secures connections. It has the machine's certificate, and in RootCAs and ClientCAs the
	// authorities that certify the others'. With nil, connections travel in the clear, and whoever
	// reaches the listener can replace the configuration.
	TLS *tls.Config
	// Refused, if not nil, is called for each accepted connection that is refused, by several goroutines
	// at once: of strangers, and of machines that were founded otherwise or belong elsewhere.
	Refused func(from net.Addr, reason error)
	// Patience bounds Load and CompareAndSwap. Elections take up to 2 s. If it is 0, it is 5 s.
	Patience time.Duration

	// tick is tickDefault, but in tests.
	tick time.Duration
}

// The store's periods, in ticks.
const (
	heartbeatTicks = 3
	electionTicks  = 10 // to twice as many: when a follower that hears nothing stands for election
	retryTicks     = 10 // when a request without an answer is sent again
	redialTicks    = 5  // after a connection has failed
	silenceTicks   = 50 // how long a peer may leave something unanswered before its connection is given up
)

var errTLS = errors.New("cluster: TLS of the configuration store needs RootCAs and ClientCAs, and must verify: without them, the authorities of the system would let in strangers")

// complete checks c and sets what has a default.
func (c *Config) complete() error {
	switch {
	case c.Listener == nil || c.Dial == nil:
		return errors.New("cluster: the configuration store needs a listener and a dialer")
	case c.Patience < 0:
		return fmt.Errorf("cluster: the configuration store has a patience of %v", c.Patience)
	case c.TLS != nil && (c.TLS.RootCAs == nil || c.TLS.ClientCAs == nil || c.TLS.InsecureSkipVerify):
		return errTLS
	}
	if c.Patience == 0 {
		c.Patience = patienceDefault
	}
	if c.tick == 0 {
		c.tick = tickDefault
	}
	return nil
}

// after returns how long a number of ticks is.
func (c *Config) after(ticks int) time.Duration { return time.Duration(ticks) * c.tick }

// accepted returns an accepted connection, secured if there is TLS.
func (c *Config) accepted(ctx context.Context, socket net.Conn) (net.Conn, error) {
	if c.TLS == nil {
		return socket, nil
	}
	config := c.TLS.Clone()
	config.MinVersion = tls.VersionTLS13
	config.ClientAuth = tls.RequireAndVerifyClientCert
	config.GetConfigForClient = nil // it would replace what is set here
	secured := tls.Server(socket, config)
	return secured, secured.HandshakeContext(ctx)
}

// dialled returns a connection to address, secured if there is TLS.
func (c *Config) dialled(ctx context.Context, socket net.Conn, address string) (net.Conn, error) {
	if c.TLS == nil {
		return socket, nil
	}
	config := c.TLS.Clone()
	config.MinVersion = tls.VersionTLS13
	if config.ServerName == "" {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		config.ServerName = host
	}
	secured := tls.Client(socket, config)
	return secured, secured.HandshakeContext(ctx)
}
