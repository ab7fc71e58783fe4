package row

import (
	"bytes"
	"context"
	"sort"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// A row larger than InlineBytesMax moves its largest values into chains of overflow
// objects until it fits. Reading a row by its key copies the whole row, so rows that
// are mostly read for their small columns should stay small.
const (
	InlineBytesMax = 8 << 10
	// SpillBytesMin is the size of the smallest value that is worth moving out of a row.
	SpillBytesMin = 128
)

// NumberBytes is the length of a hidden primary key.
const NumberBytes = 8

// Store writes a row into a new object, with its hidden number if it has one.
func Store(ctx context.Context, t *txn.Tx, c *Codec, row gms.Row, number []byte, hint region.Addr) (region.Ptr, error) {
	img, err := c.Image(ctx, row)
	if err != nil {
		return region.Ptr{}, err
	}
	defer img.free()
	if number != nil {
		img.values[NumberSlot] = number
	}
	if err := img.spill(t, hint); err != nil {
		return region.Ptr{}, err
	}
	return img.store(t, hint)
}

func (img *Image) store(t *txn.Tx, hint region.Addr) (region.Ptr, error) {
	p, payload, err := t.Alloc(img.bytes(), hint)
	if err != nil {
		return region.Ptr{}, err
	}
	img.Append(payload[:0])
	return p, nil
}

// spill moves values out of a row that is too large, the largest first.
func (img *Image) spill(t *txn.Tx, hint region.Addr) error {
	if img.bytes() <= InlineBytesMax {
		return nil
	}
	bySize := make([]int, len(img.values))
	for i := range bySize {
		bySize[i] = i
	}
	sort.SliceStable(bySize, func(i, j int) bool { return len(img.values[bySize[i]]) > len(img.values[bySize[j]]) })
	for _, i := range bySize {
		if len(img.values[i]) < SpillBytesMin || img.bytes() <= InlineBytesMax {
			return nil
		}
		ref, err := catalog.PutChain(t, img.values[i], hint)
		if err != nil {
			return err
		}
		img.values[i], img.spilled[i], img.hasSpilled = ref, true, true
	}
	return nil
}

// Replace writes a row over an old one: in place if it fits the object, otherwise into
// a new object. It returns the row's address.
func Replace(ctx context.Context, t *txn.Tx, c *Codec, old region.Ptr, row gms.Row, number []byte) (region.Ptr, error) {
	img, err := c.Image(ctx, row)
	if err != nil {
		return region.Ptr{}, err
	}
	defer img.free()
	if number != nil {
		img.values[NumberSlot] = number
	}
	if err := freeSpills(t, old); err != nil {
		return region.Ptr{}, err
	}
	return img.replace(t, old)
}

// Change is like Replace, for a caller that has read the stored row, with the values was. Values that stay the same are
// not encoded again, and stay where they are if they are outside of the row.
func Change(ctx context.Context, t *txn.Tx, c *Codec, old region.Ptr, was, row gms.Row) (region.Ptr, error) {
	b, err := t.Read(old)
	if err != nil {
		return region.Ptr{}, err
	}
	stored, err := Parse(b)
	if err != nil {
		return region.Ptr{}, err
	}
	img, err := c.imageOver(ctx, row, was, &stored)
	if err != nil {
		return region.Ptr{}, err
	}
	defer img.free()
	err = stored.eachSpill(func(slot int, ref []byte) error {
		if slot < len(img.spilled) && img.spilled[slot] {
			return nil
		}
		return catalog.FreeChain(t, ref)
	})
	if err != nil {
		return region.Ptr{}, err
	}
	return img.replace(t, old)
}

// replace writes the row over an old one, whose values outside of the row have been freed as far as the image does not
// have them. It returns the row's address.
func (img *Image) replace(t *txn.Tx, old region.Ptr) (region.Ptr, error) {
	if err := img.spill(t, old.Addr); err != nil {
		return region.Ptr{}, err
	}
	class, ok := region.ClassFor(img.bytes())
	// A row that has shrunk a lot moves, too, to free the larger object.
	if ok && class <= old.Class() && class.Size()*4 >= old.Class().Size() {
		payload, err := t.Write(old)
		if err != nil {
			return region.Ptr{}, err
		}
		clear(payload[len(img.Append(payload[:0])):])
		return old, nil
	}
	if err := t.Free(old); err != nil {
		return region.Ptr{}, err
	}
	return img.store(t, old.Addr)
}

// Free frees a row and the values that are stored outside of it.
func Free(t *txn.Tx, p region.Ptr) error {
	if err := freeSpills(t, p); err != nil {
		return err
	}
	return t.Free(p)
}

func freeSpills(t *txn.Tx, p region.Ptr) error {
	return EachSpill(t, p, func(ref []byte) error { return catalog.FreeChain(t, ref) })
}

// EachSpill visits the references of a row to values outside of it.
func EachSpill(t *txn.Tx, p region.Ptr, visit func(ref []byte) error) error {
	b, err := t.Read(p)
	if err != nil {
		return err
	}
	r, err := Parse(b)
	if err != nil {
		return err
	}
	return r.eachSpill(func(_ int, ref []byte) error { return visit(ref) })
}

// eachSpill visits the slots and references of values outside of the row.
func (r *View) eachSpill(visit func(slot int, ref []byte) error) error {
	if r.spills == nil {
		return nil
	}
	for i := range r.slots {
		v, spilled, err := r.Slot(i)
		if err != nil {
			return err
		}
		if !spilled {
			continue
		}
		if err := visit(i, v); err != nil {
			return err
		}
	}
	return nil
}

// Load reads the columns at the given positions of a row, all if columns is
// nil.
func Load(t *txn.Tx, c *Codec, p region.Ptr, columns []int) (gms.Row, error) {
	b, err := t.Read(p)
	if err != nil {
		return nil, err
	}
	return c.Decode(t, b, columns)
}

// Decode returns the columns at the given positions of a stored row, all if columns is nil. The result
// does not alias b.
func (c *Codec) Decode(t *txn.Tx, b []byte, columns []int) (gms.Row, error) {
	return c.decode(b, columns, func(ref []byte) ([]byte, error) { return catalog.GetChain(t, ref) })
}

// DecodeSparse returns a row with only the columns at the given positions; the others are nil. The result does not alias
// b.
func (c *Codec) DecodeSparse(t *txn.Tx, b []byte, columns []int) (gms.Row, error) {
	return c.decodeSparse(b, columns, func(ref []byte) ([]byte, error) { return catalog.GetChain(t, ref) })
}

// StoredValue returns a column of a stored row as it is stored, nil for NULL.
func (c *Codec) StoredValue(t *txn.Tx, v *View, at int) ([]byte, error) {
	b, spilled, err := v.Slot(c.Columns[at].Slot)
	if err != nil || !spilled {
		return b, err
	}
	return catalog.GetChain(t, b)
}

// LoadPart is like Load, for a statement that depends only on these columns: changes to the rest of
// the row do not conflict with it. For a value outside of the row, the reference is compared, so
// that a move counts as a change.
func LoadPart(t *txn.Tx, c *Codec, p region.Ptr, columns []int) (gms.Row, error) {
	if columns == nil {
		return Load(t, c, p, nil)
	}
	b, err := t.ReadPart(p, &Part{c, columns})
	if err != nil {
		return nil, err
	}
	return c.Decode(t, b, columns)
}

// A Part names the columns of a table's rows that a statement depends on.
type Part struct {
	Rows    *Codec
	Columns []int // their positions in the table
}

// Same implements txn.Part.
func (p *Part) Same(was, now []byte) bool { return p.Rows.sameColumns(was, now, p.Columns) }

// sameColumns reports whether columns have the same values in two versions of a row.
func (c *Codec) sameColumns(a, b []byte, columns []int) bool {
	x, errX := Parse(a)
	y, errY := Parse(b)
	if errX != nil || errY != nil {
		return false
	}
	for _, at := range columns {
		if c.Columns[at].Virtual {
			continue // the column's value follows from other columns, which are also compared
		}
		v, isOut, errX := x.Slot(c.Columns[at].Slot)
		w, isOutNow, errY := y.Slot(c.Columns[at].Slot)
		if errX != nil || errY != nil || isOut != isOutNow || (v == nil) != (w == nil) || !bytes.Equal(v, w) {
			return false
		}
	}
	return true
}

// NumberOf returns the hidden number of a row.
func NumberOf(t *txn.Tx, p region.Ptr) ([]byte, error) {
	b, err := t.Read(p)
	if err != nil {
		return nil, err
	}
	r, err := Parse(b)
	if err != nil {
		return nil, err
	}
	n, _, err := r.Slot(NumberSlot)
	if err == nil && len(n) != NumberBytes {
		err = ErrCorrupt
	}
	return append([]byte(nil), n...), err
}
