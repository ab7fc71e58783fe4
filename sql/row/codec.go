package row

import (
	"context"
	"encoding/binary"
	"slices"
	"strings"
	"sync"
	"time"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/shopspring/decimal"

	"github.com/farmsql/farmsql/catalog"
)

// A stored row:
//
//	| format 4b, width 2b, spilled 1b | slots u16 | null bits | spill bits, if spilled | end offsets | values |
//
// Each column owns a slot for life. The end offset of every slot makes access to a column O(1)
// and lets values have any length; it takes one byte in rows of up to 255 bytes of values, two or
// four in longer ones. A row stored before a column was added has fewer slots than the table, and
// the missing ones are NULL. A spilled value is kept outside the row (object.go), and the row
// holds its length and its first overflow object.
const (
	format      = 1
	isSpilled   = 1 << 6
	HeaderBytes = 3 // bytes before the bits
	widthShift  = 4
	widthMask   = 3
	offsetWidth = "\x01\x02\x04" // the bytes of an end offset, by the width in the header
)

// A Codec turns rows of one table into bytes and back. It is immutable.
type Codec struct {
	Columns []Column // columns in the table's order
	slots   int
	chars   []int // the columns of type CHAR
}

// NumberSlot is the slot of the hidden row number, in a table without a primary key. The slots of
// such a table's columns begin after it.
const NumberSlot = 0

// A Column is a column of a table, and the codec of its values.
type Column struct {
	ValueCodec
	Name    string
	Slot    int  // place of its values in a stored row
	Virtual bool // the column is computed and not stored
	NotNull bool // the column is stored and never NULL
}

// NewCodec returns the codec of a table's rows. It fails for an unknown type.
func NewCodec(t *catalog.Table) (*Codec, error) {
	c := &Codec{Columns: make([]Column, len(t.Columns)), slots: int(t.NextSlot)}
	for i, col := range t.Columns {
		v, err := newValueCodec(col.Type)
		if err != nil {
			return nil, err
		}
		c.Columns[i] = Column{ValueCodec: v, Name: col.Name, Slot: int(col.Slot), Virtual: col.Virtual, NotNull: !col.Nullable && !col.Virtual}
		if v.Kind == catalog.KindChar {
			c.chars = append(c.chars, i)
		}
	}
	return c, nil
}

// In returns a codec whose TIMESTAMPs have the wall times of a zone.
func (c *Codec) In(z *Zone) *Codec {
	in := *c
	in.Columns = slices.Clone(c.Columns)
	for i := range in.Columns {
		in.Columns[i].ValueCodec = in.Columns[i].ValueCodec.In(z)
	}
	return &in
}

// Stored returns a row in its stored form: without the spaces at the end of a CHAR.
func (c *Codec) Stored(row gms.Row) gms.Row {
	kept := row
	for _, at := range c.chars {
		if at >= len(row) {
			break
		}
		s, ok := row[at].(string)
		if !ok || !strings.HasSuffix(s, " ") {
			continue
		}
		if &kept[0] == &row[0] { // row belongs to the caller
			kept = row.Copy()
		}
		kept[at] = strings.TrimRight(s, " ")
	}
	return kept
}

// An Image is a row in encoded form: its values by slot, nil for NULL.
type Image struct {
	values [][]byte
	// spilled marks values that are stored outside of the row; values then has their references.
	spilled    []bool
	hasSpilled bool   // any value is marked
	buf        []byte // memory for the values
}

// images keeps Images for the next rows.
var images = sync.Pool{New: func() any { return new(Image) }}

// newImage returns an empty image for n slots, from images.
func newImage(n int) *Image {
	img := images.Get().(*Image)
	if cap(img.values) < n {
		img.values, img.spilled = make([][]byte, n), make([]bool, n)
	}
	img.values, img.spilled, img.hasSpilled, img.buf = img.values[:n], img.spilled[:n], false, img.buf[:0]
	return img
}

// imageKeepMost bounds the values, in bytes, of an image that is kept.
const imageKeepMost = 4 << 10

// free gives the image back, which nobody uses any more.
func (img *Image) free() {
	clear(img.values)
	clear(img.spilled)
	if cap(img.buf) <= imageKeepMost {
		images.Put(img)
	}
}

// HasAll refuses a row with NULL in a NOT NULL column: some of go-mysql-server's plans do not
// check.
func (c *Codec) HasAll(row gms.Row) error {
	for i := range c.Columns {
		if col := &c.Columns[i]; col.NotNull && i < len(row) && row[i] == nil {
			return gms.ErrInsertIntoNonNullableProvidedNull.New(col.Name)
		}
	}
	return nil
}

// Image encodes the values of a row, one per column of the table.
func (c *Codec) Image(ctx context.Context, row gms.Row) (*Image, error) {
	img := newImage(c.slots)
	// One buffer for all values: the slices stay valid when it moves.
	buf := slices.Grow(img.buf, 16*len(row))
	for i := range c.Columns {
		col := &c.Columns[i]
		if col.Virtual || i >= len(row) || row[i] == nil {
			continue
		}
		start := len(buf)
		var err error
		if buf, err = col.append(ctx, buf, row[i]); err != nil {
			return nil, err
		}
		img.values[col.Slot] = buf[start:len(buf):len(buf)]
	}
	img.buf = buf
	return img, nil
}

// imageOver is like Image, for a row that replaces a stored one, whose values were was: a value that stays the same is
// copied as it is stored.
func (c *Codec) imageOver(ctx context.Context, row, was gms.Row, stored *View) (*Image, error) {
	img := newImage(c.slots)
	buf := slices.Grow(img.buf, len(stored.body)+16)
	for i := range c.Columns {
		col := &c.Columns[i]
		if col.Virtual || i >= len(row) {
			continue
		}
		start := len(buf)
		switch {
		case isSame(was[i], row[i]):
			b, spilled, err := stored.Slot(col.Slot)
			if err != nil {
				return nil, err
			}
			if b == nil {
				continue
			}
			buf, img.spilled[col.Slot] = append(buf, b...), spilled
			img.hasSpilled = img.hasSpilled || spilled
		case row[i] == nil:
			continue
		default:
			var err error
			if buf, err = col.append(ctx, buf, row[i]); err != nil {
				return nil, err
			}
		}
		img.values[col.Slot] = buf[start:len(buf):len(buf)]
	}
	img.buf = buf
	return img, nil
}

// isSame reports whether two values are known to be stored as the same bytes. It does not look into documents and the
// like, but recognizes a value that has only been passed on.
func isSame(a, b any) bool {
	switch a := a.(type) {
	case nil, bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, string, time.Time, decimal.Decimal, types.Timespan, *types.LazyJSONDocument:
		return a == b
	case []byte:
		b, ok := b.([]byte)
		return ok && len(a) == len(b) && len(a) > 0 && &a[0] == &b[0]
	}
	return false
}

// bodyBytes returns the size of the values.
func (img *Image) bodyBytes() int {
	n := 0
	for _, v := range img.values {
		n += len(v)
	}
	return n
}

// bytes returns the length of the stored row.
func (img *Image) bytes() int {
	body, slots := img.bodyBytes(), len(img.values)
	n := HeaderBytes + (slots+7)/8 + slots*int(offsetWidth[widthFor(body)]) + body
	if img.hasSpilled {
		n += (slots + 7) / 8
	}
	return n
}

func widthFor(body int) int {
	switch {
	case body < 1<<8:
		return 0
	case body < 1<<16:
		return 1
	}
	return 2
}

// Append appends the stored row to dst.
func (img *Image) Append(dst []byte) []byte {
	slots, width := len(img.values), widthFor(img.bodyBytes())
	first := byte(format) | byte(width)<<widthShift
	if img.hasSpilled {
		first |= isSpilled
	}
	dst = append(dst, first, byte(slots), byte(slots>>8))
	dst = appendBits(dst, slots, func(i int) bool { return img.values[i] == nil })
	if img.hasSpilled {
		dst = appendBits(dst, slots, func(i int) bool { return img.spilled[i] })
	}
	end := 0
	for _, v := range img.values {
		end += len(v)
		switch width {
		case 0:
			dst = append(dst, byte(end))
		case 1:
			dst = binary.LittleEndian.AppendUint16(dst, uint16(end))
		default:
			dst = binary.LittleEndian.AppendUint32(dst, uint32(end))
		}
	}
	for _, v := range img.values {
		dst = append(dst, v...)
	}
	return dst
}

// appendBits appends n bits, the lowest bit of each byte first.
func appendBits(dst []byte, n int, bit func(int) bool) []byte {
	for i := 0; i < n; i += 8 {
		var b byte
		for j := i; j < min(i+8, n); j++ {
			if bit(j) {
				b |= 1 << (j - i)
			}
		}
		dst = append(dst, b)
	}
	return dst
}

// A View gives access to a stored row. Its bytes may be followed by others.
type View struct {
	nulls, spills, ends, body []byte // the parts of the row; spills is nil if no value is spilled
	slots, width              int    // width is that of an end offset, in bytes
}

// Parse checks a row's structure, so that Slot cannot read outside of the bytes.
func Parse(b []byte) (View, error) {
	var r View
	if len(b) < HeaderBytes || b[0]&0x0f != format || b[0]&0x80 != 0 || (b[0]>>widthShift)&widthMask > 2 {
		return r, ErrCorrupt
	}
	r.slots = int(binary.LittleEndian.Uint16(b[1:]))
	r.width = int(offsetWidth[(b[0]>>widthShift)&widthMask])
	bits, rest := (r.slots+7)/8, b[HeaderBytes:]
	need := bits + r.slots*r.width
	if b[0]&isSpilled != 0 {
		need += bits
	}
	if len(rest) < need {
		return r, ErrCorrupt
	}
	r.nulls, rest = rest[:bits], rest[bits:]
	if b[0]&isSpilled != 0 {
		r.spills, rest = rest[:bits], rest[bits:]
	}
	r.ends, r.body = rest[:r.slots*r.width], rest[r.slots*r.width:]
	return r, nil
}

// end returns the offset at which the value of a slot ends.
func (r *View) end(slot int) int {
	switch r.width {
	case 1:
		return int(r.ends[slot])
	case 2:
		return int(binary.LittleEndian.Uint16(r.ends[2*slot:]))
	}
	return int(binary.LittleEndian.Uint32(r.ends[4*slot:]))
}

// Slot returns the bytes of a value, nil for NULL. If spilled is set, the bytes are a reference to
// the value, which is stored outside the row.
func (r *View) Slot(i int) (b []byte, spilled bool, err error) {
	if i >= r.slots || r.nulls[i/8]&(1<<(i%8)) != 0 {
		return nil, false, nil
	}
	start, end := 0, r.end(i)
	if i > 0 {
		start = r.end(i - 1)
	}
	if start > end || end > len(r.body) {
		return nil, false, ErrCorrupt
	}
	return r.body[start:end:end], r.spills != nil && r.spills[i/8]&(1<<(i%8)) != 0, nil
}

// A spillReader reads a value that is stored outside its row.
type spillReader func(ref []byte) ([]byte, error)

// decodeSparse returns a row of all columns, in which those that are not in columns are nil.
func (c *Codec) decodeSparse(b []byte, columns []int, spill spillReader) (gms.Row, error) {
	r, err := Parse(b)
	if err != nil {
		return nil, err
	}
	row := make(gms.Row, len(c.Columns))
	for _, at := range columns {
		if row[at], err = c.column(&r, at, spill); err != nil {
			return nil, err
		}
	}
	return row, nil
}

// decode returns the columns at the given positions, or all of them if columns
// is nil. Virtual columns are NULL: go-mysql-server computes them.
func (c *Codec) decode(b []byte, columns []int, spill spillReader) (gms.Row, error) {
	r, err := Parse(b)
	if err != nil {
		return nil, err
	}
	n := len(columns)
	if columns == nil {
		n = len(c.Columns)
	}
	row := make(gms.Row, n)
	for i := range row {
		at := i
		if columns != nil {
			at = columns[i]
		}
		if row[i], err = c.column(&r, at, spill); err != nil {
			return nil, err
		}
	}
	return row, nil
}

// column returns a column's value; nil for NULL, and for a virtual column. spill reads a value that is outside of the row.
func (c *Codec) column(r *View, at int, spill spillReader) (any, error) {
	col := &c.Columns[at]
	if col.Virtual {
		return nil, nil
	}
	b, spilled, err := r.Slot(col.Slot)
	if err != nil || b == nil {
		return nil, err
	}
	if spilled {
		if b, err = spill(b); err != nil {
			return nil, err
		}
	}
	return col.decode(b)
}
