package tatp

import "encoding/binary"

// Keys and rows of the hash tables. Rows do not repeat what is in their key.
const (
	idBytes         = 4
	kindKeyBytes    = idBytes + 1
	forwardKeyBytes = kindKeyBytes + 1

	subscriberBytes = 2 + 5 + 10 + 4 + 4 + numberDigits
	accessBytes     = 2 + 3 + 5
	facilityBytes   = 3 + 5
	forwardBytes    = 1 + numberDigits

	// The offsets of the fields that transactions change.
	subscriberBits = 0 // the lowest bit is bit_1
	subscriberVLR  = 21
	facilityDataA  = 2
)

// A key is memory for the key of one row at a time. Its methods make the keys of the tables: id of a
// subscriber, kind of access information or a facility, forward of a call forwarding.
type key [forwardKeyBytes]byte

func (k *key) id(id uint32) []byte {
	binary.LittleEndian.PutUint32(k[:], id)
	return k[:idBytes]
}

func (k *key) kind(id uint32, kind uint8) []byte {
	binary.LittleEndian.PutUint32(k[:], id)
	k[idBytes] = kind
	return k[:kindKeyBytes]
}

func (k *key) forward(id uint32, kind, start uint8) []byte {
	k.kind(id, kind)
	k[kindKeyBytes] = start
	return k[:]
}

func (s *subscriber) encode(b []byte) []byte {
	b = binary.LittleEndian.AppendUint16(b, s.bits)
	for i := 0; i < len(s.hex); i += 2 {
		b = append(b, (s.hex[i]<<4)|s.hex[i+1])
	}
	b = append(b, s.bytes[:]...)
	b = binary.LittleEndian.AppendUint32(b, s.msc)
	b = binary.LittleEndian.AppendUint32(b, s.vlr)
	number := numberOf(s.id)
	return append(b, number[:]...)
}

func (a *access) encode(b []byte) []byte {
	return append(append(append(b, a.data1, a.data2), a.data3[:]...), a.data4[:]...)
}

func (f *facility) encode(b []byte) []byte {
	active := uint8(0)
	if f.active {
		active = 1
	}
	return append(append(b, active, f.errorCntrl, f.dataA), f.dataB[:]...)
}

func (w *forward) encode(b []byte) []byte { return append(append(b, w.end), w.number[:]...) }

func facilityActive(row []byte) bool { return row[0] != 0 }
func forwardEnd(row []byte) uint8    { return row[0] }
