package region

import (
	"sync/atomic"
	"unsafe"

	"github.com/farmsql/farmsql/internal/invariant"
	"github.com/farmsql/farmsql/internal/prefetch"
)

// A View reads parts of an object of this machine in place. Who needs little of
// an object copies only the lines that have it, and can ask for all lines that
// may be needed before the first of them has arrived.
//
// What Load copied may be of several writers until Valid says that it is not: use
// it before only in ways that any bytes can stand. The zero View is of an object
// that has been copied as a whole: Load and Touch do nothing, and it is valid.
// A View must not be used once its region's memory is closed.
type View struct {
	object unsafe.Pointer
	header Header
	class  Class
}

// Look returns a view of p's object. Errors are those of ReadObject, except that
// it does not wait: ErrLocked says that a transaction holds the object now.
func (r *Region) Look(p Ptr) (View, error) { return r.aim(p).Look() }

// Fetch has the processor fetch the first line of p's object, which Look needs,
// and does not wait for it.
func (r *Region) Fetch(p Ptr) Aim {
	a := r.aim(p)
	if a.object != nil {
		prefetch.Lines(a.object, 1)
	}
	return a
}

// An Aim is an object that is going to be looked at. The zero Aim is none.
type Aim struct {
	object unsafe.Pointer
	ptr    Ptr
}

func (r *Region) aim(p Ptr) Aim {
	off, ok := r.at(p)
	if !ok {
		return Aim{}
	}
	return Aim{r.m.Pointer(off, uint64(p.Class().Size())), p}
}

// Look is Region.Look at the object.
func (a Aim) Look() (View, error) {
	if a.object == nil {
		return View{}, ErrBadPtr
	}
	v := View{object: a.object, class: a.ptr.Class()}
	v.header = Header(atomic.LoadUint64((*uint64)(v.object)))
	switch {
	case v.header.Locked():
		return View{}, ErrLocked
	case !v.header.Allocated() || atomic.LoadUint64((*uint64)(unsafe.Add(v.object, incarnationOffset))) != a.ptr.Incarnation():
		if v.Valid() {
			return View{}, ErrFreed
		}
		return View{}, ErrLocked // the slot is changing hands
	}
	return v, nil
}

// fetchMax is how many lines of an object FetchAll asks for: more than a processor
// has under way at a time would only take the place of what others asked for.
const fetchMax = 32

// FetchAll has the processor fetch p's object, or as much of a large one as makes
// sense, and does not wait for it.
func (r *Region) FetchAll(p Ptr) {
	off, ok := r.at(p)
	if !ok {
		return
	}
	c := p.Class()
	prefetch.Lines(r.m.Pointer(off, uint64(c.Size())), min(c.lines(), fetchMax))
}

// Touch has the processor fetch the lines that hold bytes from to to of the
// payload, and does not wait for them. What lies outside is left out.
func (v View) Touch(from, to int) {
	if first, last := v.lines(from, to); first <= last {
		prefetch.Lines(unsafe.Add(v.object, first*lineBytes), last+1-first)
	}
}

// Load copies the lines that hold bytes from to to of the payload to where they
// belong in dst, which is as long as the object's capacity or longer. What lies
// outside is left out.
func (v View) Load(dst []byte, from, to int) {
	if first, last := v.lines(from, to); first <= last {
		loadLines(dst[:v.class.Capacity()], v.object, first, last)
	}
}

// FirstWords is how many words of 8 bytes the payload has on an object's first
// line, which is where an index should keep what decides about the rest.
const FirstWords = firstPayload / 8

// Word returns word i of the payload, of the first FirstWords.
func (v View) Word(i int) uint64 {
	if uint(i) >= FirstWords {
		invariant.Violated("word on the first line", i, FirstWords)
	}
	return atomic.LoadUint64((*uint64)(unsafe.Add(v.object, HeaderBytes+8*i)))
}

// Copy copies the payload from byte from on to dst. Like Equal it panics if there
// is not that much. The zero View has neither words nor bytes.
func (v View) Copy(dst []byte, from int) {
	place := v.place(from, len(dst))
	for n := lineBytes - place%lineBytes; n < len(dst); n = linePayload {
		loadBytes(dst[:n], unsafe.Add(v.object, place))
		dst, place = dst[n:], place+n+versionBytes
	}
	loadBytes(dst, unsafe.Add(v.object, place))
}

// Equal reports whether b is what the payload has from byte from on.
func (v View) Equal(b []byte, from int) bool {
	place := v.place(from, len(b))
	for n := lineBytes - place%lineBytes; n < len(b); n = linePayload {
		if !equalBytes(b[:n], unsafe.Add(v.object, place)) {
			return false
		}
		b, place = b[n:], place+n+versionBytes
	}
	return equalBytes(b, unsafe.Add(v.object, place))
}

// place returns where byte from of the payload is in the object. n bytes from
// there on must be payload.
func (v View) place(from, n int) int {
	if from < 0 || from+n > v.class.Capacity() {
		invariant.Violated("view within the payload", from+n, v.class.Capacity())
	}
	return HeaderBytes + from + versionBytes*lineOf(from)
}

// lines returns the first and the last line that hold bytes from to to; of none
// the last comes before the first.
func (v View) lines(from, to int) (first, last int) {
	from, to = max(from, 0), min(to, v.class.Capacity())
	if v.object == nil || from >= to {
		return 0, -1
	}
	return lineOf(from), lineOf(to - 1)
}

// lineOf returns the line that holds byte i of an object's payload.
func lineOf(i int) int { return (i + linePayload - firstPayload) / linePayload }

// Header returns the header that the object had when the view began.
func (v View) Header() Header { return v.header }

// Valid reports whether all that was loaded so far is of the version in Header.
func (v View) Valid() bool {
	return v.object == nil || Header(atomic.LoadUint64((*uint64)(v.object))) == v.header
}
