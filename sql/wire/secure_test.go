package wire

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	stdsql "database/sql"
	"encoding/binary"
	"io"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"
)

func selfSigned(t testing.TB) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
}

func TestTLS(t *testing.T) {
	s := startServer(t, Config{TLS: selfSigned(t), RequireTLS: true})
	wantError(t, s.open(t, "").Ping(), 3159, "HY000", "TLS")
	db := s.open(t, "tls=skip-verify")
	var v string
	if err := db.QueryRow("select 'over tls'").Scan(&v); err != nil || v != "over tls" {
		t.Fatal(v, err)
	}
	mustExec(t, s.openLocal(t), "select 1") // nothing goes over a network
}

// A client that must use TLS, does not, and goes on as if it had not heard of it, is not let
// in, and its password not looked at.
func TestRequiredTLSCannotBeIgnored(t *testing.T) {
	s := startServer(t, Config{TLS: selfSigned(t), RequireTLS: true})
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	r := &rawClient{c}
	r.read(t)
	// The TLS flag in a whole handshake response has no effect.
	login := loginPacket()
	login[5] |= 0x08
	if _, err := r.Write(login); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(r)
	if !bytes.Contains(rest, []byte("requires TLS")) || len(rest) < 7 || int(rest[0])+4 != len(rest) {
		t.Errorf("answered %q", rest)
	}
}

// The status variables tell how a session is secured, with the names that MySQL has.
func TestTLSStatus(t *testing.T) {
	s := startServer(t, Config{TLS: selfSigned(t)})
	for options, want := range map[string][2]string{"": {"", ""}, "tls=skip-verify": {"TLS_AES_128_GCM_SHA256", "TLSv1.3"}} {
		db := s.open(t, options)
		for range 2 {
			for i, name := range []string{"Ssl_cipher", "Ssl_version"} {
				var v string
				if err := db.QueryRow("show session status like '"+name+"'").Scan(&name, &v); err != nil || v != want[i] {
					t.Errorf("%s: %s = %q, %v, want %q", options, name, v, err, want[i])
				}
			}
		}
	}
	for suite, want := range map[uint16]string{
		tls.TLS_CHACHA20_POLY1305_SHA256:                  "TLS_CHACHA20_POLY1305_SHA256",
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256:       "ECDHE-ECDSA-AES128-GCM-SHA256",
		tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256:   "ECDHE-RSA-CHACHA20-POLY1305",
		tls.TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA:            "ECDHE-RSA-AES256-SHA",
		tls.TLS_RSA_WITH_AES_128_GCM_SHA256:               "AES128-GCM-SHA256",
		tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256: "ECDHE-ECDSA-CHACHA20-POLY1305",
	} {
		if got := cipherName(suite); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// Accounts that require TLS, and passwords that may be sent through nothing else.
func TestAccountsThatNeedTLS(t *testing.T) {
	s := startServer(t, Config{TLS: selfSigned(t)})
	mustExec(t, s.openLocal(t), "create user secure@localhost require ssl",
		"create user sha@localhost identified with caching_sha2_password by 'secret'")
	for _, tc := range []struct {
		user, options string
		ok            bool
	}{
		{"secure", "", false},
		{"secure", "tls=skip-verify", true},
		{"sha:secret", "tls=skip-verify", true},
		{"sha:wrong", "tls=skip-verify", false},
		{"sha:secret", "tls=false", false},
	} {
		err := s.openAs(t, tc.user, tc.options).Ping()
		if tc.ok != (err == nil) {
			t.Errorf("%s %s: %v", tc.user, tc.options, err)
		}
	}
}

// A packet over the limit is refused with the reason, however long it is, and through TLS too.
func TestPacketLimit(t *testing.T) {
	for _, options := range []string{"tls=false", "tls=skip-verify"} {
		s := startServer(t, Config{MaxPacketBytes: 4 << 10, TLS: selfSigned(t)})
		open := func() *stdsql.DB { return s.open(t, "maxAllowedPacket=40000000&"+options) }
		query := func(n int) string { return "select length('" + strings.Repeat("x", n) + "')" }
		var n int
		if err := open().QueryRow(query(3000)).Scan(&n); err != nil || n != 3000 {
			t.Fatal(n, err)
		}
		for _, size := range []int{5000, 1 << 20, 30 << 20} {
			wantError(t, open().QueryRow(query(size)).Scan(&n), 1153, "08S01", "max_allowed_packet")
		}
		if err := open().QueryRow(query(10)).Scan(&n); err != nil || n != 10 {
			t.Fatalf("the server did not survive: %d, %v", n, err)
		}
	}
}

// A client that has not logged in cannot make the server read much, not even through TLS.
func TestLongHandshakeIsRefused(t *testing.T) {
	s := startServer(t, Config{TLS: selfSigned(t)})
	for _, secure := range []bool{false, true} {
		c, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(20 * time.Second))
		r := &rawClient{c}
		r.read(t)
		sequence := byte(1)
		if secure {
			request := make([]byte, 32)
			binary.LittleEndian.PutUint32(request, 0xa00|0x8000)
			r.write(t, 1, request)
			r.Conn = tls.Client(c, &tls.Config{InsecureSkipVerify: true})
			sequence = 2
		}
		if _, err := r.Write([]byte{0xff, 0xff, 0xfe, sequence, 0, 0x0a, 0, 0}); err != nil {
			t.Fatal(err)
		}
		if p := r.read(t); p[0] != 0xff || binary.LittleEndian.Uint16(p[1:]) != 1153 {
			t.Errorf("answered %q", p)
		}
	}
}

// Long data that is sent in pieces for a prepared statement counts together.
func TestLongDataLimit(t *testing.T) {
	s := startServer(t, Config{MaxPacketBytes: 4 << 10})
	c := dialRaw(t, s.addr)
	p := c.command(t, append([]byte{0x16}, "select length(?)"...))
	id := p[1:5]
	for range 2 { // definitions of a parameter and a column, each with its end
		c.read(t)
		c.read(t)
	}
	piece := append(append([]byte{0x18}, id...), make([]byte, 2+1000)...)
	for range 5 {
		c.write(t, 0, piece)
	}
	if p := c.read(t); p[0] != 0xff || binary.LittleEndian.Uint16(p[1:]) != 1153 {
		t.Errorf("answered %q", p)
	}
	if _, err := io.Copy(io.Discard, c); err != nil {
		t.Errorf("not disconnected: %v", err)
	}
}
