package exec

import (
	"errors"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/sql/row"
)

// Packets are the rows of a result as packets of the protocol. Each packet has a header, whose sequence
// number is still to be set.
type Packets struct {
	Form  row.Form // NoPackets: no rows are to be written
	Bytes []byte
	Rows  int
	start int // of the row that has begun, in Bytes
}

const (
	packetHeaderBytes = 4
	// packetBytesMax is the length from which on the protocol splits a packet.
	packetBytesMax = 1<<24 - 1
	// packetBytesKept bounds the memory that is kept for the packets of the next statement.
	packetBytesKept = 256 << 10
	nullText        = 0xfb // stands for NULL in TextForm
	// The bits of NULLs in BinaryForm come after the packet's first byte, and begin with two that are
	// not used.
	nullBitsAt, unusedBits = 1, 2
)

// Begin empties p for the rows of another statement.
func (p *Packets) Begin(f row.Form) {
	if cap(p.Bytes) > packetBytesKept {
		p.Bytes = nil
	}
	p.Form, p.Bytes, p.Rows = f, p.Bytes[:0], 0
}

// BeginRow begins a row of this many columns.
func (p *Packets) BeginRow(columns int) {
	p.start = len(p.Bytes)
	n := packetHeaderBytes
	if p.Form == row.BinaryForm {
		n += nullBitsAt + (columns+unusedBits+7)/8
	}
	for range n {
		p.Bytes = append(p.Bytes, 0)
	}
}

// Null writes NULL as the value of a column, whose number is given.
func (p *Packets) Null(column int) {
	if p.Form == row.TextForm {
		p.Bytes = append(p.Bytes, nullText)
		return
	}
	bit := column + unusedBits
	p.Bytes[p.start+packetHeaderBytes+nullBitsAt+bit/8] |= 1 << (bit % 8)
}

// Value writes the value of the next column; false if the column's Packer cannot.
func (p *Packets) Value(by *row.Packer, stored []byte) (ok bool) {
	p.Bytes, ok = by.Append(p.Bytes, stored)
	return ok
}

// EndRow ends the row, and returns its size. It returns false if the row does not fit a packet.
func (p *Packets) EndRow() (bytes int, ok bool) {
	bytes = len(p.Bytes) - p.start
	n := bytes - packetHeaderBytes
	header := p.Bytes[p.start:]
	header[0], header[1], header[2] = byte(n), byte(n>>8), byte(n>>16)
	p.Rows++
	return bytes, n < packetBytesMax
}

// errUnpacked means that a result's rows cannot be written into packets.
var errUnpacked = errors.New("exec: rows that are not written into packets")

// A packetWriter writes the rows of a direct query into packets.
type packetWriter struct {
	to      *Packets
	columns []directColumn
	packers []row.Packer
}

// newPacketWriter returns a writer for the columns of a result; false if there is none.
func newPacketWriter(to *Packets, columns []directColumn) (*packetWriter, bool) {
	w := &packetWriter{to: to, columns: columns, packers: make([]row.Packer, len(columns))}
	for i := range columns {
		var ok bool
		if w.packers[i], ok = columns[i].codec.Packer(to.Form); !ok {
			return nil, false
		}
	}
	to.Begin(to.Form)
	return w, true
}

// count implements rowWriter.
func (w *packetWriter) count() int { return w.to.Rows }

// write implements rowWriter. It returns errUnpacked if the row cannot be written.
func (w *packetWriter) write(_ *gms.Context, from storeRows, v *row.View) (int64, error) {
	w.to.BeginRow(len(w.columns))
	for i := range w.columns {
		value, isOut, err := v.Slot(w.columns[i].codec.Slot)
		if err == nil && isOut {
			value, err = from.StoredValue(v, w.columns[i].at)
		}
		switch {
		case err != nil:
			return 0, err
		case value == nil:
			w.to.Null(i)
		case !w.to.Value(&w.packers[i], value):
			return 0, errUnpacked
		}
	}
	n, ok := w.to.EndRow()
	if !ok {
		return 0, errUnpacked
	}
	return int64(n), nil
}
