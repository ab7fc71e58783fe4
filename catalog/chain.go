package catalog

import (
	"encoding/binary"
	"errors"

	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// A value too large for its row is kept in a chain of objects:
//
//	reference: | length u64 | first |     link: | next | n u32 | n bytes |
const (
	// ChainRefBytes is the length of a reference to a chain.
	ChainRefBytes = 8 + region.PtrBytes
	chainHeader   = region.PtrBytes + 4
	// chainLinkBytes is the payload of a link: large enough that a value needs few
	// links, small enough that a block holds several.
	chainLinkBytes = 64 << 10
)

// ErrBrokenChain means that a chain does not fit its reference, or is damaged.
var ErrBrokenChain = errors.New("catalog: broken overflow chain")

// PutChain stores bytes as a chain and returns the reference.
func PutChain(t *txn.Tx, b []byte, hint region.Addr) ([]byte, error) {
	ref := binary.LittleEndian.AppendUint64(nil, uint64(len(b)))
	// Allocate the last link first, so that each link can point to the next. Only the last link may
	// be shorter than the others. An empty value gets one empty link.
	var next region.Ptr
	for end := len(b); end > 0 || next.IsNil(); {
		n := end % (chainLinkBytes - chainHeader)
		if n == 0 {
			n = min(end, chainLinkBytes-chainHeader)
		}
		p, payload, err := t.Alloc(chainHeader+n, hint)
		if err != nil {
			return nil, err
		}
		putLink(payload, next, n)
		copy(payload[chainHeader:], b[end-n:end])
		next, end = p, end-n
	}
	return next.Append(ref), nil
}

func putLink(payload []byte, next region.Ptr, n int) {
	copy(payload, next.Append(nil))
	binary.LittleEndian.PutUint32(payload[region.PtrBytes:], uint32(n))
}

// GetChain returns the bytes that a reference stands for.
func GetChain(t *txn.Tx, ref []byte) ([]byte, error) {
	b := []byte{}
	err := walkChain(t, ref, func(_ region.Ptr, part []byte) error {
		b = append(b, part...)
		return nil
	})
	return b, err
}

// FreeChain frees a chain.
func FreeChain(t *txn.Tx, ref []byte) error {
	return walkChain(t, ref, func(p region.Ptr, _ []byte) error { return t.Free(p) })
}

// ChainLinks calls visit with the pointer to every link of a chain.
func ChainLinks(t *txn.Tx, ref []byte, visit func(region.Ptr) error) error {
	return walkChain(t, ref, func(p region.Ptr, _ []byte) error { return visit(p) })
}

// walkChain calls visit with each link of a chain and its bytes. It returns ErrBrokenChain if
// the links do not have as many bytes as the reference says.
func walkChain(t *txn.Tx, ref []byte, visit func(p region.Ptr, part []byte) error) error {
	if len(ref) != ChainRefBytes {
		return ErrBrokenChain
	}
	left := binary.LittleEndian.Uint64(ref)
	p, err := region.DecodePtr(ref[8:])
	if err != nil {
		return ErrBrokenChain
	}
	for !p.IsNil() {
		payload, err := t.Read(p)
		if err != nil {
			return err
		}
		next, n, err := link(payload)
		if err != nil || n > left || (n == 0 && left > 0) {
			return ErrBrokenChain
		}
		if err := visit(p, payload[chainHeader:chainHeader+n]); err != nil {
			return err
		}
		p, left = next, left-n
	}
	if left != 0 {
		return ErrBrokenChain
	}
	return nil
}

// link decodes the header of a link: the pointer to the next link, and the number n of bytes in
// this link.
func link(payload []byte) (next region.Ptr, n uint64, err error) {
	if len(payload) < chainHeader {
		return next, 0, ErrBrokenChain
	}
	n = uint64(binary.LittleEndian.Uint32(payload[region.PtrBytes:]))
	if n > uint64(len(payload)-chainHeader) {
		return next, 0, ErrBrokenChain
	}
	next, err = region.DecodePtr(payload)
	return next, n, err
}
