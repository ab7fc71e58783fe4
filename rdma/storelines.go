package rdma

import (
	"encoding/binary"

	"github.com/farmsql/farmsql/nvram"
)

// StoreLines performs a WRITE for providers that copy: it stores src at off of m line by
// line in rising order, and the last word last and atomically. A single copy of all of src would
// be no slower, but might store words in any order. off and len(src) must be multiples of 8 and
// within m.
func StoreLines(m *nvram.Memory, off uint64, src []byte) {
	last := len(src) - nvram.WordBytes
	for at := 0; at < last; {
		n := min(LineBytes-int((off+uint64(at))%LineBytes), last-at)
		m.CopyIn(off+uint64(at), src[at:at+n])
		at += n
	}
	m.Store(off+uint64(last), binary.NativeEndian.Uint64(src[last:]))
}

// Aligned reports whether the offset and the length of an operation are multiples of 8 and the
// length is allowed. This can be checked before the registration is known.
func Aligned(off uint64, n int) bool {
	return n > 0 && n <= MaxTransferBytes && (off|uint64(n))%nvram.WordBytes == 0
}
