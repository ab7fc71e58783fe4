package raftstore

import (
	"encoding/binary"
	"fmt"

	"github.com/farmsql/farmsql/cluster"
)

// configurationBytesMax is how large a configuration may be.
const configurationBytesMax = 4 << 20

// The versions of entries and of snapshots. A machine that applies a newer one than it knows stops: a
// program must write a newer format only when all machines know it. So foundersFormat is written only once
// founders have been changed, which is refused while a founder with an earlier program is connected.
const (
	entryFormat    = 1
	foundersFormat = 2 // changes of the founders, and snapshots after one
	wantedFormat   = 3 // changes of how many founders are wanted
)

const (
	swapHeaderBytes  = 40
	stateHeaderBytes = 32
)

// A requestID tells the requests of all machines apart: machine, a random number of the Store's
// life, and a counter. In a Client's, everything except the counter is random.
type requestID [16]byte

// A swap is the content of an entry of the log:
//
//	| format 1 | zeros 7 | old 8 | revision 8 | id 16 | configuration |
type swap struct {
	old, revision uint64
	id            requestID
	configuration []byte // in the encoding of cluster.Configuration.Encode
}

// newSwap returns a swap, or an error if it may not be made.
func newSwap(id requestID, old uint64, next *cluster.Configuration) (*swap, error) {
	s := &swap{old, next.Revision, id, next.Encode()}
	if len(s.configuration) > configurationBytesMax {
		return nil, fmt.Errorf("%w: %d regions take %d bytes, it has room for %d; use larger regions", ErrTooLarge, len(next.Regions), len(s.configuration), configurationBytesMax)
	}
	return s, s.check()
}

// check refuses a swap that the log must not have.
func (s *swap) check() error {
	switch {
	case s.revision <= s.old:
		return fmt.Errorf("cluster: the configuration has revision %d, and is to replace revision %d", s.revision, s.old)
	case len(s.configuration) > configurationBytesMax:
		return fmt.Errorf("%w: %d bytes, it has room for %d", ErrTooLarge, len(s.configuration), configurationBytesMax)
	}
	return nil
}

func (s *swap) encode() []byte {
	b := make([]byte, 8, swapHeaderBytes+len(s.configuration))
	b[0] = entryFormat
	b = binary.LittleEndian.AppendUint64(b, s.old)
	b = binary.LittleEndian.AppendUint64(b, s.revision)
	b = append(b, s.id[:]...)
	return append(b, s.configuration...)
}

func decodeSwap(b []byte) (s swap, err error) {
	if err := checkFormat("an entry", b, swapHeaderBytes, wantedFormat); err != nil {
		return s, err
	}
	s.old, s.revision = binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:])
	copy(s.id[:], b[24:])
	s.configuration = b[swapHeaderBytes:]
	return s, nil
}

// checkFormat refuses what is shorter than its header, or of a newer format than the newest that this program knows of
// its kind.
func checkFormat(what string, b []byte, headerBytes int, newest byte) error {
	switch {
	case len(b) < headerBytes || b[0] == 0:
		return fmt.Errorf("%w: %s of %d bytes", ErrDamaged, what, len(b))
	case b[0] > newest:
		return fmt.Errorf("%w: %s has format %d, this program knows formats up to %d: use a newer farmsql", ErrNewer, what, b[0], newest)
	}
	return nil
}

// A state is the current configuration, as it is after some entry of the log. It is the content of
// snapshots:
//
//	| format 1 | zeros 7 | revision 8 | writer 16 | founders | configuration |
//
// In format 1 it has no founders: they are those of the Founding.
type state struct {
	revision      uint64    // 0: there is no configuration
	writer        requestID // the swap that made it current
	configuration []byte
	founders      *Founders // nil if they are those of the Founding
}

func (s *state) encode() []byte {
	b := make([]byte, 8, stateHeaderBytes+len(s.configuration))
	b[0] = entryFormat
	b = binary.LittleEndian.AppendUint64(b, s.revision)
	b = append(b, s.writer[:]...)
	if s.founders != nil {
		b[0] = foundersFormat
		b = append(b, encodeFounders(s.founders)...)
	}
	return append(b, s.configuration...)
}

func decodeState(b []byte) (s state, err error) {
	if err := checkFormat("a snapshot", b, stateHeaderBytes, foundersFormat); err != nil {
		return s, err
	}
	s.revision = binary.LittleEndian.Uint64(b[8:])
	copy(s.writer[:], b[16:])
	s.configuration = b[stateHeaderBytes:]
	if b[0] == foundersFormat {
		s.founders, s.configuration, err = decodeFounders(s.configuration)
	}
	return s, err
}

// errMovedOn is cluster.ErrMoved for a swap that may have been carried out before, by another copy of it:
// the revision is above the one that it writes.
var errMovedOn = fmt.Errorf("%w, more than once", cluster.ErrMoved)

// apply carries out a swap, or returns cluster.ErrMoved or errMovedOn. A second copy of a swap moves nothing: the
// revision is above old then, and never falls. While the swap is the last one, its copies succeed.
func (s *state) apply(c swap) error {
	switch {
	case c.old == s.revision:
		s.revision, s.writer, s.configuration = c.revision, c.id, c.configuration
		return nil
	case c.id == s.writer:
		return nil
	case c.revision < s.revision:
		return errMovedOn
	}
	return cluster.ErrMoved
}
