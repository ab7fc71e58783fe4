package lease

import "encoding/binary"

// messageBytes is the length of an encoded message.
const messageBytes = 32

// encode returns | kind 1, zero 7 | sent 8 | echo 8 | length 8 |, little endian.
func (m message) encode() []byte {
	b := make([]byte, messageBytes)
	b[0] = m.kind
	binary.LittleEndian.PutUint64(b[8:], uint64(m.sent))
	binary.LittleEndian.PutUint64(b[16:], uint64(m.echo))
	binary.LittleEndian.PutUint64(b[24:], uint64(m.length))
	return b
}

// decode returns false if b is not a message.
func decode(b []byte) (m message, ok bool) {
	if len(b) != messageBytes || b[0] < grantRequest || b[0] > grant {
		return message{}, false
	}
	word := func(off int) int64 { return int64(binary.LittleEndian.Uint64(b[off:])) }
	return message{b[0], word(8), word(16), word(24)}, true
}
