package lookup

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/outcome"
	"github.com/farmsql/farmsql/txn/worker"
)

// An Answer is what the owner has found for a key.
type Answer struct {
	Found bool
	Value []byte
	// Sources are the objects that the answer came from: for an absent key, the objects that an
	// insert of the key would change. There is at least one.
	Sources []txn.Source
}

// ErrMessage means that an answer of another machine does not decode.
var ErrMessage = errors.New("lookup: bad answer")

const (
	// sourcesMax is the largest number of sources of an answer.
	sourcesMax        = math.MaxUint16
	answerHeaderBytes = 3 // found, and the number of sources
	sourceBytes       = region.PtrBytes + 8
)

// append encodes the answer: found, the number of sources, each source's pointer and version, the value.
func (a Answer) append(b []byte) []byte {
	found := byte(0)
	if a.Found {
		found = 1
	}
	b = binary.LittleEndian.AppendUint16(append(b, found), uint16(len(a.Sources)))
	for _, s := range a.Sources {
		b = binary.LittleEndian.AppendUint64(s.Ptr.Append(b), uint64(s.Version))
	}
	return append(b, a.Value...)
}

// reply encodes the answer. It fails if the answer has too many sources to encode: a source
// that was left out would not be validated.
func (a Answer) reply() ([]byte, error) {
	if len(a.Sources) > sourcesMax {
		return nil, fmt.Errorf("%w: an answer with %d sources, the limit is %d", outcome.ErrTooLarge, len(a.Sources), sourcesMax)
	}
	return a.append(nil), nil
}

// decodeAnswer is the reverse of append. The answer's value lies in b.
func decodeAnswer(b []byte) (a Answer, err error) {
	if len(b) < answerHeaderBytes || b[0] > 1 {
		return a, fmt.Errorf("%w of %d bytes", ErrMessage, len(b))
	}
	a.Found = b[0] == 1
	n := int(binary.LittleEndian.Uint16(b[1:]))
	b = b[answerHeaderBytes:]
	if n == 0 || len(b) < n*sourceBytes {
		return a, fmt.Errorf("%w: %d sources in %d bytes", ErrMessage, n, len(b))
	}
	a.Sources = make([]txn.Source, n)
	for i := range a.Sources {
		p, err := region.DecodePtr(b)
		if err != nil || p.IsNil() {
			return a, fmt.Errorf("%w: source %d", ErrMessage, i)
		}
		a.Sources[i] = txn.Source{Ptr: p, Version: region.Version(binary.LittleEndian.Uint64(b[region.PtrBytes:]))}
		b = b[sourceBytes:]
	}
	a.Value = b
	return a, nil
}

// Serve makes machine m answer the lookups of a structure by fn, the paper's rpc_handler. fn
// gets the bytes that Search.Request wrote at another machine, and finds the answer by its own
// reads. It must not send messages: two machines that take each other for the owner would go on
// for ever. h names the kind of structure at all machines, each of which calls Serve before its
// first lookup. The HandlerIDs from Users on are free.
func Serve(m *txn.Machine, h worker.HandlerID, fn func(ctx context.Context, request []byte) (Answer, error)) {
	m.Handle(h, func(ctx context.Context, request []byte) ([]byte, error) {
		a, err := fn(ctx, request)
		if err != nil {
			return nil, err
		}
		return a.reply()
	})
}

// Users is the first HandlerID that no package of farmsql uses.
const Users worker.HandlerID = 0x8000
