package history

import (
	"encoding/binary"
	"hash/fnv"
)

// Digest hashes a history, in the order in which its transactions ended: their
// labels, reads and writes, begins and ends, and outcomes.
func Digest(txs []Transaction) uint64 {
	h := fnv.New64a()
	var b []byte
	for i := range txs {
		t := &txs[i]
		b = append(append(b[:0], t.Label...), 0, byte(t.Outcome), bit(t.Shown))
		b = binary.LittleEndian.AppendUint64(b, uint64(t.Start))
		b = binary.LittleEndian.AppendUint64(b, uint64(t.End))
		for _, op := range t.Ops {
			b = append(b, bit(op.Write), bit(op.Absent))
			b = binary.LittleEndian.AppendUint64(b, uint64(op.Object))
			b = binary.LittleEndian.AppendUint64(b, uint64(op.Value))
			b = binary.LittleEndian.AppendUint64(b, op.Version)
		}
		h.Write(b) // never fails
	}
	return h.Sum64()
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}
