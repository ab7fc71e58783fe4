package message

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/farmsql/farmsql/internal/protocol"
	"github.com/farmsql/farmsql/rdma/ring"
)

// A Greeting tells a peer where to write: the location of the log and the message queue of each
// worker.
type Greeting struct {
	Epoch   uint64
	Workers []WorkerGreeting
}

// A WorkerGreeting is the location of the log and the message queue of one worker. Life counts how
// often the machine has begun to listen to the peer.
type WorkerGreeting struct {
	Life          uint32
	Log, Messages ring.State
}

// ErrBadGreeting means that bytes are not a valid greeting.
var ErrBadGreeting = errors.New("txn: bad greeting")

// Append encodes the greeting after b, in the protocol version that the two machines speak with
// each other. From protocol.Ranges on, the encoding begins with a word that holds the version.
func (g *Greeting) Append(b []byte, version protocol.Version) []byte {
	if version >= protocol.Ranges {
		b = binary.LittleEndian.AppendUint64(b, uint64(version))
	}
	b = binary.LittleEndian.AppendUint64(b, g.Epoch)
	for _, w := range g.Workers {
		b = binary.LittleEndian.AppendUint64(b, uint64(w.Life))
		for _, s := range []ring.State{w.Log, w.Messages} {
			for _, v := range []uint64{s.Nonce, s.Bytes, s.Head, s.Tail} {
				b = binary.LittleEndian.AppendUint64(b, v)
			}
		}
	}
	return b
}

// greetingBytes is the encoded size of one worker's part.
const greetingBytes = 9 * 8

// DecodeGreeting decodes the result of Greeting.Append in the given protocol version.
func DecodeGreeting(b []byte, version protocol.Version) (g Greeting, err error) {
	if version >= protocol.Ranges {
		if len(b) < 8 {
			return g, fmt.Errorf("%w: %d bytes", ErrBadGreeting, len(b))
		}
		if sent := binary.LittleEndian.Uint64(b); sent != uint64(version) {
			return g, fmt.Errorf("%w: it is of version %d of the protocol, the two machines speak version %d: start the one with the older farmsql anew, with the newer one",
				ErrBadGreeting, sent, version)
		}
		b = b[8:]
	}
	if len(b) < 8 || (len(b)-8)%greetingBytes != 0 {
		return g, fmt.Errorf("%w: %d bytes", ErrBadGreeting, len(b))
	}
	// word and state take the next bytes from b, whose length has been checked.
	word := func() uint64 { v := binary.LittleEndian.Uint64(b); b = b[8:]; return v }
	state := func() ring.State { return ring.State{Nonce: word(), Bytes: word(), Head: word(), Tail: word()} }
	g.Epoch = word()
	for len(b) > 0 {
		life := word()
		if life > math.MaxUint32 {
			return g, fmt.Errorf("%w: life %d", ErrBadGreeting, life)
		}
		w := WorkerGreeting{Life: uint32(life), Log: state(), Messages: state()}
		for _, s := range []ring.State{w.Log, w.Messages} {
			if s.Bytes < ring.BytesMin/2 || s.Bytes > ring.BytesMax || s.Bytes%8 != 0 || s.Tail < s.Head || s.Tail-s.Head > s.Bytes {
				return g, fmt.Errorf("%w: ring %+v", ErrBadGreeting, s)
			}
		}
		g.Workers = append(g.Workers, w)
	}
	return g, nil
}
