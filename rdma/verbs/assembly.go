package verbs

import "github.com/farmsql/farmsql/rdma"

// A datagram is one packet or several, each with a header:
//
//	| magic 4 | format 1 | reserved 1 | from 2 | number 8 | part 2 | reserved 2 | bytes of the datagram 4 | its bytes
const (
	partHeaderBytes = 24
	// partialMax is how many datagrams of one machine may be incomplete; further ones replace the oldest.
	partialMax = 16
)

// partBytes is how many bytes of a datagram a packet carries: whole words, which nothing
// requires, but which are easier to look at.
func partBytes(packet int) int { return (packet - partHeaderBytes) &^ 7 }

// partsOf returns how many packets a datagram takes.
func partsOf(bytes, packet int) int { return max(1, (bytes+partBytes(packet)-1)/partBytes(packet)) }

// encodePart writes one part of a datagram into a packet, and returns its length.
func encodePart(packet []byte, from rdma.MachineID, number uint64, part int, datagram []byte) int {
	le.PutUint32(packet, magic)
	packet[4], packet[5] = format, 0
	le.PutUint16(packet[6:], uint16(from))
	le.PutUint64(packet[8:], number)
	le.PutUint16(packet[16:], uint16(part))
	le.PutUint16(packet[18:], uint16(partBytes(len(packet))))
	le.PutUint32(packet[20:], uint32(len(datagram)))
	begin := part * partBytes(len(packet))
	return partHeaderBytes + copy(packet[partHeaderBytes:], datagram[begin:min(len(datagram), begin+partBytes(len(packet)))])
}

// An assembly puts datagrams together whose parts come one by one, in any order.
type assembly struct {
	partial map[rdma.MachineID][]*partial // the oldest first
}

// A partial is a datagram of which parts are missing.
type partial struct {
	number  uint64
	length  int // the bytes of each part but the last
	b       []byte
	has     []bool
	missing int
}

func newAssembly() assembly { return assembly{partial: make(map[rdma.MachineID][]*partial)} }

// add takes a packet. ok says that it completes a datagram, b, which is valid as long as the packet is. It drops
// packets that are not this package's, and parts that contradict earlier ones.
func (a *assembly) add(packet []byte) (from rdma.MachineID, b []byte, ok bool) {
	if len(packet) < partHeaderBytes || le.Uint32(packet) != magic || packet[4] != format {
		return 0, nil, false
	}
	from = rdma.MachineID(le.Uint16(packet[6:]))
	number, part, length, bytes := le.Uint64(packet[8:]), int(le.Uint16(packet[16:])), int(le.Uint16(packet[18:])), int(le.Uint32(packet[20:]))
	text, begin := packet[partHeaderBytes:], part*length
	isEmptyPart := part > 0 && len(text) == 0 // part 0 of an empty datagram is empty, too
	if length == 0 || bytes > rdma.DatagramBytesMax || begin > bytes || len(text) != min(length, bytes-begin) || isEmptyPart {
		return from, nil, false
	}
	if bytes <= length {
		return from, text, true
	}
	p := a.find(from, number, length, bytes)
	if p.length != length || len(p.b) != bytes || p.has[part] {
		return from, nil, false
	}
	p.has[part] = true
	copy(p.b[begin:], text)
	if p.missing--; p.missing > 0 {
		return from, nil, false
	}
	a.remove(from, p)
	return from, p.b, true
}

// find returns the datagram of a number, and begins it if this is its first part. If the machine has
// partialMax others that are incomplete, find drops the oldest of them.
func (a *assembly) find(from rdma.MachineID, number uint64, length, bytes int) *partial {
	all := a.partial[from]
	for _, p := range all {
		if p.number == number {
			return p
		}
	}
	if len(all) >= partialMax {
		all = all[1:]
	}
	parts := (bytes + length - 1) / length
	p := &partial{number: number, length: length, b: make([]byte, bytes), has: make([]bool, parts), missing: parts}
	a.partial[from] = append(all, p)
	return p
}

func (a *assembly) remove(from rdma.MachineID, p *partial) {
	all := a.partial[from]
	for i := range all {
		if all[i] == p {
			a.partial[from] = append(all[:i], all[i+1:]...)
			return
		}
	}
}
