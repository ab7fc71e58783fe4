package hash

import (
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/lookup"
	"github.com/farmsql/farmsql/txn/worker"
)

// A buffer is the memory of a lookup outside of transactions: for the pages that it reads, its seek, and a copy of the
// key, so that the caller's key can stay on the stack. It is the seek's lookup.Reader.
type buffer struct {
	pair   []byte // two buckets
	value  []byte
	block  []byte
	object []byte // an outside pair; grows to the largest read so far
	key    []byte
	op     worker.Operation
	seek   seek
	read   [2]lookup.Object // the buckets, if the caller has read them itself
}

func newBuffer(lay *layout) *buffer {
	return &buffer{pair: make([]byte, 2*lay.class.Capacity()), value: make([]byte, lay.dataBytes)}
}

func (b *buffer) sized(p *[]byte, n int) []byte {
	if cap(*p) < n {
		*p = make([]byte, n)
	}
	return (*p)[:n]
}

// begin prepares the buffer for a lookup within op, of a key with hash h in a shard.
func (b *buffer) begin(tb *Table, o *opened, op worker.Operation, in *shard, h uint64, key []byte) {
	b.op, b.key = op, append(b.key[:0], key...)
	b.seek.begin(tb, o, in, h, b.key, b.seek.sources)
	b.seek.pair = true
}

// end drops the references of a lookup.
func (b *buffer) end() {
	b.op, b.seek, b.read = worker.Operation{}, seek{sources: b.seek.sources[:0]}, [2]lookup.Object{}
}

// answer returns what the seek has found, in dst's memory if that is large enough, or err.
func (b *buffer) answer(dst []byte, err error) ([]byte, bool, error) {
	if err != nil || !b.seek.found {
		return nil, false, err
	}
	return append(dst[:0], b.seek.value...), true, nil
}

// Peek implements lookup.Reader. The bytes of a block are valid until Peek reads the next block, those of another
// object until Peek reads the next object that is no block.
func (b *buffer) Peek(p region.Ptr) ([]byte, region.Version, error) {
	into := &b.object
	if b.seek.stage == atBlock {
		into = &b.block
	}
	dst := b.sized(into, p.Capacity())
	v, err := b.op.Read(p, dst)
	return dst, v, err
}

// PeekPair reads both buckets.
func (b *buffer) PeekPair(p region.Ptr) (home, after []byte, vh, va region.Version, err error) {
	vh, va, err = b.op.ReadPair(p, b.pair)
	n := len(b.pair) / 2
	return b.pair[:n], b.pair[n:], vh, va, err
}
