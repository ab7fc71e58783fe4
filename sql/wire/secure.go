package wire

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/dolthub/go-mysql-server/server"
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/vitess/go/mysql"

	"github.com/farmsql/farmsql/sql/myerr"
)

// A client that wants TLS answers the greeting with the first 32 bytes of its handshake response,
// does the TLS handshake, and sends the response through TLS:
//
//	server  greeting, which offers TLS   0
//	client  request for TLS, 32 bytes    1
//	        TLS
//	client  handshake response           2    for the protocol library: 1
//	server  its answer                   3    for the protocol library: 2
//
// The protocol library could do the same itself, but then this package would not see what is sent
// through TLS. So the library sees neither the request nor, in the response, the flag that TLS is
// in use.

// tlsRequestBytes is the length of the request; no handshake response is that short.
const tlsRequestBytes = 32

// open reads the client's answer to the greeting up to the flag that asks for TLS, and does
// the TLS handshake.
func (c *conn) open() error {
	header, flags, err := c.readOpening()
	if err != nil {
		return err
	}
	if packetLength(header) == tlsRequestBytes && c.mux.cfg.TLS != nil && wantsTLS(flags) {
		if _, err := io.ReadFull(c.Conn, make([]byte, tlsRequestBytes-len(flags))); err != nil {
			return err
		}
		secure := tls.Server(c.Conn, c.mux.cfg.TLS)
		if err := secure.Handshake(); err != nil { // the deadline of the whole handshake applies
			return fmt.Errorf("wire: TLS: %w", err)
		}
		c.secure.Store(secure)
		if header, flags, err = c.readOpening(); err != nil {
			return err
		}
		c.meter.shift = 1
	} else if c.mux.cfg.RequireTLS && c.source != nil {
		c.answer(header, myerr.InsecureTransport.New())
		return errors.New("wire: a client without TLS")
	}
	if len(flags) == 4 && binary.LittleEndian.Uint32(flags)&capabilityCompress != 0 {
		c.answer(header, myerr.BadHandshake.New())
		return errors.New("wire: a client that compresses")
	}
	if len(flags) == 4 {
		binary.LittleEndian.PutUint32(flags, binary.LittleEndian.Uint32(flags)&^mysql.CapabilityClientSSL)
	}
	c.ahead = append(header, flags...)
	return nil
}

// capabilityCompress means that a client compresses all further packets. The server does not
// offer it, but PHP's library uses it all the same if told to.
const capabilityCompress = 0x20

// readOpening reads the header of a packet, and the client's capabilities at the start of its
// payload.
func (c *conn) readOpening() (header, flags []byte, err error) {
	header = make([]byte, packetHeaderBytes, packetHeaderBytes+4)
	if _, err := io.ReadFull(c.stream(), header); err != nil {
		return nil, nil, err
	}
	flags = make([]byte, min(4, packetLength(header)))
	_, err = io.ReadFull(c.stream(), flags)
	return header, flags, err
}

func wantsTLS(flags []byte) bool {
	return binary.LittleEndian.Uint32(flags)&mysql.CapabilityClientSSL != 0
}

// readBufferBytes is the protocol library's read buffer for a connection; most requests fit
// it, and it reads longer ones past the buffer. The library's default is 16 KiB.
const readBufferBytes = 1 << 10

// newListener returns the protocol library's listener. It authenticates a client according to
// whether our connection uses TLS.
func newListener(cfg server.Config, l mysql.ListenerConfig, events server.ServerEventListener) (server.ProtocolListener, error) {
	l.AuthServer = authServer{l.AuthServer}
	l.ConnReadBufferSize = readBufferBytes
	return server.MySQLProtocolListenerFactory(cfg, l, events)
}

// An authServer tells the protocol library that TLS is in use before it authenticates a
// client.
type authServer struct{ mysql.AuthServer }

// AuthMethods implements mysql.AuthServer.
func (a authServer) AuthMethods() []mysql.AuthMethod {
	methods := a.AuthServer.AuthMethods()
	told := make([]mysql.AuthMethod, len(methods))
	for i, m := range methods {
		told[i] = authMethod{m}
	}
	return told
}

type authMethod struct{ mysql.AuthMethod }

// HandleUser implements mysql.AuthMethod. The library calls it before the other methods.
func (a authMethod) HandleUser(c *mysql.Conn, user string) bool {
	if connOf(c).secure.Load() != nil {
		c.Capabilities |= mysql.CapabilityClientSSL
	}
	return a.AuthMethod.HandleUser(c, user)
}

// tellTLS sets the status variables that describe a session's TLS.
func (c *conn) tellTLS(session gms.Session) error {
	secure := c.secure.Load()
	if secure == nil {
		return nil // without TLS the variables are empty
	}
	state := secure.ConnectionState()
	return errors.Join(
		session.SetStatusVariable(nil, "Ssl_cipher", cipherName(state.CipherSuite)),
		session.SetStatusVariable(nil, "Ssl_version", strings.Replace(tls.VersionName(state.Version), "TLS 1", "TLSv1", 1)),
	)
}

// cipherName returns OpenSSL's name of a cipher suite, which MySQL shows. For TLS 1.3 it is
// the standard's name, for others a shorter one.
func cipherName(suite uint16) string {
	name := tls.CipherSuiteName(suite)
	exchange, rest, found := strings.Cut(strings.TrimPrefix(name, "TLS_"), "_WITH_")
	if !found {
		return name
	}
	if exchange == "RSA" {
		exchange = ""
	} else {
		exchange += "-"
	}
	rest = strings.NewReplacer("AES_", "AES", "CHACHA20_POLY1305_SHA256", "CHACHA20-POLY1305", "_CBC", "").Replace(rest)
	return strings.ReplaceAll(exchange+rest, "_", "-")
}
