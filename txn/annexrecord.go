package txn

import (
	"encoding/binary"
	"fmt"

	"github.com/farmsql/farmsql/nvram"
)

// An Annex says where a record's writes are.
type Annex struct {
	// Number is random, and names the annex at its machine, in all lives of that. 0: there
	// is none.
	Number uint64
	Bytes  uint64
	Writes uint32 // how many there are
}

// IsNone says that the writes are in the record itself.
func (a *Annex) IsNone() bool { return a.Number == 0 }

// isPossible says whether there can be such an annex.
func (a *Annex) isPossible() bool {
	return a.Number != 0 && a.Number <= annexNumberMax && a.Bytes%nvram.WordBytes == 0 &&
		a.Bytes <= annexBytesMax && a.Bytes >= uint64(a.Writes)*writeHeaderBytes
}

func (a *Annex) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, a.Number)
	return binary.LittleEndian.AppendUint64(b, a.Bytes)
}

const (
	annexNumberMax = 1<<56 - 1
	// annexBytesMax bounds what a transaction may write. Notes of recoveries are records
	// that have the writes, in rings.
	annexBytesMax = 3 << 29
)

var _ = [1]struct{}{}[annexBytesMax>>31] // a note has room for its header, too

// AnnexWrites decodes what a record's annex says.
func AnnexWrites(x *Annex, body []byte) (writes []Write, err error) {
	d := newDecoder(body)
	writes = make([]Write, 0, x.Writes)
	for range x.Writes {
		w, ok := d.write()
		if !ok {
			return nil, badAnnex(x, &d)
		}
		writes = append(writes, w)
	}
	if d.len() > 0 {
		return nil, badAnnex(x, &d)
	}
	return writes, nil
}

// badAnnex says that a record's annex makes no sense where d has come to.
func badAnnex(x *Annex, d *decoder) error {
	return fmt.Errorf("%w: annex %#x cannot have these %d writes in %d bytes: %v", ErrBadRecord, x.Number, x.Writes, x.Bytes, d.err)
}

// annexWrites decodes some of the writes of an annex: those that are the bytes.
func annexWrites(b []byte) (writes []Write, err error) {
	d := newDecoder(b)
	for d.len() > 0 {
		w, ok := d.write()
		if !ok {
			return nil, fmt.Errorf("%w: part of an annex: %v", ErrBadRecord, d.err)
		}
		writes = append(writes, w)
	}
	return writes, nil
}

// annexNumber returns the number of the annex that an encoded record of this machine's own
// names, 0 if it names none.
func annexNumber(b []byte) uint64 {
	head := binary.LittleEndian.Uint64(b)
	if RecordKind(head>>56)&annexedFlag == 0 {
		return 0
	}
	return binary.LittleEndian.Uint64(b[recordBytes(int(uint8(head>>48)), int(uint16(head>>32))):])
}
