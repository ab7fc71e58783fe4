package join

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"net"
	"path/filepath"
	"strings"
)

// A Token is all that a machine needs to join a cluster. Whoever has it can join, and read and change
// all data.
type Token struct {
	// Address is where the issuer is reached, HOST:PORT.
	Address string
	// Authority is the SHA-256 hash of the certificate of the cluster's authority.
	Authority [sha256.Size]byte
	// Secret shows the issuer that the machine may join.
	Secret [secretBytes]byte
}

const (
	secretBytes = 16
	tokenPrefix = "farmsql-"
	tokenFormat = 1
	addressMax  = 255
	// tokenFixed is how many bytes of a token do not depend on the address: format, authority,
	// secret, and a checksum at the end.
	tokenFixed = 1 + sha256.Size + secretBytes + checksumBytes

	checksumBytes = 4
)

// ErrToken matches the errors of ParseToken.
var ErrToken = errors.New("join: not a token of a cluster")

// newSecret draws the secret of a token.
func newSecret() (s [secretBytes]byte) {
	_, _ = rand.Read(s[:]) // never fails
	return s
}

// hashOf returns the hash that the issuer keeps of a secret or of a public key.
func hashOf(secret []byte) string {
	h := sha256.Sum256(secret)
	return hex.EncodeToString(h[:])
}

// String returns the token as text without spaces, for a command line.
func (t Token) String() string {
	b := append([]byte{tokenFormat}, t.Authority[:]...)
	b = append(b, t.Secret[:]...)
	b = append(b, t.Address...)
	sum := crc32.ChecksumIEEE(b)
	b = append(b, byte(sum>>24), byte(sum>>16), byte(sum>>8), byte(sum))
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(b)
}

// ParseToken returns the token of a text that String has made. It notices a text that was cut or
// mistyped. All its errors match ErrToken, and none has the text, which is secret.
func ParseToken(text string) (t Token, err error) {
	body, ok := strings.CutPrefix(strings.TrimSpace(text), tokenPrefix)
	if !ok {
		return t, fmt.Errorf("%w: it does not begin with %s", ErrToken, tokenPrefix)
	}
	b, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil || len(b) <= tokenFixed {
		return t, fmt.Errorf("%w: copy it whole", ErrToken)
	}
	rest, sum := b[:len(b)-checksumBytes], b[len(b)-checksumBytes:]
	want := crc32.ChecksumIEEE(rest)
	if !bytes.Equal(sum, []byte{byte(want >> 24), byte(want >> 16), byte(want >> 8), byte(want)}) {
		return t, fmt.Errorf("%w: copy it whole", ErrToken)
	}
	if rest[0] != tokenFormat {
		return t, fmt.Errorf("%w: it has format %d, this program knows format %d: use the farmsql of the machine that made it", ErrToken, rest[0], tokenFormat)
	}
	rest = rest[1:]
	copy(t.Authority[:], rest)
	copy(t.Secret[:], rest[sha256.Size:])
	t.Address = string(rest[sha256.Size+secretBytes:])
	if _, _, err := net.SplitHostPort(t.Address); err != nil {
		return t, fmt.Errorf("%w: its address is %q", ErrToken, t.Address)
	}
	return t, nil
}

// IsOf reports whether a token is of the cluster of the machine whose folder is given.
func (t Token) IsOf(folder string) (bool, error) {
	c, err := loadCertificate(filepath.Join(folder, authorityFile))
	if err != nil {
		return false, err
	}
	return sha256.Sum256(c.Raw) == t.Authority, nil
}
