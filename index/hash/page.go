package hash

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/farmsql/farmsql/region"
)

// A page is the payload of a bucket or of an overflow block: both hold slots
// and a link to the next block of the bucket's chain.
//
//	 0 link: fat pointer to the next block of the chain
//	16 chain version that the next block must have
//	18 bucket: forward joint version    block: its chain version
//	20 bucket: backward joint version   block: 0
//	22 bucket: depth + 1, 0 while the bucket is not in use   block: 0
//	23 0
//	24 control words, 32 bits for each slot
//	.. data of each slot: key, value; or hash and pointer to the pair
//
// Control word: | 0 | outside | next | used | value length 12b | key length 8b | tag 8b |
// The control word of a free slot is 0. next says that the key's home is the bucket
// before this one. An outside pair has lengths of 0.
//
// The methods of a page do not check its bytes: if these may be wrong, callers must
// call valid first.
type page struct {
	b     []byte
	lay   *layout
	slots int
}

const (
	linkOffset     = 0
	linkVersion    = 16
	chainVersion   = 18 // a block's chain version
	forwardVersion = 18 // a bucket's joint version with the bucket after it
	backVersion    = 20
	depthOffset    = 22

	pageHeaderBytes = 24
	controlBytes    = 4
	// blockSlots is the number of pairs of an overflow block (NSDI'14 section 3.6).
	blockSlots = 2

	keyLengthShift   = 8
	valueLengthShift = 16
	usedFlag         = 1 << 28
	nextFlag         = 1 << 29
	outsideFlag      = 1 << 30

	// outsideBytes is the length of a slot's data if the pair is in an object of its own: hash and
	// pointer.
	outsideBytes = 8 + region.PtrBytes
)

var _ = [1]struct{}{}[InlineValueBytesMax-(usedFlag>>valueLengthShift-1)]
var _ = [1]struct{}{}[InlineKeyBytesMax-(1<<(valueLengthShift-keyLengthShift)-1)]

func (l *layout) bucket(b []byte) page { return page{b, l, l.slots} }
func (l *layout) block(b []byte) page  { return page{b, l, blockSlots} }

func (p page) u16(off int) uint16       { return binary.LittleEndian.Uint16(p.b[off:]) }
func (p page) setU16(off int, v uint16) { binary.LittleEndian.PutUint16(p.b[off:], v) }

// A link points to the next block of a chain. If the chain version in the block differs from the
// one in the link, the chain has changed since the link was read.
type link struct {
	ptr     region.Ptr
	version uint16
}

func (p page) link() (link, error) {
	ptr, err := region.DecodePtr(p.b[linkOffset:])
	if err != nil {
		return link{}, fmt.Errorf("%w: link: %w", ErrCorrupt, err)
	}
	return link{ptr, p.u16(linkVersion)}, nil
}

func (p page) setLink(l link) {
	l.ptr.Append(p.b[linkOffset:linkOffset:linkVersion])
	p.setU16(linkVersion, l.version)
}

// linked reports whether a block of the chain follows p.
func (p page) linked() bool { return binary.LittleEndian.Uint64(p.b[linkOffset:]) != 0 }

// depth returns the length in bits of the hash prefix shared by the keys of this
// bucket, or false if the bucket is not in use yet.
func (p page) depth() (int, bool) { return int(p.b[depthOffset]) - 1, p.b[depthOffset] != 0 }

func (p page) setDepth(d int) { p.b[depthOffset] = byte(d + 1) }

func (p page) controlOffset(i int) int { return pageHeaderBytes + controlBytes*i }

func (p page) control(i int) uint32 { return binary.LittleEndian.Uint32(p.b[p.controlOffset(i):]) }

// dataOffset returns the offset of the data of slot i.
func (p page) dataOffset(i int) int {
	return pageHeaderBytes + controlBytes*p.slots + i*p.lay.dataBytes
}

func (p page) data(i int) []byte {
	off := p.dataOffset(i)
	return p.b[off : off+p.lay.dataBytes : off+p.lay.dataBytes]
}

// A slot is a slot of a page, taken apart: a copy of its control word, and its data, which is either a
// copy or the page's own bytes.
type slot struct {
	control uint32
	data    []byte
}

func (p page) slot(i int) slot { return slot{p.control(i), p.data(i)} }

// set stores s in slot i; next says that the key's home is the bucket before this one.
func (p page) set(i int, s slot, next bool) {
	control := s.control &^ nextFlag
	if next {
		control |= nextFlag
	}
	binary.LittleEndian.PutUint32(p.b[p.controlOffset(i):], control)
	n := copy(p.data(i), s.data)
	clear(p.data(i)[n:])
}

// clear frees slot i.
func (p page) clear(i int) {
	binary.LittleEndian.PutUint32(p.b[p.controlOffset(i):], 0)
	clear(p.data(i))
}

// free returns the number of a free slot, or false if there is none.
func (p page) free() (int, bool) {
	for i := range p.slots {
		if p.control(i) == 0 {
			return i, true
		}
	}
	return 0, false
}

// usedSlots counts the slots in use.
func (p page) usedSlots() (n int) {
	for i := range p.slots {
		if p.control(i) != 0 {
			n++
		}
	}
	return n
}

func (s slot) used() bool    { return s.control&usedFlag != 0 }
func (s slot) next() bool    { return s.control&nextFlag != 0 }
func (s slot) outside() bool { return s.control&outsideFlag != 0 }

// lengths returns the lengths of an inline pair.
func (s slot) lengths() (key, value int) {
	return int((s.control >> keyLengthShift) & 0xff), int((s.control >> valueLengthShift) & 0xfff)
}

func (s slot) key() []byte {
	n, _ := s.lengths()
	return s.data[:n:n]
}

func (s slot) value() []byte {
	k, v := s.lengths()
	return s.data[k : k+v : k+v]
}

// pair returns the hash of the key and the pointer to the object of an outside
// pair.
func (s slot) pair() (uint64, region.Ptr, error) {
	p, err := region.DecodePtr(s.data[8:])
	if err == nil && p.IsNil() {
		err = region.ErrBadPtr
	}
	if err != nil {
		return 0, region.Ptr{}, fmt.Errorf("%w: outside pair: %w", ErrCorrupt, err)
	}
	return binary.LittleEndian.Uint64(s.data), p, nil
}

// hash returns the hash of the slot's key.
func (s slot) hash(seed uint64) uint64 {
	if s.outside() {
		return binary.LittleEndian.Uint64(s.data)
	}
	return sum(seed, s.key())
}

// inlineSlot returns a slot holding a pair, with its data in buf.
func inlineSlot(h uint64, key, value, buf []byte) slot {
	buf = append(append(buf[:0], key...), value...)
	return slot{usedFlag | tagOf(h) | uint32(len(key))<<keyLengthShift | uint32(len(value))<<valueLengthShift, buf}
}

// outsideSlot returns a slot that points to the pair's object.
func outsideSlot(h uint64, p region.Ptr, buf []byte) slot {
	return slot{usedFlag | outsideFlag | tagOf(h), p.Append(binary.LittleEndian.AppendUint64(buf[:0], h))}
}

// find returns the first slot from i on that may hold key, whose hash is h: a slot
// that holds the key inline, or an outside pair with the same hash. next is true if p
// is the bucket after the key's home, false if p is the home or a block of its chain.
// find returns -1 if there is no such slot.
func (p page) find(i int, h uint64, key []byte, next bool) int {
	want := wanted(h, next)
	for ; i < p.slots; i++ {
		if p.control(i)&wantedMask == want && p.slot(i).matches(h, key) {
			return i
		}
	}
	return -1
}

// wanted returns the bits under wantedMask of the control word of a key with hash h.
func wanted(h uint64, next bool) uint32 {
	if next {
		return usedFlag | nextFlag | tagOf(h)
	}
	return usedFlag | tagOf(h)
}

const wantedMask = usedFlag | nextFlag | 0xff

// matches reports whether s holds key inline, or an outside pair with the key's hash h.
func (s slot) matches(h uint64, key []byte) bool {
	if s.outside() {
		return binary.LittleEndian.Uint64(s.data) == h
	}
	k, v := s.lengths()
	return k == len(key) && k+v <= len(s.data) && bytes.Equal(s.data[:k], key)
}

// valid returns an error if p cannot be a page of the table. It is for bytes that may
// be wrong, because they came by a stale pointer or from a bad disk.
func (p page) valid() error {
	if len(p.b) < pageHeaderBytes+p.slots*(controlBytes+p.lay.dataBytes) {
		return fmt.Errorf("%w: page of %d bytes", ErrCorrupt, len(p.b))
	}
	if _, err := p.link(); err != nil {
		return err
	}
	if p.b[depthOffset] > depthMax+1 {
		return fmt.Errorf("%w: depth %d", ErrCorrupt, p.b[depthOffset]-1)
	}
	for i := range p.slots {
		if err := p.slot(i).valid(p.lay); err != nil {
			return err
		}
	}
	return nil
}

func (s slot) valid(l *layout) error {
	if s.control == 0 {
		return nil
	}
	k, v := s.lengths()
	switch {
	case !s.used() || s.control>>31 != 0:
		return fmt.Errorf("%w: control word %#x", ErrCorrupt, s.control)
	case (s.outside() && k+v != 0) || k+v > l.dataBytes:
		return fmt.Errorf("%w: pair of %d + %d bytes in a slot", ErrCorrupt, k, v)
	case s.outside():
		_, _, err := s.pair()
		return err
	}
	return nil
}
