package tao

import (
	"encoding/binary"

	"github.com/farmsql/farmsql/region"
)

// types is how many types of edges there are.
const types = 2

// A node is a node's payload.
type node []byte

// Offsets in a node.
const (
	nodeVersion = 8
	nodeLength  = 12
	nodeType    = 14
	nodeCounts  = 16
	nodeHeads   = nodeCounts + 4*types
	nodeBytes   = nodeHeads + types*region.PtrBytes // bytes of a node before its data
)

// format makes an empty node of zero bytes.
func (n node) format(id uint64, length int) {
	binary.LittleEndian.PutUint64(n, id)
	binary.LittleEndian.PutUint16(n[nodeLength:], uint16(length))
	n[nodeType] = typeOf(id)
	n.update()
}

// update gives the node its next version, with new data.
func (n node) update() {
	binary.LittleEndian.PutUint32(n[nodeVersion:], n.version()+1)
	fillData(n.data(), n.id(), n.version())
}

func (n node) id() uint64      { return binary.LittleEndian.Uint64(n) }
func (n node) version() uint32 { return binary.LittleEndian.Uint32(n[nodeVersion:]) }

// data returns the node's data; nil if the node's length is impossible.
func (n node) data() []byte {
	end := nodeBytes + int(binary.LittleEndian.Uint16(n[nodeLength:]))
	if end > len(n) {
		return nil
	}
	return n[nodeBytes:end]
}

func (n node) count(kind uint8) int {
	return int(binary.LittleEndian.Uint32(n[nodeCounts+4*int(kind):]))
}

func (n node) setCount(kind uint8, count int) {
	binary.LittleEndian.PutUint32(n[nodeCounts+4*int(kind):], uint32(count))
}

func (n node) head(kind uint8) (region.Ptr, error) {
	return decodePtr(n[nodeHeads+region.PtrBytes*int(kind):])
}

// setHead sets the pointer to the head of a list: Append writes into n's memory.
func (n node) setHead(kind uint8, p region.Ptr) {
	p.Append(n[:nodeHeads+region.PtrBytes*int(kind)])
}

func decodePtr(b []byte) (region.Ptr, error) {
	p, err := region.DecodePtr(b)
	if err != nil {
		return p, broken("a pointer: %v", err)
	}
	return p, nil
}

// A block is a list node's payload.
type block []byte

// Offsets in a block.
const (
	blockNext   = 8
	blockLength = 24
	blockType   = 26
	blockIsHead = 27
	blockBytes  = 32 // bytes of a block before its edges

	edgeTime  = region.PtrBytes
	edgeData  = edgeTime + 8
	edgeBytes = edgeData + 8
)

// blockEdges are the sizes of blocks, without bytes left over in their lines.
// A list's only block grows, the others are of the largest size.
var blockEdges = [...]int{2, 6, edgesMax}

const edgesMax = 14

// payloadFor returns the payload of the smallest block that has room for this number of edges, at
// most edgesMax.
func payloadFor(edges int) int {
	i := 0
	for blockEdges[i] < edges {
		i++
	}
	return blockBytes + blockEdges[i]*edgeBytes
}

// asBlock returns a payload as a block of the list, or false if it is none.
func asBlock(payload []byte, id uint64, kind uint8) (block, bool) {
	b := block(payload)
	ok := len(b) >= blockBytes && binary.LittleEndian.Uint64(b) == id && b[blockType] == kind && b.n() <= b.room()
	return b, ok
}

// format makes an empty block of zero bytes.
func (b block) format(id uint64, kind uint8) {
	binary.LittleEndian.PutUint64(b, id)
	b[blockType] = kind
}

func (b block) n() int     { return int(binary.LittleEndian.Uint16(b[blockLength:])) }
func (b block) setN(n int) { binary.LittleEndian.PutUint16(b[blockLength:], uint16(n)) }

// room returns the number of edges that the block has room for.
func (b block) room() int    { return min(edgesMax, (len(b)-blockBytes)/edgeBytes) }
func (b block) isHead() bool { return b[blockIsHead] != 0 }

func (b block) setHead(isHead bool) {
	b[blockIsHead] = 0
	if isHead {
		b[blockIsHead] = 1
	}
}

func (b block) next() (region.Ptr, error) { return decodePtr(b[blockNext:]) }
func (b block) isLast() bool              { return binary.LittleEndian.Uint64(b[blockNext:]) == 0 }
func (b block) setNext(p region.Ptr)      { p.Append(b[:blockNext]) } // appends in place

// edge returns the bytes of edge i; edges returns the bytes of all edges from i on.
func (b block) edge(i int) []byte  { return b[blockBytes+i*edgeBytes:][:edgeBytes] }
func (b block) edges(i int) []byte { return b[blockBytes+i*edgeBytes : blockBytes+b.n()*edgeBytes] }

func (b block) time(i int) uint64 { return binary.LittleEndian.Uint64(b.edge(i)[edgeTime:]) }

// find returns the index of the edge that leads to the node with this encoded name, or -1.
func (b block) find(name []byte) int {
	for i := range b.n() {
		if string(b.edge(i)[:region.PtrBytes]) == string(name) {
			return i
		}
	}
	return -1
}

// insert puts an edge at its place in the order of times, the newest first. The block must have
// room. Of edges with the same time, the one inserted last counts as the newest.
func (b block) insert(e []byte) {
	time, i, n := binary.LittleEndian.Uint64(e[edgeTime:]), 0, b.n()
	for i < n && b.time(i) > time {
		i++
	}
	later := b.edges(i) // these move one place back
	b.setN(n + 1)
	copy(b.edges(i+1), later)
	copy(b.edge(i), e)
}

// remove removes edge i: those behind it move one place forward.
func (b block) remove(i int) {
	copy(b.edges(i), b.edges(i+1))
	clear(b.edge(b.n() - 1))
	b.setN(b.n() - 1)
}

// putEdge encodes an edge of a list.
func putEdge(e []byte, id uint64, kind uint8, target region.Ptr, time uint64) {
	target.Append(e[:0])
	binary.LittleEndian.PutUint64(e[edgeTime:], time)
	binary.LittleEndian.PutUint64(e[edgeData:], edgeSum(e, id, kind))
}

// edgeSum returns the data of an edge, a checksum: it shows if parts of two edges are mixed.
func edgeSum(e []byte, id uint64, kind uint8) uint64 {
	sum := mixed(id*types + uint64(kind))
	for i := 0; i < edgeData; i += 8 {
		sum = mixed(sum ^ binary.LittleEndian.Uint64(e[i:]))
	}
	return sum
}

// Keys and values of the table of names.
const (
	keyBytes  = 8
	nameBytes = region.PtrBytes + 1 // a pointer, and whether the node has been deleted
)

func appendKey(b []byte, id uint64) []byte { return binary.LittleEndian.AppendUint64(b, id) }

// appendName appends the value of the table of names: a pointer to the node, and whether it is
// deleted.
func appendName(b []byte, p region.Ptr, isDeleted bool) []byte {
	b = p.Append(b)
	if isDeleted {
		return append(b, 1)
	}
	return append(b, 0)
}
