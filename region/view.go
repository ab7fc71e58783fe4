package region

import (
	"sync/atomic"
	"unsafe"

	"github.com/farmsql/farmsql/internal/invariant"
	"github.com/farmsql/farmsql/internal/prefetch"
)

// A View reads parts of an object of this machine in place. A caller that needs little of an object
// copies only the lines with that part. It can prefetch all of these lines before the first has
// arrived.
//
// Until Valid returns true, bytes that Load has copied may be a mixture of several writes: use them
// only in ways that are safe with any bytes. The zero View stands for an object that has been
// copied as a whole: Load and Touch do nothing, and Valid returns true. A View must not be used
// once its region's memory is closed.
type View struct {
	object unsafe.Pointer
	header Header
	class  Class
}

// Look returns a view of p's object. Errors are those of ReadObject, except that
// it does not wait: ErrLocked says that a transaction holds the object now.
func (r *Region) Look(p Ptr) (View, error) {
	off, ok := r.at(p)
	if !ok {
		return View{}, r.absent(p)
	}
	v := View{object: r.m.Pointer(off, uint64(p.Class().Size())), class: p.Class()}
	switch {
	case v.look(p.Incarnation()):
		return v, nil
	case v.header.Locked() || !v.Valid(): // a header that is not valid: the slot is being freed or reused
		return View{}, ErrLocked
	}
	return View{}, ErrFreed
}

// look loads the object's header, and reports whether the object is unlocked and has this
// incarnation.
func (v *View) look(incarnation uint64) bool {
	v.header = Header(atomic.LoadUint64((*uint64)(v.object)))
	return v.header.readable() && atomic.LoadUint64((*uint64)(unsafe.Add(v.object, incarnationOffset))) == incarnation
}

// A Pair is two adjacent objects to be read, at pointers p and p.Element(1). It is empty, as
// the zero Pair is, if its first view has no object.
type Pair struct {
	// Views are the views of the two objects. Use them only once Look has returned true.
	Views       [2]View
	incarnation uint64
}

// Aim makes the pair refer to the objects at p and p.Element(1). It makes the pair empty if there
// can be no objects there.
func (r *Region) Aim(a *Pair, p Ptr) {
	a.Views[0].object = nil // none
	off, class := uint64(p.Addr.Offset()), p.Class()
	size := uint64(class.Size())
	next := off + size
	// One condition at a time: the compiler would compute several as a value before it jumps.
	if !r.within(p.Addr, 2*size) {
		return
	}
	if !r.blockAt(off).holds(class) {
		return
	}
	if !r.inOneBlock(off, next) && !r.blockAt(next).holds(class) {
		return
	}
	first := r.m.Pointer(off, 2*size)
	a.Views[0].object, a.Views[0].class = first, class
	a.Views[1].object, a.Views[1].class = unsafe.Add(first, size), class
	a.incarnation = p.Incarnation()
}

// Gather adds the first lines of both objects, which Look needs, to a batch.
func (a *Pair) Gather(b *prefetch.Batch) {
	b.Add(a.Views[0].object)
	b.Add(a.Views[1].object)
}

// Look looks at both objects, and reports whether both are unlocked and have the incarnation of the pair.
func (a *Pair) Look() bool {
	if a.Views[0].object == nil { // one condition for each if, as in Aim
		return false
	}
	if !a.Views[0].look(a.incarnation) {
		return false
	}
	return a.Views[1].look(a.incarnation)
}

// Valid reports whether both objects are still as Look found them. It is called only after Look has
// returned true.
func (a *Pair) Valid() bool {
	first, second := &a.Views[0], &a.Views[1]
	return atomic.LoadUint64((*uint64)(first.object)) == uint64(first.header) &&
		atomic.LoadUint64((*uint64)(second.object)) == uint64(second.header)
}

// Fetch prefetches the first line of p's object, which Look needs, and does not wait
// for it.
func (r *Region) Fetch(p Ptr) {
	if off, ok := r.at(p); ok {
		prefetch.Lines(r.m.Pointer(off, uint64(p.Class().Size())), 1)
	}
}

// fetchMax is the number of lines of an object that FetchAll prefetches: more misses than a
// processor can have under way would only delay other prefetches.
const fetchMax = 32

// FetchAll prefetches the lines of p's object, at most the first fetchMax, and does not
// wait for them.
func (r *Region) FetchAll(p Ptr) {
	off, ok := r.at(p)
	if !ok {
		return
	}
	c := p.Class()
	prefetch.Lines(r.m.Pointer(off, uint64(c.Size())), min(c.lines(), fetchMax))
}

// Gather adds the lines of p's object to a batch, at most the first fetchMax.
func (r *Region) Gather(b *prefetch.Batch, p Ptr) {
	off, ok := r.at(p)
	if !ok {
		return
	}
	c := p.Class()
	object := r.m.Pointer(off, uint64(c.Size()))
	for i := range min(c.lines(), fetchMax) {
		b.Add(unsafe.Add(object, i*lineBytes))
	}
}

// Touch prefetches the lines that hold bytes [from, to) of the payload, and does not wait for
// them. It ignores bytes beyond the payload.
func (v View) Touch(from, to int) { v.TouchLines(v.class.Lines(from, to)) }

// TouchLines is like Touch, but only for the given lines.
func (v View) TouchLines(l Lines) {
	if v.object != nil && !l.isEmpty() {
		prefetch.Lines(unsafe.Add(v.object, l.first*lineBytes), l.count())
	}
}

// Gather adds lines to a batch.
func (v View) Gather(b *prefetch.Batch, l Lines) {
	if v.object == nil || l.isEmpty() {
		return
	}
	for i := l.first + 1; i < l.last; i++ {
		b.Add(unsafe.Add(v.object, i*lineBytes))
	}
	// If there is one line, it is added twice: that costs less than a branch that the processor
	// cannot predict.
	b.Add(unsafe.Add(v.object, l.first*lineBytes))
	b.Add(unsafe.Add(v.object, l.last*lineBytes))
}

// Load copies the lines that hold bytes [from, to) of the payload to their places in dst. dst must
// be at least as long as the object's capacity. It ignores bytes beyond the payload.
func (v View) Load(dst []byte, from, to int) {
	l := v.class.Lines(from, to)
	if v.object == nil || l.isEmpty() {
		return
	}
	begin := unsafe.Pointer(unsafe.SliceData(dst[:v.class.Capacity()]))
	if l.first == 0 {
		if copyFirst(begin, v.object); l.last == 0 {
			return
		}
		l.first = 1
	}
	loadLines(unsafe.Add(begin, payloadBefore(l.first)), unsafe.Add(v.object, l.first*lineBytes), l.count())
}

// LoadLines copies lines one after the other to the beginning of dst, which must have at least
// l.Len() bytes. Lines.Place says where in dst a byte of the payload is.
func (v View) LoadLines(dst []byte, l Lines) {
	if v.object != nil && !l.isEmpty() {
		_ = dst[l.Len()-1]
		loadLines(unsafe.Pointer(unsafe.SliceData(dst)), unsafe.Add(v.object, l.first*lineBytes), l.count())
	}
}

// FirstWords is the number of 8-byte words of payload on an object's first line. An index should
// keep there the words that determine which other lines to read.
const FirstWords = firstPayload / 8

// Word returns word i of the payload. i must be below FirstWords.
func (v View) Word(i int) uint64 {
	words := (*[FirstWords]uint64)(unsafe.Add(v.object, HeaderBytes))
	return atomic.LoadUint64(&words[i])
}

// Copy fills dst with bytes of the payload, beginning at the given offset. Like Equal it panics if
// that exceeds the payload. Do not call Word, Copy or Equal on the zero View.
func (v View) Copy(dst []byte, from int) {
	place := v.place(from, len(dst))
	if len(dst) == 0 {
		return // place may be beyond the object
	}
	for n := lineBytes - place%lineBytes; n < len(dst); n = linePayload {
		loadBytes(dst[:n], unsafe.Add(v.object, place))
		dst, place = dst[n:], place+n+versionBytes
	}
	loadBytes(dst, unsafe.Add(v.object, place))
}

// Equal reports whether the bytes of the payload at the given offset are b.
func (v View) Equal(b []byte, from int) bool {
	place := v.place(from, len(b))
	if len(b) == 0 {
		return true
	}
	for n := lineBytes - place%lineBytes; n < len(b); n = linePayload {
		if !equalBytes(b[:n], unsafe.Add(v.object, place)) {
			return false
		}
		b, place = b[n:], place+n+versionBytes
	}
	return equalBytes(b, unsafe.Add(v.object, place))
}

// place returns where, in the object, byte from of the payload is. It panics unless the payload has
// n bytes from there on.
func (v View) place(from, n int) int {
	if from < 0 || from+n > v.class.Capacity() {
		invariant.Violated("view within the payload", from+n, v.class.Capacity())
	}
	return HeaderBytes + from + versionBytes*lineOf(from)
}

// Lines is a range of lines of an object. The zero Lines is the first line.
type Lines struct{ first, last int }

// Lines returns the lines that hold bytes [from, to) of the payload. It ignores bytes beyond
// the payload.
func (c Class) Lines(from, to int) Lines {
	from, to = max(from, 0), min(to, c.Capacity())
	if from >= to {
		return Lines{0, -1}
	}
	return Lines{lineOf(from), lineOf(to - 1)}
}

// Len returns the number of bytes that LoadLines copies.
func (l Lines) Len() int { return l.count() * linePayload }

// Place returns the offset in dst to which LoadLines copies byte i of the payload. That byte
// must be on these lines.
func (l Lines) Place(i int) int { return i - payloadBefore(l.first) }

func (l Lines) count() int { return l.last + 1 - l.first }

func (l Lines) isEmpty() bool { return l.count() <= 0 }

// lineOf returns the line that holds byte i of an object's payload.
func lineOf(i int) int { return (i + linePayload - firstPayload) / linePayload }

// payloadBefore returns the offset in the payload of the first byte that LoadLines copies from line i.
// It is negative for line 0: LoadLines copies the last linePayload bytes of every line, and on line 0
// these begin within the header.
func payloadBefore(i int) int { return firstPayload + (i-1)*linePayload }

// Header returns the header that the object had when the view began.
func (v View) Header() Header { return v.header }

// Valid reports whether all that was loaded so far is of the version in Header.
func (v View) Valid() bool {
	return v.object == nil || Header(atomic.LoadUint64((*uint64)(v.object))) == v.header
}
