package wire

import (
	"encoding/binary"

	"github.com/dolthub/vitess/go/mysql"
)

const (
	packetHeaderBytes = 4
	packetBytesMax    = 1<<24 - 1
	// statementBytes is the length of a command and a statement's id.
	statementBytes = 5
)

// packetLength returns the length of the payload according to a header.
func packetLength(header []byte) int {
	return int(header[0]) | int(header[1])<<8 | int(header[2])<<16
}

// A framing follows the packets in a stream of bytes.
type framing struct {
	header [packetHeaderBytes]byte
	have   int // bytes of the header seen so far
	left   int // bytes of the payload still to come
}

// next returns how many bytes at the start of p belong together, as a part of a header or of a
// payload. endsHeader is set if the last of them completes a header: that byte is the sequence
// number.
func (f *framing) next(p []byte) (n int, endsHeader bool) {
	if f.left > 0 {
		n = min(f.left, len(p))
		f.left -= n
		return n, false
	}
	n = copy(f.header[f.have:], p)
	f.have += n
	if f.have < packetHeaderBytes {
		return n, false
	}
	f.have = 0
	f.left = packetLength(f.header[:])
	return n, true
}

// isBetween reports whether the next byte begins a packet.
func (f *framing) isBetween() bool { return f.left == 0 && f.have == 0 }

// renumber adds shift to the sequence numbers in p.
func (f *framing) renumber(p []byte, shift byte) {
	for len(p) > 0 {
		n, endsHeader := f.next(p)
		if endsHeader {
			p[n-1] += shift
		}
		p = p[n:]
	}
}

// A packetMeter measures a client's packets, so that no more memory is allocated than allowed.
// The packets of a request of 2^24-1 bytes or more count together, and so do those of
// COM_STMT_SEND_LONG_DATA until the statement is executed.
type packetMeter struct {
	framing
	limit   int64
	request int64 // payload bytes of the request so far
	ended   int   // number of complete packets
	tooLong bool  // the limit is exceeded
	// shift is subtracted from the client's sequence numbers for the protocol library, which
	// has not seen the packet that asked for TLS. Numbers start again with the first command.
	shift byte
	// command holds the first bytes of a request, as far as read: the command, a statement's id,
	// and the flags of COM_STMT_EXECUTE.
	command [6]byte
	seen    int
	long    map[uint32]int64 // bytes of long data, by statement
	longAll int64
}

// add measures the bytes of p, renumbers their packets, and reports whether all sizes are
// within limits.
func (m *packetMeter) add(p []byte) bool {
	for len(p) > 0 {
		n, endsHeader := m.next(p)
		if endsHeader {
			if m.header[3] == 0 { // a command: the client counts from 0 again
				m.shift = 0
			}
			p[n-1] -= m.shift
			m.begin()
		} else if m.have == 0 {
			m.look(p[:n])
		}
		if m.isBetween() {
			m.end()
		}
		p = p[n:]
	}
	return !m.tooLong
}

// begin starts the packet whose header is complete.
func (m *packetMeter) begin() {
	if m.request == 0 {
		m.seen = 0
	} else if m.seen >= statementBytes && m.command[0] == mysql.ComStmtSendLongData {
		m.addLong(m.statement(), int64(m.left)) // look has counted the packets before
	}
	m.request += int64(m.left)
	m.tooLong = m.tooLong || m.request > m.limit
}

// end ends a packet.
func (m *packetMeter) end() {
	m.ended++
	if packetLength(m.header[:]) == packetBytesMax {
		return // the request goes on in the next packet
	}
	if m.seen > 0 && m.command[0] == mysql.ComResetConnection {
		clear(m.long)
		m.longAll = 0
	}
	m.request = 0
}

// isAnswered reports whether a server answers the latest request, which is complete. The answer to an empty request is
// an error.
func (m *packetMeter) isAnswered() bool {
	if m.seen == 0 {
		return true
	}
	switch m.command[0] {
	case mysql.ComStmtClose, mysql.ComStmtSendLongData, mysql.ComQuit:
		return false
	}
	return true
}

// look reads the start of a request's payload, and sums up long data.
func (m *packetMeter) look(p []byte) {
	before := m.seen
	m.seen += copy(m.command[m.seen:], p)
	if before >= statementBytes || m.seen < statementBytes {
		return
	}
	statement := m.statement()
	switch m.command[0] {
	case mysql.ComStmtSendLongData:
		m.addLong(statement, m.request)
	case mysql.ComStmtExecute, mysql.ComStmtClose, mysql.ComStmtReset:
		m.longAll -= m.long[statement]
		delete(m.long, statement)
	}
}

// statement returns the id of the statement that the latest request is about.
func (m *packetMeter) statement() uint32 { return binary.LittleEndian.Uint32(m.command[1:]) }

// opensCursor reports whether the latest request executes a prepared statement whose rows the client
// fetches by later requests.
func (m *packetMeter) opensCursor() bool {
	if m.seen < len(m.command) || m.command[0] != mysql.ComStmtExecute {
		return false
	}
	flags := m.command[statementBytes]
	return flags != mysql.NoCursor && flags != mysql.ParameterCountAvailable
}

// addLong counts bytes of long data for a prepared statement.
func (m *packetMeter) addLong(statement uint32, bytes int64) {
	if m.long == nil {
		m.long = make(map[uint32]int64)
	}
	m.long[statement] += bytes
	m.longAll += bytes
	m.tooLong = m.tooLong || m.longAll > m.limit
}
