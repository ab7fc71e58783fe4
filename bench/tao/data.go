package tao

import (
	"encoding/binary"
	"math"
)

// The graph as it is loaded. The data and edges of a node depend only on the seed and the
// node.
const (
	degreeMax = 1000
	// P(degree >= d) is (1 + d/degreeScale)^-degreeShape: 4.35 on average.
	degreeShape = 1.5
	degreeScale = 2.528

	dataMedian = 128
	dataMax    = 8192

	// stride is the distance from an edge's target to the next one's: a prime larger than
	// any number of nodes, so that no target occurs twice.
	stride = 1<<31 - 1

	// newest is the time of the newest edge loaded, in microseconds: in 2001.
	newest = 1_000_000_000_000_000
)

type generator struct {
	seed, nodes uint64
}

// mixed returns the hash of x by the finalizer of SplitMix64.
func mixed(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb
	return x ^ (x >> 31)
}

// draw returns one of a node's random numbers, which are the same every time; which selects the number.
func (g generator) draw(id, which uint64) uint64 { return mixed(mixed(g.seed^id) + which) }

// unit converts 64 random bits to a number in (0, 1].
func unit(x uint64) float64 { return (float64(x>>11) + 1) / (1 << 53) }

// degree returns the number of a node's edges, of all types: the inverse of P (see degreeShape) of a
// random number.
func (g generator) degree(id uint64) int {
	d := degreeScale * (math.Pow(unit(g.draw(id, 0)), -1/degreeShape) - 1)
	return int(min(d, degreeMax, float64(g.nodes)))
}

// count returns the number of a node's edges of one type. The types share the edges equally; one that is
// left over is of the first type.
func (g generator) count(id uint64, kind uint8) int {
	return (g.degree(id) + types - 1 - int(kind)) / types
}

// target returns the target of the k-th edge of a type; the first is the newest. All targets of a
// node differ, because they are multiples of stride apart.
func (g generator) target(id uint64, kind uint8, k int) uint64 {
	first, steps := g.draw(id, 1)%g.nodes, uint64(k*types+int(kind))
	return 1 + (first+steps*stride)%g.nodes
}

// time returns the time of the k-th edge of a type, in microseconds.
func (g generator) time(k int) uint64 { return newest - uint64(k) }

// length returns the length of a node's data.
func (g generator) length(id uint64) int { return dataLength(g.draw(id, 2), g.draw(id, 3)) }

// dataLength draws from a lognormal distribution with sigma 1, by Box and Muller.
func dataLength(a, b uint64) int {
	normal := math.Sqrt(-2*math.Log(unit(a))) * math.Cos(2*math.Pi*unit(b))
	return int(min(dataMedian*math.Exp(normal), dataMax))
}

// typeOf returns a node's type.
func typeOf(id uint64) uint8 { return uint8(mixed(id) % 10) }

// fillData makes the data of a version of a node.
func fillData(data []byte, id uint64, version uint32) {
	x := mixed(id ^ (uint64(version) << 32))
	for len(data) >= 8 {
		binary.LittleEndian.PutUint64(data, x)
		data, x = data[8:], x*0x9e3779b97f4a7c15+1
	}
	for i := range data {
		data[i] = byte(x >> (8 * i))
	}
}
