package catalog

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/farmsql/farmsql/region"
)

// ErrCorrupt means that bytes are not a valid catalog entry.
var ErrCorrupt = errors.New("catalog: corrupt entry")

// ErrFormat means that an entry was written by a newer version.
var ErrFormat = errors.New("catalog: entry has an unknown format")

// formatTable and the constants after it are the first bytes of encodings. If the format of an
// entry changes, it gets a new number, and the decoder still reads the old format.
const (
	formatTable      = 1
	formatDatabase   = 1
	formatDefinition = 1
	formatStorage    = 1
)

// listMax bounds every count read from an entry, so that decoding garbage cannot
// allocate much memory.
const listMax = 1 << 16

// An encoder appends fields. Lengths and counts are varints.
type encoder struct{ b []byte }

func (e *encoder) byte(v byte)        { e.b = append(e.b, v) }
func (e *encoder) uint(v uint64)      { e.b = binary.AppendUvarint(e.b, v) }
func (e *encoder) int(v int64)        { e.b = binary.AppendVarint(e.b, v) }
func (e *encoder) ptr(p region.Ptr)   { e.b = p.Append(e.b) }
func (e *encoder) bytes(v []byte)     { e.uint(uint64(len(v))); e.b = append(e.b, v...) }
func (e *encoder) string(v string)    { e.uint(uint64(len(v))); e.b = append(e.b, v...) }
func (e *encoder) strings(v []string) { putList(e, v, (*encoder).string) }

// bools appends up to 8 flags as the bits of one byte.
func (e *encoder) bools(v ...bool) {
	var bits byte
	for i, b := range v {
		if b {
			bits |= 1 << i
		}
	}
	e.byte(bits)
}

func putList[T any](e *encoder, v []T, put func(*encoder, T)) {
	e.uint(uint64(len(v)))
	for _, x := range v {
		put(e, x)
	}
}

// A decoder removes fields from the front of b. After the first error, which it keeps in
// err, every field is zero.
type decoder struct {
	b   []byte
	err error
}

// fail keeps the first error, and discards the rest of the input.
func (d *decoder) fail() {
	if d.err == nil {
		d.err = ErrCorrupt
	}
	d.b = nil
}

func (d *decoder) byte() byte {
	if len(d.b) == 0 {
		d.fail()
		return 0
	}
	v := d.b[0]
	d.b = d.b[1:]
	return v
}

func (d *decoder) uint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

// small reads a number. It fails unless the number is below bound.
func (d *decoder) small(bound uint64) uint64 {
	v := d.uint()
	if v >= bound {
		d.fail()
		return 0
	}
	return v
}

func (d *decoder) int() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) bytes() []byte {
	n := d.uint()
	if n > uint64(len(d.b)) {
		d.fail()
		return nil
	}
	v := d.b[:n]
	d.b = d.b[n:]
	return v
}

func (d *decoder) string() string { return string(d.bytes()) }

func (d *decoder) ptr() region.Ptr {
	if len(d.b) < region.PtrBytes {
		d.fail()
		return region.Ptr{}
	}
	p, err := region.DecodePtr(d.b[:region.PtrBytes])
	if err != nil {
		d.fail()
		return region.Ptr{}
	}
	d.b = d.b[region.PtrBytes:]
	return p
}

// bools decodes flags from the bits of one byte. It fails if a further bit is set.
func (d *decoder) bools(v ...*bool) {
	bits := d.byte()
	for i, p := range v {
		*p = bits&(1<<i) != 0
	}
	if bits>>len(v) != 0 {
		d.fail()
	}
}

func (d *decoder) strings() []string { return getList(d, (*decoder).string) }

func getList[T any](d *decoder, get func(*decoder) T) []T {
	n := d.small(listMax)
	if n > uint64(len(d.b)) {
		d.fail()
	}
	if d.err != nil || n == 0 {
		return nil
	}
	v := make([]T, 0, min(n, 64))
	for range n {
		v = append(v, get(d))
		if d.err != nil {
			return nil
		}
	}
	return v
}

// format reads the number of a format, and fails with ErrFormat if it is not the known one.
func (d *decoder) format(known byte) {
	if v := d.byte(); d.err == nil && v != known {
		d.b, d.err = nil, fmt.Errorf("%w: %d", ErrFormat, v)
	}
}

// EncodeTable returns the stored form of a table.
func EncodeTable(t *Table) []byte {
	e := &encoder{}
	e.byte(formatTable)
	e.uint(t.ID)
	e.uint(t.Generation)
	e.string(t.DB)
	e.string(t.Name)
	e.string(t.Comment)
	e.uint(uint64(t.Collation))
	e.int(t.Created)
	putList(e, t.Columns, putColumn)
	e.uint(uint64(t.NextSlot))
	putIndex(e, t.Primary)
	putList(e, t.Indexes, putIndex)
	putList(e, t.Checks, putCheck)
	putList(e, t.ForeignKeys, putForeignKey)
	putList(e, t.ReferencedBy, putReference)
	e.ptr(t.Sequence)
	e.ptr(t.RowSequence)
	e.ptr(t.Counter)
	e.uint(t.Alteration.Owner)
	putList(e, t.Alteration.Build, putStorage)
	return e.b
}

// DecodeTable decodes the stored form of a table and checks that its parts are
// consistent: a decoded table can be used without further bounds checks.
func DecodeTable(b []byte) (*Table, error) {
	d := &decoder{b: b}
	d.format(formatTable)
	t := &Table{
		ID: d.uint(), Generation: d.uint(), DB: d.string(), Name: d.string(), Comment: d.string(),
		Collation: uint16(d.small(1 << 16)), Created: d.int(),
		Columns: getList(d, getColumn), NextSlot: uint16(d.small(1 << 16)),
		Primary: getIndex(d), Indexes: getList(d, getIndex),
		Checks: getList(d, getCheck), ForeignKeys: getList(d, getForeignKey), ReferencedBy: getList(d, getReference),
		Sequence: d.ptr(), RowSequence: d.ptr(), Counter: d.ptr(),
		Alteration: Alteration{Owner: d.uint(), Build: getList(d, getStorage)},
	}
	if d.err == nil {
		d.err = t.check()
	}
	if d.err != nil {
		return nil, d.err
	}
	return t, nil
}

// check verifies the references between a table's parts.
func (t *Table) check() error {
	slots := make(map[uint16]bool, len(t.Columns))
	for _, c := range t.Columns {
		if c.Virtual {
			continue
		}
		if c.Slot >= t.NextSlot || slots[c.Slot] {
			return fmt.Errorf("%w: column %s has slot %d", ErrCorrupt, c.Name, c.Slot)
		}
		slots[c.Slot] = true
	}
	for i := -1; i < len(t.Indexes); i++ {
		x := &t.Primary
		if i >= 0 {
			x = &t.Indexes[i]
		}
		for _, p := range x.Parts {
			if int(p.Column) >= len(t.Columns) {
				return fmt.Errorf("%w: index %s has column %d", ErrCorrupt, x.Name, p.Column)
			}
		}
	}
	return nil
}

func putType(e *encoder, t Type) {
	e.byte(byte(t.Kind))
	e.uint(uint64(t.Length))
	e.byte(t.Precision)
	e.byte(t.Scale)
	e.uint(uint64(t.Collation))
	e.uint(uint64(t.SRID))
	e.bools(t.HasSRID)
	e.strings(t.Values)
}

func getType(d *decoder) Type {
	t := Type{
		Kind: Kind(d.byte()), Length: uint32(d.small(1 << 32)), Precision: d.byte(), Scale: d.byte(),
		Collation: uint16(d.small(1 << 16)), SRID: uint32(d.small(1 << 32)),
	}
	d.bools(&t.HasSRID)
	t.Values = d.strings()
	if t.Kind == KindInvalid || t.Kind >= kinds {
		d.fail()
	}
	return t
}

func putColumn(e *encoder, c Column) {
	e.string(c.Name)
	e.string(c.Comment)
	e.string(c.Extra)
	putType(e, c.Type)
	e.uint(uint64(c.Slot))
	e.string(c.Default)
	e.string(c.Generated)
	e.string(c.OnUpdate)
	e.bools(c.Nullable, c.AutoIncrement, c.Virtual, c.Hidden, c.HiddenSystem)
}

func getColumn(d *decoder) Column {
	c := Column{
		Name: d.string(), Comment: d.string(), Extra: d.string(), Type: getType(d), Slot: uint16(d.small(1 << 16)),
		Default: d.string(), Generated: d.string(), OnUpdate: d.string(),
	}
	d.bools(&c.Nullable, &c.AutoIncrement, &c.Virtual, &c.Hidden, &c.HiddenSystem)
	return c
}

func putIndex(e *encoder, x Index) {
	e.string(x.Name)
	e.string(x.Comment)
	e.byte(byte(x.Access))
	e.bools(x.Unique, x.Declared, x.Spatial)
	putList(e, x.Parts, func(e *encoder, p Part) {
		e.uint(uint64(p.Column))
		e.uint(uint64(p.Length))
	})
	e.ptr(x.Anchor)
}

func getIndex(d *decoder) Index {
	x := Index{Name: d.string(), Comment: d.string(), Access: getAccess(d)}
	d.bools(&x.Unique, &x.Declared, &x.Spatial)
	x.Parts = getList(d, func(d *decoder) Part {
		return Part{Column: uint16(d.small(1 << 16)), Length: uint32(d.small(1 << 32))}
	})
	x.Anchor = d.ptr()
	return x
}

func getAccess(d *decoder) Access {
	a := Access(d.byte())
	if a >= accesses {
		d.fail()
	}
	return a
}

func putCheck(e *encoder, c Check) {
	e.string(c.Name)
	e.string(c.Expr)
	e.bools(c.Enforced)
}

func getCheck(d *decoder) Check {
	c := Check{Name: d.string(), Expr: d.string()}
	d.bools(&c.Enforced)
	return c
}

func putForeignKey(e *encoder, f ForeignKey) {
	e.string(f.Name)
	e.string(f.ParentDB)
	e.string(f.ParentTable)
	e.strings(f.Columns)
	e.strings(f.ParentColumns)
	e.string(f.OnUpdate)
	e.string(f.OnDelete)
	e.bools(f.Resolved)
}

func getForeignKey(d *decoder) ForeignKey {
	f := ForeignKey{
		Name: d.string(), ParentDB: d.string(), ParentTable: d.string(), Columns: d.strings(),
		ParentColumns: d.strings(), OnUpdate: d.string(), OnDelete: d.string(),
	}
	d.bools(&f.Resolved)
	return f
}

func putReference(e *encoder, r Reference) {
	e.string(r.DB)
	e.string(r.Table)
	e.string(r.Name)
}

func getReference(d *decoder) Reference {
	return Reference{DB: d.string(), Table: d.string(), Name: d.string()}
}

func putStorage(e *encoder, s Storage) {
	e.byte(byte(s.Access))
	e.ptr(s.Anchor)
	e.bools(s.Rows)
}

func getStorage(d *decoder) Storage {
	s := Storage{Access: getAccess(d), Anchor: d.ptr()}
	d.bools(&s.Rows)
	return s
}

// EncodeDatabase returns the stored form of a database.
func EncodeDatabase(v *Database) []byte {
	e := &encoder{}
	e.byte(formatDatabase)
	e.string(v.Name)
	e.uint(uint64(v.Collation))
	return e.b
}

// DecodeDatabase decodes the stored form of a database.
func DecodeDatabase(b []byte) (*Database, error) {
	d := &decoder{b: b}
	d.format(formatDatabase)
	v := &Database{Name: d.string(), Collation: uint16(d.small(1 << 16))}
	if d.err != nil {
		return nil, d.err
	}
	return v, nil
}

// EncodeDefinition returns the stored form of a view, trigger, procedure or
// event.
func EncodeDefinition(v *Definition) []byte {
	e := &encoder{}
	e.byte(formatDefinition)
	e.string(v.Name)
	e.string(v.Text)
	e.string(v.Statement)
	e.string(v.SQLMode)
	e.int(v.Created)
	e.int(v.Modified)
	e.bytes(v.Extra)
	return e.b
}

// DecodeDefinition decodes the stored form of a definition.
func DecodeDefinition(b []byte) (*Definition, error) {
	d := &decoder{b: b}
	d.format(formatDefinition)
	v := &Definition{
		Name: d.string(), Text: d.string(), Statement: d.string(), SQLMode: d.string(),
		Created: d.int(), Modified: d.int(), Extra: append([]byte(nil), d.bytes()...),
	}
	if d.err != nil {
		return nil, d.err
	}
	return v, nil
}

// encodeStorage and decodeStorage encode and decode the entries of the list of dropped storage.
func encodeStorage(s []Storage) []byte {
	e := &encoder{}
	e.byte(formatStorage)
	putList(e, s, putStorage)
	return e.b
}

func decodeStorage(b []byte) ([]Storage, error) {
	d := &decoder{b: b}
	d.format(formatStorage)
	s := getList(d, getStorage)
	return s, d.err
}
