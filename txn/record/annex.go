package record

import (
	"encoding/binary"
	"fmt"

	"github.com/farmsql/farmsql/nvram"
)

// An Annex locates a record's writes outside of the record.
type Annex struct {
	// Number is random and names the annex at its machine, in all of the machine's lives. 0 means
	// that there is no annex.
	Number uint64
	Bytes  uint64
	Writes uint32 // the number of writes
}

// IsNone reports whether the writes are in the record itself.
func (a *Annex) IsNone() bool { return a.Number == 0 }

// isPossible reports whether the fields make sense.
func (a *Annex) isPossible() bool {
	return a.Number != 0 && a.Number <= AnnexNumberMax && a.Bytes%nvram.WordBytes == 0 &&
		a.Bytes <= AnnexBytesMax && a.Bytes >= uint64(a.Writes)*writeHeaderBytes
}

// Append encodes the annex after b, at the end of a record.
func (a *Annex) Append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, a.Number)
	return binary.LittleEndian.AppendUint64(b, a.Bytes)
}

const (
	// AnnexNumberMax bounds annex numbers, which have to fit into a registration's key.
	AnnexNumberMax = 1<<56 - 1
	// AnnexBytesMax bounds the writes of a transaction: recovery must be able to write them all to a
	// ring, in one note.
	AnnexBytesMax = 3 << 29
)

var _ = [1]struct{}{}[AnnexBytesMax>>31] // a note also has room for its header

// AnnexWrites decodes the content of a record's annex.
func AnnexWrites(x *Annex, body []byte) (writes []Write, err error) {
	d := NewDecoder(body)
	writes = make([]Write, 0, x.Writes)
	for range x.Writes {
		w, ok := d.Next()
		if !ok {
			return nil, BadAnnex(x, &d)
		}
		writes = append(writes, w)
	}
	if d.Len() > 0 {
		return nil, BadAnnex(x, &d)
	}
	return writes, nil
}

// BadAnnex returns the error for a record whose annex does not decode; d is the decoder that
// failed.
func BadAnnex(x *Annex, d *Decoder) error {
	return fmt.Errorf("%w: annex %#x cannot have these %d writes in %d bytes: %v", ErrBad, x.Number, x.Writes, x.Bytes, d.err)
}

// WritesIn decodes the writes in b, which is part of an annex.
func WritesIn(b []byte) (writes []Write, err error) {
	d := NewDecoder(b)
	for d.Len() > 0 {
		w, ok := d.Next()
		if !ok {
			return nil, fmt.Errorf("%w: part of an annex: %v", ErrBad, d.err)
		}
		writes = append(writes, w)
	}
	return writes, nil
}

// AnnexOf returns the number of the annex that an encoded record of this machine's own log names,
// or 0.
func AnnexOf(b []byte) uint64 {
	head := binary.LittleEndian.Uint64(b)
	if Kind(head>>56)&AnnexedFlag == 0 {
		return 0
	}
	return binary.LittleEndian.Uint64(b[HeaderBytes(int(uint8(head>>48)), int(uint16(head>>32))):])
}
