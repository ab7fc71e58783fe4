package nvram

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// A save is a directory with an index and an image of each memory. An image is a sparse file with
// the same bytes at the same offsets. The index says which parts of it were written, and their
// checksums. All other parts are zero.
//
//	index:  | magic 8 | format 4 | memories 4 | memory ... | crc 4 |
//	memory: | name length 2 | name | size 8 | chunks 4 | chunk ... |
//	chunk:  | offset 8 | length 4 | crc 4 |
//
// All numbers are little endian, all checksums CRC-32C.

const (
	imageMagic = "farmsave"
	// chunkBytes is the largest number of bytes that one checksum covers.
	chunkBytes = 1 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// image is the entry of one memory in the index.
type image struct {
	name   string
	size   int64
	chunks []chunk // in rising order
}

type chunk struct {
	off int64
	n   uint32
	crc uint32
}

func encodeIndex(images []image) []byte {
	le := binary.LittleEndian
	b := le.AppendUint32([]byte(imageMagic), FormatVersion)
	b = le.AppendUint32(b, uint32(len(images)))
	for _, m := range images {
		b = append(le.AppendUint16(b, uint16(len(m.name))), m.name...)
		b = le.AppendUint64(b, uint64(m.size))
		b = le.AppendUint32(b, uint32(len(m.chunks)))
		for _, c := range m.chunks {
			b = le.AppendUint64(b, uint64(c.off))
			b = le.AppendUint32(le.AppendUint32(b, c.n), c.crc)
		}
	}
	return le.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// decodeIndex returns ErrCorrupt for bytes that encodeIndex cannot have written, and ErrFormat for
// an index of a newer program.
func decodeIndex(b []byte) ([]image, error) {
	if len(b) < len(imageMagic)+12 || string(b[:len(imageMagic)]) != imageMagic {
		return nil, fmt.Errorf("%w: index is none", ErrCorrupt)
	}
	body, sum := b[:len(b)-4], binary.LittleEndian.Uint32(b[len(b)-4:])
	if crc32.Checksum(body, castagnoli) != sum {
		return nil, fmt.Errorf("%w: checksum of the index", ErrCorrupt)
	}
	r := indexReader{b: body[len(imageMagic):]}
	if v := r.number(4); v > FormatVersion {
		return nil, fmt.Errorf("%w: save of format %d was written by a newer farmsql; this one knows %d", ErrFormat, v, FormatVersion)
	}
	var images []image
	for n := r.number(4); n > 0 && !r.bad; n-- {
		images = append(images, r.image())
	}
	if r.bad || len(r.b) > 0 {
		return nil, fmt.Errorf("%w: index does not add up", ErrCorrupt)
	}
	return images, nil
}

// indexReader reads an index, and records whether the index was invalid.
type indexReader struct {
	b   []byte
	bad bool
}

// number reads n little-endian bytes.
func (r *indexReader) number(n int) (v uint64) {
	for i, c := range r.bytes(n) {
		v |= uint64(c) << (8 * i)
	}
	return v
}

func (r *indexReader) bytes(n int) []byte {
	if n > len(r.b) {
		r.bad = true
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

// image decodes the description of one memory. It sets bad if chunks overlap, are out of order, or
// exceed the memory.
func (r *indexReader) image() image {
	m := image{name: string(r.bytes(int(r.number(2)))), size: int64(r.number(8))}
	if !goodName(m.name) || m.size <= 0 || m.size%WordBytes != 0 {
		r.bad = true
	}
	end := int64(0)
	for n := r.number(4); n > 0 && !r.bad; n-- {
		c := chunk{int64(r.number(8)), uint32(r.number(4)), uint32(r.number(4))}
		if c.off < end || c.n == 0 || c.n > chunkBytes || c.off > m.size-int64(c.n) {
			r.bad = true
		}
		end = c.off + int64(c.n)
		m.chunks = append(m.chunks, c)
	}
	return m
}
