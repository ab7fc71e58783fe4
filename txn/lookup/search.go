package lookup

import (
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// A Place is what one READ reads.
type Place struct {
	// Ptr points to an object.
	Ptr region.Ptr
	// Pair says that the object after it, Ptr.Element(1), is wanted, too.
	Pair bool
}

// An Object is what was read at a Place.
type Object struct {
	txn.Source
	// Payload is valid until the next object is read, or as long as the Reader says.
	Payload []byte
}

// A Search is one lookup of one key by one machine. Its methods are called on the goroutine of
// the lookup, and must not wait. Once a method has returned that the lookup is decided, the
// Search has the answer.
type Search interface {
	// Start returns the next place to read (lookup_start). It returns false if this machine
	// knows none: then the owner is asked. If walk is true, reads alone must decide the lookup,
	// and Start goes from object to object. If walk is false, only a place that is likely to
	// decide is worth a READ.
	Start(walk bool) (at Place, known bool)
	// End takes what was read at the place that Start returned (lookup_end): the object, the
	// two objects of a pair, or the error of the read. region.ErrFreed means that the object is
	// gone. End returns true if the lookup is decided, and an error if it cannot go on.
	End(got []Object, failed error) (decided bool, err error)
	// Owner returns an address whose primary can answer.
	Owner() region.Addr
	// Request appends what the owner needs to know to b.
	Request(b []byte) []byte
	// Learn takes the owner's answer, which decides the lookup (lookup_end after a message).
	// The answer's bytes belong to the Search. They came from another machine: a structure that
	// decodes the value must check it.
	Learn(a Answer) error
}

// A Reader reads committed objects consistently: a transaction, the Fresh of a question that is
// asked again, or an operation outside of transactions (Reading).
type Reader interface {
	Peek(p region.Ptr) ([]byte, region.Version, error)
}

// A pairReader reads two adjacent objects by one READ.
type pairReader interface {
	PeekPair(p region.Ptr) (a, b []byte, va, vb region.Version, err error)
}

// read appends the objects at a place to got.
func read(r Reader, at Place, got []Object) ([]Object, error) {
	if both, ok := r.(pairReader); ok && at.Pair {
		a, b, va, vb, err := both.PeekPair(at.Ptr)
		if err != nil {
			return got, err
		}
		return append(got, object(at.Ptr, va, a), object(at.Ptr.Element(1), vb, b)), nil
	}
	got, err := readOne(r, at.Ptr, got)
	if err == nil && at.Pair {
		got, err = readOne(r, at.Ptr.Element(1), got)
	}
	return got, err
}

func readOne(r Reader, p region.Ptr, got []Object) ([]Object, error) {
	b, v, err := r.Peek(p)
	if err != nil {
		return got, err
	}
	return append(got, object(p, v, b)), nil
}

func object(p region.Ptr, v region.Version, b []byte) Object {
	return Object{txn.Source{Ptr: p, Version: v}, b}
}
