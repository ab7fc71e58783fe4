package wire

import (
	"github.com/dolthub/vitess/go/mysql"
	"github.com/dolthub/vitess/go/sqltypes"

	"github.com/farmsql/farmsql/sql/exec"
)

// A rowStream sends rows that are in packets already. The library writes what comes before and
// after them:
//
//	the library's header │ our rows │ the library's end
//
// The header is held until the end comes, so that all is sent together. The library does not know of the
// rows' packets, so the sequence numbers of what it writes after them are shifted.
type rowStream struct {
	state streamState
	held  []byte // the header and the rows
	shift byte
}

// A streamState is a stage of an answer.
type streamState uint8

const (
	passing streamState = iota // the library's packets are sent as they come
	holding                    // the library writes the header
	waiting                    // what the library writes next follows the rows
)

// heldBytesKept bounds the memory that is kept for the next answer.
const heldBytesKept = 256 << 10

// answer passes a result to callback, and sees to it that the client gets its rows.
func answer(c *mysql.Conn, res *sqltypes.Result, callback func(*sqltypes.Result) error) error {
	s, accepted := stateOf(c), connOf(c)
	if res != &s.result || s.packets == nil || s.packets.Rows == 0 {
		return callback(res)
	}
	return accepted.sendRows(c, s.packets, func() error { return callback(res) })
}

// sendRows has the library write the header of a result, and holds it with the rows until the library writes
// the end.
func (c *conn) sendRows(library *mysql.Conn, rows *exec.Packets, header func() error) error {
	if err := library.FlushBuffer(); err != nil { // of answers to earlier statements of the request
		return err
	}
	c.rows.begin()
	err := header()
	if err == nil {
		err = library.FlushBuffer()
	}
	if err == nil {
		c.rows.add(rows, c.meter.shift)
	}
	return err
}

// begin begins to hold what the library writes.
func (r *rowStream) begin() {
	if cap(r.held) > heldBytesKept {
		r.held = nil
	}
	r.state, r.held = holding, r.held[:0]
}

// add numbers the header and the rows, and puts the rows after the header. shift is the connection's own.
func (r *rowStream) add(rows *exec.Packets, shift byte) {
	number := byte(0)
	for at := 0; at < len(r.held); at += packetHeaderBytes + packetLength(r.held[at:]) {
		r.held[at+3] += shift + r.shift
		number = r.held[at+3]
	}
	b := rows.Bytes
	for at := 0; at < len(b); at += packetHeaderBytes + packetLength(b[at:]) {
		number++
		b[at+3] = number
	}
	r.held = append(r.held, b...)
	r.shift += byte(rows.Rows)
	r.state = waiting
}

// before returns what is held, followed by the next bytes of the library.
func (r *rowStream) before(next []byte) []byte {
	r.state = passing
	r.held = append(r.held, next...)
	return r.held
}
