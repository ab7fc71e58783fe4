package raftstore

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
)

var (
	errTLS         = errors.New("cluster: TLS of the configuration store needs RootCAs and ClientCAs, and must verify: without them, the authorities of the system would let in strangers")
	errNotVerified = errors.New("cluster: the other side of a connection of the configuration store has shown no certificate that was verified")
)

// checkTLS refuses a configuration that lets in strangers.
func checkTLS(c *tls.Config) error {
	if c != nil && (c.RootCAs == nil || c.ClientCAs == nil || c.InsecureSkipVerify) {
		return errTLS
	}
	return nil
}

// A securedConn is a connection over which TLS is spoken already, as a *tls.Conn is.
type securedConn interface {
	net.Conn
	HandshakeContext(ctx context.Context) error
	ConnectionState() tls.ConnectionState
}

// acceptTLS returns an accepted connection, secured if there is TLS. A connection that is
// secured already stays as it is: one port serves several protocols, and must make the
// handshake itself to know the protocol of a connection (ALPN).
func acceptTLS(ctx context.Context, c *tls.Config, socket net.Conn) (net.Conn, error) {
	if secured, ok := socket.(securedConn); ok {
		return verified(ctx, secured)
	}
	if c == nil {
		return socket, nil
	}
	config := c.Clone()
	config.MinVersion = tls.VersionTLS13
	config.ClientAuth = tls.RequireAndVerifyClientCert
	config.GetConfigForClient = nil // it would replace what is set here
	return verified(ctx, tls.Server(socket, config))
}

// dialTLS returns a connection to address, secured if there is TLS and it is not secured already.
func dialTLS(ctx context.Context, c *tls.Config, socket net.Conn, address string) (net.Conn, error) {
	if secured, ok := socket.(securedConn); ok {
		return verified(ctx, secured)
	}
	if c == nil {
		return socket, nil
	}
	config := c.Clone()
	config.MinVersion = tls.VersionTLS13
	if config.ServerName == "" {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		config.ServerName = host
	}
	return verified(ctx, tls.Client(socket, config))
}

// verified makes the handshake of a connection, if that is still to be made, and demands that the other
// side has shown a certificate.
func verified(ctx context.Context, c securedConn) (net.Conn, error) {
	if err := c.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	if len(c.ConnectionState().VerifiedChains) == 0 {
		return nil, errNotVerified
	}
	return c, nil
}
