package region

// Class is one of the 256 sizes an object can have: 64 B to 1 MB, header and
// line versions included.
type Class uint8

const (
	// Classes is the number of size classes.
	Classes = 256
	// MaxObject is the raw size of the largest class.
	MaxObject = 1 << 20

	lineBytes    = 64
	maxLines     = MaxObject / lineBytes
	firstPayload = lineBytes - HeaderBytes  // payload of an object's first line
	linePayload  = lineBytes - versionBytes // payload of each line after it
)

// MaxPayload is the capacity of the largest class.
const MaxPayload = firstPayload + (maxLines-1)*linePayload

// Sizes are whole lines, so that every object begins at a line. This has three advantages: a NIC
// reads the bytes between two line versions atomically, a small object costs one cache miss, and
// locking an object leaves its neighbour's lines alone. The price is that small payloads are
// rounded up to lines (48 B, 110 B, 172 B ...). The smallest request that a class serves is one
// line larger than the class below. Each class is as large as it can be while that request wastes at most
// growth/(4096+growth) = 2.5 % of its lines.
const growth = 107

var (
	classLines = makeClassLines()
	classOf    = makeClassOf(&classLines) // the class for each number of lines
)

// makeClassLines returns the number of lines of each class: one more than the class below has,
// enlarged by growth/4096.
func makeClassLines() (lines [Classes]uint16) {
	lines[0] = 1
	for c := 1; c < Classes-1; c++ {
		next := uint32(lines[c-1]) + 1
		lines[c] = uint16(next + next*growth/4096)
	}
	lines[Classes-1] = maxLines
	return lines
}

// makeClassOf returns, for each number of lines, the smallest class with at least so many.
func makeClassOf(lines *[Classes]uint16) (of [maxLines + 1]Class) {
	c := 0
	for n := range of {
		if n > int(lines[c]) {
			c++
		}
		of[n] = Class(c)
	}
	return of
}

// ClassFor returns the smallest class that holds payload bytes, or false if
// payload is negative or more than MaxPayload.
func ClassFor(payload int) (Class, bool) {
	if payload < 0 || payload > MaxPayload {
		return 0, false
	}
	if payload <= firstPayload {
		return 0, true
	}
	return classOf[1+(payload-firstPayload+linePayload-1)/linePayload], true
}

// Size returns the raw bytes an object of class c occupies, a multiple of 64.
func (c Class) Size() int { return int(classLines[c]) * lineBytes }

// Capacity returns the payload bytes an object of class c holds.
func (c Class) Capacity() int { return firstPayload + (int(classLines[c])-1)*linePayload }
