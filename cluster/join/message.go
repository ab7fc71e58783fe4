package join

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/farmsql/farmsql/rdma"
)

// A connection carries one request and its reply, each a length of four bytes and JSON.
const (
	messageFormat = 1
	messageMax    = 64 << 10
)

// A request asks the issuer to admit a machine or, with the certificate of a machine that has been
// admitted and without a secret, for the founders.
type request struct {
	Format  int
	Secret  []byte `json:",omitempty"`
	Address string `json:",omitempty"` // the address at which the others reach the machine
	Key     []byte `json:",omitempty"` // the machine's public key (PKIX)
}

// A reply is the issuer's answer. If Error is set, no other field is.
type reply struct {
	Error                  string `json:",omitempty"`
	Cluster                uint64
	Machine                rdma.MachineID
	Issuer                 string
	Authority, Certificate []byte `json:",omitempty"` // DER
	Settings               Settings
	// Founders is nil while Missing founders have not joined.
	Founders map[rdma.MachineID]string `json:",omitempty"`
	Missing  int
	// Current is the new value for Identity.Current.
	Current json.RawMessage `json:",omitempty"`
}

var errMessage = errors.New("join: not a message of this protocol")

func send(w io.Writer, message any) error {
	b, err := json.Marshal(message)
	if err != nil {
		return err
	}
	_, err = w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...))
	return err
}

func receive(r io.Reader, message any) error {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(length[:])
	if n > messageMax {
		return fmt.Errorf("%w: %d bytes", errMessage, n)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		return err
	}
	if err := json.Unmarshal(b, message); err != nil {
		return fmt.Errorf("%w: %w", errMessage, err)
	}
	return nil
}
